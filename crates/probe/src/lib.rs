//! Sees into other processes and writes down what they do with their bytes.
//!
//! Three engines (eBPF, ptrace, /proc) say what happens in one vocabulary, [`raw`]; the assembler makes a
//! [`weir_model::trace::Recording`] of it; [`walk`] reads the stream buffers in a program's own memory.

mod assemble;
mod ebpf;
pub mod engine;
pub mod peek;
pub(crate) mod place;
pub mod ptrace;
pub mod raw;
pub mod sample;
pub mod survey;
pub mod trace;
mod unread;
pub mod watch;
