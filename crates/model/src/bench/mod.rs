//! The result of `weir bench` (schema weir-bench/1).
//!
//! Field names are the interface (docs/schemas/weir-bench-1.schema.json). Times are in seconds, sizes in bytes. The
//! figures of a row are for the whole `bytes` of the row, scaled up if `extrapolated` is true.

pub mod compare;
mod curve;
pub mod trend;

use std::collections::BTreeMap;

use crate::cost::PriceIntervals;
use crate::{CostModel, Knee, Ratio, Summary};
use serde::{Deserialize, Serialize};

use crate::duration::TICK_S;
pub use curve::{Gains, fastest, plain_calls, ratio};

/// Value of [`BenchDocument::schema`].
pub const SCHEMA: &str = "weir-bench/1";

/// One run of the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// Command line, program name first.
    pub command: Vec<String>,
    /// Seed of the order of the rounds, for `--seed`; `None` in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Start of the run in UTC, as in RFC 3339.
    pub started: String,
    /// Duration of the run.
    pub took_s: f64,
    /// The run measured every row. Otherwise it was interrupted or failed, and some rows have few samples or none.
    pub complete: bool,
    /// Machine of the run.
    pub machine: Machine,
    /// Settings of the kernel and of the devices that change the figures, by name; empty in documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Differences between two measurements of the same row.
    pub noise: Noise,
    /// Groups of comparable rows, in the order of the tables.
    pub groups: Vec<RowGroup>,
    /// One row for each requested cell, measured or not.
    pub rows: Vec<BenchRow>,
    /// Cost model of the first group.
    pub model: Option<CostModel>,
    /// Knee of the first group.
    pub knee_bytes: Option<u64>,
    /// The answers below the table, in sentences.
    pub answers: Vec<BenchAnswer>,
    /// Published figures beside this machine's.
    pub published: Vec<PublishedComparison>,
    /// Rounds, with their disturbances.
    pub rounds: Vec<Round>,
    /// Reasons to doubt the figures, in sentences.
    pub warnings: Vec<String>,
}

impl BenchDocument {
    /// Returns the directories of the run, each once, with file system and mount options.
    pub fn places(&self) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for group in &self.groups {
            let options = group.mount_options.replace(',', ", ");
            let place = format!("{} on {} ({options})", group.key.dir, group.key.fs);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// Hardware and system of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// Number of CPUs that this process may use.
    pub cpus: usize,
    /// `x86_64`, `aarch64`, …
    pub arch: String,
    /// Kernel release, as uname(2) returns it.
    pub kernel: String,
    /// C library and its version.
    pub libc: String,
    /// Size of the memory.
    pub memory_bytes: u64,
    /// Hypervisor or container, if detected.
    pub virtualization: Option<String>,
    /// Frequency governor, if the machine has one.
    pub governor: Option<String>,
}

/// Noise, from a cell that each round measures twice (A/A pairs).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Noise {
    /// Number of A/A pairs.
    pub pairs: usize,
    /// Number of rounds with A/A pairs.
    pub rounds: usize,
    /// Noise of CPU time as a share (0.02: 2 %); `None` with too few pairs.
    pub cpu: Option<f64>,
    /// Noise of wall-clock time as a share.
    pub wall: Option<f64>,
}

/// Separates the two directories and the two file systems of a copy from one directory to another, in [`GroupKey`].
pub const FROM_TO: &str = " → ";

/// Noise assumed for a run with too few A/A pairs: the wall-clock noise measured on a busy virtual machine.
pub const UNKNOWN_NOISE: f64 = 0.10;

impl Noise {
    /// Returns the share of wall-clock time within which two figures count as equal.
    pub fn floor(&self) -> f64 {
        self.wall.unwrap_or(UNKNOWN_NOISE)
    }
}

/// A group of rows that differ in method and sizes only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowGroup {
    /// Properties that all rows of the group share.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Prices of calls, bytes and syncs.
    pub model: Option<CostModel>,
    /// Intervals of the prices of `model`; `None` with fewer than 3 rounds, and in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_ci95: Option<PriceIntervals>,
    /// Method of `model` and `knee`.
    pub model_method: Option<String>,
    /// Nanoseconds in user space for each record that the model does not explain, by method.
    pub pass_ns: BTreeMap<String, f64>,
    /// 95 % intervals of `pass_ns`, by method; empty if `model_ci95` is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pass_ns_ci95: BTreeMap<String, [f64; 2]>,
    /// Smallest measured record size within 5 % of the best; gains may go on if it is the largest.
    pub knee: Option<Knee>,
    /// Mount options of the file system.
    pub mount_options: String,
}

/// Properties that comparable rows share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKey {
    /// `copy`, `write`, `read`, `translate` or `log`.
    pub workload: String,
    /// Bytes of the whole job.
    pub bytes: u64,
    /// Type of the mounted file system.
    pub fs: String,
    /// Directory of the private working directory; for a loop image, the file system's name.
    pub dir: String,
    /// `warm` or `cold`.
    pub cache: String,
    /// Sync policy: `none`, `end`, `fsync`, `fdatasync`, `o_dsync`, `o_sync`, `rwf_dsync`, `sync_file_range`.
    pub sync: String,
    /// Records between two syncs; `None` for a policy that does not count records.
    pub sync_every_records: Option<u64>,
    /// Bytes between two syncs; `None` for a policy that does not count bytes.
    pub sync_every_bytes: Option<u64>,
    /// posix_fadvise(2) advice on the input.
    pub advice: Option<String>,
}

/// One cell of the benchmark and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRow {
    /// Properties shared with the group; flattened: `workload`, `bytes`, `sync`, `cache`, `fs`, `dir` …
    #[serde(flatten)]
    pub group: GroupKey,
    /// Name of the method.
    pub method: String,
    /// Bytes that each call of the program moves.
    pub record_bytes: u64,
    /// Size of the user-space buffer; `None` for no buffer or the C library's default.
    pub buffer_bytes: Option<u64>,
    /// setvbuf(3) mode of a stdio method; `None` for the default.
    pub mode: Option<String>,
    /// Records in each readv(2) or writev(2) call.
    pub vector_records: Option<u32>,
    /// io_uring requests in flight.
    pub queue_depth: Option<u32>,
    /// Why this machine, file system or method cannot run the cell; all figures are then absent.
    pub cannot: Option<String>,
    /// Remark of the measured loop, for example that the file system shared blocks.
    pub remark: Option<String>,
    /// Bytes that a sample moved.
    pub measured_bytes: u64,
    /// A sample moved fewer than `bytes` and was scaled up; `~` in the table.
    pub extrapolated: bool,
    /// The output was compared with the expected content.
    pub verified: bool,
    /// Time from before open to after close.
    pub elapsed_s: Option<Summary>,
    /// User and system time together.
    pub cpu_s: Option<Summary>,
    /// Time in user mode.
    pub user_s: Option<Summary>,
    /// Time in the kernel.
    pub system_s: Option<Summary>,
    /// Time of the loop without its syncs; for `write` and `log` the time in write.
    pub transfer_s: Option<Summary>,
    /// Time in sync calls.
    pub sync_s: Option<Summary>,
    /// Time in close, with the flush of the user-space buffer.
    pub close_s: Option<Summary>,
    /// System calls by name, median over samples.
    pub calls: BTreeMap<String, u64>,
    /// System calls that move bytes, for each MiB of data.
    pub calls_per_mib: Option<f64>,
    /// Context switches of a sample (not scaled).
    pub context_switches: ContextSwitches,
    /// Page faults of a sample (not scaled).
    pub page_faults: Option<Summary>,
    /// Dirty bytes of the output in the page cache at the end of the sample (scaled); `None` on a kernel without
    /// cachestat(2).
    pub dirty_bytes: Option<u64>,
    /// Ratio of the elapsed time to the group's best row, within rounds.
    pub vs_best: Option<Ratio>,
    /// The difference to the best row is within the noise.
    pub ties_with_best: bool,
    /// Elapsed time that the group's model predicts.
    pub predicted_s: Option<f64>,
    /// Samples beyond 1.5 interquartile ranges. They are included in the figures.
    pub outliers: usize,
    /// Cold rows: the largest share of the input that was still cached before a sample.
    pub cached_before: Option<f64>,
    /// Elapsed seconds of each sample, in the order of `rounds_of`.
    pub samples_s: Vec<f64>,
    /// CPU seconds of each sample.
    pub samples_cpu_s: Vec<f64>,
    /// Index of the round of each sample.
    pub rounds_of: Vec<usize>,
}

impl BenchRow {
    /// Returns whether this is the row that the group's ratios refer to: only its ratio is 1 in every round.
    pub fn is_best(&self) -> bool {
        self.vs_best.is_some_and(|ratio| ratio.value == 1.0 && ratio.ci95 == [1.0; 2])
    }

    /// Returns user and system time: the CPU time multiplied by their shares of the mean, because the medians of times that
    /// are counted in ticks are meaningless. None if the samples are shorter than a tick: each then has only one of the two.
    pub fn divided_cpu(&self) -> Option<[f64; 2]> {
        let (cpu, user, system) = (self.cpu_s?.median, self.user_s?.mean, self.system_s?.mean);
        // An extrapolated row has measured only a part of its CPU time.
        let measured = (self.measured_bytes as f64 / self.group.bytes.max(1) as f64).min(1.0);
        let is_divisible = cpu * measured >= TICK_S && user + system > 0.0;
        is_divisible.then(|| [user, system].map(|part| cpu * part / (user + system)))
    }
}

/// Context switches by getrusage(2).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ContextSwitches {
    /// Switches because the process blocked (`ru_nvcsw`).
    pub voluntary: Option<Summary>,
    /// The scheduler preempted the process.
    pub involuntary: Option<Summary>,
}

/// A question and its answer from the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchAnswer {
    /// Index in [`BenchDocument::groups`].
    pub group: usize,
    /// A question of the reader.
    pub question: String,
    /// The answer in sentences.
    pub answer: String,
    /// Figures that the answer is based on.
    pub evidence: Vec<Evidence>,
}

/// One figure of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Index in [`BenchDocument::rows`]; `None` for a figure of the group.
    pub row: Option<usize>,
    /// Name with unit, for example `elapsed_s`.
    pub figure: String,
    /// Value in that unit.
    pub value: f64,
}

/// A published table beside this machine's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedComparison {
    /// Identifier, for example `tlpi-13-1`.
    pub id: String,
    /// Title of the table.
    pub title: String,
    /// Book, paper or page that published it.
    pub source: String,
    /// System that the published figures were measured on.
    pub setting: String,
    /// Rows of the published table.
    pub rows: Vec<PublishedRow>,
    /// Agreement and differences, in sentences.
    pub verdict: Vec<String>,
}

/// One row of a published table beside this machine's figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Name of the method.
    pub method: String,
    /// Bytes that each call moves.
    pub record_bytes: u64,
    /// Elapsed time in the publication, seconds.
    pub theirs_s: f64,
    /// Elapsed seconds here for the same bytes; `None` if the run did not measure the row.
    pub ours_s: Option<f64>,
    /// Published seconds divided by those of the best published row.
    pub theirs_vs_best: f64,
    /// Seconds here divided by those of the best row here.
    pub ours_vs_best: Option<f64>,
}

/// One pass over all cells in random order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Round {
    /// Samples taken in the round, including twins.
    pub samples: usize,
    /// Duration of the round.
    pub took_s: f64,
    /// Share of CPU time stolen by the hypervisor.
    pub steal: f64,
    /// Share of CPU time used by other processes.
    pub foreign_cpu: f64,
    /// Share of the round in which a task waited for a CPU (PSI); `None` on a kernel without PSI.
    pub pressure_cpu: Option<f64>,
    /// Share of the round in which a task waited for input or output, weir's own syncs included.
    pub pressure_io: Option<f64>,
    /// Share of the round in which a task waited for memory.
    pub pressure_memory: Option<f64>,
    /// Microseconds of throttling by a cgroup limit, plus thermal throttle events.
    pub throttled_us: u64,
    /// Mean frequency of the CPUs, if the machine shows it.
    pub mhz: Option<f64>,
    /// Reasons why the round counts as disturbed; empty for none.
    pub disturbed: Vec<String>,
    /// The round was disturbed and measured again; no figure includes its samples.
    pub repeated: bool,
}
