//! The results of `weir log`: what it has collected (schema weir-log/1), and what `weir log check` found in a log (schema
//! weir-log-check/1).
//!
//! Field names are the interface (docs/schemas).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Value of [`LogDocument::schema`].
pub const SCHEMA: &str = "weir-log/1";

/// Value of [`LogCheckDocument::schema`].
pub const CHECK_SCHEMA: &str = "weir-log-check/1";

/// The counts of one source, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCounts {
    /// Records in the log.
    pub records: u64,
    /// Bytes that the sources sent.
    pub bytes: u64,
    /// Records that were dropped: by the kernel (UDP), or because the memory was full.
    pub dropped: u64,
    /// Records that were longer than the maximum, or do not fit the records of the log, and were refused.
    pub refused: u64,
    /// Last records of sources, without their end.
    pub unfinished: u64,
    /// Records in the log that the next one continues.
    pub split: u64,
    /// Records in the log without their end.
    pub cut: u64,
}

/// The treatment of new records while the log cannot be written and the memory of their source is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// The source is not read: its sender waits.
    #[default]
    Block,
    /// The oldest records in memory are dropped and counted.
    DropOldest,
    /// The new records are dropped and counted.
    DropNewest,
    /// They go to a file, and into the log when it can be written again.
    Spill,
}

/// An open source and its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSource {
    /// The name, as lines of the log have it.
    pub name: Untrusted,
    /// Bytes that are no record in the log yet.
    pub held_bytes: u64,
    /// The counts since the source began.
    #[serde(flatten)]
    pub counts: LogCounts,
}

/// The document that `weir log --json` and `weir log status --json` write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The path of the log; null for standard output.
    pub log: Option<Untrusted>,
    /// The process that collects.
    pub pid: u32,
    /// Seconds since its start.
    pub elapsed_s: f64,
    /// The totals of all sources.
    pub totals: LogCounts,
    /// Bytes that were written, or are to be written.
    pub log_bytes: u64,
    /// Accepted bytes that are not written yet.
    pub pending_bytes: u64,
    /// Number of fdatasync(2) calls since the start.
    pub syncs: u64,
    /// Seconds since the last successful sync.
    pub last_sync_s: Option<f64>,
    /// Why the last sync failed.
    pub sync_error: Option<String>,
    /// Rotations since the start.
    pub rotations: u64,
    /// How often the log could not be written for a while.
    pub stalls: u64,
    /// Whether the log cannot be written now.
    pub stalled: bool,
    /// The treatment of new records meanwhile; None at the end of a run, and in the documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// Connections that are open now.
    pub connections: u64,
    /// The sources that are open, at most the first 1,000.
    pub sources: Vec<LogSource>,
}

/// The document that `weir log check --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCheckDocument {
    /// [`CHECK_SCHEMA`].
    pub schema: String,
    /// The file that was checked.
    pub log: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whole records and all others.
    pub records: u64,
    /// Records that are as one writer wrote them.
    pub whole: u64,
    /// Records that do not match, or of which a part is missing.
    pub torn: u64,
    /// Records that contain parts of several writers' records.
    pub interleaved: u64,
    /// Bytes behind the last whole record.
    pub unfinished_bytes: u64,
    /// NUL bytes at the end, as a power cut leaves them.
    pub nul_bytes: u64,
    /// Each writer, in the order of its first record.
    pub writers: Vec<LogWriter>,
    /// The first records that are not whole.
    pub bad: Vec<BadRecord>,
    /// The command line of weir; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Machine and settings, by name; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The records of one writer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogWriter {
    /// The writer, as its records name it.
    pub name: Untrusted,
    /// Whole records of this writer.
    pub records: u64,
    /// How often its records follow records of another writer.
    pub runs: u64,
    /// Numbers that are missing between the first and the last one, if records have numbers.
    pub missing: u64,
    /// Numbers that came again, or late.
    pub repeated: u64,
}

/// A record that is not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRecord {
    /// The number of the record, from 1.
    pub record: u64,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The fault: torn or interleaved.
    pub kind: String,
    /// The first bytes of the record, at most 60.
    pub excerpt: Untrusted,
}

impl LogCheckDocument {
    /// Returns whether every record is whole, and no number is missing or came again.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let whole = self.whole == self.records && self.unfinished_bytes == 0 && self.nul_bytes == 0;
        whole && self.writers.iter().all(|writer| writer.missing == 0 && writer.repeated == 0)
    }
}
