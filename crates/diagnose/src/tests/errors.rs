//! Tests of the rules ignored-write-error, ignored-close-error, short-write-unhandled and direct-misaligned.

use weir_model::Severity::*;
use weir_model::trace::{Exit, Op};

use crate::testing::*;

fn failing(error: i64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/full", File);
    builder.stream(1, 1, file, Out, 1, 0).errors = 1;
    builder.write(0.5, 1, 1, file, b"report\n").result = -error;
    builder
}

#[test]
fn an_error_without_a_message_is_high() {
    let finding = failing(28).finding("ignored-write-error");
    assert_eq!(
        (finding.severity, finding.evidence["lost_bytes"], finding.evidence["errno"]),
        (High, 7.0, 28.0)
    );
    assert!(finding.why.contains("ENOSPC") && finding.why.contains("/d/full"), "{}", finding.why);
    assert_eq!(failing(9).severity("ignored-write-error"), Warn);
    assert_eq!(failing(32).severity("ignored-write-error"), Info);
    failing(11).no_finding("ignored-write-error");
    // The program goes on writing although the reader has gone.
    let mut going_on = failing(32);
    for number in 0..8 {
        going_on.write(0.6 + 0.01 * f64::from(number), 1, 1, 0, b"more\n").result = -32;
    }
    assert_eq!(going_on.severity("ignored-write-error"), Warn);
}

#[test]
fn sentences_and_commands_have_no_character_that_a_terminal_obeys() {
    let mut builder = failing(28);
    builder.open_file(0).path = "/d/\u{1b}[2Jfull\u{202e}".into();
    builder.root().images[0].comm = "evil\u{9b}31m".into();
    let finding = builder.finding("ignored-write-error");
    assert!(finding.why.contains(r"/d/\x1b[2Jfull\xe2\x80\xae failed"), "{}", finding.why);
    assert!(finding.why.contains(r"evil\xc2\x9b31m (1)"), "{}", finding.why);
    let shown = [&finding.why, &finding.fix].map(|text| text.contains(weir_model::obeyed_by_terminals));
    assert_eq!(shown, [false, false], "{finding:?}");
}

#[test]
fn a_program_that_fails_reports_or_retries_has_handled_the_error() {
    let mut failed = failing(28);
    failed.root().exit = Some(Exit::Code(1));
    failed.no_finding("ignored-write-error");
    let mut told = failing(28);
    let terminal = told.file("/dev/pts/1", Terminal);
    told.stream(1, 2, terminal, Out, 1, 40);
    told.no_finding("ignored-write-error");
    let mut again = failing(28);
    again.write(0.6, 1, 1, 0, b"report\n");
    again.no_finding("ignored-write-error");
    let mut killed = failing(28);
    killed.root().exit = Some(Exit::Signal(15));
    killed.no_finding("ignored-write-error");
}

#[test]
fn messages_before_the_error_do_not_report_it() {
    let mut builder = failing(28);
    let terminal = builder.file("/dev/pts/1", Terminal);
    builder.stream(1, 2, terminal, Out, 1, 40).last_s = 0.4;
    assert_eq!(builder.severity("ignored-write-error"), High);
}

#[test]
fn messages_to_dev_null_report_nothing() {
    let mut builder = failing(28);
    let null = builder.file("/dev/null", weir_model::StreamKind::Device);
    builder.stream(1, 2, null, Out, 1, 40);
    assert_eq!(builder.severity("ignored-write-error"), High);
}

#[test]
fn a_failed_sync_is_reported_as_a_write_error() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/db", File);
    builder.call(0.5, 1, Op::Fsync, 3, file, b"").result = -5;
    assert_eq!(builder.severity("ignored-write-error"), High);
    let why = builder.finding("ignored-write-error").why;
    assert!(why.ends_with(": it is unknown whether the written bytes are on the device."), "{why}");
}

fn closing(results: &[(i32, i64)]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/report", File);
    builder.stream(1, 3, file, Out, 1, 100).last_s = 0.4;
    for (index, (fd, result)) in results.iter().enumerate() {
        builder.call(0.5 + 0.001 * index as f64, 1, Op::Close, *fd, file, b"").result = *result;
    }
    builder
}

#[test]
fn errors_of_close_are_errors() {
    let finding = closing(&[(3, -122)]).finding("ignored-close-error");
    assert_eq!((finding.severity, finding.path.exact()), (High, "/d/report"));
    closing(&[(3, 0)]).no_finding("ignored-close-error");
    let mut told = closing(&[(3, -122)]);
    told.root().exit = Some(Exit::Code(1));
    told.no_finding("ignored-close-error");
}

#[test]
fn closed_twice_is_a_warning_and_a_loop_over_all_numbers_is_not() {
    assert_eq!(closing(&[(3, 0), (3, -9)]).severity("ignored-close-error"), Warn);
    closing(&[(3, 0), (2, -9), (3, -9), (4, -9), (5, -9)]).no_finding("ignored-close-error");
    closing(&[(7, -9)]).no_finding("ignored-close-error");
    let mut unwritten = closing(&[(3, 0), (3, -9)]);
    unwritten.0.counts.clear();
    unwritten.no_finding("ignored-close-error");
}

/// Returns the recording of a write that takes 100 of 300 bytes, and of the next write: address, asked, result.
fn short(next: Option<(u64, u64, i64)>) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/image", File);
    let stream = builder.stream(1, 3, file, Out, 1 + u64::from(next.is_some()), 100);
    (stream.short, stream.last_s) = (1, 0.5);
    let call = builder.write(0.5, 1, 3, file, b"x");
    (call.requested_bytes, call.result) = (300, 100);
    if let Some((address, asked, result)) = next {
        let call = builder.write(0.6, 1, 3, file, b"x");
        (call.args[1], call.requested_bytes, call.result) = (address, asked, result);
        builder.0.counts[0].last_s = 0.6;
    }
    builder
}

#[test]
fn a_rest_that_is_never_written_is_lost() {
    let finding = short(None).finding("short-write-unhandled");
    assert_eq!((finding.severity, finding.evidence["lost_bytes"]), (High, 200.0));
    assert_eq!(short(Some((0x9000, 300, 300))).severity("short-write-unhandled"), High);
}

#[test]
fn a_rest_that_is_written_fails_or_is_reported_is_no_finding() {
    short(Some((0x1000 + 100, 200, 200))).no_finding("short-write-unhandled");
    short(Some((0x9000, 200, 200))).no_finding("short-write-unhandled");
    short(Some((0x1000 + 100, 200, -27))).no_finding("short-write-unhandled");
    // A full nonblocking pipe refuses the rest at first; the failed write is no short one.
    let mut refused = short(Some((0x1000 + 100, 200, -11)));
    let stream = &mut refused.0.counts[0];
    (stream.calls, stream.last_s) = (3, 0.7);
    let call = refused.write(0.7, 1, 3, 0, b"x");
    (call.args[1], call.requested_bytes, call.result) = (0x1000 + 100, 200, 200);
    refused.no_finding("short-write-unhandled");
    let counted = |written_bytes| {
        let mut builder = short(None);
        builder.root().io = Some(weir_model::trace::IoTotals { written_bytes, ..Default::default() });
        builder.findings("short-write-unhandled").len()
    };
    assert_eq!((counted(100), counted(299), counted(300)), (1, 1, 0), "the kernel counted the rest");
    let mut told = short(None);
    told.root().exit = Some(Exit::Code(1));
    told.no_finding("short-write-unhandled");
    // Calls that were not recorded may have written the rest.
    let mut unseen = short(Some((0x9000, 300, 300)));
    unseen.0.counts[0].calls = 900;
    unseen.no_finding("short-write-unhandled");
}

#[test]
fn the_last_recorded_write_before_a_gap_is_not_known_to_be_the_last_one() {
    let sampled = |exact: bool, written_bytes: u64| {
        let mut builder = short(None);
        builder.event(0.6, 0, weir_model::trace::EventKind::Gap { until_s: 0.9 });
        builder.0.counts[0].exact = exact;
        builder.root().io = Some(weir_model::trace::IoTotals { written_bytes, ..Default::default() });
        builder
    };
    // The stream has the bytes of the gap: the kernel's total and its sum are equal.
    let mut more = sampled(false, 300);
    (more.0.counts[0].calls, more.0.counts[0].bytes) = (90, 300);
    more.no_finding("short-write-unhandled");
    assert_eq!(sampled(true, 100).severity("short-write-unhandled"), High, "no call was made in the gap");
    let mut unknown = sampled(true, 100);
    unknown.root().io = None;
    unknown.no_finding("short-write-unhandled");
}

fn direct(address: u64, position: Option<u64>, asked: u64, result: i64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/volume", File);
    builder.open_file(file).flags |= crate::flags::O_DIRECT;
    builder.open_file(file).direct_align = Some((512, 4096));
    let call = builder.call(0.5, 1, Op::Pwrite, 3, file, b"v");
    (call.args[1], call.position, call.requested_bytes, call.result) = (address, position, asked, result);
    builder
}

#[test]
fn each_misalignment_is_named_with_its_nearest_right_value() {
    let length = direct(0x1000, Some(0), 10_000, -22).finding("direct-misaligned");
    assert!(length.severity == Warn && length.why.contains("take 12288"), "{}", length.why);
    let offset = direct(0x1000, Some(8292), 4096, -22).finding("direct-misaligned");
    assert!(offset.why.contains("take 8192") && offset.evidence.contains_key("misaligned_offset"));
    // The ptrace backend does not record the position of a failed call; the arguments have it.
    let mut untold = direct(0x1000, None, 4096, -22);
    if let weir_model::trace::EventKind::Call(call) = &mut untold.0.events[0].kind {
        call.args[3] = 100;
    }
    assert!(untold.finding("direct-misaligned").evidence.contains_key("misaligned_offset"));
    let address = direct(0x1010, None, 4096, -22).finding("direct-misaligned");
    assert!(
        address.evidence.contains_key("misaligned_address")
            && !address.evidence.contains_key("misaligned_length")
    );
}

#[test]
fn aligned_successful_and_buffered_calls_are_no_finding() {
    direct(0x1000, Some(4096), 4096, -22).no_finding("direct-misaligned");
    direct(0x1010, Some(3), 100, 100).no_finding("direct-misaligned");
    let mut buffered = direct(0x1010, Some(3), 100, -22);
    (buffered.open_file(0).flags, buffered.open_file(0).direct_align) = (0o1101, None);
    buffered.no_finding("direct-misaligned");
}

#[test]
fn the_program_that_closed_twice_is_named_and_the_one_that_ended_without_a_message() {
    for (closes, part) in [
        (&[(3, 0), (3, -9)][..], "prog (1) closed descriptor 3 again"),
        (&[(3, -122)], "later (1) ended with status 0"),
    ] {
        let mut builder = closing(closes);
        builder.exec(0.9, 1, "later");
        let why = builder.finding("ignored-close-error").why;
        assert!(why.contains(part), "{why}");
    }
}
