//! Tests of the rules lost-at-kill, lost-at-exec, lost-at-exit and doubled-at-fork.

use weir_model::Severity::*;
use weir_model::StreamKind;
use weir_model::trace::{Buffer, Exit, SnapshotMoment};

use crate::testing::*;

const LINE: &[u8] = b"temperature 21.5\n";

#[test]
fn bytes_pending_at_a_signal_are_lost() {
    for (number, high) in [(9, true), (6, true), (11, true), (13, false)] {
        let mut builder = recording(1.0);
        let pipe = builder.file("pipe:[4]", Pipe);
        builder.stream(1, 1, pipe, Out, 3, 4096).last_s = 0.5;
        builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(1, LINE)]);
        builder.root().exit = Some(Exit::Signal(number));
        if high {
            let finding = builder.finding("lost-at-kill");
            assert_eq!((finding.severity, finding.evidence["lost_bytes"]), (High, 17.0));
            assert!(finding.fix.contains("weir run --rescue"));
        } else {
            builder.no_finding("lost-at-kill"); // SIGPIPE: the pipe has no reader
        }
    }
}

#[test]
fn a_reader_that_kills_its_writer_loses_nothing() {
    // apt kills its HTTP method when it has nothing left to fetch.
    let sent = |whom: i32, number: u64| {
        let mut builder = recording(1.0);
        let pipe = builder.file("pipe:[4]", Pipe);
        builder.fork(0.1, 2).exit = Some(Exit::Signal(2));
        builder.exec(0.2, 2, "http");
        builder.stream(2, 1, pipe, Out, 3, 4096);
        let call = builder.call(0.85, 1, weir_model::trace::Op::Kill, -1, 0, b"");
        (call.file, call.args[0], call.args[1]) = (None, whom as u64, number);
        builder.snapshot(0.9, 2, SnapshotMoment::Signal, &[pending(1, LINE)]);
        builder
    };
    let run = |whom: i32| sent(whom, 2);
    assert_eq!(run(2).severity("lost-at-kill"), Info);
    assert_eq!(run(-2).severity("lost-at-kill"), Info, "its process group");
    assert_eq!(sent(2, 0).severity("lost-at-kill"), High, "a question whether it lives");
    assert_eq!(sent(2, 28).severity("lost-at-kill"), High, "another signal has ended it");
    assert_eq!(run(7).severity("lost-at-kill"), High, "another one was killed");
    let mut elsewhere = run(2);
    elsewhere.open_file(0).opened_by = Some(9);
    assert_eq!(elsewhere.severity("lost-at-kill"), High, "somebody else reads it");
    elsewhere.stream(1, 4, 0, In, 1, 4096);
    assert_eq!(elsewhere.severity("lost-at-kill"), Info);
}

#[test]
fn without_a_snapshot_at_the_signal_the_last_one_counts_unless_a_write_followed() {
    let killed = |last_write_s: f64| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/log", File);
        let stream = builder.stream(1, 3, file, Out, 3, 4096);
        (stream.first_s, stream.last_s) = (0.1, last_write_s);
        builder.snapshot(0.5, 1, SnapshotMoment::Sample, &[pending(3, LINE)]);
        builder.root().exit = Some(Exit::Signal(9));
        builder
    };
    assert_eq!(killed(0.4).severity("lost-at-kill"), High);
    killed(0.6).no_finding("lost-at-kill");
    let mut clean = killed(0.4);
    clean.root().exit = Some(Exit::Code(0));
    clean.no_finding("lost-at-kill");
}

#[test]
fn a_snapshot_of_other_buffers_at_the_signal_hides_nothing() {
    let mut builder = recording(1.0);
    builder.file("/d/out", File);
    builder.root().exit = Some(Exit::Signal(9));
    builder.snapshot(0.3, 1, SnapshotMoment::Sample, &[pending(1, LINE)]);
    builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(2, b"")]);
    assert_eq!(builder.finding("lost-at-kill").evidence["lost_bytes"], 17.0);
    // The same buffer, now empty.
    builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(1, b"")]);
    builder.no_finding("lost-at-kill");
}

#[test]
fn bytes_pending_at_a_successful_exec_are_lost() {
    let mut builder = recording(1.0);
    builder.file("pipe:[4]", Pipe);
    builder.snapshot(0.5, 1, SnapshotMoment::Exec, &[pending(1, LINE)]);
    builder.no_finding("lost-at-exec");
    builder.exec(0.5001, 1, "sort");
    let finding = builder.finding("lost-at-exec");
    assert_eq!((finding.severity, finding.evidence["lost_bytes"]), (High, 17.0));
    assert!(finding.fix.contains("before"), "{}", finding.fix);
}

#[test]
fn other_threads_write_until_the_exec_ends_them() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.snapshot(0.5, 1, SnapshotMoment::Exec, &[pending(1, LINE), pending(3, b"other\n")]);
    // Another thread's write, which the end of the thread interrupts, with its sample.
    builder.snapshot(0.5001, 1, SnapshotMoment::Sample, &[pending(1, b"")]);
    builder.write(0.5001, 1, 1, file, b"").result = -512;
    builder.exec(0.5004, 1, "sort");
    assert_eq!(builder.findings("lost-at-exec").len(), 2);
    let mut written = recording(1.0);
    let file = written.file("/d/out", File);
    written.snapshot(0.5, 1, SnapshotMoment::Exec, &[pending(1, LINE)]);
    written.write(0.5001, 1, 1, file, LINE);
    written.exec(0.5004, 1, "sort");
    written.no_finding("lost-at-exec");
    let mut left = recording(1.0);
    let file = left.file("/d/out", File);
    left.snapshot(0.5, 1, SnapshotMoment::Exec, &[pending(1, LINE)]);
    left.write(0.5001, 1, 1, file, LINE);
    left.snapshot(0.5002, 1, SnapshotMoment::Exec, &[pending(1, b"more\n")]);
    left.exec(0.5004, 1, "sort");
    assert_eq!(
        left.finding("lost-at-exec").evidence["lost_bytes"],
        5.0,
        "at the end of the last other thread"
    );
}

#[test]
fn an_exec_with_empty_buffers_loses_nothing() {
    let mut builder = recording(1.0);
    builder.snapshot(0.5, 1, SnapshotMoment::Exec, &[pending(1, b"")]);
    builder.exec(0.5001, 1, "sort");
    builder.no_finding("lost-at-exec");
}

#[test]
fn a_childs_copy_of_its_parents_bytes_is_not_lost() {
    let mut builder = recording(1.0);
    builder.file("pipe:[4]", Pipe);
    builder.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, LINE)]);
    builder.fork(0.3, 2);
    builder.snapshot(0.4, 2, SnapshotMoment::Exec, &[pending(1, LINE)]);
    builder.exec(0.41, 2, "ls");
    builder.fork(0.5, 3);
    builder.snapshot(0.6, 3, SnapshotMoment::Exit, &[pending(1, LINE)]);
    for id in ["lost-at-exec", "lost-at-exit"] {
        builder.no_finding(id);
    }
    // The bytes that the child added are lost.
    builder.fork(0.7, 4);
    builder.snapshot(0.8, 4, SnapshotMoment::Exit, &[pending(1, b"temperature 21.5\nmine\n")]);
    let finding = builder.finding("lost-at-exit");
    assert_eq!((finding.pid, finding.evidence["lost_bytes"]), (4, 5.0));
    assert!(finding.why.contains("mine") && !finding.why.contains("temperature"), "{}", finding.why);
}

#[test]
fn without_a_snapshot_at_the_fork_a_child_is_not_judged() {
    let mut builder = recording(1.0);
    builder.fork(0.3, 2);
    builder.snapshot(0.6, 2, SnapshotMoment::Exit, &[pending(1, LINE)]);
    builder.no_finding("lost-at-exit");
    builder.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, b"")]);
    assert_eq!(builder.finding("lost-at-exit").pid, 2);
}

#[test]
fn bytes_pending_at_exit_are_lost_unless_no_process_reads_them() {
    let at_exit = |path: &str, kind: StreamKind| {
        let mut builder = recording(1.0);
        let file = builder.file(path, kind);
        builder.stream(1, 1, file, Out, 3, 4096).last_s = 0.4;
        builder.snapshot(0.9, 1, SnapshotMoment::Exit, &[pending(1, LINE)]);
        builder
    };
    assert_eq!(at_exit("/d/out", File).severity("lost-at-exit"), High);
    at_exit("/dev/null", StreamKind::Device).no_finding("lost-at-exit");
    let mut gone = at_exit("pipe:[5]", Pipe);
    gone.process(2, None, "head").ended_s = Some(0.5);
    gone.stream(2, 0, 0, In, 3, 4096);
    assert_eq!(gone.severity("lost-at-exit"), Info);
    let mut failed = at_exit("/d/out", File);
    failed.write(0.5, 1, 1, 0, LINE).result = -28;
    failed.no_finding("lost-at-exit");
}

/// Returns the recording of a fork with pending bytes, and of the first write of child and parent.
fn forked(pending_bytes: &[u8], child: &[u8], parent: &[u8]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.snapshot(0.3, 1, SnapshotMoment::Fork, &[pending(1, pending_bytes)]);
    builder.fork(0.3001, 2);
    builder.write(0.4, 2, 1, file, child);
    builder.write(0.5, 1, 1, file, parent);
    builder
}

#[test]
fn bytes_written_by_both_sides_of_a_fork_are_doubled() {
    let finding = forked(b"start\n", b"start\nchild\n", b"start\nparent\n").finding("doubled-at-fork");
    assert_eq!((finding.severity, finding.evidence["doubled_bytes"]), (High, 6.0));
    assert!(finding.fix.contains("fflush(NULL)"));
}

/// A call of another thread keeps the kernel's snapshot and that of the tracer apart.
#[test]
fn the_snapshot_of_another_runtime_belongs_to_the_fork_before_it() {
    let recording = |late_s: f64| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        let empty = Buffer { address: 8, pending_bytes: 0, pending: Vec::new(), ..pending(1, b"") };
        builder.snapshot(0.2999, 1, SnapshotMoment::Fork, &[empty]);
        builder.fork(0.3, 2);
        builder.snapshot(late_s, 1, SnapshotMoment::Fork, &[pending(1, b"start\n")]);
        builder.fork(0.35, 3);
        builder.write(0.4, 2, 1, file, b"start\nchild\n");
        builder.write(0.5, 1, 1, file, b"start\nparent\n");
        builder
    };
    assert_eq!(recording(0.32).finding("doubled-at-fork").evidence["child"], 2.0);
    recording(0.36).no_finding("doubled-at-fork");
}

#[test]
fn equal_text_without_pending_bytes_and_a_silent_child_double_nothing() {
    forked(b"", b"start\n", b"start\n").no_finding("doubled-at-fork");
    forked(b"start\n", b"child\n", b"start\nparent\n").no_finding("doubled-at-fork");
    forked(b"start\n", b"", b"start\nparent\n").no_finding("doubled-at-fork");
    forked(b"start\n", b"start\n", b"parent\n").no_finding("doubled-at-fork");
}

#[test]
fn the_program_that_forked_is_named_not_one_that_was_executed_later() {
    let mut builder = forked(b"start\n", b"start\nchild\n", b"start\nparent\n");
    let end_s = builder.0.elapsed_s;
    builder.exec(end_s, 1, "later");
    let why = builder.finding("doubled-at-fork").why;
    assert!(why.starts_with("prog (1) had"), "{why}");
}

#[test]
fn the_reader_of_a_socket_is_not_the_reader_of_its_other_end() {
    let mut builder = recording(1.0);
    let socket = builder.file("socket:[4]", StreamKind::Socket);
    builder.stream(1, 3, socket, Out, 3, 4096).last_s = 0.5;
    builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(3, LINE)]);
    builder.root().exit = Some(Exit::Signal(9));
    builder.fork(0.1, 2).ended_s = Some(0.2);
    builder.stream(2, 3, socket, In, 1, 10);
    assert_eq!(builder.severity("lost-at-kill"), High, "only its own end was closed");
}
