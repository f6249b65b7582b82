//! Changes other processes so that their bytes come in time, fast, and whole; never touches their programs.

pub mod arena;
pub mod carry;
pub mod drain;
pub mod elf;
pub mod follow;
pub mod inject;
pub mod plan;
pub mod preload;
pub mod program;
pub mod pty;
pub mod request;
pub mod runtimes;
pub mod surroundings;
pub mod why;
