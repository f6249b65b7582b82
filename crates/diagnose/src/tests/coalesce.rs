//! Tests of the gain that a finding promises for `weir run --coalesce`.

use weir_model::trace::{EventKind, Op, StreamTable};

use crate::RuleContext;
use crate::coalesce::GATHERED_AROUND_RANGE;
use crate::testing::*;

/// The figures of an archiver that writes 120 MB in blocks of 512 bytes, on the machine of the default prices: its calls take
/// 0.26 s, `weir run --coalesce` saves 0.19 s of it and blocks of 64 KiB save 0.21 s.
#[test]
fn a_command_promises_less_than_the_code_because_interception_costs() {
    let mut builder = recording(0.3);
    let (input, file) = (builder.file("/d/in", File), builder.file("/d/out", File));
    builder.stream(1, 1, file, Out, 234_375, 512);
    builder.stream(1, 0, input, In, 1_832, 65_536);
    let gains = |builder: &RecordingBuilder| {
        let finding = builder.finding("tiny-writes");
        (finding.gain.unwrap(), finding.command_gain)
    };
    let (code, command) = gains(&builder);
    let command = command.unwrap();
    assert!(
        command.elapsed_s < 0.95 * code.elapsed_s && command.elapsed_s > 0.7 * code.elapsed_s,
        "{command:?}"
    );
    assert!(command.calls < code.calls && command.calls > 220_000, "{command:?}");
    // An intercepted call that cost half of a call to the kernel would save half.
    builder.0.prices.gathered_call_ns = builder.0.prices.file_write_ns / 2.0;
    let dear = gains(&builder).1.unwrap();
    assert!(dear.elapsed_s < 0.6 * command.elapsed_s, "{dear:?}");
    builder.0.prices.gathered_call_ns = builder.0.prices.file_write_ns * 2.0;
    assert_eq!(
        (gains(&builder).1, builder.finding("tiny-writes").command),
        (None, None),
        "it would cost more"
    );
}

#[test]
fn nothing_is_gathered_between_other_calls() {
    let run = |seeks: u64| {
        let mut builder = recording(0.3);
        let (input, file) = (builder.file("/d/in", File), builder.file("/d/out", File));
        builder.stream(1, 1, file, Out, 234_375, 16);
        builder.stream(1, 0, input, In, seeks, 4096);
        builder.finding("tiny-writes").command.is_some()
    };
    assert!(run(900) && !run(100_000));
}

/// socat asks a socket for messages before each write. All these calls return EAGAIN, so that none but the first has a time.
#[test]
fn nothing_is_gathered_between_calls_that_return_eagain() {
    let run = |polls: u64, gap_s: f64| {
        let mut builder = recording(0.3);
        builder.event(0.01, 0, EventKind::Gap { until_s: 0.01 + gap_s });
        let (messages, file) = (builder.file("socket:[7]", Socket), builder.file("/d/out", File));
        builder.stream(1, 6, file, Out, 234_375, 16);
        let socket = builder.stream(1, 3, messages, In, polls, 0);
        (socket.again, socket.last_s) = (polls, socket.first_s);
        builder.finding("tiny-writes").command.is_some()
    };
    assert!(run(900, 0.0) && !run(700_000, 0.0));
    assert!(run(3000, 0.0) && !run(3000, 0.28), "3,000 of about 45,000");
}

/// A shell's loop that reads bytes and opens a file for each line, of which 2 % were recorded.
#[test]
fn nothing_is_gathered_between_calls_in_gaps() {
    let run = |turns: u64, from_s: f64| {
        let mut builder = recording(1.0);
        let input = builder.file("/d/in", File);
        builder.stream(1, 0, input, In, 600_000, 1).first_s = 0.1;
        for turn in 0..turns {
            for (op, fd) in [(Op::Openat, 3), (Op::Dup2, 3), (Op::Close, 3)] {
                builder.call(from_s + turn as f64 * 1e-5, 1, op, fd, input, b"");
            }
        }
        for (from_s, until_s) in [(0.12, 0.5), (0.51, 1.0)] {
            builder.event(from_s, 0, EventKind::Gap { until_s });
        }
        builder.finding("tiny-reads").command.is_some()
    };
    assert!(!run(700, 0.502), "700 of about 22,000 turns were recorded");
    assert!(run(700, 0.0), "the program opened its files before it used the stream");
    assert!(run(10, 0.502), "other calls are rare");
}

#[test]
fn streams_one_after_the_other_are_both_gathered() {
    let run = |second_from_s: f64| {
        let mut builder = recording(0.6);
        let (one, other) = (builder.file("/d/one", File), builder.file("/d/other", File));
        builder.stream(1, 3, one, Out, 200_000, 8).last_s = 0.3;
        builder.stream(1, 4, other, Out, 200_000, 8).first_s = second_from_s;
        builder.findings("tiny-writes").iter().filter(|finding| finding.command.is_some()).count()
    };
    assert_eq!((run(0.3), run(0.0)), (2, 0));
}

/// The user time around the calls is at its limit here, as in a program that does nothing else.
#[test]
fn the_promise_is_near_the_gain_at_both_ends_of_what_is_saved_around_the_calls() {
    for bytes_per_call in [1, 16, 128, 512] {
        let mut builder = recording(3.0);
        builder.root().user_s = 2.5;
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 400_000, bytes_per_call);
        let table = StreamTable::of(&builder.0);
        let context = RuleContext::new(&table, &TestPlanner);
        let stream = context.streams_of(1).first().expect("the stream");
        let (_, promised) = context.coalesce_command(stream).expect("a command");
        for saved_around in GATHERED_AROUND_RANGE {
            let gain = context.coalesce_gain_with(stream, saved_around).expect("a gain");
            let factor = promised.elapsed_s / gain.elapsed_s;
            assert!((1.0 / 1.5..=1.5).contains(&factor), "{bytes_per_call} {saved_around}: {factor}");
        }
    }
}
