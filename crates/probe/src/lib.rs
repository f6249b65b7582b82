//! Sees into other processes and writes down what they do with their bytes.
//!
//! Three engines (eBPF, ptrace, /proc) say what happens in one vocabulary, [`raw`]; the assembler makes a
//! [`weir_model::trace::Recording`] of it; [`walk`] reads the stream buffers in a program's own memory.

mod assemble;
mod behind;
mod breakpoint;
pub mod command;
mod ebpf;
pub mod elf;
pub mod engine;
pub mod error;
pub mod inherited;
pub mod launch;
pub mod memory;
pub mod peek;
pub(crate) mod place;
pub mod proc;
pub mod ptrace;
pub mod raw;
pub mod sample;
pub mod seccomp;
pub mod signals;
mod stat;
pub mod subject;
pub mod survey;
pub mod syscalls;
mod text;
pub mod trace;
mod unread;
pub mod walk;
pub mod watch;

pub use error::{Error, errno_text};
