//! Collects records from many sources into one log, each record whole: the engine of `weir log`.
//!
//! Bytes go from a [`source`] through its intake, which divides them into records, to the sink, which writes whole records to a
//! stream of libweir. One thread does this with epoll(7). Syncs and the finishing of rotated files have threads of their own.

mod backlog;
pub mod check;
mod collector;
mod engine;
mod error;
mod format;
mod framing;
#[doc(hidden)] // for fuzz/ only
pub mod fuzzing;
mod intake;
mod loss;
mod metrics;
mod multiline;
mod notify;
mod options;
mod resident;
mod sink;
mod source;
mod stamp;
mod status;
mod summary;
mod syslog;

pub use backlog::SpillOptions;
pub use engine::Engine;
pub use error::Error;
pub use format::{Fields, Format};
pub use framing::{Framing, Oversize};
pub use loss::loss_sentence;
pub use metrics::MetricsTarget;
pub use options::{Flush, LogOptions, Overflow, SourceSpec, SyncPolicy, WriteBudget};
pub use sink::{Compression, Retention, RotationPolicy, TornTail};
pub use source::GpioSpec;
pub use stamp::Stamp;
pub use status::ask;
pub use summary::LogSummary;
