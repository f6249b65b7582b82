//! Changes other processes so that their bytes come in time, fast, and whole; never touches their programs.

pub mod arena;
pub mod preload;
