//! Tests of the rules random-without-advice, seek-and-reread and unaligned-writes.

use weir_model::Severity::*;
use weir_model::trace::{Op, StreamCounts};

use crate::testing::*;

/// Returns the recording of 3,000 reads of 8 KiB all over a file of 200 MB. The device delivered half of the bytes.
fn random(span_s: f64, cpu_s: f64) -> RecordingBuilder {
    let mut builder = recording(span_s);
    let file = builder.file("/d/table", File);
    builder.open_file(file).size_bytes = Some(200_000_000);
    let stream = builder.stream(1, 3, file, In, 3000, 8192);
    (stream.jumps, stream.again_bytes) = (2990, 20_000_000);
    let root = builder.root();
    (root.user_s, root.queued_s, root.fetched_bytes) = (cpu_s, Some(0.0), Some(100_000_000));
    builder
}

#[test]
fn waiting_for_a_cpu_or_for_needed_bytes_is_not_wasted() {
    let finding = random(0.4, 0.05).finding("random-without-advice");
    // 0.35 s of waiting, three quarters of it for bytes that no call asked for.
    assert!((finding.evidence["wasted_s"] - 0.264).abs() < 0.001, "{finding:#?}");
    assert!(finding.why.contains("fetched"), "{}", finding.why);
    // The same on a busy machine: the process waits for a CPU only.
    let mut loaded = random(0.4, 0.05);
    loaded.root().queued_s = Some(0.34);
    assert_eq!(loaded.severity("random-without-advice"), Info);
    // No needless bytes were fetched, or no bytes at all.
    for fetched in [24_576_000, 0] {
        let mut needed = random(0.4, 0.05);
        needed.root().fetched_bytes = Some(fetched);
        assert_eq!(needed.severity("random-without-advice"), Info);
    }
    let mut unknown = random(0.4, 0.05);
    unknown.root().queued_s = None;
    assert_eq!(unknown.severity("random-without-advice"), Info);
}

#[test]
fn random_reads_that_wait_are_a_warning_and_cached_ones_a_hint() {
    assert_eq!(random(0.4, 0.05).severity("random-without-advice"), Warn);
    assert_eq!(random(0.05, 0.05).severity("random-without-advice"), Info);
}

#[test]
fn advice_order_and_small_files_need_none() {
    let mut advised = random(0.4, 0.05);
    advised.call(0.0, 1, Op::Fadvise, 3, 0, b"").args[3] = 1;
    advised.no_finding("random-without-advice");
    let mut sequential_advice = random(0.4, 0.05);
    sequential_advice.call(0.0, 1, Op::Fadvise, 3, 0, b"").args[3] = 2;
    assert_eq!(sequential_advice.severity("random-without-advice"), Warn);
    let mut ordered = random(0.4, 0.05);
    ordered.0.counts[0].jumps = 599;
    ordered.no_finding("random-without-advice");
    ordered.0.counts[0].jumps = 600;
    assert_eq!(ordered.severity("random-without-advice"), Warn);
    let mut small = random(0.4, 0.05);
    small.open_file(0).size_bytes = Some(1_000_000);
    small.no_finding("random-without-advice");
}

/// Returns the recording of 200,000 reads of 4 KiB of a file of 4.8 MB, with a seek before each.
fn rereading(bytes_again: u64) -> RecordingBuilder {
    let mut builder = recording(0.5);
    let file = builder.file("/d/table", File);
    builder.open_file(file).size_bytes = Some(4_800_000);
    let stream = builder.stream(1, 3, file, In, 200_000, 4096);
    (stream.jumps, stream.seeks, stream.again_bytes) = (199_000, 200_000, bytes_again);
    builder
}

#[test]
fn a_buffer_filled_again_after_each_seek_is_found_and_priced() {
    let builder = rereading(810_000_000);
    let finding = builder.finding("seek-and-reread");
    assert_eq!(finding.severity, High);
    // 200,000 × (400 + 300) ns and 819 MB × 0.05 ns from the CPU's caches, nearly all of it needless.
    assert!((finding.gain.unwrap().elapsed_s - 0.180).abs() < 0.005, "{finding:#?}");
    builder.no_finding("random-without-advice");
    // User time around the calls is saved as well.
    let mut slow = rereading(810_000_000);
    (slow.root().user_s, slow.root().system_s) = (0.2, 0.18);
    let gain = slow.finding("seek-and-reread").gain.unwrap();
    assert!((gain.elapsed_s - 0.180 - 0.12).abs() < 0.005, "{gain:?}");
}

// From a recording of a C program with an index before its records; the twin with two streams took 0.098 s less.
#[test]
fn repeated_reads_come_from_the_cpu_caches() {
    let mut builder = recording(0.49);
    (builder.0.prices.file_read_ns, builder.0.prices.call_ns) = (305.0, 136.0);
    (builder.0.prices.byte_ns, builder.0.prices.again_byte_ns) = (0.145, 0.021);
    (builder.root().user_s, builder.root().system_s) = (0.031, 0.1);
    let file = builder.file("/d/table", File);
    builder.open_file(file).size_bytes = Some(4_800_000);
    let stream = builder.stream(1, 3, file, In, 200_000, 4096);
    (stream.jumps, stream.seeks, stream.again_bytes) = (199_982, 199_982, 817_323_253);
    let gain = builder.finding("seek-and-reread").gain.unwrap().elapsed_s;
    assert!((0.098 / 1.3..0.098 * 1.3).contains(&gain), "{gain}");
}

#[test]
fn an_inherited_input_is_at_most_a_warning() {
    let mut builder = rereading(810_000_000);
    builder.open_file(0).opened_by = None;
    assert_eq!(builder.severity("seek-and-reread"), Warn);
}

#[test]
fn bytes_that_are_read_about_once_are_no_reread() {
    rereading(10_000_000).no_finding("seek-and-reread");
    let mut large = rereading(810_000_000);
    large.open_file(0).size_bytes = Some(400_000_000);
    large.no_finding("seek-and-reread");
    random(0.4, 0.05).no_finding("seek-and-reread");
}

/// Returns the recording of 4,000 writes of 5,000 bytes.
fn records(flags: i32, size: Option<u64>, unaligned: u64) -> RecordingBuilder {
    let mut builder = recording(0.4);
    let file = builder.file("/d/volume", File);
    (builder.open_file(file).flags, builder.open_file(file).size_bytes) = (flags, size);
    builder.stream(1, 3, file, Out, 4000, 5000).unaligned = unaligned;
    (builder.root().system_s, builder.root().queued_s) = (0.05, Some(0.0));
    builder
}

#[test]
fn records_over_an_old_file_that_straddle_blocks_are_found() {
    let finding = records(0o1, Some(20_000_000), 4000).finding("unaligned-writes");
    assert!(finding.severity == Warn && finding.fix.contains("8192"), "{finding:#?}");
    let mut warm = records(0o1, Some(20_000_000), 4000);
    warm.root().system_s = 0.4;
    assert_eq!(warm.severity("unaligned-writes"), Info);
    let mut loaded = records(0o1, Some(20_000_000), 4000);
    loaded.root().queued_s = Some(0.345);
    assert_eq!(loaded.severity("unaligned-writes"), Info, "it waits for a processor");
    assert_eq!(records(0o10001, None, 4000).severity("unaligned-writes"), Warn);
    assert_eq!(records(0o101, Some(30_000_000), 4000).severity("unaligned-writes"), Warn);
}

#[test]
fn new_files_appends_and_whole_blocks_are_no_finding() {
    records(0o1101, Some(20_000_000), 4000).no_finding("unaligned-writes");
    records(0o101, Some(20_000_000), 4000).no_finding("unaligned-writes");
    records(0o2001, Some(90_000_000), 4000).no_finding("unaligned-writes");
    records(0o1, Some(20_000_000), 399).no_finding("unaligned-writes");
    // The shell that redirected output to the file may have created it.
    let mut inherited = records(0o1, Some(20_000_000), 4000);
    inherited.open_file(0).opened_by = None;
    inherited.no_finding("unaligned-writes");
    // The file is larger than what the sampled counts assign to the stream, but not than what the process wrote.
    let mut sampled = records(0o1, Some(21_500_000), 4000);
    sampled.open_file(0).opened_by = None;
    let unknown = sampled.file(StreamCounts::UNKNOWN_PATH, weir_model::StreamKind::Other);
    sampled.stream(1, StreamCounts::UNKNOWN, unknown, Out, 300, 5000);
    sampled.no_finding("unaligned-writes");
}

#[test]
fn the_program_that_read_again_is_named_not_one_that_was_executed_later() {
    let mut builder = rereading(810_000_000);
    builder.exec(0.45, 1, "later");
    let why = builder.finding("seek-and-reread").why;
    assert!(why.starts_with("prog (1) read"), "{why}");
}
