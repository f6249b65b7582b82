//! Sees into other processes and writes down what they do with their bytes.
//!
//! Three engines (eBPF, ptrace, /proc) say what happens in one vocabulary, [`raw`]; the assembler makes a
//! [`weir_model::trace::Recording`] of it; [`walk`] reads the stream buffers in a program's own memory.

mod assemble;
pub mod peek;
pub(crate) mod place;
pub mod survey;
pub mod trace;
mod unread;
pub mod watch;
