//! Tests of the rules over-read and eaten-stdin: input that another program then misses.

use weir_model::Severity::*;
use weir_model::trace::{Op, SnapshotMoment};

use super::order::timed;
use crate::testing::*;

/// Returns the recording of a program that reads a block of a file and becomes sort, which reads on.
fn heading_then_sort(left: &[u8]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/in", File);
    timed(builder.stream(1, 0, file, In, 1, 4096), 0.1, 0.1);
    builder.snapshot(0.2, 1, SnapshotMoment::Exec, &[unread(0, left)]);
    builder.exec(0.21, 1, "sort");
    timed(builder.stream(1, 0, file, In, 2, 4096), 0.3, 0.4).image = 1;
    builder
}

#[test]
fn unread_bytes_that_the_next_program_misses_are_over_read() {
    let finding = heading_then_sort(b"3000\n2999\n").finding("over-read");
    assert_eq!((finding.severity, finding.evidence["unread_bytes"]), (High, 10.0));
    assert!(finding.why.contains("2999"), "{}", finding.why);
    assert!(finding.why.starts_with("prog (1) left"), "{}", finding.why);
    // The snapshot at the read itself does not have the read's bytes yet.
    let mut early = heading_then_sort(b"3000\n2999\n");
    early.snapshot(0.101, 1, SnapshotMoment::Sample, &[unread(0, b"")]);
    early.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    assert_eq!(early.severity("over-read"), High);
}

#[test]
fn used_bytes_and_bytes_given_back_are_no_finding() {
    heading_then_sort(b"").no_finding("over-read");
    let mut back = heading_then_sort(b"3000\n");
    back.call(0.205, 1, Op::Lseek, 0, 0, b"");
    back.no_finding("over-read");
    let mut query = heading_then_sort(b"3000\n");
    let call = query.call(0.205, 1, Op::Lseek, 0, 0, b"");
    (call.args[1], call.args[2]) = (0, 1);
    assert_eq!(query.severity("over-read"), High, "SEEK_CUR by 0 gives nothing back");
    let mut alone = heading_then_sort(b"3000\n");
    alone.0.counts.pop();
    alone.no_finding("over-read");
}

/// Returns the recording of two programs that read one pipe one after the other. No walker knows the first one's buffer.
fn head_then_sort(written: u64, zeros: u64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let (pipe, out) = (builder.file("pipe:[1]", Pipe), builder.file("/d/out", File));
    builder.process(2, Some(1), "head").ended_s = Some(0.3);
    builder.process(3, Some(1), "sort");
    let stream = timed(builder.stream(2, 0, pipe, In, 1, 8192), 0.2, 0.2);
    (stream.bytes, stream.zeros) = (27, zeros);
    timed(builder.stream(2, 1, out, Out, 1, written), 0.21, 0.21);
    timed(builder.stream(3, 0, pipe, In, 1, 0), 0.4, 0.4);
    builder
}

#[test]
fn a_program_that_reads_blocks_and_stops_early_is_a_warning() {
    assert_eq!(head_then_sort(5, 0).severity("over-read"), Warn);
    // dd count=1 writes what it reads; cat reaches end of file.
    head_then_sort(27, 0).no_finding("over-read");
    head_then_sort(5, 1).no_finding("over-read");
}

/// Returns the recording of a loop that reads a line, starts a child, and reads again with these bytes as the result.
fn looping(child_takes: u64, after: &[u8]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let input = builder.file("/d/hosts", File);
    timed(builder.stream(1, 0, input, In, 7, 1), 0.1, 0.9);
    let child = builder.fork(0.2, 2);
    child.ended_s = Some(0.5);
    let stream = timed(builder.stream(2, 0, input, In, 1, child_takes), 0.3, 0.4);
    (stream.calls, stream.zeros) = (2, 1);
    builder.read(0.1, 1, 0, input, b"h");
    builder.read(0.9, 1, 0, input, after);
    builder
}

#[test]
fn a_child_that_reads_the_loops_input_to_its_end_is_found() {
    let finding = looping(80, b"").finding("eaten-stdin");
    assert_eq!((finding.severity, finding.pid, finding.evidence["eaten_bytes"]), (High, 2, 80.0));
}

/// `while read x <&3; do cat <&3; done 3< hosts`: descriptor 0 of the loop's process is another file.
#[test]
fn a_child_that_was_given_the_input_keeps_it_under_weir() {
    let mut builder = looping(80, b"");
    assert!(builder.finding("eaten-stdin").command.is_some());
    let terminal = builder.file("/dev/tty", Terminal);
    builder.call(0.15, 1, Op::Openat, -1, terminal, b"").result = 0;
    let finding = builder.finding("eaten-stdin");
    assert!(finding.command.is_none() && finding.fix.contains("/dev/null"), "{finding:?}");
}

#[test]
fn counts_alone_show_that_the_loop_hit_end_of_file() {
    let counted = |zeros: u64, jumps: u64| {
        let mut builder = looping(80, b"");
        builder.0.events.retain(|event| event.at_s < 0.8);
        (builder.0.counts[0].zeros, builder.0.counts[0].jumps) = (zeros, jumps);
        builder
    };
    assert_eq!(counted(1, 0).severity("eaten-stdin"), High);
    counted(0, 0).no_finding("eaten-stdin");
    // The loop went on at another offset, after the bytes that the child read.
    counted(1, 1).no_finding("eaten-stdin");
}

#[test]
fn a_child_that_reads_nothing_or_not_all_is_no_finding() {
    looping(0, b"").no_finding("eaten-stdin");
    looping(80, b"host2").no_finding("eaten-stdin");
    // The input was passed on: its owner does not read again.
    let mut handed = looping(80, b"");
    handed.0.counts[0].last_s = 0.1;
    handed.no_finding("eaten-stdin");
}
