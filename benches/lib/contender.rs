//! A contender: a program that does one job and reports its times.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::Data;
use crate::{BoxError, target_dir};

/// First argument with which this program runs as the Rust contender.
pub const CHILD_ARGUMENT: &str = "contender";

/// Bytes that libweir/bench/Makefile puts before the code of each function, one build for each value.
const SHIFTS: [usize; 4] = [0, 16, 32, 48];

/// A contender's program. libweir/bench/Makefile builds all but Rust, which is this program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Weir,
    Hand,
    Glibc,
    Musl,
    Sfio,
    Go,
    Rust,
    Commit,
    /// `calls.c` with glibc's stdio.
    CallsGlibc,
    /// `calls.c` with weir/stdio.h.
    CallsWeir,
}

/// The output of a contender: /dev/null, an existing file, or a new one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Out {
    Null,
    /// A file that is overwritten, so that its pages exist already.
    Over,
    New,
}

/// A contender with its job and options.
#[derive(Clone)]
pub struct Entry {
    /// Unique in its group.
    pub label: String,
    pub program: Program,
    pub job: &'static str,
    pub name: &'static str,
    pub out: Out,
    /// Lines or bytes to write, for a job without input.
    pub count: u64,
    /// Buffer of the hand-written loops, and size of a block.
    pub buffer_bytes: u64,
    pub passes: u32,
    /// The process has a second thread, which sleeps.
    pub idle: bool,
    /// Uses the short input, for slow contenders.
    pub short: bool,
    /// The program's units in one unit of the group.
    pub per_unit: u64,
    /// Label of the entry that only makes the same system calls.
    pub bare: Option<&'static str>,
}

impl Entry {
    pub fn new(label: &str, program: Program, job: &'static str, name: &'static str) -> Self {
        let (out, count, buffer_bytes, passes) = (Out::Null, 0, 0, 1);
        let label = label.into();
        let (idle, short, per_unit, bare) = (false, false, 1, None);
        Self { label, program, job, name, out, count, buffer_bytes, passes, idle, short, per_unit, bare }
    }
    pub fn out(self, out: Out) -> Self {
        Self { out, ..self }
    }
    pub fn count(self, count: u64) -> Self {
        Self { count, ..self }
    }
    pub fn buffer(self, buffer_bytes: u64) -> Self {
        Self { buffer_bytes, ..self }
    }
    pub fn passes(self, passes: u32) -> Self {
        Self { passes, ..self }
    }
    pub fn with_idle_thread(self) -> Self {
        Self { idle: true, ..self }
    }
    pub fn short(self) -> Self {
        Self { short: true, ..self }
    }
    pub fn per_unit(self, per_unit: u64) -> Self {
        Self { per_unit, ..self }
    }
    pub fn bare(self, label: &'static str) -> Self {
        Self { bare: Some(label), ..self }
    }
    /// Returns the same entry with another label. Their difference is noise.
    pub fn again(&self) -> Self {
        Self { label: format!("{}, again", self.label), ..self.clone() }
    }
}

/// The times of one run, as the program reports them.
#[derive(Clone, Copy)]
pub struct Sample {
    pub user_ns: f64,
    pub system_ns: f64,
    pub cpu_ns: f64,
    pub elapsed_ns: f64,
    /// Bytes, lines or records.
    pub units: f64,
}

impl Program {
    fn file_name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Hand => "hand",
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::Sfio => "sfio",
            Self::Go => "go",
            Self::Commit => "commit",
            Self::CallsGlibc => "calls-glibc",
            Self::CallsWeir => "calls-weir",
            Self::Rust => "",
        }
    }

    fn path(self) -> std::io::Result<PathBuf> {
        match self {
            Self::Rust => std::env::current_exe(),
            other => Ok(target_dir().join("libweir/bench").join(other.file_name())),
        }
    }

    /// Returns the build of the program for a round: the rounds rotate through the alignments of its code.
    fn path_in(self, round: usize) -> std::io::Result<PathBuf> {
        let path = self.path()?;
        match SHIFTS[round % SHIFTS.len()] {
            0 => Ok(path),
            shift => {
                Ok(Some(path.with_extension(shift.to_string())).filter(|it| it.exists()).unwrap_or(path))
            }
        }
    }

    /// Returns the reason why the program cannot run on this machine, if any.
    pub fn absent(self) -> Option<String> {
        let path = self.path().ok()?;
        if path.exists() {
            return None;
        }
        let why = std::fs::read_to_string(path.with_extension("absent"));
        Some(why.map_or_else(|_| format!("{} was not built", path.display()), |why| why.trim().into()))
    }
}

/// Runs an entry once with this input and output.
pub fn run_on(entry: &Entry, from: &Path, out: &Path, round: usize) -> Result<Sample, BoxError> {
    let mut command = Command::new(entry.program.path_in(round)?);
    if entry.program == Program::Rust {
        command.arg(CHILD_ARGUMENT);
    }
    command.args([entry.job, entry.name]).arg(from).arg(out);
    let numbers = [entry.count, entry.buffer_bytes, entry.passes.into(), entry.idle.into()];
    let output = command.args(numbers.map(|n| n.to_string())).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let failed = || {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{}: {command:?}: {}: {printed}{errors}", entry.label, output.status)
    };
    let numbers: Vec<f64> = printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [user_ns, system_ns, cpu_ns, elapsed_ns, units] if output.status.success() && units > 0.0 => {
            Ok(Sample { user_ns, system_ns, cpu_ns, elapsed_ns, units: units / entry.per_unit as f64 })
        }
        _ => Err(failed().into()),
    }
}

/// Runs an entry once on its own input and output.
pub fn run(entry: &Entry, data: &Data, round: usize) -> Result<Sample, BoxError> {
    let out = match entry.out {
        Out::Null => PathBuf::from("/dev/null"),
        Out::Over => data.output(),
        Out::New => data.new_output()?,
    };
    run_on(entry, &data.input(entry), &out, round)
}
