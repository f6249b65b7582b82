//! The loss that a crash can cause, in words.

use weir_model::Size;
use weir_model::duration::format_seconds;

use crate::options::{Flush, LogOptions, SyncPolicy};

/// Returns two sentences: what is lost when weir is killed, and when the power fails. They do not count bytes that senders have
/// not sent.
#[must_use]
pub fn loss_sentence(options: &LogOptions) -> String {
    let buffer = Size(options.buffer_bytes as u64);
    let kill = match options.flush {
        Flush::None | Flush::Line => {
            "a kill of weir loses only what it is reading at that moment".to_string()
        }
        Flush::Budget(budget) => {
            let pause = |bytes| format_seconds(budget.pause_after(bytes).as_secs_f64());
            let (least, most) = (pause(1), pause(options.buffer_bytes as u64));
            return format!(
                "the write budget delays records by {least} to {most}, less if the buffer of {buffer} is full; a kill of weir or a power cut loses at most the records of this delay and of one sync"
            );
        }
        Flush::Full => format!("a kill of weir loses at most {buffer} of records"),
        Flush::Within(bound) => {
            format!("a kill of weir loses at most the last {}", format_seconds(bound.as_secs_f64()))
        }
    };
    let bound_s = if let Flush::Within(bound) = options.flush { bound.as_secs_f64() } else { 0.0 };
    let power = match options.sync {
        _ if options.output.is_none() => {
            "what a power cut loses depends on the reader of standard output".to_string()
        }
        SyncPolicy::None => {
            "a power cut loses what the kernel has not written, usually the last 30 s".to_string()
        }
        SyncPolicy::Interval(interval) => {
            let most = format_seconds(interval.as_secs_f64() + bound_s);
            format!("a power cut loses at most the last {most} and the time of one sync")
        }
        SyncPolicy::Bytes(bytes) => {
            format!("a power cut loses at most the last {} and what arrives during one sync", Size(bytes))
        }
        SyncPolicy::Record if options.ack => "a power cut loses no acknowledged record".to_string(),
        SyncPolicy::Record => "a power cut loses at most the records that arrive during one sync".to_string(),
    };
    format!("{kill}; {power}")
}
