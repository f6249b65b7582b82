//! One observation: joins a tracing backend, the recorder, buffer snapshots and call sites.

mod blind_spots;
mod blocked_calls;
mod buffer_watch;
mod cpu_credit;
pub mod doctor;
mod input_after_write;
mod overhead;
mod program_languages;
mod record;
mod survivors;
mod target_state;
mod unreadable_buffers;
mod unrecorded_calls;
mod unseen_files;
mod work_at_kill;

pub use buffer_watch::BufferWatch;
pub use record::record;
