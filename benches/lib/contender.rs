//! One way to do one job, as a process that says what it took.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::Data;
use crate::{BoxError, target_dir};

/// First argument of this program when it is to be the Rust contender.
pub const CHILD_ARGUMENT: &str = "contender";

/// Bytes before the code of each function in the programs that the Makefile builds.
const SHIFTS: [usize; 4] = [0, 16, 32, 48];

/// Who does it: a program that libweir/bench/Makefile builds, or this one.
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
}

/// Where the bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// /dev/null.
    Null,
    /// A file whose pages are there and are written over.
    Over,
    /// A file that is made by the run.
    New,
}

/// A contender with all that it is told.
#[derive(Clone)]
pub struct Entry {
    /// Unique in its group.
    pub label: String,
    pub program: Program,
    pub job: &'static str,
    pub name: &'static str,
    pub out: Out,
    /// Lines or bytes to make, where there is no input.
    pub count: u64,
    /// Of the hand-written loops, and of each call that moves a block.
    pub buffer_bytes: u64,
    pub passes: u32,
    /// A second thread is there, and sleeps.
    pub idle: bool,
    /// The short input, for those who take long.
    pub short: bool,
    /// How many of what the program counts make one of the group's units.
    pub per_unit: u64,
    /// Label of the entry that makes the same system calls and nothing else.
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
    /// The same once more, to see the noise.
    pub fn again(&self) -> Self {
        Self { label: format!("{}, again", self.label), ..self.clone() }
    }
}

/// What a run said.
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
            Self::Rust => "",
        }
    }

    fn path(self) -> std::io::Result<PathBuf> {
        match self {
            Self::Rust => std::env::current_exe(),
            other => Ok(target_dir().join("libweir/bench").join(other.file_name())),
        }
    }

    /// The same program with its code at another place in a line of the cache, for each round another one.
    fn path_in(self, round: usize) -> std::io::Result<PathBuf> {
        let path = self.path()?;
        match SHIFTS[round % SHIFTS.len()] {
            0 => Ok(path),
            shift => {
                Ok(Some(path.with_extension(shift.to_string())).filter(|it| it.exists()).unwrap_or(path))
            }
        }
    }

    /// Why it cannot run here; `None`: it can.
    pub fn absent(self) -> Option<String> {
        let path = self.path().ok()?;
        if path.exists() {
            return None;
        }
        let why = std::fs::read_to_string(path.with_extension("absent"));
        Some(why.map_or_else(|_| format!("{} was not built", path.display()), |why| why.trim().into()))
    }
}

/// Runs it once on the files, whatever the entry says of its output.
pub fn run_on(entry: &Entry, from: &Path, out: &Path, round: usize) -> Result<Sample, BoxError> {
    let mut command = Command::new(entry.program.path_in(round)?);
    if entry.program == Program::Rust {
        command.arg(CHILD_ARGUMENT);
    }
    command.args([entry.job, entry.name]).arg(from).arg(out);
    let numbers = [entry.count, entry.buffer_bytes, entry.passes.into(), entry.idle.into()];
    let output = command.args(numbers.map(|n| n.to_string())).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = || {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{}: {command:?}: {}: {said}{errors}", entry.label, output.status)
    };
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [user_ns, system_ns, cpu_ns, elapsed_ns, units] if output.status.success() && units > 0.0 => {
            Ok(Sample { user_ns, system_ns, cpu_ns, elapsed_ns, units: units / entry.per_unit as f64 })
        }
        _ => Err(failed().into()),
    }
}

/// One sample, of this round.
pub fn run(entry: &Entry, data: &Data, round: usize) -> Result<Sample, BoxError> {
    let out = match entry.out {
        Out::Null => PathBuf::from("/dev/null"),
        Out::Over => data.output(),
        Out::New => data.new_output()?,
    };
    run_on(entry, &data.input(entry), &out, round)
}
