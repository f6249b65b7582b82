//! What a run of the benchmark leaves behind: the document `weir-bench/1`.
//!
//! Field names are the interface (docs/schemas/weir-bench-1.schema.json). Times are seconds, sizes bytes;
//! every figure of a row is for the row's whole `bytes`, scaled up where `extrapolated` says so.

pub mod compare;

use std::collections::BTreeMap;

use crate::{CostModel, Knee, Ratio, Summary};
use serde::{Deserialize, Serialize};

/// Value of [`BenchDocument::schema`].
pub const SCHEMA: &str = "weir-bench/1";

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// When it started, UTC, as in RFC 3339.
    pub started: String,
    /// Wall-clock seconds that it took.
    pub took_s: f64,
    /// `false`: interrupted or failed; the rows hold what was measured until then.
    pub complete: bool,
    /// Where it ran.
    pub machine: Machine,
    /// What two runs of the same thing differ by here.
    pub noise: Noise,
    /// Rows that can be compared with each other, in the order of the tables.
    pub groups: Vec<RowGroup>,
    /// One for each cell asked for, measured or not.
    pub rows: Vec<BenchRow>,
    /// The first group's.
    pub model: Option<CostModel>,
    /// The first group's.
    pub knee_bytes: Option<u64>,
    /// In sentences.
    pub answers: Vec<BenchAnswer>,
    /// Others' figures beside ours.
    pub published: Vec<PublishedComparison>,
    /// The rounds, with what disturbed them.
    pub rounds: Vec<Round>,
    /// What the reader should know before trusting the figures.
    pub warnings: Vec<String>,
}

/// Where it ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cpus: usize,
    /// `x86_64`, `aarch64`, …
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// C library and version.
    pub libc: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Hypervisor or container, where one is seen.
    pub virtualization: Option<String>,
    /// Frequency governor, where the machine shows one.
    pub governor: Option<String>,
}

/// What the same cell measured twice in each round shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Noise {
    /// A/A pairs in all.
    pub pairs: usize,
    /// Rounds that they came from.
    pub rounds: usize,
    /// Share by which the CPU time of the same thing can seem to differ (0.02: 2 %); `None`: too few pairs.
    pub cpu: Option<f64>,
    /// The same of wall-clock time.
    pub wall: Option<f64>,
}

/// Noise assumed of a run that measured too few A/A pairs to know its own.
pub const UNKNOWN_NOISE: f64 = 0.10;

impl Noise {
    /// Share of wall-clock time within which two figures are one.
    pub fn floor(&self) -> f64 {
        self.wall.unwrap_or(UNKNOWN_NOISE)
    }
}

/// Rows that differ in method and sizes only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowGroup {
    /// What every row of it has.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Cost of calls, bytes and syncs.
    pub model: Option<CostModel>,
    /// The method that `model` and `knee` are of.
    pub model_method: Option<String>,
    /// Nanoseconds that each other method spends in user space for one record, beside the model's calls
    /// and bytes.
    pub pass_ns: BTreeMap<String, f64>,
    /// Where gains stop.
    pub knee: Option<Knee>,
    /// Mount options of the file system.
    pub mount_options: String,
}

/// What rows must share to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKey {
    /// `copy`, `write`, `read`, `translate` or `log`.
    pub workload: String,
    /// Bytes of the whole job.
    pub bytes: u64,
    /// File system type, as mounted.
    pub fs: String,
    /// Directory that the private one was made in; for a loop image, the file system's name.
    pub dir: String,
    /// `warm` or `cold`.
    pub cache: String,
    /// Sync policy: `none`, `end`, `fsync`, `fdatasync`, `o_dsync`, `o_sync`, `rwf_dsync`, `sync_file_range`.
    pub sync: String,
    /// For a policy that repeats: after how many records; `None`: not counted in records.
    pub sync_every_records: Option<u64>,
    /// For a policy that repeats: after how many bytes; `None`: not counted in bytes.
    pub sync_every_bytes: Option<u64>,
    /// posix_fadvise(2) advice on the input.
    pub advice: Option<String>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRow {
    /// What it shares with its group; flattened: `workload`, `bytes`, `sync`, `cache`, `fs`, `dir` …
    #[serde(flatten)]
    pub group: GroupKey,
    /// Method.
    pub method: String,
    /// What one call of the program moves.
    pub record_bytes: u64,
    /// User-space buffer of the method; `None`: it has none, or the C library's default.
    pub buffer_bytes: Option<u64>,
    /// setvbuf(3) mode of a stdio method; `None`: the default.
    pub mode: Option<String>,
    /// Records a readv/writev call.
    pub vector_records: Option<u32>,
    /// io_uring requests in flight.
    pub queue_depth: Option<u32>,
    /// Why this machine, file system or method cannot do it; the figures are then absent.
    pub cannot: Option<String>,
    /// What the measured loop found worth saying, e.g. that blocks were shared.
    pub remark: Option<String>,
    /// Bytes that a sample moved.
    pub measured_bytes: u64,
    /// A sample moved less than `bytes` and was scaled up; `~` in the table.
    pub extrapolated: bool,
    /// The output was compared with what it must be.
    pub verified: bool,
    /// From before open to after close.
    pub elapsed_s: Option<Summary>,
    /// User and system time together.
    pub cpu_s: Option<Summary>,
    /// Time in user mode.
    pub user_s: Option<Summary>,
    /// Time in the kernel.
    pub system_s: Option<Summary>,
    /// The loop without its syncs; for `write` and `log` the time in write.
    pub transfer_s: Option<Summary>,
    /// Time in sync calls.
    pub sync_s: Option<Summary>,
    /// Time in close, with what leaves the user-space buffer there.
    pub close_s: Option<Summary>,
    /// System calls by name, median over samples.
    pub calls: BTreeMap<String, u64>,
    /// System calls that move bytes, for each MiB of data.
    pub calls_per_mib: Option<f64>,
    /// Context switches of a sample (not scaled).
    pub context_switches: ContextSwitches,
    /// Page faults of a sample (not scaled).
    pub page_faults: Option<Summary>,
    /// Bytes of the output that were only in memory when the sample had ended (scaled); `None`: this
    /// kernel cannot say.
    pub dirty_bytes: Option<u64>,
    /// Elapsed time against the group's best row, within rounds.
    pub vs_best: Option<Ratio>,
    /// The difference to the best row is inside the noise.
    pub ties_with_best: bool,
    /// What the group's model predicts.
    pub predicted_s: Option<f64>,
    /// Samples beyond 1.5 interquartile ranges: kept and counted.
    pub outliers: usize,
    /// Cold rows: the largest share of the input still cached before a sample.
    pub cached_before: Option<f64>,
    /// Elapsed seconds of each sample, in the order of `rounds_of`.
    pub samples_s: Vec<f64>,
    /// CPU seconds of each sample.
    pub samples_cpu_s: Vec<f64>,
    /// The round of each sample.
    pub rounds_of: Vec<usize>,
}

impl BenchRow {
    /// Is it the row that its group's ratios are taken against? Only its ratio to itself is 1 in every round.
    pub fn is_best(&self) -> bool {
        self.vs_best.is_some_and(|ratio| ratio.value == 1.0 && ratio.ci95 == [1.0; 2])
    }
}

/// Context switches, see getrusage(2).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ContextSwitches {
    /// The process waited.
    pub voluntary: Option<Summary>,
    /// The scheduler took the processor away.
    pub involuntary: Option<Summary>,
}

/// A sentence made from figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchAnswer {
    /// Which group it is about, as an index of [`BenchDocument::groups`].
    pub group: usize,
    /// What one would ask.
    pub question: String,
    /// What the figures say.
    pub answer: String,
    /// The figures, each with its row.
    pub evidence: Vec<Evidence>,
}

/// One figure behind an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Index of [`BenchDocument::rows`]; `None` for a figure of the group.
    pub row: Option<usize>,
    /// What it is, with its unit, e.g. `elapsed_s`.
    pub figure: String,
    /// Its value.
    pub value: f64,
}

/// A published table beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedComparison {
    /// Its name, e.g. `tlpi-13-1`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// On what it was measured.
    pub setting: String,
    /// Row by row.
    pub rows: Vec<PublishedRow>,
    /// What agrees and what does not, in sentences.
    pub verdict: Vec<String>,
}

/// One row of a published table beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// The method it is about.
    pub method: String,
    /// Bytes a call.
    pub record_bytes: u64,
    /// Their elapsed seconds.
    pub theirs_s: f64,
    /// Ours, for the same bytes; `None`: not measured in this run.
    pub ours_s: Option<f64>,
    /// Their seconds over their own best row.
    pub theirs_vs_best: f64,
    /// Ours over our best row.
    pub ours_vs_best: Option<f64>,
}

/// One pass over the cells in random order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Round {
    /// Samples taken.
    pub samples: usize,
    /// Wall-clock seconds.
    pub took_s: f64,
    /// Share of processor time stolen by the hypervisor.
    pub steal: f64,
    /// Share of processor time used by other processes.
    pub foreign_cpu: f64,
    /// Share of the round in which some task waited for a processor (PSI); `None`: no PSI.
    pub pressure_cpu: Option<f64>,
    /// The same for input and output; our own syncs are in it.
    pub pressure_io: Option<f64>,
    /// The same for memory.
    pub pressure_memory: Option<f64>,
    /// Microseconds that a cgroup limit held us back, or thermal throttle events.
    pub throttled_us: u64,
    /// Current frequency of the processors, mean, where shown.
    pub mhz: Option<f64>,
    /// Why it counts as disturbed; empty: it does not.
    pub disturbed: Vec<String>,
    /// Disturbed and measured again: its samples are in no figure.
    pub repeated: bool,
}
