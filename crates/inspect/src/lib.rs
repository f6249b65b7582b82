//! Inspects running processes: [`peek`] at their buffers, a [`survey`] of all of them, and the [`call_sites`] of writes.

pub mod call_sites;
pub mod fork_copies;
pub mod peek;
mod pipe_ends;
mod process_buffers;
pub mod survey;
mod write_in_progress;

pub use process_buffers::ProcessBuffers;
