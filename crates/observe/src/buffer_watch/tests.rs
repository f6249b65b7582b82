//! Tests of the credit for searches and of what snapshots note.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

/// Makes a watch without credit for searches, as after many forks. It reads this program's image first, which takes
/// longer than [`SEARCH_MAX_AGE_NS`] in a build with debug information.
fn without_search_credit(exact: bool) -> BufferWatch {
    ProcessBuffers::default().snapshot(std::process::id());
    let mut watch = BufferWatch::new().with_exact(exact);
    watch.search_credit = CpuCredit { left_ns: i64::MIN / 2, earned_until_ns: now_ns() };
    watch
}

#[test]
fn without_credit_a_process_is_not_searched_again_soon() {
    let (pid, mut watch) = (std::process::id(), without_search_credit(false));
    watch.begin(pid);
    watch.snapshot(pid, SnapshotMoment::Fork);
    assert_eq!(watch.blind_spot(), None, "it was never searched");
    watch.snapshot(pid, SnapshotMoment::Sample);
    assert_eq!(watch.blind_spot(), None, "no search is due");
    watch.snapshot(pid, SnapshotMoment::Exit);
    assert!(
        watch
            .blind_spot()
            .is_some_and(|text| text.contains("before 1 of the forks") && text.contains("--exact"))
    );
    watch.fork(pid, pid + 1);
    watch.snapshot(pid + 1, SnapshotMoment::Exec);
    assert!(
        watch.blind_spot().is_some_and(|text| text.contains("before 2 of the forks")),
        "the child inherits the time of the search"
    );
    watch.search_credit.left_ns = 1;
    watch.snapshot(pid, SnapshotMoment::Exit);
    assert!(
        watch.blind_spot().is_some_and(|text| text.contains("before 2 of the forks")),
        "there is credit left"
    );
}

#[test]
fn an_exact_watch_searches_at_each_fork() {
    let (pid, mut watch) = (std::process::id(), without_search_credit(true));
    watch.begin(pid);
    (0..3).for_each(|_| drop(watch.snapshot(pid, SnapshotMoment::Fork)));
    assert_eq!(watch.blind_spot(), None);
}

/// The memory of a process whose first thread has ended is read through another thread.
#[test]
fn a_snapshot_of_a_thread_is_noted_for_its_process() {
    const SCRIPT: &str = "import threading\n\
        threading.Thread(target=lambda: (print(threading.get_native_id(), flush=True), input())).start()";
    let mut python = Command::new("python3");
    let python = python.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = python.expect("python3 starts");
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
    // The search is cut, which the snapshot after it finds.
    set_search_time(Duration::ZERO);
    ProcessBuffers::default().snapshot(child.id());
    let (thread, mut watch) = (line.trim().parse().expect("a TID"), BufferWatch::new());
    watch.snapshot(thread, SnapshotMoment::Signal);
    child.kill().expect("a signal");
    child.wait().expect("its end");
    read.expect("a line");
    assert_ne!(thread, child.id());
    assert_eq!(watch.take_unsearched(), BTreeSet::from([child.id()]));
}
