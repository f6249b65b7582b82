//! Tests of the rules eaten-stdin and over-read on programs that end without having read end of file.

use weir_model::Severity::*;
use weir_model::trace::SnapshotMoment;

use crate::testing::*;

/// Returns the recording of a loop that reads `host1`, starts a child that reads `taken`, and then reads `after`, for each of
/// these. `asked` is what a child asks for.
fn looping(turns: &[(&[u8], &[u8])], asked: u64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let input = builder.file("/d/hosts", File);
    let (mut at_s, mut calls) = (0.01, 1);
    builder.read(at_s, 1, 0, input, b"host1\n");
    for (turn, (taken, after)) in turns.iter().enumerate() {
        let pid = 2 + turn as u32;
        builder.fork(at_s + 0.01, pid).ended_s = Some(at_s + 0.05);
        builder.exec(at_s + 0.02, pid, "ask");
        builder.read(at_s + 0.03, pid, 0, input, taken);
        let stream = builder.stream(pid, 0, input, In, 1, taken.len() as u64);
        (stream.first_s, stream.last_s, stream.image) = (at_s + 0.03, at_s + 0.03, 1);
        (stream.max_requested_bytes, stream.short) = (asked, u64::from((taken.len() as u64) < asked));
        at_s += 0.1;
        calls += 1;
        builder.read(at_s, 1, 0, input, after);
    }
    let owner = builder.stream(1, 0, input, In, calls, 6);
    (owner.first_s, owner.last_s) = (0.01, at_s);
    builder
}

#[test]
fn a_child_that_takes_the_rest_in_one_block_is_found() {
    let finding = looping(&[(b"host2\nhost3\n", b"")], 8192).finding("eaten-stdin");
    assert_eq!((finding.severity, finding.pid, finding.evidence["eaten_bytes"]), (High, 2, 12.0));
    // It asked for just these bytes, as head -c does.
    looping(&[(b"host2\nhost3\n", b"")], 12).no_finding("eaten-stdin");
    // It hands on what it read.
    let mut handed = looping(&[(b"host2\nhost3\n", b"")], 8192);
    let out = handed.file("/d/out", File);
    handed.write(0.045, 2, 1, out, b"host2\n");
    handed.stream(2, 1, out, Out, 1, 6).image = 1;
    handed.no_finding("eaten-stdin");
}

#[test]
fn children_that_take_a_part_each_are_a_warning() {
    let turns: [(&[u8], &[u8]); 2] = [(b"hos", b"t2\n"), (b"hos", b"t4\n")];
    let finding = looping(&turns, 3).finding("eaten-stdin");
    assert_eq!((finding.severity, finding.evidence["children"]), (Warn, 2.0));
    assert!(
        finding.why.contains("and another process") && finding.why.contains("the 6 bytes"),
        "{finding:#?}"
    );
    looping(&turns[..1], 3).no_finding("eaten-stdin");
    // The next child finds the end.
    let mut newline = looping(&[(b"aa\nbb", b"\n"), (b"", b"")], 5);
    let finding = newline.finding("eaten-stdin");
    assert_eq!((finding.severity, finding.evidence["children"]), (Warn, 1.0));
    assert!(
        finding.why.ends_with(" reads in a loop: the loop misses the 5 bytes that it took."),
        "{}",
        finding.why
    );
    // It reads what a loop's child left, and the loop reads no more.
    newline.0.events.retain(|event| event.at_s < 0.09);
    newline.0.counts.retain(|stream| stream.pid != 3);
    newline.no_finding("eaten-stdin");
    // Another descriptor, as that of make's job server.
    let mut tokens = looping(&turns, 3);
    tokens.0.counts.iter_mut().for_each(|stream| stream.fd = 3);
    tokens.no_finding("eaten-stdin");
    // Its output begins with what it takes; a /dev/null that the loop opens is no output.
    for (path, found) in [("/d/out", 0), ("/dev/null", 1)] {
        let mut written = looping(&turns, 3);
        let out = written.file(path, if found == 0 { File } else { weir_model::StreamKind::Device });
        for pid in [2, 3] {
            written.write(0.95, pid, 1, out, b"hos");
            written.stream(pid, 1, out, Out, 1, 3).image = 1;
        }
        assert_eq!(written.findings("eaten-stdin").len(), found, "{path}");
    }
}

/// Returns the recording of a program that reads ten bytes and writes two, and of cat, which gets nothing. Both are children of
/// process 1.
fn first_then_cat(kind: weir_model::StreamKind, asked: u64, zeros: u64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let (input, out) = (builder.file("in", kind), builder.file("/d/out", File));
    if kind == File {
        builder.open_file(input).size_bytes = Some(10);
    }
    for (pid, first_s, read, zeros) in [(2, 0.1, 10, zeros), (3, 0.5, 0, 1)] {
        builder.fork(first_s - 0.05, pid).ended_s = Some(first_s + 0.1);
        builder.exec(first_s - 0.04, pid, "tool");
        let stream = builder.stream(pid, 0, input, In, 1 + zeros, read);
        (stream.first_s, stream.last_s, stream.image) = (first_s, first_s, 1);
        (stream.bytes, stream.zeros, stream.max_requested_bytes) = (read, zeros, asked);
        stream.requested_sizes = weir_model::trace::Histogram::default();
        stream.requested_sizes.add(asked, 1 + zeros);
    }
    let written = builder.stream(2, 1, out, Out, 1, 2);
    (written.first_s, written.last_s, written.image) = (0.15, 0.15, 1);
    builder
}

#[test]
fn a_short_input_that_is_read_in_one_block_is_a_warning() {
    // gawk asks for the size of the file.
    let finding = first_then_cat(File, 10, 0).finding("over-read");
    assert_eq!(finding.severity, Warn);
    assert!(
        finding.why.contains("the last 10 bytes") && finding.why.ends_with("gets nothing."),
        "{finding:#?}"
    );
    // The next process of a program that reads a known number of bytes.
    let mut again = first_then_cat(File, 10, 0);
    (again.0.counts[1].bytes, again.0.counts[1].zeros) = (10, 0);
    again.no_finding("over-read");
    // mawk reads to the end.
    assert_eq!(first_then_cat(File, 4096, 1).severity("over-read"), Warn);
    // The next reader is a child, not the next program of the shell.
    let mut child = first_then_cat(File, 4096, 1);
    child.0.processes[2].parent = Some(2);
    child.no_finding("over-read");
    let mut whole = first_then_cat(File, 4096, 1);
    whole.0.counts[2].bytes = 10;
    whole.no_finding("over-read");
}

#[test]
fn a_stream_that_was_closed_before_the_end_shows_nothing_of_its_buffer() {
    let mut builder = first_then_cat(Pipe, 4096, 0);
    let closed = weir_model::trace::Buffer { buffer_bytes: 1, ..unread(0, b"") };
    builder.snapshot(0.101, 2, SnapshotMoment::Sample, &[unread(0, b"")]);
    builder.snapshot(0.2, 2, SnapshotMoment::Exit, &[closed]);
    assert_eq!(builder.severity("over-read"), Warn);
    let mut empty = first_then_cat(Pipe, 4096, 0);
    empty.snapshot(0.2, 2, SnapshotMoment::Exit, &[unread(0, b"")]);
    empty.no_finding("over-read");
}

#[test]
fn the_loop_is_named_by_the_program_that_read_not_by_one_that_was_executed_later() {
    let mut builder = looping(&[(b"host2\nhost3\n", b"")], 8192);
    let end_s = builder.0.elapsed_s;
    builder.exec(end_s, 1, "later");
    let why = builder.finding("eaten-stdin").why;
    assert!(why.contains("input that prog (1) reads"), "{why}");
}
