//! The document that `weir advise --json` writes (schema weir-advise/1).
//!
//! Field names are the interface (docs/schemas/weir-advise-1.schema.json). Times are seconds unless the name says
//! otherwise, sizes bytes.

mod prices;
mod question;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Mode, Untrusted};

pub use prices::{AdvicePrices, CallPrice, SharedPrice, SizedPrice};
pub use question::{AdviceLanguage, AdviceQuestion, AllowedLoss, Medium};

/// Value of [`AdviceDocument::schema`].
pub const SCHEMA: &str = "weir-advise/1";

/// The answer of `weir advise`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The question, with the defaults of the answers that were not given.
    pub question: AdviceQuestion,
    /// Facts of the machine and the directory.
    pub host: AdviceHost,
    /// The prices from which the predictions follow; each was measured in the directory.
    pub prices: AdvicePrices,
    /// Sentences about figures that were not measured here.
    pub assumptions: Vec<String>,
    /// The three best ways, the best first.
    pub choices: Vec<Choice>,
    /// The other ways that were considered.
    pub others: Vec<OtherWay>,
    /// Sentences about what else the program must do: rotation, fork, threads, other writers.
    pub notes: Vec<String>,
    /// The traced program from which the question was derived; `None` without `--for`.
    pub traced: Option<TracedProgram>,
}

/// Facts of the machine that decide what a power cut costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceHost {
    /// File system type of the directory.
    pub fs: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// CPUs that weir may use.
    pub cpus: usize,
    /// Medium below the directory; [`Medium::Unknown`] if it cannot be found out.
    pub medium: Medium,
    /// Longest time for which written bytes stay in the page cache: dirty_expire_centisecs + dirty_writeback_centisecs.
    pub writeback_s: f64,
    /// Dirty bytes at which writers must wait (dirty_ratio); `None` if unknown.
    pub dirty_limit_bytes: Option<u64>,
}

/// When a way forces written bytes to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SyncPoint {
    /// Never; the kernel writes the bytes back by itself.
    #[serde(rename = "none")]
    None,
    /// fdatasync(2) after each record.
    #[serde(rename = "record")]
    Record,
    /// open(2) with O_DSYNC: each write(2) waits for the device.
    #[serde(rename = "o_dsync")]
    ODsync,
    /// fdatasync(2) for all records that threads wrote meanwhile.
    #[serde(rename = "group")]
    Group,
    /// fdatasync(2) from a timer.
    #[serde(rename = "period")]
    Period,
}

/// The method by which bytes reach the kernel. Its word in JSON is also that of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMethod {
    /// write(2).
    Syscall,
    /// The buffered streams of the language: stdio, BufWriter, bufio …
    Stdio,
    /// libweir(7).
    Libweir,
    /// Stores into a shared mapping.
    Mmap,
    /// write(2) with O_DIRECT.
    Direct,
    /// io_uring(7).
    IoUring,
    /// copy_file_range(2), sendfile(2), splice(2).
    InKernel,
}

impl WriteMethod {
    /// Every method, in the order of the declaration.
    pub const ALL: &'static [Self] =
        &[Self::Syscall, Self::Stdio, Self::Libweir, Self::Mmap, Self::Direct, Self::IoUring, Self::InKernel];

    /// Returns the word on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::Stdio => "stdio",
            Self::Libweir => "libweir",
            Self::Mmap => "mmap",
            Self::Direct => "direct",
            Self::IoUring => "io-uring",
            Self::InKernel => "in-kernel",
        }
    }
}

/// Cost of a way at the rate of the question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedCost {
    /// System calls of the writer and its timer per second.
    pub calls_per_s: f64,
    /// CPU time in percent of one CPU.
    pub cpu_percent: f64,
    /// Share of the time that the records take, with waits for syncs and for other writers.
    pub busy_percent: f64,
    /// Nanoseconds of a record if records follow without a pause, with its share of flushes and syncs, while the page cache
    /// has room.
    pub record_ns: f64,
    /// `record_ns` if each sync takes the shortest and the longest time that was measured in the directory; `None` for ways without
    /// syncs, and if it was not measured.
    #[serde(default)]
    pub record_ns_range: Option<[f64; 2]>,
    /// The most records per second that this way can do for a long time: as many as the writers make and the device takes.
    pub max_rate: f64,
    /// The longest time from the call until another process can read the record; with a sync in the call, until the call
    /// returns.
    pub latency_s: f64,
    /// The most bytes that a kill of the process loses.
    pub at_risk_kill_bytes: u64,
    /// The most bytes that a power cut loses.
    pub at_risk_power_bytes: u64,
    /// Bytes that the medium programs in a day; `None` for media that do not wear.
    pub flash_bytes_per_day: Option<f64>,
}

/// One of the three best ways, with its code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The way in a few words.
    pub name: String,
    /// How bytes reach the kernel.
    pub method: WriteMethod,
    /// When the buffer is written.
    pub mode: Mode,
    /// Size of the user-space buffer; 0 without one.
    pub buffer_bytes: u64,
    /// When written bytes are forced to the device.
    pub sync: SyncPoint,
    /// Interval of the timer that writes the buffer; `None` without a timer.
    pub flush_period_s: Option<f64>,
    /// Interval of the timer that syncs; `None` without one.
    pub sync_period_s: Option<f64>,
    /// Whether the way keeps every limit of the question.
    pub holds: bool,
    /// Cost at the rate of the question.
    pub predicted: PredictedCost,
    /// Why another way is better; `None` for the first.
    pub why_not: Option<String>,
    /// Sentences about what the way does not do.
    pub caveats: Vec<String>,
    /// A complete program by language.
    pub code: BTreeMap<String, String>,
}

/// A way that is not among the three best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct OtherWay {
    pub name: String,
    pub method: WriteMethod,
    /// Whether the way keeps every limit of the question.
    pub holds: bool,
    /// The price; `None` if the way does not apply or its price could not be measured here.
    pub predicted: Option<PredictedCost>,
    pub why_not: String,
    /// A complete program by language, of the ways that bypass the streams: mapping, O_DIRECT, io_uring, in-kernel copy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub code: BTreeMap<String, String>,
}

/// Use that a traced program makes of the stream that the question is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TracedProgram {
    pub comm: Untrusted,
    pub fd: i32,
    pub path: Untrusted,
    pub calls: u64,
    pub bytes: u64,
    /// Duration of the recording.
    pub elapsed_s: f64,
    /// Calls of the fsync(2) family.
    pub syncs: u64,
    /// Buffering mode that the trace found; `None` if unknown.
    pub mode: Option<Mode>,
    /// Lines of the source to change, as `function at file:line`; empty without debug information.
    pub change: Vec<Untrusted>,
    /// Identifiers of the findings about this stream.
    pub findings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_method_is_that_of_json() {
        for method in WriteMethod::ALL {
            assert_eq!(serde_json::to_value(method).unwrap(), method.word());
        }
    }
}
