//! Tests of the rule torn-records on lines that are written in several calls.

use weir_model::Severity::*;

use crate::testing::*;

const APPEND: i32 = 0o2101;

/// One write: process, its text.
type Turn = (u32, &'static str);

/// The writes of processes 2 and 3, which split each other's lines.
const BOTH_SPLIT: [Turn; 12] = [
    (2, "job 2 "),
    (3, "job 3 "),
    (2, "ok\n"),
    (2, "job 2 "),
    (3, "ok\n"),
    (3, "job 3 "),
    (2, "ok\n"),
    (2, "job 2 "),
    (3, "ok\n"),
    (3, "job 3 "),
    (2, "ok\n"),
    (3, "ok\n"),
];

/// The lines of process 2 are split by whole lines of process 3.
const ONE_SPLIT: [Turn; 9] = [
    (2, "test 1 "),
    (3, "request\n"),
    (2, "ok\n"),
    (2, "test 2 "),
    (3, "request\n"),
    (2, "ok\n"),
    (2, "test 3 "),
    (3, "request\n"),
    (2, "ok\n"),
];

/// Returns the recording of turns at one file. Process 3 is a child of the command, or of process 2.
fn turns(kind: weir_model::StreamKind, flags: i32, parent: u32, turns: &[Turn]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/log", kind);
    (builder.open_file(file).flags, builder.open_file(file).ino) = (flags, 77);
    builder.fork(0.1, 2);
    builder.fork(0.1, 3).parent = Some(parent);
    builder.fork(0.1, 4);
    for pid in [2, 3, 4] {
        let own = || turns.iter().filter(move |turn| turn.0 == pid);
        let stream = builder.stream(pid, 1, file, Out, own().count() as u64, 6);
        (stream.first_s, stream.last_s) = (0.2, 0.9);
        stream.newline_ends = own().filter(|turn| turn.1.ends_with('\n')).count() as u64;
    }
    for (i, (pid, text)) in turns.iter().enumerate() {
        builder.write(0.2 + 0.02 * i as f64, *pid, 1, file, text.as_bytes()).tail = text.bytes().last();
    }
    builder
}

#[test]
fn records_of_two_calls_are_split() {
    let finding = turns(File, APPEND, 1, &BOTH_SPLIT).finding("torn-records");
    assert_eq!((finding.severity, finding.evidence["split_lines"]), (High, 6.0));
    assert!(
        finding.why.contains("\"job 3 \" of the second came between \"job 2 \" and \"ok\\n\"."),
        "{}",
        finding.why
    );
    assert!(finding.fix.starts_with("each record in one write(2), with O_APPEND, in every writer: "));
    assert!(finding.fix.contains("no fflush or write(2) within a line"), "{}", finding.fix);
    let pipe = turns(Pipe, 1, 1, &BOTH_SPLIT).finding("torn-records");
    assert!(pipe.fix.starts_with("each record in one write(2), in every writer"), "{}", pipe.fix);
}

#[test]
fn two_lines_are_chance() {
    turns(File, APPEND, 1, &BOTH_SPLIT[..5]).no_finding("torn-records");
}

#[test]
fn a_parent_that_waits_for_the_lines_of_its_child_is_not_torn() {
    turns(File, APPEND, 2, &ONE_SPLIT).no_finding("torn-records");
    // A descendant that splits lines while its own are split does not make its ancestor wait.
    assert_eq!(turns(File, APPEND, 2, &BOTH_SPLIT).severity("torn-records"), High);
}

#[test]
fn the_status_lines_of_standard_output_are_not_torn() {
    let log = |fd: i32, flags: i32| {
        let mut builder = turns(File, flags, 1, &ONE_SPLIT);
        builder.0.counts.iter_mut().for_each(|stream| stream.fd = fd);
        for event in &mut builder.0.events {
            if let weir_model::trace::EventKind::Call(call) = &mut event.kind {
                call.fd = fd;
            }
        }
        builder
    };
    assert_eq!(log(3, APPEND).severity("torn-records"), High);
    log(1, APPEND).no_finding("torn-records");
    log(3, 1).no_finding("torn-records");
    turns(Pipe, 1, 1, &ONE_SPLIT).no_finding("torn-records");
}

#[test]
fn progress_and_binary_data_have_no_lines() {
    let replaced = |from: &str, to: &'static str| -> Vec<Turn> {
        BOTH_SPLIT.iter().map(|&(pid, text)| (pid, if text == from { to } else { text })).collect()
    };
    turns(File, APPEND, 1, &replaced("job 2 ", "\r 10 %")).no_finding("torn-records");
    turns(Socket, 2, 1, &replaced("job 2 ", "\x17\x03\x03")).no_finding("torn-records");
    // Dots in one line.
    turns(File, APPEND, 1, &replaced("ok\n", ".")).no_finding("torn-records");
}

#[test]
fn the_end_of_a_line_of_many_calls_is_not_recorded() {
    // Python without a buffer writes each word with a call.
    let words: Vec<Turn> = (0..8).flat_map(|_| [(2, "word "), (3, "word "), (4, "word ")]).collect();
    let run = |lines: u64| {
        let mut builder = turns(Pipe, 1, 1, &words);
        for stream in &mut builder.0.counts {
            (stream.calls, stream.newline_ends) = (200, lines);
        }
        builder
    };
    assert_eq!(run(20).finding("torn-records").evidence["split_lines"], 3.0);
    // Few rows of dots are no finding.
    run(4).no_finding("torn-records");
}

#[test]
fn calls_that_were_not_recorded_may_have_ended_the_line() {
    let mut all_turns: Vec<Turn> = vec![(2, "whole\n"); 8];
    all_turns.extend(BOTH_SPLIT);
    let mut all = turns(File, APPEND, 1, &all_turns);
    assert_eq!(all.severity("torn-records"), High);
    // The ninth recorded call of process 2 is not its ninth.
    all.0.counts[0].calls += 1;
    all.no_finding("torn-records");
    let mut gap = turns(File, APPEND, 1, &BOTH_SPLIT);
    gap.event(0.1, 0, weir_model::trace::EventKind::Gap { until_s: 0.9 });
    gap.no_finding("torn-records");
}

/// The first lines of process 2 and, after its eight recorded calls, those of process 3, as Python without a buffer writes them.
const ONE_AFTER_THE_OTHER: [Turn; 16] = [
    (2, "job"),
    (2, " "),
    (2, "2"),
    (2, "\n"),
    (2, "job"),
    (2, " "),
    (2, "2"),
    (2, "\n"),
    (3, "job"),
    (3, " "),
    (3, "3"),
    (3, "\n"),
    (3, "job"),
    (3, " "),
    (3, "3"),
    (3, "\n"),
];

/// Returns the recording of two processes that make 4,000 calls each, of which the first are recorded.
fn many_calls(parent: u32, turns_: &[Turn]) -> RecordingBuilder {
    let mut builder = turns(Pipe, 1, parent, turns_);
    for stream in builder.0.counts.iter_mut().filter(|stream| stream.pid != 4) {
        (stream.calls, stream.bytes, stream.newline_ends) = (4000, 6000, 0);
    }
    builder
}

#[test]
fn lines_of_several_calls_can_split_after_the_recorded_ones() {
    let finding = many_calls(1, &ONE_AFTER_THE_OTHER).finding("torn-records");
    assert_eq!((finding.severity, finding.evidence["calls_per_line"]), (Warn, 4.0));
    let expected = "write to one pipe at once, about 4,000 and about 4,000 calls, and both write a line in several calls, the \
                    first in 4: what one writes";
    assert!(finding.why.contains(expected), "{}", finding.why);
    assert!(finding.fix.starts_with("each record in one write(2), in every writer: "), "{}", finding.fix);
}

#[test]
fn counts_that_do_not_show_pieces_in_a_common_time_are_no_finding() {
    let changed = |change: &dyn Fn(&mut weir_model::trace::StreamCounts)| {
        let mut builder = many_calls(1, &ONE_AFTER_THE_OTHER);
        builder.0.counts.iter_mut().filter(|stream| stream.pid == 3).for_each(change);
        builder
    };
    changed(&|stream| stream.first_s = 0.89).no_finding("torn-records");
    changed(&|stream| stream.calls = 120).no_finding("torn-records");
    // The later calls are whole lines.
    changed(&|stream| stream.newline_ends = 3990).no_finding("torn-records");
    changed(&|stream| stream.bytes = 80_000).no_finding("torn-records");
    // Process 3 is a child of process 2, which waits for it.
    many_calls(2, &ONE_AFTER_THE_OTHER).no_finding("torn-records");
    // Both wait for input before each line.
    let mut driven = many_calls(1, &ONE_AFTER_THE_OTHER);
    let questions = driven.file("pipe:[9]", Pipe);
    driven.stream(2, 0, questions, In, 1000, 10);
    assert_eq!(driven.severity("torn-records"), Warn);
    driven.stream(3, 0, questions, In, 1000, 10);
    driven.no_finding("torn-records");
    // Process 3 writes whole lines.
    let mut lines = ONE_AFTER_THE_OTHER;
    lines[8] = (3, "whole\n");
    many_calls(1, &lines).no_finding("torn-records");
    let mut gap = many_calls(1, &ONE_AFTER_THE_OTHER);
    gap.event(0.25, 0, weir_model::trace::EventKind::Gap { until_s: 0.3 });
    gap.no_finding("torn-records");
}

#[test]
fn a_write_at_offset_minus_one_is_a_piece_of_a_line() {
    let placed = |offset: u64| {
        let mut builder = turns(File, APPEND, 1, &BOTH_SPLIT);
        for event in &mut builder.0.events {
            if let weir_model::trace::EventKind::Call(call) = &mut event.kind {
                (call.op, call.args[3]) = (weir_model::trace::Op::Pwritev2, offset);
            }
        }
        builder
    };
    assert_eq!(placed(u64::MAX).severity("torn-records"), High);
    placed(4096).no_finding("torn-records");
}
