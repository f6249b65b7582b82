//! The counts at the end of a run.

use std::path::Path;
use std::time::Duration;

use weir_model::log::{LogCounts, LogDocument, SCHEMA};

use crate::intake::IntakeCounts;
use crate::sink::ClosedSink;

/// The counts of a run, and the status of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// The totals of all sources.
    pub totals: LogCounts,
    /// Bytes that went to the log.
    pub log_bytes: u64,
    /// Number of fdatasync(2) and fsync(2) calls.
    pub syncs: u64,
    /// Rotations since the start.
    pub rotations: u64,
    /// How often the log could not be written for a while.
    pub stalls: u64,
    /// Accepted bytes that could not be written.
    pub pending_bytes: u64,
    /// Why a sync failed.
    pub sync_error: Option<String>,
    /// From the start to the end.
    pub elapsed: Duration,
    /// The status of the command, if there was one; 128 and more for a signal, as shells do.
    pub command_status: Option<i32>,
}

impl LogSummary {
    pub(crate) fn new(
        closed: &ClosedSink,
        totals: IntakeCounts,
        elapsed: Duration,
        command_status: Option<i32>,
    ) -> Self {
        Self {
            totals: totals.into(),
            log_bytes: closed.counts.bytes,
            pending_bytes: closed.pending_bytes,
            sync_error: closed.sync_error.clone(),
            syncs: closed.counts.syncs,
            rotations: closed.counts.rotations,
            stalls: closed.counts.stalls,
            elapsed,
            command_status,
        }
    }

    /// Returns the result as a document about the log.
    #[must_use]
    pub fn document(&self, log: Option<&Path>) -> LogDocument {
        LogDocument {
            schema: SCHEMA.into(),
            log: log.map(weir_model::Untrusted::of_os),
            pid: std::process::id(),
            elapsed_s: self.elapsed.as_secs_f64(),
            totals: self.totals,
            log_bytes: self.log_bytes,
            pending_bytes: self.pending_bytes,
            syncs: self.syncs,
            last_sync_s: None,
            sync_error: self.sync_error.clone(),
            rotations: self.rotations,
            stalls: self.stalls,
            stalled: self.pending_bytes > 0,
            overflow: None,
            connections: 0,
            sources: Vec::new(),
        }
    }
}
