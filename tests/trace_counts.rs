//! `weir trace` counts what strace and the kernel count: calls and bytes of each direction of the commands in
//! tests/trace_counts/commands.txt, with each engine, by default and with --exact, without any tolerance.
//!
//! Files below /proc and /sys are left out of the comparison with strace, because their sizes differ from run to run (a
//! runtime reads its own memory map).
//!
//! /proc/PID/io counts other things than calls on streams, so it is compared for commands of one process only, and:
//! * The kernel's own reads of the executable and its interpreter at execve(2) are in it. The command is stopped there, and
//!   what is counted so far is subtracted.
//! * Calls on a bad descriptor are not counted, and neither are send(2) and recv(2) on sockets, splice(2) and tee(2).
//! * sendfile(2) and copy_file_range(2) that fail are not counted, nor a copy_file_range(2) at the end of the file.
//! * Files below /proc and /sys are in it, so the reads of a command that reads them are not compared.
//! * Memory-mapped files and io_uring have no calls that strace or weir could count by stream.

#[path = "trace_counts/by_proc.rs"]
mod by_proc;
#[path = "trace_counts/by_strace.rs"]
mod by_strace;
mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use common::{campaign, concurrent, disk_dir, has, skip, weir};
use serde_json::Value;
use trace::{document, engines, list};

const COMMANDS: &str = include_str!("trace_counts/commands.txt");
/// The fewest commands that a machine must have for the comparison to mean anything.
const MIN_PROGRAMS: usize = 30;

/// Calls and bytes of both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub read_calls: u64,
    pub read_bytes: u64,
    pub write_calls: u64,
    pub write_bytes: u64,
}

impl Counts {
    /// Adds calls of one direction.
    pub fn add(&mut self, writes: bool, calls: u64, bytes: u64) {
        let (all_calls, all_bytes) = match writes {
            true => (&mut self.write_calls, &mut self.write_bytes),
            false => (&mut self.read_calls, &mut self.read_bytes),
        };
        *all_calls += calls;
        *all_bytes += bytes;
    }
}

/// Returns whether the size of a file depends on the run.
pub fn is_volatile(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// The directory in which every command runs, made anew for each run from a template.
struct Workspace {
    root: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        let root = disk_dir();
        let template = root.path().join("template");
        fs::create_dir(&template).expect("mkdir");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/trace_counts/prepare.sh");
        let made = Command::new("sh").arg(script).current_dir(&template).output().expect("sh");
        assert!(made.status.success(), "prepare.sh: {}", String::from_utf8_lossy(&made.stderr));
        Self { root }
    }

    fn fresh(&self) -> tempfile::TempDir {
        let work = tempfile::tempdir_in(&self.root).expect("mkdir");
        let template = self.root.path().join("template/.");
        let copied = Command::new("cp").arg("-a").arg(template).arg(work.path()).status();
        assert!(copied.expect("cp").success());
        work
    }
}

/// Returns `program ARGUMENTS…` with the standard streams and the environment that all runs of a command share.
pub fn with_streams(mut command: Command, dir: &Path) -> Command {
    command.current_dir(dir).stdin(File::open(dir.join("in")).expect("in"));
    command.stdout(File::create(dir.join("out")).expect("out"));
    command.env_remove("PYTHONUNBUFFERED").env("LC_ALL", "C").env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
    // Not a wrapper script of the same name elsewhere.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("/usr/bin:/bin:{path}"));
    command
}

/// Traces a command with weir and sums the streams of its document.
fn by_weir(dir: &Path, options: &[&str], words: &[&str]) -> (Counts, Value) {
    by_weir_with(dir, options, words, &[])
}

/// Like [`by_weir`], with variables in the environment.
fn by_weir_with(dir: &Path, options: &[&str], words: &[&str], variables: &[(&str, &str)]) -> (Counts, Value) {
    let mut command =
        weir(dir, &[&["trace", "--quiet", "--json", "t.json"], options, &["--"], words].concat());
    command.envs(variables.iter().copied());
    let output = with_streams(command, dir).output().expect("weir starts");
    let document = document(dir);
    assert!(!document.is_null(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut counts = Counts::default();
    for stream in list(&document, "streams") {
        let number = |name: &str| stream[name].as_u64().expect("a number");
        if !is_volatile(stream["path"].as_str().expect("a path")) {
            counts.add(stream["direction"] == "out", number("calls"), number("bytes"));
        }
    }
    (counts, document)
}

/// Returns whether counts differ only by what the kernel itself reads at an execve(2). The kernel's totals of a process
/// include these reads: five of a dynamic ELF file and its loader, of less than 2 KiB together. The engine ptrace has only
/// the totals where an execve falls between two samples (docs/trace.md).
fn is_read_at_exec(weir: &Counts, strace: &Counts, processes: usize) -> bool {
    const READS: u64 = 5;
    const MAX_BYTES: u64 = 2048;
    let same_writes = (weir.write_calls, weir.write_bytes) == (strace.write_calls, strace.write_bytes);
    let reads = weir.read_calls.saturating_sub(strace.read_calls);
    let bytes = weir.read_bytes.saturating_sub(strace.read_bytes);
    let execs = reads / READS;
    same_writes
        && reads.is_multiple_of(READS)
        && (1..=processes as u64).contains(&execs)
        && bytes <= execs * MAX_BYTES
}

/// Returns the engines and whether each records every call. A quick campaign takes every second of them for a command, and
/// the others for the next command.
fn ways(index: usize) -> Vec<(&'static str, bool)> {
    let all = engines().into_iter().flat_map(|engine| [(engine, false), (engine, true)]);
    let is_chosen = |at: usize| !campaign::is_quick() || (at / 2 + at + index).is_multiple_of(2);
    all.enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, way)| way).collect()
}

/// Returns the differences of one command's counts, each in a line.
fn compare(workspace: &Workspace, words: &[&str], ways: &[(&str, bool)]) -> Vec<String> {
    let line = words.join(" ");
    let strace = by_strace::run(workspace.fresh().path(), words);
    let mut wrong = Vec::new();
    if strace.processes == 1 {
        let mut kernel = by_proc::run(workspace.fresh().path(), words);
        if strace.reads_volatile {
            (kernel.read_calls, kernel.read_bytes) = (strace.in_proc.read_calls, strace.in_proc.read_bytes);
        }
        if kernel != strace.in_proc {
            wrong.push(format!("{line}: /proc/PID/io {kernel:?}, strace {:?}", strace.in_proc));
        }
    }
    for &(engine, exact) in ways {
        let options: &[&str] = if exact { &["--engine", engine, "--exact"] } else { &["--engine", engine] };
        let (weir, document) = by_weir(workspace.fresh().path(), options, words);
        let may_count_execs = engine == "ptrace" && !exact && document["exact"] != true;
        let explained = may_count_execs && is_read_at_exec(&weir, &strace.all, strace.processes);
        if weir != strace.all && !explained {
            wrong.push(format!("{line}: {options:?} {weir:?}, strace {:?}", strace.all));
        }
        if exact && document["exact"] != true {
            wrong.push(format!("{line}: {options:?} is not exact: {}", document["blind"]));
        }
    }
    wrong
}

#[test]
fn counts_equal_those_of_strace_and_of_the_kernel() {
    if !has("strace") {
        return skip("counts_equal_those_of_strace_and_of_the_kernel", "no strace");
    }
    let wanted = std::env::var("WEIR_COUNTS").unwrap_or_default();
    let lines = COMMANDS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let words = lines.map(|line| line.split(' ').collect::<Vec<_>>());
    let installed = |words: &Vec<&str>| words[0].contains('/') || has(words[0]);
    let chosen = words.filter(|words| words.join(" ").contains(&wanted) && installed(words));
    let commands: Vec<_> = chosen.enumerate().map(|(index, words)| (words, ways(index))).collect();
    let workspace = Workspace::new();
    let wrong = concurrent::for_each(2, &commands, |(words, ways)| compare(&workspace, words, ways)).concat();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        commands.len() >= MIN_PROGRAMS || !wanted.is_empty(),
        "only {} commands are installed",
        commands.len()
    );
}

/// The BPF object for kernels before Linux 6.1 has bounded loops, smaller maps and other arguments of functions. Newer kernels
/// load it too.
#[test]
fn the_object_for_older_kernels_counts_the_same() {
    const NAME: &str = "the_object_for_older_kernels_counts_the_same";
    if !has("strace") || !engines().contains(&"ebpf") {
        return skip(NAME, "it needs root and strace");
    }
    let workspace = Workspace::new();
    let script = "cat in | head -c 100000 >o; exec 70>p; echo abc >&70; exec 70>&-; cp in q; seq 300 | tail -n 3; rm q";
    for words in
        [vec!["dd", "if=/dev/zero", "of=o", "bs=1", "count=5000", "status=none"], vec!["bash", "-c", script]]
    {
        let strace = by_strace::run(workspace.fresh().path(), &words);
        let options = ["--engine", "ebpf", "--exact"];
        let (counts, document) =
            by_weir_with(workspace.fresh().path(), &options, &words, &[("WEIR_EBPF_OLD", "1")]);
        assert_eq!(counts, strace.all, "{words:?}");
        assert_eq!((&document["engine"], &document["exact"]), (&"ebpf".into(), &true.into()), "{words:?}");
    }
}

/// A copy of the kernel's BTF takes the place of /sys/kernel/btf; what is no BTF of this kernel is refused.
#[test]
fn the_kernels_btf_is_read_from_a_file() {
    const KERNEL: &str = "/sys/kernel/btf/vmlinux";
    if !engines().contains(&"ebpf") || !Path::new(KERNEL).exists() {
        return skip("the_kernels_btf_is_read_from_a_file", "it needs root and a kernel with BTF");
    }
    let work = disk_dir();
    let copy = fs::read(KERNEL).expect("BTF");
    fs::write(work.path().join("btf"), &copy).expect("write");
    fs::write(work.path().join("half"), &copy[..copy.len() / 2]).expect("write");
    let traced = |file: &str| {
        let arguments =
            ["trace", "--quiet", "--json", "t.json", "--engine", "ebpf", "--btf", file, "--", "true"];
        weir(work.path(), &arguments).output().expect("weir starts")
    };
    let whole = traced("btf");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    assert_eq!(document(work.path())["engine"], "ebpf");
    let half = traced("half");
    let text = String::from_utf8_lossy(&half.stderr).replace('\n', " ");
    assert!(!half.status.success() && text.contains("not the BTF of the running kernel"), "{text}");
}
