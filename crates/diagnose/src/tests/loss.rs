//! Tests of the rules stuck-output, lost-at-kill, lost-at-exec, lost-at-exit and doubled-at-fork.

use weir_model::Severity::*;
use weir_model::trace::{Exit, SnapshotMoment};
use weir_model::{SourceLanguage, StreamKind};

use crate::testing::*;

const LINE: &[u8] = b"temperature 21.5\n";

/// Returns the recording of a sleeping program with a snapshot every quarter of a second.
fn sleeping(seconds: f64, waits_in: &str, pending_at: impl Fn(f64) -> Vec<u8>) -> RecordingBuilder {
    let mut builder = recording(seconds + 0.2);
    let file = builder.file("/d/out", File);
    // The call that opens the descriptor.
    builder.call(0.0, 1, weir_model::trace::Op::Openat, -1, file, b"").result = 1;
    let mut at_s = 0.1;
    while at_s <= seconds + 0.1 {
        builder.snapshot_in(at_s, 1, SnapshotMoment::Sample, waits_in, &[pending(1, &pending_at(at_s))]);
        at_s += 0.25;
    }
    builder
}

#[test]
fn bytes_pending_for_a_second_are_stuck() {
    let finding = sleeping(1.5, "clock_nanosleep", |_| LINE.into()).finding("stuck-output");
    assert_eq!((finding.severity, finding.path.exact()), (Warn, "/d/out"));
    assert_eq!(finding.evidence["pending_bytes"], 17.0);
    assert!(
        (finding.evidence["waited_s"] - 1.5).abs() < 1e-6 && (finding.evidence["since_s"] - 0.1).abs() < 1e-6
    );
    assert!(finding.why.contains("clock_nanosleep") && finding.why.contains("21.5"), "{}", finding.why);
    assert!(
        finding.why.starts_with("17 bytes have been in the buffer of prog (1) for 1.50 s"),
        "{}",
        finding.why
    );
    assert!(sleeping(40.0, "poll", |_| LINE.into()).severity("stuck-output") == High);
}

#[test]
fn each_descriptor_with_stuck_bytes_is_a_finding() {
    let mut builder = recording(2.0);
    let files = [builder.file("/d/one", File), builder.file("/d/two", File)];
    for (fd, file) in [1, 2].into_iter().zip(files) {
        builder.call(0.0, 1, weir_model::trace::Op::Openat, -1, file, b"").result = fd;
    }
    for quarter in 0..7 {
        let at_s = 0.1 + f64::from(quarter) * 0.25;
        let second = pending(2, if quarter == 0 { b"" } else { LINE });
        builder.snapshot_in(at_s, 1, SnapshotMoment::Sample, "poll", &[pending(1, LINE), second]);
    }
    let found = builder.findings("stuck-output");
    let paths: Vec<&str> = found.iter().map(|finding| finding.path.exact()).collect();
    assert_eq!(paths, ["/d/one", "/d/two"], "the longest first");
    assert_eq!(found[1].evidence["waited_s"], 1.25);
}

#[test]
fn bytes_pending_before_weir_attached_have_a_lower_bound() {
    let text = |attached: bool| {
        let mut builder = sleeping(1.5, "clock_nanosleep", |_| LINE.into());
        if attached {
            builder.0.command.clear();
        }
        builder.finding("stuck-output").why
    };
    assert!(text(false).contains("for 1.50 s, since 100 ms into the run, while"), "{}", text(false));
    assert!(text(true).contains("for at least 1.50 s (since weir attached), while"), "{}", text(true));
}

#[test]
fn buffers_found_by_a_search_are_written_from_outside_if_their_write_shows_it() {
    let mut builder = sleeping(1.5, "futex", |_| LINE.into());
    assert!(builder.finding("stuck-output").fix.starts_with("weir run"));
    for event in &mut builder.0.events {
        if let weir_model::trace::EventKind::Buffers { buffers, .. } = &mut event.kind {
            for one in buffers {
                (one.walker, one.found_by_search) = (weir_model::trace::RuntimeId::GO, true);
            }
        }
    }
    builder.root().images[0].language = Some(SourceLanguage::Go);
    let fix = builder.finding("stuck-output").fix;
    assert!(!fix.contains("weir run") && fix.contains("w.Flush()"), "{fix}");
    for event in &mut builder.0.events {
        if let weir_model::trace::EventKind::Buffers { buffers, .. } = &mut event.kind {
            buffers.iter_mut().for_each(|one| one.has_write_address = true);
        }
    }
    builder.root().images[0].language = Some(SourceLanguage::Rust);
    let fix = builder.finding("stuck-output").fix;
    assert!(fix.starts_with("weir run --max-delay 100ms -- ") && fix.contains("flush()"), "{fix}");
}

#[test]
fn no_command_writes_bytes_that_the_program_still_converts() {
    let mut builder = sleeping(1.5, "poll", |_| LINE.into());
    for event in &mut builder.0.events {
        if let weir_model::trace::EventKind::Buffers { buffers, .. } = &mut event.kind {
            buffers.iter_mut().for_each(|one| one.unconverted_bytes = 1);
        }
    }
    let finding = builder.finding("stuck-output");
    assert!(!finding.fix.contains("weir run") && finding.command.is_none(), "{}", finding.fix);
}

#[test]
fn a_command_is_that_of_the_run_or_of_the_attached_process() {
    let mut builder = sleeping(1.5, "poll", |_| LINE.into());
    builder.root().images[0].argv = vec!["prog".into(), "a b".into()];
    builder.root().images[0].directory = Some("/srv/a b".into());
    let command = |builder: &RecordingBuilder| builder.finding("stuck-output").command;
    assert_eq!(command(&builder).as_deref(), Some("weir run --max-delay 100ms -- ./prog 'a b'"));
    builder.0.command.clear();
    let attached = "cd '/srv/a b' && weir run --max-delay 100ms -- prog 'a b'";
    assert_eq!(command(&builder).as_deref(), Some(attached));
    let finding = builder.finding("stuck-output");
    assert!(finding.fix.starts_with(&format!("{attached}   or in code: ")), "{}", finding.fix);
    // The planner refuses Node.
    builder.root().images[0].language = Some(SourceLanguage::Node);
    let finding = builder.finding("stuck-output");
    assert!(finding.command.is_none() && finding.fix.starts_with("process.stdout.write("), "{}", finding.fix);
}

#[test]
fn more_pending_bytes_do_not_end_the_wait_of_the_oldest() {
    let growing = |at_s: f64| LINE.repeat(1 + (at_s / 0.4) as usize);
    let finding = sleeping(1.5, "clock_nanosleep", growing).finding("stuck-output");
    assert_eq!(finding.severity, Warn);
    // Only the first line is that old.
    let text = "17 of 85 bytes have been in the buffer of prog (1) for 1.50 s, since";
    assert!(finding.why.starts_with(text), "{}", finding.why);
    let shown = format!(" in clock_nanosleep: \"{}\".", weir_model::peek::escaped(LINE));
    assert!(finding.why.ends_with(&shown), "{}", finding.why);
}

#[test]
fn the_wait_lasts_until_the_write_that_ends_it() {
    let mut builder = sleeping(0.8, "poll", |_| LINE.into());
    builder.write(1.3, 1, 1, 0, LINE);
    builder.0.elapsed_s = 3.0;
    builder.root().ended_s = Some(3.0);
    let finding = builder.finding("stuck-output");
    assert!((finding.evidence["waited_s"] - 1.2).abs() < 1e-6, "{}", finding.why);
    // A much later write is no end of the wait: there is no snapshot in between.
    builder.0.events.last_mut().unwrap().at_s = 2.0;
    builder.no_finding("stuck-output");
}

#[test]
fn a_snapshot_of_other_buffers_ends_no_wait() {
    let mut builder = sleeping(1.5, "poll", |_| LINE.into());
    builder.snapshot(0.7, 1, SnapshotMoment::Sample, &[pending(3, b"")]);
    builder.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    assert_eq!(builder.severity("stuck-output"), Warn);
}

#[test]
fn shorter_waits_busy_programs_and_slow_readers_are_not_stuck() {
    sleeping(0.8, "poll", |_| LINE.into()).no_finding("stuck-output");
    sleeping(3.0, "", |_| LINE.into()).no_finding("stuck-output");
    sleeping(3.0, "write", |_| LINE.into()).no_finding("stuck-output");
    sleeping(3.0, "poll", |_| Vec::new()).no_finding("stuck-output");
    // A different line each time: the buffer was flushed in between.
    sleeping(3.0, "poll", |at_s| format!("{at_s} is now\n").into_bytes()).no_finding("stuck-output");
}

#[test]
fn a_write_in_between_ends_the_wait() {
    let mut builder = sleeping(1.5, "poll", |_| LINE.into());
    builder.stream(1, 1, 0, Out, 1, 17);
    let stream = builder.0.counts.last_mut().unwrap();
    (stream.first_s, stream.last_s) = (0.7, 0.7);
    builder.no_finding("stuck-output");
}

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
