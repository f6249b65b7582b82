//! `weir trace` measures for how long calls block, with each engine.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{disk_dir, skip, text};
use serde_json::Value;
use tempfile::TempDir;
use trace::{compile, engines, finding, list, path, traced};

/// Defines `timed(CALL, SECONDS)`, which calls and appends the duration, and `bounds(BLOCKED, QUICK)`, which prints bounds of
/// the seconds for which the blocking calls blocked, and the mean of one call. A quick call takes as long as weir stops the program at a call; what
/// else a call takes longer than the shortest one may be the stops, while other programs run.
const TIMED: &str = "import os, time
def timed(call, seconds):
    begin = time.monotonic()
    call()
    seconds.append(time.monotonic() - begin)
def bounds(blocked, quick):
    print(len(blocked) * (min(blocked) - 2 * min(quick)), sum(blocked), sum(blocked) / len(blocked))
";

/// Returns the bounds that a program printed.
fn bounds(output: &Output) -> (f64, f64, f64) {
    let words = text(&output.stdout);
    let seconds: Vec<f64> = words.split_whitespace().map(|word| word.parse().expect("seconds")).collect();
    let &[least_s, most_s, mean_s] = &seconds[..] else { panic!("{words}") };
    (least_s, most_s, mean_s)
}

/// Returns the measured wait of the streams with this path and direction, in seconds.
fn wait_s(document: &Value, end: &str, direction: &str) -> f64 {
    let streams = list(document, "streams").iter().filter(|stream| {
        stream["direction"] == direction && stream["path"].as_str().expect("a path").contains(end)
    });
    streams.map(|stream| stream["wait_s"].as_f64().expect("measured")).sum()
}

/// Returns how much more than the program's own time an engine may report. ptrace times a sample of the calls, from whose
/// times it subtracts the usual delay of its stops, and counts the others.
fn slack(engine: &str) -> f64 {
    if engine == "ptrace" { 1.5 } else { 1.1 }
}

/// A call that blocks for less than this may be quicker than the stops of ptrace, which are subtracted: two context switches,
/// and beside load waits for a processor.
const PTRACE_SEES_S: f64 = 0.002;

/// Keeps the tests of this file from being load for each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks with each engine that the figure `seconds` of a finding is the time for which the program's calls blocked. Without a
/// finding it is zero.
fn assert_seconds_blocked(dir: &TempDir, program: &str, id: &str, seconds: &str) {
    std::fs::write(dir.path().join("program.py"), TIMED.to_string() + program).expect("the program");
    for engine in engines() {
        let (output, document) =
            traced(dir.path(), &["--quiet", "--engine", engine], &["/usr/bin/python3", "program.py"]);
        let (least_s, most_s, mean_s) = bounds(&output);
        let figure = |found: &Value| found.pointer(seconds).and_then(Value::as_f64).expect("seconds");
        let found_s = finding(&document, id).map_or(0.0, figure);
        let is_seen = engine != "ptrace" || mean_s >= PTRACE_SEES_S;
        let least_s = if is_seen { 0.5 * least_s } else { 0.0 };
        assert!(
            (least_s..slack(engine) * most_s).contains(&found_s),
            "{engine}: {found_s} of {least_s} to {most_s}"
        );
    }
}

#[test]
fn the_gain_of_synced_writes_is_the_time_for_which_they_block() {
    let _alone = alone();
    if !Path::new("/usr/bin/python3").exists() {
        return skip("the_gain_of_synced_writes_is_the_time_for_which_they_block", "no python3");
    }
    let dir = disk_dir();
    let program = "file = os.open('journal', os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_SYNC)
plain = os.open('plain', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
writes, quick = [], []
for number in range(600):
    timed(lambda: os.write(file, b'x' * 100), writes)
    if number % 10 == 0: timed(lambda: os.write(plain, b'x'), quick)
bounds(writes, quick)
";
    assert_seconds_blocked(&dir, program, "sync-tiny-writes", "/gain/elapsed_s");
}

#[test]
fn calls_block_for_as_long_as_the_peer_is_late() {
    let _alone = alone();
    let dir = disk_dir();
    let dir = dir.path();
    // The first call of a stream blocks too, from the start of cat on. A loaded machine starts it late.
    let script =
        "mkfifo go; (read x < go; sleep 1; echo a; sleep 0.5; echo b) | (echo > go; exec cat > out); rm go";
    for engine in engines() {
        let (output, document) = traced(dir, &["--quiet", "--engine", engine], &["sh", "-c", script]);
        assert!(output.status.success(), "{engine}");
        let waited_s = wait_s(&document, "pipe:", "in");
        assert!((0.7..30.0).contains(&waited_s), "{engine}: {waited_s}");
        assert!(wait_s(&document, "/out", "out") < 0.1, "{engine}");
    }
}

#[test]
fn other_waits_are_of_no_stream() {
    let _alone = alone();
    let source = "#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
int main(void) {
    int file = open(\"out\", O_WRONLY | O_CREAT, 0644);
    for (int i = 0; i < 200; i++) {
        if (write(file, \"a line\\n\", 7) != 7) return 1;
        usleep(1000);
        poll(0, 0, 1);
    }
    return 0;
}";
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "sleeper", source, &[]) else {
        return skip("other_waits_are_of_no_stream", "no C compiler");
    };
    for engine in engines() {
        let (_, document) = traced(dir.path(), &["--quiet", "--engine", engine], &[path(&program)]);
        let waited_s = wait_s(&document, "/out", "out");
        let elapsed_s = document["elapsed_s"].as_f64().expect("seconds");
        assert!(
            waited_s < elapsed_s / 3.0,
            "{engine}: {waited_s} of {elapsed_s}, of which 0.4 s asleep or more"
        );
    }
}

#[test]
fn a_sync_takes_the_time_for_which_it_blocks() {
    let _alone = alone();
    if !Path::new("/usr/bin/python3").exists() {
        return skip("a_sync_takes_the_time_for_which_it_blocks", "no python3");
    }
    let dir = disk_dir();
    // Computing between write and sync is no part of the sync. On a fast device many syncs make a cost worth a finding.
    let program = "file = os.open('store', os.O_WRONLY | os.O_CREAT)
writes, syncs = [], []
while len(syncs) < 40 or sum(syncs) < 0.1:
    timed(lambda: os.write(file, b'x' * 100), writes)
    until = time.monotonic() + 0.001
    while time.monotonic() < until: pass
    timed(lambda: os.fsync(file), syncs)
bounds(syncs, writes)
";
    assert_seconds_blocked(&dir, program, "sync-every-write", "/evidence/cost_s");
}

/// The filter reads as often as weir looks at its buffer while it sleeps.
#[test]
fn lines_that_a_filter_holds_while_it_reads_are_stuck() {
    let script = "(for i in 1 2 3 4 5; do echo step $i; sleep 0.3; done; echo done) | sed 's/^/[b] /'";
    let _alone = alone();
    for engine in engines() {
        let dir = disk_dir();
        let (output, document) = traced(dir.path(), &["-q", "--engine", engine], &["sh", "-c", script]);
        assert!(finding(&document, "stuck-output").is_some(), "{engine}: {}", text(&output.stderr));
    }
}
