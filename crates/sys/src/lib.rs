//! Linux interfaces that need `unsafe` or `/proc`, as safe functions.

pub mod blocking_calls;
pub mod breakpoint;
mod cached_paths;
pub mod clock;
pub mod code_pages;
pub mod command;
pub mod companion;
pub mod datagram;
pub mod elf;
pub mod error;
pub mod executable;
pub mod expendable;
pub mod file_system;
mod foreign_reads;
#[doc(hidden)] // for fuzz/ only
pub mod fuzzing;
pub mod hang_guard;
pub mod inherited;
pub mod io_priority;
pub mod launch;
pub mod living_thread;
pub mod maps;
pub mod memory;
mod messages;
mod mount_table;
pub mod open_files;
pub mod page_cache;
pub mod proc;
pub mod process_access;
pub mod process_stat;
pub mod ptrace;
mod reading_only;
pub mod seccomp;
pub mod seccomp_copy;
mod served_mappings;
mod served_mounts;
mod shared_memory;
pub mod signals;
mod silence_watch;
pub mod syscalls;
pub mod tracefs;
pub mod unkillable;
pub mod write_as;
pub mod writer_identity;

pub use error::{Error, errno_text};
