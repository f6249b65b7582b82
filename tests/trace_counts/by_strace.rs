//! Counts by strace: each line of its output is one call, with the paths of its descriptors and its result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Counts, is_volatile, with_streams};

const READS: &[&str] = &["read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg"];
const WRITES: &[&str] =
    &["write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg", "vmsplice"];
/// Calls that copy inside the kernel (tee(2) leaves its input unread), with the positions of their input and output among the arguments.
const COPIES: &[(&str, usize, usize)] =
    &[("sendfile", 1, 0), ("copy_file_range", 0, 2), ("splice", 0, 2), ("tee", 0, 1)];

/// The counts of one run.
#[derive(Debug, Default)]
pub struct StraceCounts {
    /// Of all calls, without files whose size depends on the run.
    pub all: Counts,
    /// Of the calls that /proc/PID/io has too.
    pub in_proc: Counts,
    pub processes: usize,
    /// The command read files whose size depends on the run.
    pub reads_volatile: bool,
}

/// Runs a command under strace.
pub fn run(dir: &Path, words: &[&str]) -> StraceCounts {
    let copies: Vec<&str> = COPIES.iter().map(|copy| copy.0).collect();
    let calls = [READS, WRITES, &copies, &["execve"]].concat().join(",");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o", "strace.out"]);
    command.arg("-e").arg(format!("trace={calls}")).args(words);
    let output = with_streams(command, dir).output().expect("strace starts");
    let text = fs::read_to_string(dir.join("strace.out")).expect("strace's output");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!text.is_empty(), "strace {words:?}: {errors}");
    assert_eq!(errors, "", "{words:?} does what it is there for");
    sum(&text)
}

fn sum(text: &str) -> StraceCounts {
    let mut counts = StraceCounts::default();
    let mut unfinished: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        // A line of a run with one process has no PID.
        let (pid, call) = match line.split_once(' ') {
            Some((pid, rest)) if pid.bytes().all(|byte| byte.is_ascii_digit()) => (pid, rest.trim_start()),
            _ => ("", line),
        };
        if let Some(begin) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(pid, begin.into());
        } else if let Some((_, end)) = call.split_once(" resumed>").filter(|_| call.starts_with("<... ")) {
            let begin = unfinished.remove(pid).unwrap_or_default();
            counts.add(&(begin + end));
        } else {
            counts.add(call);
        }
    }
    let pids = text.lines().filter_map(|line| line.split_once(' ')).map(|(pid, _)| pid);
    let mut pids: Vec<&str> = pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit())).collect();
    pids.sort_unstable();
    pids.dedup();
    counts.processes = pids.len().max(1);
    counts
}

impl StraceCounts {
    fn add(&mut self, call: &str) {
        let (Some((name, rest)), Some((_, result))) = (call.split_once('('), call.rsplit_once(" = ")) else {
            return;
        };
        let result: i64 = match result.split(' ').next().unwrap_or("").parse() {
            Ok(result) => result,
            Err(_) => return, // the process ended in the call
        };
        let bad_descriptor = call.contains(" EBADF ");
        let moved = result.max(0) as u64;
        let path = |at: usize| {
            let argument = rest.split(", ").nth(at).unwrap_or("");
            argument.split_once('<').map_or("", |(_, path)| path.trim_end_matches([')', '>']))
        };
        let mut count = |writes: bool, path: &str, moved: u64, in_proc: bool| {
            self.reads_volatile |= !writes && is_volatile(path);
            if !bad_descriptor && !is_volatile(path) {
                self.all.add(writes, 1, moved);
            }
            if !bad_descriptor && in_proc {
                self.in_proc.add(writes, 1, moved);
            }
        };
        if let Some(&(_, input, output)) = COPIES.iter().find(|copy| copy.0 == name) {
            let in_proc = name == "sendfile" && result >= 0 || name == "copy_file_range" && result > 0;
            count(false, path(input), if name == "tee" { 0 } else { moved }, in_proc);
            count(true, path(output), moved, in_proc);
        } else if READS.contains(&name) {
            count(false, path(0), moved, !name.starts_with("recv"));
        } else if WRITES.contains(&name) {
            count(true, path(0), moved, !name.starts_with("send") && name != "vmsplice");
        }
    }
}
