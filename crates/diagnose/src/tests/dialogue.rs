//! Tests of small calls that cannot be gathered, because the process at the other end waits for them or makes their pieces.

use weir_model::StreamKind;
use weir_model::trace::StreamCounts;

use super::small_calls::requested_histogram;
use crate::testing::*;

/// Makes a recording of two processes that write lines to each other through two pipes: `writes` lines there, and an answer to
/// each `burst` of them.
fn dialogue(writes: u64, burst: u64) -> RecordingBuilder {
    let mut builder = recording(3.0);
    let (there, back) = (builder.file("pipe:[1]", Pipe), builder.file("pipe:[2]", Pipe));
    builder.process(2, Some(1), "server");
    for (pid, fd, file, direction, calls) in [
        (1, 5, there, Out, writes),
        (2, 0, there, In, writes),
        (2, 1, back, Out, writes / burst),
        (1, 6, back, In, writes / burst),
    ] {
        let stream = builder.stream(pid, fd, file, direction, calls, 8);
        stream.newline_ends = if direction == Out { calls } else { 0 };
        if direction == In {
            stream.requested_sizes = requested_histogram(calls, 8192);
        }
    }
    builder
}

#[test]
fn requests_and_answers_in_turn_cannot_be_gathered() {
    let mut builder = dialogue(150_000, 1);
    for turn in 0..8 {
        let at_s = turn as f64 / 1000.0;
        builder.write(at_s, 1, 5, 0, b"12345+1\n");
        builder.read(at_s + 1e-4, 2, 0, 0, b"12345+1\n");
        builder.write(at_s + 2e-4, 2, 1, 1, b"1234567\n");
        builder.read(at_s + 3e-4, 1, 6, 1, b"1234567\n");
    }
    for rule in ["line-buffered-bulk", "tiny-writes", "tiny-reads"] {
        builder.no_finding(rule);
    }
    // A pseudo-terminal goes both ways.
    let mut builder = recording(3.0);
    let pty = builder.file("/dev/ptmx", Terminal);
    builder.stream(1, 5, pty, Out, 600_000, 8);
    builder.stream(1, 5, pty, In, 600_000, 8);
    builder.no_finding("tiny-writes");
}

#[test]
fn a_filter_that_is_fed_and_read_at_once_is_no_dialogue() {
    let mut builder = dialogue(300_000, 1);
    for turn in 0..8 {
        builder.write(turn as f64 / 1000.0, 1, 5, 0, b"12345+1\n");
    }
    for turn in 8..16 {
        builder.read(turn as f64 / 1000.0, 1, 6, 1, b"1234567\n");
    }
    assert_eq!(builder.findings("line-buffered-bulk")[0].pid, 1);
}

#[test]
fn many_writes_for_one_answer_are_gathered_up_to_the_answer() {
    let finding = dialogue(300_000, 10).finding("line-buffered-bulk");
    assert!(finding.pid == 1 && finding.fix.contains("flush it before the program waits"), "{finding:#?}");
}

#[test]
fn a_program_that_passes_on_what_arrives_is_not_told_to_gather() {
    let run = |asked: u64| {
        let mut builder = recording(0.3);
        builder.process(2, None, "cat");
        let (pipe, file) = (builder.file("pipe:[1]", Pipe), builder.file("/d/out", File));
        for turn in 0..8 {
            builder.read(turn as f64 / 1e3, 2, 0, pipe, b"three\nlines\nof text\n");
            builder.write(turn as f64 / 1e3 + 1e-4, 2, 1, file, b"three\nlines\nof text\n");
        }
        builder.stream(2, 0, pipe, In, 100_000, 20).requested_sizes = requested_histogram(100_000, asked);
        builder.stream(2, 1, file, Out, 100_000, 20).newline_ends = 100_000;
        builder
    };
    run(131_072).no_finding("line-buffered-bulk");
    // It asks for pieces of this size itself.
    assert_eq!(run(20).finding("line-buffered-bulk").pid, 2);
    // Some of its reads are in a gap, and nothing shows their stream.
    let mut sampled = run(131_072);
    sampled.0.counts.iter_mut().for_each(|stream| stream.exact = false);
    (sampled.0.counts[0].calls, sampled.0.counts[0].bytes) = (80_000, 1_500_000);
    sampled.0.counts[0].requested_sizes = requested_histogram(80_000, 131_072);
    let other = sampled.file(StreamCounts::UNKNOWN_PATH, StreamKind::Other);
    sampled.stream(2, StreamCounts::UNKNOWN, other, In, 20_000, 25);
    sampled.no_finding("line-buffered-bulk");
    let mut bytes = run(131_072);
    bytes.0.counts[1].newline_ends = 0;
    bytes.no_finding("tiny-writes");
}

/// The search for the answers took minutes when each input was compared with all inputs and readers of each output.
#[test]
fn a_server_with_a_thousand_connections_answers_each() {
    let server = |answers: u64| {
        let mut builder = recording(3.0);
        for number in 0..1000 {
            let socket = builder.file(&format!("socket:[{number}]"), StreamKind::Socket);
            builder.stream(1, 5, socket, Out, answers, 8);
            let input = builder.stream(1, 5, socket, In, 300_000, 8);
            input.requested_sizes = requested_histogram(300_000, 8);
        }
        builder
    };
    server(300_000).no_finding("tiny-reads");
    assert!(!server(30_000).findings("tiny-reads").is_empty(), "most reads are no answers");
}
