//! Tests of the rules tiny-writes, tiny-reads, line-buffered-bulk, terminal-bulk and read-after-eof-spin.

use weir_model::Severity::*;

use weir_model::StreamKind;
use weir_model::trace::StreamCounts;

use crate::testing::*;

#[test]
fn byte_by_byte_writes_are_found_and_priced() {
    let mut builder = recording(5.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 5_000_000, 1);
    let finding = builder.finding("tiny-writes");
    assert_eq!((finding.severity, finding.fd, finding.path.exact()), (High, 1, "/d/out"));
    assert_eq!((finding.evidence["calls"], finding.evidence["mean_bytes"]), (5e6, 1.0));
    let gain = finding.gain.unwrap();
    // 5,000,000 × 900 ns, less 3 ns a byte through a buffer.
    assert!((gain.elapsed_s - 4.485).abs() < 0.01 && gain.calls > 4_999_900, "{gain:?}");
    assert!(finding.fix.contains("weir run --coalesce -- ./prog 'a b'") && finding.fix.contains("setvbuf"));
}

#[test]
fn large_writes_are_no_finding() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 80, 65_536);
    builder.stream(1, 3, file, Out, 99, 1);
    builder.no_finding("tiny-writes");
    builder.no_finding("line-buffered-bulk");
}

#[test]
fn blocks_below_the_knee_are_found_by_their_cost() {
    let run = |elapsed: f64, calls: u64, size: u64| {
        let mut builder = recording(elapsed);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, calls, size);
        builder
    };
    // 400,000 × 900 ns less 3,126 such calls, beside 61 ms for the bytes.
    let finding = run(0.9, 400_000, 512).finding("tiny-writes");
    assert_eq!(finding.severity, High);
    assert!((finding.gain.unwrap().elapsed_s - 0.357).abs() < 0.01, "{finding:#?}");
    assert!(
        finding.fix.contains("--coalesce")
            && finding.fix.contains("blocks of 64 KiB: static char buffer[65536]; setvbuf")
    );
    // Gathering has a limit of 1 KiB.
    assert!(!run(0.5, 100_000, 4096).finding("tiny-writes").fix.contains("--coalesce"));
    // 9 ms of 100 ms, as in tar with its blocks of 10 KiB; 18 ms of 2 s.
    run(0.1, 10_000, 10_240).no_finding("tiny-writes");
    run(2.0, 20_000, 4096).no_finding("tiny-writes");
    run(0.5, 20_000, 65_536).no_finding("tiny-writes");
}

#[test]
fn direct_scattered_and_copied_blocks_are_no_small_calls() {
    let run = || {
        let mut builder = recording(0.2);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 100_000, 4096);
        builder
    };
    assert_eq!(run().findings("tiny-writes").len(), 1);
    let mut direct = run();
    direct.open_file(0).flags |= 0o40000;
    direct.no_finding("tiny-writes");
    let mut scattered = run();
    scattered.0.counts[0].jumps = 20_000;
    scattered.no_finding("tiny-writes");
    let mut in_kernel = run();
    in_kernel.0.counts[0].in_kernel = 100_000;
    in_kernel.no_finding("tiny-writes");
}

#[test]
fn a_block_size_that_is_an_option_is_named() {
    let mut builder = recording(0.9);
    builder.process(2, None, "dd");
    let image = &mut builder.0.processes[1].images[0];
    image.argv = ["dd", "if=/dev/zero", "of=out", "bs=512"].map(Into::into).into();
    let file = builder.file("/d/out", File);
    builder.stream(2, 1, file, Out, 400_000, 512);
    let fix = builder.finding("tiny-writes").fix;
    assert_eq!(fix, "dd with bs=64K instead of bs=512.");
    builder.0.processes[1].images[0].argv[3] = "bs=1k".into();
    assert!(
        !builder.finding("tiny-writes").fix.contains("instead of bs="),
        "other calls than those of the option"
    );
}

#[test]
fn severity_is_the_share_and_not_the_count() {
    // 250,000 × 0.9 µs, less the cost of a buffer: about 0.224 s.
    for (elapsed, severity) in [(0.5, Some(High)), (2.0, Some(Warn)), (10.0, Some(Info)), (60.0, None)] {
        let mut builder = recording(elapsed);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 250_000, 1);
        assert_eq!(
            builder.findings("tiny-writes").first().map(|found| found.severity),
            severity,
            "{elapsed}"
        );
    }
}

#[test]
fn a_few_milliseconds_are_worth_a_hint_where_they_are_most_of_the_run() {
    for (elapsed, calls, severity) in [(0.010, 4000, Some(Info)), (0.100, 4000, None), (0.003, 1500, None)] {
        let mut builder = recording(elapsed);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, calls, 1);
        let found = builder.findings("tiny-writes").first().map(|found| found.severity);
        assert_eq!(found, severity, "{calls} calls in {elapsed} s");
    }
}

#[test]
fn calls_cost_at_most_the_cpu_time() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 1_000_000, 1);
    (builder.root().user_s, builder.root().system_s) = (0.01, 0.02);
    let finding = builder.finding("tiny-writes");
    assert!(finding.evidence["cost_s"] <= 0.03 && finding.severity == Info, "{finding:#?}");
}

#[test]
fn calls_on_a_socket_cost_the_kernels_time() {
    let mut builder = recording(1.0);
    let socket = builder.file("socket:[7]", Socket);
    builder.stream(1, 4, socket, Out, 100_000, 1);
    (builder.root().user_s, builder.root().system_s) = (0.1, 0.4);
    let cost_s = builder.finding("tiny-writes").evidence["cost_s"];
    assert!((cost_s - 0.46).abs() < 1e-6, "{cost_s}");
    // With as many other calls, the kernel's time cannot be attributed.
    let file = builder.file("/d/in", File);
    builder.stream(1, 3, file, In, 100_000, 1000);
    builder.root().system_s = 1.2;
    let cost_s = builder.finding("tiny-writes").evidence["cost_s"];
    assert!((cost_s - 0.045 - 0.03).abs() < 1e-3, "{cost_s}");
}

/// Returns the recording of a Python program that sent 99,590 bytes one by one. The twin that sends them at once used 0.328 s
/// less CPU time.
fn sent_byte_by_byte(taken: &[u8]) -> RecordingBuilder {
    let mut builder = recording(0.509);
    (builder.0.prices.pipe_ns, builder.0.prices.buffered_byte_ns, builder.0.prices.byte_ns) =
        (233.5, 0.926, 0.233);
    (builder.root().user_s, builder.root().system_s) = (0.0519, 0.1717);
    let child = builder.process(2, Some(1), "python3");
    (child.user_s, child.system_s) = (0.0268, 0.1003);
    let (ours, theirs) = (builder.file("socket:[7]", Socket), builder.file("socket:[8]", Socket));
    builder.stream(1, 3, ours, Out, 99_590, 1);
    builder.stream(2, 4, theirs, In, 13_887, 7).requested_sizes = requested_histogram(13_887, 65_536);
    for (number, byte) in b"measured".chunks(1).enumerate() {
        builder.write(0.06 + number as f64 / 1e5, 1, 3, ours, byte);
    }
    builder.read(0.0602, 2, 4, theirs, taken);
    builder
}

#[test]
fn a_reader_that_gets_single_bytes_pays_as_well() {
    let finding = sent_byte_by_byte(b"measu").finding("tiny-writes");
    let (gain, peer_s) = (finding.gain.unwrap().elapsed_s, finding.evidence["peer_s"]);
    assert!((gain - 0.2027).abs() < 0.002 && (peer_s - 0.116).abs() < 0.002, "{finding:#?}");
    assert_eq!(finding.evidence["peer"], 2.0);
    assert!(finding.why.contains("its reader python3 (2) gets few bytes"), "{}", finding.why);
    // Different bytes: another socket.
    assert!(!sent_byte_by_byte(b"hello").finding("tiny-writes").evidence.contains_key("peer_s"));
    // A reader that asks for single bytes is slow by itself.
    let mut asks = sent_byte_by_byte(b"measu");
    asks.0.counts[1].requested_sizes = requested_histogram(13_887, 8);
    assert!(!asks.finding("tiny-writes").evidence.contains_key("peer_s"));
}

// From a recording of node with 150,000 console.log; the twin that joins the lines took 0.416 s less.
#[test]
fn user_time_around_calls_is_saved_as_well() {
    let logged = |user_s: f64| {
        let mut builder = recording(user_s + 0.3);
        (builder.0.prices.file_write_ns, builder.0.prices.buffered_byte_ns) = (547.0, 1.1);
        (builder.root().user_s, builder.root().system_s) = (user_s, 0.1635);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 150_001, 11).newline_ends = 150_001;
        builder.finding("line-buffered-bulk")
    };
    let finding = logged(0.402);
    let gain = finding.gain.unwrap().elapsed_s;
    assert!((gain - 0.401).abs() < 0.005 && finding.evidence["own_s"] > 0.2, "{finding:#?}");
    // Ten seconds of computing are not due to the calls.
    assert!(logged(10.0).gain.unwrap().elapsed_s < 0.42);
}

#[test]
fn user_time_around_calls_does_not_raise_the_severity() {
    let severity = |user_s: f64| {
        let mut builder = recording(1.0);
        (builder.root().user_s, builder.root().system_s) = (user_s, 0.23);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 250_000, 1);
        builder.severity("tiny-writes")
    };
    assert_eq!((severity(0.0), severity(0.7)), (Warn, Warn), "only what the kernel took is certain");
}

#[test]
fn commands_and_answers_cannot_be_gathered() {
    let mut builder = recording(1.0);
    let device = builder.file("/dev/ttyUSB0", StreamKind::Device);
    builder.stream(1, 3, device, Out, 1_000_000, 4);
    let socket = builder.file("socket:[7]", Socket);
    builder.stream(1, 4, socket, Out, 1_000_000, 9);
    builder.stream(1, 4, socket, In, 1_000_000, 12);
    let (there, back) = (builder.file("pipe:[1]", Pipe), builder.file("pipe:[2]", Pipe));
    builder.process(2, Some(1), "server");
    builder.stream(1, 5, there, Out, 1_000_000, 8);
    builder.stream(2, 0, there, In, 1_000_000, 8);
    builder.stream(2, 1, back, Out, 1_000_000, 8);
    builder.stream(1, 6, back, In, 1_000_000, 8);
    let scattered = builder.file("/d/index", File);
    builder.stream(1, 7, scattered, Out, 1_000_000, 8).jumps = 900_000;
    builder.no_finding("tiny-writes");
    let null = builder.file("/dev/null", StreamKind::Device);
    builder.stream(1, 8, null, Out, 1_000_000, 1);
    assert_eq!(builder.finding("tiny-writes").fd, 8);
}

#[test]
fn a_one_way_pipe_of_bytes_can_be_gathered() {
    let mut builder = recording(2.0);
    let (first, second) = (builder.file("pipe:[1]", Pipe), builder.file("pipe:[2]", Pipe));
    builder.process(2, None, "next");
    builder.stream(1, 0, first, In, 1_000_000, 1);
    builder.stream(1, 1, second, Out, 1_000_000, 1);
    builder.stream(2, 0, second, In, 1_000_000, 1).requested_sizes = requested_histogram(1_000_000, 65_536);
    assert_eq!(builder.finding("tiny-writes").pid, 1);
    // The next process asks for much and gets little, because of the writer.
    assert_eq!(builder.finding("tiny-reads").pid, 1);
}

pub(super) fn requested_histogram(calls: u64, size: u64) -> weir_model::trace::Histogram {
    let mut asked = weir_model::trace::Histogram::default();
    asked.add(size, calls);
    asked
}

#[test]
fn byte_by_byte_reads_are_found_and_blocks_are_not() {
    let mut broken = recording(1.0);
    let input = broken.file("/d/in", File);
    broken.stream(1, 0, input, In, 600_000, 1);
    let finding = broken.finding("tiny-reads");
    assert_eq!(finding.severity, Warn);
    assert!((finding.gain.unwrap().elapsed_s - 0.238).abs() < 0.005, "{finding:#?}");
    let mut fixed = recording(1.0);
    let input = fixed.file("/d/in", File);
    fixed.stream(1, 0, input, In, 150, 4096);
    fixed.no_finding("tiny-reads");
    let mut typed = recording(1.0);
    let terminal = typed.file("/dev/tty", Terminal);
    typed.stream(1, 0, terminal, In, 600_000, 1);
    typed.no_finding("tiny-reads");
}

#[test]
fn lines_one_by_one_into_a_file_are_line_buffered_bulk() {
    let mut builder = recording(0.6);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 300_000, 30).newline_ends = 300_000;
    let finding = builder.finding("line-buffered-bulk");
    assert_eq!(finding.severity, High);
    // It is unknown whether the program flushes or its stream is line buffered; gathering helps with both.
    assert!(finding.fix.starts_with("weir run --coalesce -- ./prog 'a b'   or in code: "), "{}", finding.fix);
    assert!(!finding.fix.contains("--full") && !finding.why.contains("the reader"), "{finding:#?}");
    builder.no_finding("tiny-writes");
}

#[test]
fn the_reader_is_mentioned_if_its_reads_are_recorded() {
    let why = |asked: u64, size: u64, inside: bool| {
        let mut builder = recording(0.6);
        let pipe = builder.file("pipe:[3]", Pipe);
        builder.process(2, Some(1), "next");
        builder.stream(1, 1, pipe, Out, 300_000, 30).newline_ends = 300_000;
        if inside {
            builder.stream(2, 0, pipe, In, 9_000_000 / size, size).requested_sizes =
                requested_histogram(9_000_000 / size, asked);
        }
        builder.finding("line-buffered-bulk").why
    };
    assert!(why(65_536, 4096, true).contains("the reader takes larger blocks"));
    // `while read`, a reader that gets each line at once, and a reader that is not recorded.
    for (asked, size, inside) in [(1, 1, true), (65_536, 30, true), (65_536, 4096, false)] {
        let why = why(asked, size, inside);
        assert!(!why.contains("the reader") && why.ends_with("% of the run."), "{why}");
    }
}

#[test]
fn words_are_not_lines_and_a_slow_pipe_wants_its_lines() {
    let mut builder = recording(300.0);
    let (file, pipe) = (builder.file("/d/out", File), builder.file("pipe:[3]", Pipe));
    builder.stream(1, 3, file, Out, 30_000_000, 5).newline_ends = 1_500_000;
    // 3,300 lines per second: a reader may need them one by one.
    builder.stream(1, 1, pipe, Out, 1_000_000, 30).newline_ends = 1_000_000;
    builder.no_finding("line-buffered-bulk");
    assert_eq!(builder.finding("tiny-writes").fd, 3);
}

#[test]
fn writers_of_one_log_keep_their_lines() {
    let mut builder = recording(0.6);
    let file = builder.file("/d/log", File);
    builder.open_file(file).flags |= 0o2000;
    builder.process(2, None, "other");
    for pid in [1, 2] {
        builder.stream(pid, 1, file, Out, 300_000, 30).newline_ends = 300_000;
    }
    let found = builder.findings("line-buffered-bulk");
    assert!(found.len() == 2 && found.iter().all(|finding| finding.severity == Info), "{found:#?}");
}

#[test]
fn much_terminal_output_is_at_most_a_warning() {
    let mut builder = recording(1.0);
    let terminal = builder.file("/dev/pts/3", Terminal);
    builder.stream(1, 1, terminal, Out, 100_000, 34).newline_ends = 100_000;
    builder.root().user_s = 0.1;
    let finding = builder.finding("terminal-bulk");
    assert_eq!(finding.severity, Warn);
    assert!((finding.gain.unwrap().elapsed_s - 0.9).abs() < 0.01);
    builder.no_finding("line-buffered-bulk");
    let mut little = crate::testing::recording(1.0);
    let terminal = little.file("/dev/pts/3", Terminal);
    little.stream(1, 1, terminal, Out, 30_000, 34);
    little.no_finding("terminal-bulk");
}

/// The kernel splits a process's CPU time by timer ticks: a short one that each tick finds in a call has no user time.
#[test]
fn a_terminal_is_slow_for_a_process_without_user_time() {
    let mut builder = recording(2.9);
    let terminal = builder.file("/dev/pts/3", Terminal);
    builder.stream(1, 1, terminal, Out, 40_000, 31);
    (builder.root().user_s, builder.root().system_s) = (0.0, 0.135);
    builder.root().queued_s = Some(0.956);
    assert_eq!(builder.severity("terminal-bulk"), Warn);
}

#[test]
fn output_of_unknown_streams_counts_for_terminal_bulk_up_to_a_half() {
    let found = |known: u64, unknown: u64| {
        let mut builder = recording(1.0);
        let terminal = builder.file("/dev/pts/3", Terminal);
        builder.stream(1, 1, terminal, Out, known, 34);
        let other = builder.file(StreamCounts::UNKNOWN_PATH, StreamKind::Other);
        builder.stream(1, StreamCounts::UNKNOWN, other, Out, unknown, 34);
        builder.root().user_s = 0.1;
        builder.findings("terminal-bulk").len()
    };
    assert_eq!((found(20_000, 0), found(20_000, 12_000), found(12_000, 40_000)), (0, 1, 0));
}

#[test]
fn reads_at_end_of_file_are_a_spin_only_without_pauses() {
    let mut builder = recording(0.8);
    let log = builder.file("/d/app.log", File);
    builder.stream(1, 3, log, In, 1_500_000, 0).zeros = 1_499_990;
    (builder.root().user_s, builder.root().system_s) = (0.2, 0.55);
    let finding = builder.finding("read-after-eof-spin");
    assert_eq!((finding.severity, finding.evidence["zero_reads"]), (High, 1_499_990.0));
    let mut patient = crate::testing::recording(1000.0);
    let log = patient.file("/d/app.log", File);
    patient.stream(1, 3, log, In, 1000, 0).zeros = 1000;
    patient.no_finding("read-after-eof-spin");
    // Most calls return bytes: a reader that hits end of file now and then.
    let mut reader = crate::testing::recording(0.8);
    let log = reader.file("/d/app.log", File);
    reader.stream(1, 3, log, In, 1_500_000, 10).zeros = 500_000;
    reader.no_finding("read-after-eof-spin");
}
