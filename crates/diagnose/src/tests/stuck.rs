//! Tests of the rule stuck-output.

use weir_model::Severity::*;
use weir_model::SourceLanguage;
use weir_model::trace::SnapshotMoment;

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

/// A filter that reads a line every 0.3 s: the kernel's snapshots at its reads are as many as those of its sleep.
#[test]
fn snapshots_at_calls_do_not_tell_whether_a_program_waits() {
    let filter = |reads: usize, user_s: f64| {
        let mut builder = sleeping(1.5, "read", |_| LINE.into());
        let input = builder.file("pipe:[3]", Pipe);
        for read in 0..reads {
            let at_s = 0.15 + read as f64 * 0.17;
            builder.snapshot(at_s, 1, SnapshotMoment::Sample, &[pending(1, LINE)]);
            builder.read(at_s + 2e-6, 1, 0, input, LINE);
        }
        builder.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        builder.root().user_s = user_s;
        builder
    };
    assert_eq!(filter(7, 0.01).severity("stuck-output"), Warn);
    assert_eq!(filter(8, 0.01).severity("stuck-output"), Warn);
    filter(8, 1.0).no_finding("stuck-output");
    let mut running = filter(8, 0.0);
    running.root().ended_s = None;
    running.no_finding("stuck-output");
}

#[test]
fn a_write_in_between_ends_the_wait() {
    let mut builder = sleeping(1.5, "poll", |_| LINE.into());
    builder.stream(1, 1, 0, Out, 1, 17);
    let stream = builder.0.counts.last_mut().unwrap();
    (stream.first_s, stream.last_s) = (0.7, 0.7);
    builder.no_finding("stuck-output");
}
