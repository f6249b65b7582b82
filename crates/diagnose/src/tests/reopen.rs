//! Tests of the rule reopen-per-record.

use weir_model::trace::{Op, StreamCounts};
use weir_model::{Severity, StreamKind};

use crate::flags::O_TRUNC;
use crate::testing::*;

/// Returns the recording of a process that opens a log for each of `seen` lines, and 60,000 lines in all.
fn appender(seen: u64, flags: i32, calls: u64) -> RecordingBuilder {
    let mut builder = recording(0.9);
    (builder.root().user_s, builder.root().system_s) = (0.24, 0.42);
    for _ in 0..seen {
        let file = builder.file("/d/log", File);
        builder.open_file(file).flags = flags;
        builder.open_file(file).ino = 7;
        builder.stream(1, 3, file, Out, calls, 11).newline_ends = calls;
    }
    let unknown = builder.file(StreamCounts::UNKNOWN_PATH, StreamKind::Other);
    builder.stream(1, StreamCounts::UNKNOWN, unknown, Out, (60_000 - seen) * calls, 11);
    for (op, calls) in [(Op::Openat, seen), (Op::Close, seen), (Op::Lseek, seen * 3)] {
        builder.0.other_calls.push(weir_model::trace::OtherCalls {
            pid: 1,
            image: 0,
            op,
            calls,
            errors: Default::default(),
            submitted: 0,
            exact: false,
        });
    }
    builder
}

const APPEND: i32 = 0o2101;

#[test]
fn a_file_that_is_opened_for_each_line_costs_the_kernels_time() {
    let finding = appender(2000, APPEND, 1).finding("reopen-per-record");
    assert_eq!((finding.severity, finding.evidence["openings"]), (Severity::High, 60_000.0));
    // 420 ms less 60,000 × 900 ns.
    assert!((finding.evidence["cost_s"] - 0.366).abs() < 0.01, "{finding:#?}");
    assert!(finding.why.contains("opened /d/log about 60,000 times") && finding.why.contains("11 bytes"));
    assert!(finding.fix.starts_with("FILE *f = fopen(path, \"a\");"), "{}", finding.fix);
}

#[test]
fn libraries_opened_at_the_start_do_not_hide_a_loop_of_which_little_was_recorded() {
    let mut builder = appender(150, APPEND, 1);
    builder.0.other_calls[0].calls += 26;
    let finding = builder.finding("reopen-per-record");
    assert_eq!(finding.evidence["openings"], 60_000.0);
    assert!((finding.evidence["cost_s"] - 0.366).abs() < 0.01, "{finding:#?}");
}

#[test]
fn few_openings_truncated_files_and_long_sessions_are_no_finding() {
    appender(99, APPEND, 1).no_finding("reopen-per-record");
    appender(2000, APPEND | O_TRUNC, 1).no_finding("reopen-per-record");
    appender(2000, APPEND, 50).no_finding("reopen-per-record");
    // Each is another file of this name.
    let mut others = appender(2000, APPEND, 1);
    others.0.files.iter_mut().for_each(|file| file.ino = u64::from(file.id) + 1);
    others.no_finding("reopen-per-record");
}

#[test]
fn in_a_program_that_opens_other_files_too_openings_have_a_price() {
    let mut busy = appender(2000, APPEND, 1);
    busy.0.other_calls[0].calls = 20_000;
    // 60,000 × 8 × 300 ns.
    let cost_s = busy.finding("reopen-per-record").evidence["cost_s"];
    assert!((cost_s - 0.144).abs() < 0.001, "{cost_s}");
}

#[test]
fn calls_of_gaps_that_may_belong_to_other_streams_are_not_counted() {
    let mut mixed = appender(2000, APPEND, 1);
    for stream in &mut mixed.0.counts {
        (stream.exact, stream.estimated, stream.at_least) = (false, true, stream.is_known());
    }
    let other = mixed.file("/d/other", File);
    mixed.stream(1, 4, other, Out, 2000, 4096);
    let finding = mixed.finding("reopen-per-record");
    assert!(finding.why.contains("at least 2,000 times"), "{}", finding.why);
    assert_eq!(finding.evidence["least_openings"], 2000.0);
    // One opening has the calls of others in its window.
    (mixed.0.counts[0].calls, mixed.0.counts[0].bytes) = (501, 11 * 501);
    let finding = mixed.finding("reopen-per-record");
    assert!(
        finding.why.contains("at least 2,500 times") && finding.why.contains("11 bytes"),
        "{}",
        finding.why
    );
    (mixed.0.counts[0].calls, mixed.0.counts[0].bytes) = (1, 11);
    // One opening has a share of a gap.
    let share = &mut mixed.0.counts[1999];
    (share.calls, share.bytes, share.at_least) = (1161, 11 * 1161, false);
    let finding = mixed.finding("reopen-per-record");
    assert!(finding.why.contains("opened /d/log about 3,160 times"), "{}", finding.why);
    assert_eq!(finding.evidence["openings"], 3160.0);
}

#[test]
fn the_program_that_opened_again_is_named_not_one_that_was_executed_later() {
    let mut builder = appender(2000, APPEND, 1);
    let end_s = builder.0.elapsed_s;
    builder.exec(end_s, 1, "later");
    let why = builder.finding("reopen-per-record").why;
    assert!(why.starts_with("prog (1) opened"), "{why}");
}

#[test]
fn openings_whose_events_were_lost_are_counted_by_their_calls() {
    let mut builder = appender(2000, APPEND, 1);
    builder.0.counts.pop();
    builder.0.counts[0].calls = 30_001;
    let openings = |builder: &RecordingBuilder| builder.finding("reopen-per-record").evidence["openings"];
    assert_eq!(openings(&builder), 2000.0, "one session was long");
    builder.0.overhead.lost_events = 9000;
    assert_eq!(openings(&builder), 32_000.0);
}

#[test]
fn the_cost_of_tracing_other_processes_does_not_lower_the_gain() {
    let mut builder = appender(2000, APPEND, 1);
    builder.process(2, Some(1), "busy").system_s = 9.0;
    let file = builder.file("/d/busy", File);
    builder.stream(2, 3, file, Out, 6_000_000, 11);
    builder.0.overhead.cost_s = 1.8;
    let cost_s = builder.finding("reopen-per-record").evidence["cost_s"];
    // The process makes 1.1 % of all recorded calls: 420 ms less 60,000 × 900 ns, less 20 ms.
    assert!((cost_s - 0.346).abs() < 0.01, "{cost_s}");
}
