//! Tests of the loss of bytes that parent and child have since a fork.

use weir_model::Severity::*;
use weir_model::trace::{Exit, SnapshotMoment};

use crate::testing::*;

const LINE: &[u8] = b"temperature 21.5\n";
const LINE_AND_MORE: &[u8] = b"temperature 21.5\nmine\n";

#[test]
fn a_parent_that_leaves_its_bytes_to_a_daemon_loses_nothing() {
    let daemon = |child_writes: &[u8]| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/log", File);
        builder.stream(1, 1, file, Out, 1, 100).last_s = 0.1;
        builder.fork(0.3, 2);
        builder.snapshot(0.4, 1, SnapshotMoment::Exit, &[pending(1, LINE)]);
        builder.write(0.8, 2, 1, file, child_writes);
        builder
    };
    daemon(b"temperature 21.5\nstarted\n").no_finding("lost-at-exit");
    assert_eq!(daemon(b"started\n").severity("lost-at-exit"), High);
}

/// Returns the recording of a fork with pending bytes, whose parent ends by _exit(2) while the child runs on.
fn handed_over() -> RecordingBuilder {
    let mut builder = recording(1.0);
    builder.file("/d/log", File);
    builder.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, LINE)]);
    builder.fork(0.3, 2);
    builder.snapshot(0.4, 1, SnapshotMoment::Exit, &[pending(1, LINE)]);
    builder.root().ended_s = Some(0.4);
    builder
}

fn ends(builder: &mut RecordingBuilder, pid: u32, at_s: Option<f64>) {
    let process = builder.0.processes.iter_mut().find(|process| process.pid == pid).unwrap();
    process.ended_s = at_s;
    process.exit = process.exit.filter(|_| at_s.is_some());
}

#[test]
fn bytes_that_a_child_holds_at_the_end_of_the_recording_are_not_lost() {
    let mut builder = handed_over();
    ends(&mut builder, 2, None);
    builder.no_finding("lost-at-exit");
    // A signal or an execve(2) in place of _exit(2).
    let mut killed = recording(1.0);
    killed.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, LINE)]);
    killed.fork(0.3, 2);
    killed.snapshot(0.4, 1, SnapshotMoment::Signal, &[pending(1, LINE)]);
    killed.root().exit = Some(Exit::Signal(15));
    ends(&mut killed, 1, Some(0.4));
    killed.0.processes[0].exit = Some(Exit::Signal(15));
    killed.no_finding("lost-at-kill");
    let mut restarted = recording(1.0);
    restarted.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, LINE)]);
    restarted.fork(0.3, 2);
    restarted.snapshot(0.4, 1, SnapshotMoment::Exec, &[pending(1, LINE)]);
    restarted.exec(0.41, 1, "true");
    restarted.no_finding("lost-at-exec");
}

#[test]
fn bytes_that_no_holder_has_written_are_reported_once_by_the_last() {
    let mut builder = handed_over();
    builder.snapshot(0.8, 2, SnapshotMoment::Exit, &[pending(1, LINE)]);
    ends(&mut builder, 2, Some(0.8));
    let finding = builder.finding("lost-at-exit");
    assert_eq!((finding.pid, finding.evidence["lost_bytes"]), (2, 17.0));
    // Both are in their exit at once.
    ends(&mut builder, 1, Some(0.8));
    assert_eq!(builder.findings("lost-at-exit").len(), 1);
    // The child executes another program: it holds nothing any more when the parent ends.
    let mut execs = handed_over();
    execs.exec(0.35, 2, "sleep");
    assert_eq!(execs.finding("lost-at-exit").pid, 1);
}

#[test]
fn a_grandchild_holds_the_bytes_too() {
    let double_fork = || {
        let mut builder = handed_over();
        builder.snapshot(0.45, 2, SnapshotMoment::Fork, &[pending(1, LINE_AND_MORE)]);
        builder.event(0.45, 2, weir_model::trace::EventKind::Fork { child: 3 });
        builder.process(3, Some(2), "prog").started_s = 0.45;
        builder.snapshot(0.5, 2, SnapshotMoment::Exit, &[pending(1, LINE_AND_MORE)]);
        ends(&mut builder, 2, Some(0.5));
        builder
    };
    double_fork().no_finding("lost-at-exit");
    let mut writes = double_fork();
    writes.write(0.6, 3, 1, 0, LINE_AND_MORE);
    writes.no_finding("lost-at-exit");
    // The grandchild loses what its parents have left to it.
    let mut loses = double_fork();
    loses.snapshot(0.9, 3, SnapshotMoment::Exit, &[pending(1, LINE_AND_MORE)]);
    let finding = loses.finding("lost-at-exit");
    assert_eq!((finding.pid, finding.evidence["lost_bytes"]), (3, 22.0));
}

#[test]
fn a_worker_loses_its_own_bytes_only_and_its_flush_must_not_double_the_others() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/log", File);
    builder.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, LINE)]);
    for (child, text) in [(2, LINE), (3, LINE_AND_MORE)] {
        builder.fork(0.3, child);
        builder.snapshot(0.5, child, SnapshotMoment::Exit, &[pending(1, text)]);
        ends(&mut builder, child, Some(0.5));
    }
    builder.write(0.9, 1, 1, file, b"temperature 21.5\nend\n");
    let finding = builder.finding("lost-at-exit");
    assert_eq!((finding.pid, finding.evidence["lost_bytes"], finding.severity), (3, 5.0, High));
    let (fork, exit) = (finding.fix.find("fflush(NULL);"), finding.fix.find("fflush(stdout);"));
    let (fork, exit) = (fork.expect("before fork"), exit.expect("before the end"));
    assert!(fork < exit && finding.fix.contains("nothing is written twice"), "{}", finding.fix);
}

#[test]
fn bytes_after_a_flush_are_no_copy_even_if_they_are_equal() {
    let mut builder = handed_over();
    builder.write(0.6, 2, 1, 0, LINE);
    builder.snapshot(0.8, 2, SnapshotMoment::Exit, &[pending(1, LINE)]);
    ends(&mut builder, 2, Some(0.8));
    assert_eq!(builder.finding("lost-at-exit").evidence["lost_bytes"], 17.0);
}

#[test]
fn the_fork_may_have_one_snapshot_of_each_runtime() {
    let mut builder = handed_over();
    ends(&mut builder, 2, None);
    // The C library's streams alone, nearer to the fork.
    builder.snapshot(0.2999, 1, SnapshotMoment::Fork, &[pending(2, b"")]);
    for event in &mut builder.0.events {
        if let weir_model::trace::EventKind::Buffers { moment: SnapshotMoment::Fork, .. } = event.kind {
            event.at_s = if event.at_s < 0.3 { 0.3 } else { 0.306 };
        }
    }
    builder.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    builder.no_finding("lost-at-exit");
}
