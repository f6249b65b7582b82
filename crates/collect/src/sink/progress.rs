//! The progress of the log: the bytes that the sink has accepted, and those that a kill or a power cut can no longer lose.

use super::LogSink;
use crate::options::SyncPolicy;

/// A position among the bytes and records that a sink has accepted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    bytes: u64,
    records: u64,
}

/// The end of the accepted bytes, and the end of those that are in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogProgress {
    pub(crate) accepted: LogPosition,
    /// All bytes before it were written by write(2), and are on the device if the log is synced.
    safe: LogPosition,
}

impl LogProgress {
    /// Returns whether everything before the position is in the log.
    pub(crate) fn is_safe(self, position: LogPosition) -> bool {
        position.bytes <= self.safe.bytes && position.records <= self.safe.records
    }
}

impl LogSink {
    /// Returns whether the options promise records on the device.
    pub(crate) fn is_synced(&self) -> bool {
        self.options.sync != SyncPolicy::None || self.has_budget()
    }

    pub(crate) fn progress(&self) -> LogProgress {
        let (bytes, records) = (self.counts.bytes, self.counts.records);
        let safe = LogPosition {
            bytes: bytes.saturating_sub(self.pending_bytes()),
            records: if self.is_synced() && self.file.sync_fd().is_some() {
                self.durable_records
            } else {
                u64::MAX
            },
        };
        LogProgress { accepted: LogPosition { bytes, records }, safe }
    }
}
