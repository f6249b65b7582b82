//! Tests of buffer snapshots: which sleeping processes are reported, how often, and which are not.

#[path = "../../walkers/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use weir_model::trace::{Buffer, SnapshotMoment};
use weir_observe::BufferWatch;
use weir_trace_api::{RawEvent, RawEventKind};

use support::{Waiting, compile};

fn streams(dir: &Path) -> Waiting {
    let program = compile("watch", "gcc", &[], "streams.c", &dir.join("program")).expect("gcc");
    Waiting::start(Command::new(program).arg(dir))
}

/// Ticks for some time and returns all events.
fn ticks(watch: &mut BufferWatch, milliseconds: u64) -> Vec<RawEvent> {
    let (start, mut found) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_millis(milliseconds) {
        watch.tick(now_ns(), &mut |event| found.push(event));
        thread::sleep(Duration::from_millis(10));
    }
    found
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn in_stdout(buffers: &[Buffer]) -> &[u8] {
    &buffers.iter().find(|one| one.fd == 1).expect("stdout").pending
}

#[test]
fn a_sleeping_process_with_pending_bytes_is_reported_every_500_ms() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = streams(dir.path());
    let mut watch = BufferWatch::new();
    watch.tick(now_ns(), &mut |_| panic!("no process is observed"));
    watch.begin(waiting.pid());
    let (start, mut found) = (Instant::now(), Vec::new());
    while found.len() < 4 && start.elapsed() < Duration::from_secs(60) {
        found.extend(ticks(&mut watch, 50));
    }
    for event in &found {
        let RawEventKind::Buffers { moment, buffers, blocked_in, .. } = &event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(
            (event.pid, *moment, in_stdout(buffers)),
            (waiting.pid(), SnapshotMoment::Sample, &b"in stdout"[..])
        );
        assert_eq!(blocked_in, "pause");
    }
    assert_eq!(found.len(), 4);
    assert!(found.windows(2).all(|two| two[1].ns - two[0].ns >= 500_000_000), "unchanged");
    watch.end(waiting.pid());
    assert!(ticks(&mut watch, 700).is_empty(), "it has ended");
}

#[test]
fn processes_with_empty_buffers_and_busy_ones_are_not_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut empty = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut watch = BufferWatch::new();
    watch.begin(empty.id());
    watch.begin(busy.id());
    let found = ticks(&mut watch, 800);
    for child in [&mut empty, &mut busy] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(found.is_empty(), "{found:?}");
    let waiting = streams(dir.path());
    assert_eq!(
        in_stdout(&watch.snapshot(waiting.pid(), SnapshotMoment::Exit)),
        b"in stdout",
        "also of a process that is not observed"
    );
}

/// Starts a program that forks with pending bytes in its stdout. Returns it and the PID of its child.
fn forks(dir: &Path, how: &str) -> (Waiting, u32) {
    let source = dir.join("fork.c");
    let text =
        "int main(void) { printf(\"before\"); if (FORK() == 0) { write(2, \".\", 1); pause(); } pause(); }\n";
    std::fs::write(&source, format!("#include <stdio.h>\n#include <unistd.h>\n{text}")).unwrap();
    let flag = format!("-DFORK={how}");
    let program =
        compile("watch", "gcc", &[&flag], source.to_str().unwrap(), &dir.join("fork")).expect("gcc");
    let waiting = Waiting::start(&mut Command::new(program));
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", waiting.pid())).unwrap();
    (waiting, children.trim().parse().unwrap())
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_child_has_a_copy_of_its_parents_buffers_until_execve() {
    let dir = tempfile::tempdir().unwrap();
    let (waiting, child) = forks(dir.path(), "fork");
    let mut watch = BufferWatch::new();
    watch.begin(waiting.pid());
    assert_eq!(in_stdout(&watch.snapshot(waiting.pid(), SnapshotMoment::Fork)), b"before");
    watch.fork(waiting.pid(), child);
    assert_eq!(in_stdout(&watch.snapshot(child, SnapshotMoment::Exec)), b"before");
    watch.exec(child, now_ns());
    assert_eq!(
        in_stdout(&watch.snapshot(child, SnapshotMoment::Sample)),
        b"before",
        "the walkers are searched again"
    );
    kill(child);
}

#[test]
fn a_child_that_shares_its_parents_memory_has_no_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let (waiting, child) = forks(dir.path(), "vfork");
    let mut watch = BufferWatch::new();
    watch.begin(waiting.pid());
    watch.fork(waiting.pid(), child);
    assert!(
        watch.snapshot(child, SnapshotMoment::Exec).is_empty()
            && watch.snapshot(child, SnapshotMoment::Signal).is_empty()
    );
    assert_eq!(in_stdout(&watch.snapshot(waiting.pid(), SnapshotMoment::Sample)), b"before");
    kill(child);
}
