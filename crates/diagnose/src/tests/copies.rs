//! Tests of the rules double-buffered, could-copy-in-kernel and small-pipe.

use weir_model::Severity::*;

use crate::testing::*;

const BLOCKS: [&[u8]; 3] = [b"first block", b"other block", b"third block"];

/// Returns the recording of a process that copies one file to another, 64 KiB at a time, and writes `third` as the third
/// block.
fn copying(
    from: weir_model::StreamKind,
    to: weir_model::StreamKind,
    third: &[u8],
    calls: u64,
) -> RecordingBuilder {
    let mut builder = recording(0.1);
    let (input, output) = (builder.file("/d/in", from), builder.file("/d/out", to));
    builder.stream(1, 0, input, In, calls, 65_536);
    builder.stream(1, 1, output, Out, calls, 65_536);
    for (turn, block) in BLOCKS.iter().enumerate() {
        let at_s = 0.001 + turn as f64 * 0.001;
        builder.read(at_s, 1, 0, input, block).result = 65_536;
        let written = if turn == 2 { third } else { block };
        builder.write(at_s + 0.0005, 1, 1, output, written).result = 65_536;
    }
    builder
}

#[test]
fn a_copy_from_file_to_file_could_stay_in_the_kernel() {
    let finding = copying(File, File, BLOCKS[2], 1600).finding("could-copy-in-kernel");
    // The kernel copies in pieces of the same size if the file system does not share blocks, but once: 1,600 × 65,536 × 0.3 ns.
    assert_eq!((finding.severity, finding.gain.unwrap().elapsed_s), (Info, 0.03145728));
    assert!(copying(File, Socket, BLOCKS[2], 1600).finding("could-copy-in-kernel").fix.contains("sendfile"));
}

#[test]
fn a_copy_in_the_kernel_saves_small_calls() {
    let mut builder = copying(File, File, BLOCKS[2], 25_600);
    for stream in &mut builder.0.counts {
        stream.bytes = 25_600 * 4096;
    }
    let finding = builder.finding("could-copy-in-kernel");
    // 25,600 × (400 + 3,000) ns, less 1,600 × (400 + 3,000 + 18,432) ns; and 104,857,600 × 0.3 ns for the second copy.
    assert_eq!(finding.severity, Warn);
    assert!((finding.gain.unwrap().elapsed_s - 0.0835).abs() < 0.001, "{finding:#?}");
    // User time around the calls is saved as well; never more than the run takes.
    builder.0.elapsed_s = 0.2;
    (builder.root().user_s, builder.root().system_s) = (0.03, 0.1);
    assert!((builder.finding("could-copy-in-kernel").gain.unwrap().elapsed_s - 0.0835 - 0.018).abs() < 0.001);
}

#[test]
fn sampled_copies_have_similar_byte_counts_on_both_sides() {
    // From the recording of a Perl program: 4,711 reads and 4,710 writes, most of them in a sampling gap.
    let sampled = |written: u64, exact: bool| {
        let mut builder = copying(File, File, BLOCKS[2], 1600);
        (builder.0.counts[0].bytes, builder.0.counts[1].bytes) = (38_557_763, written);
        builder.0.counts.iter_mut().for_each(|stream| stream.exact = exact);
        builder
    };
    sampled(38_578_361, false).finding("could-copy-in-kernel");
    sampled(38_578_361, true).no_finding("could-copy-in-kernel");
    sampled(39_500_000, false).no_finding("could-copy-in-kernel");
}

#[test]
fn many_small_copies_add_up() {
    let mut builder = copying(File, File, BLOCKS[2], 60);
    builder.no_finding("could-copy-in-kernel");
    for id in 1..12 {
        let other = copying(File, File, BLOCKS[2], 60);
        for mut stream in other.0.counts {
            stream.file += id * 2;
            builder.0.counts.push(stream);
        }
        for mut event in other.0.events {
            if let weir_model::trace::EventKind::Call(call) = &mut event.kind {
                call.file = call.file.map(|file| file + id * 2);
            }
            builder.0.events.push(event);
        }
        builder.file("/d/in", File);
        builder.file("/d/out", File);
    }
    // One copy after the other; at the same time two outputs would look like tee.
    for (index, stream) in builder.0.counts.iter_mut().enumerate() {
        stream.first_s = (index / 2) as f64 * 0.008;
        stream.last_s = stream.first_s + 0.007;
    }
    assert_eq!(builder.finding("could-copy-in-kernel").evidence["files"], 12.0);
}

#[test]
fn changed_bytes_and_equal_counts_alone_are_no_copy() {
    copying(File, File, b"THIRD BLOCK", 1600).no_finding("could-copy-in-kernel");
    let mut unseen = copying(File, File, BLOCKS[2], 1600);
    unseen.0.events.clear();
    unseen.no_finding("could-copy-in-kernel");
    let mut filtered = copying(File, File, BLOCKS[2], 1600);
    filtered.0.counts[1].bytes -= 1;
    filtered.no_finding("could-copy-in-kernel");
    // sort writes only when it has read everything.
    let mut sorted = copying(File, File, BLOCKS[2], 1600);
    (sorted.0.counts[0].last_s, sorted.0.counts[1].first_s) = (0.04, 0.05);
    sorted.no_finding("could-copy-in-kernel");
    let mut kernel = copying(File, File, BLOCKS[2], 1600);
    (kernel.0.counts[0].in_kernel, kernel.0.counts[1].in_kernel) = (1600, 1600);
    kernel.no_finding("could-copy-in-kernel");
}

/// Returns the recording of `cat FILE | wc` with 1,600 blocks of which a gap hides the stream of some reads or writes of cat:
/// from recordings of `cat` on a loaded machine.
fn feeding_in_a_gap(direction: weir_model::Direction, hidden: u64) -> RecordingBuilder {
    let mut builder = copying(File, Pipe, BLOCKS[2], 1600);
    builder.open_file(0).size_bytes = Some(1600 * 65_536);
    builder.process(2, None, "wc");
    builder.stream(2, 0, 1, In, 1600, 65_536);
    let at = usize::from(direction == Out);
    builder.0.counts[at].calls -= hidden;
    builder.0.counts[at].bytes -= hidden * 65_536;
    let unknown = builder.file(weir_model::trace::StreamCounts::UNKNOWN_PATH, weir_model::StreamKind::Other);
    builder.stream(1, -1, unknown, direction, hidden, 65_536);
    builder.0.counts.iter_mut().for_each(|stream| stream.exact = false);
    builder
}

#[test]
fn calls_whose_stream_a_gap_hides_do_not_hide_a_needless_process() {
    let whole = feeding_in_a_gap(In, 0).finding("double-buffered");
    for (direction, hidden) in [(Out, 460), (Out, 1066), (In, 1288), (In, 99)] {
        let finding = feeding_in_a_gap(direction, hidden).finding("double-buffered");
        for (name, value) in &whole.evidence {
            let ratio = finding.evidence[name] / value;
            assert!((ratio - 1.0).abs() < 1e-9, "{direction:?} {hidden}: {name} {ratio}");
        }
        assert!(finding.why.contains("104,857,600 bytes"), "{}", finding.why);
    }
    // The size of the file does not show that it was read to its end, once.
    for size in [None, Some(312 * 65_536)] {
        let mut other = feeding_in_a_gap(In, 1288);
        other.open_file(0).size_bytes = size;
        other.no_finding("double-buffered");
    }
    // A second input may have the hidden bytes.
    let mut joined = feeding_in_a_gap(In, 1288);
    let second = joined.file("/d/second", File);
    joined.stream(1, 4, second, In, 10, 65_536).exact = false;
    joined.no_finding("double-buffered");
    // A second output may have them, as that of tee.
    let mut split = feeding_in_a_gap(Out, 1066);
    let second = split.file("/d/second", File);
    split.stream(1, 4, second, Out, 534, 65_536).exact = false;
    split.no_finding("double-buffered");
    // The reader got fewer bytes than the file has.
    let mut elsewhere = feeding_in_a_gap(Out, 1066);
    elsewhere.0.counts[2].bytes = 534 * 65_536;
    elsewhere.no_finding("double-buffered");
}

#[test]
fn a_process_that_only_feeds_a_pipe_is_needless() {
    let mut builder = copying(File, Pipe, BLOCKS[2], 1600);
    builder.no_finding("double-buffered");
    builder.process(2, None, "wc");
    builder.stream(2, 0, 1, In, 1600, 65_536);
    let finding = builder.finding("double-buffered");
    assert!(finding.severity == Warn && finding.fix.contains("wc (2)") && finding.fix.contains("/d/in"));
    builder.no_finding("could-copy-in-kernel");
    let mut sink = copying(Pipe, File, BLOCKS[2], 300);
    sink.process(2, None, "make");
    sink.stream(2, 1, 0, Out, 300, 65_536);
    assert!(sink.finding("double-buffered").fix.contains("> /d/out"));
    // Small writes are cheaper into a pipe than into a file.
    sink.0.counts[2].calls = 20_000;
    sink.no_finding("double-buffered");
    sink.0.counts[2].calls = 300;
    // tee keeps a copy.
    let extra = sink.file("/d/copy", File);
    sink.stream(1, 3, extra, Out, 300, 65_536);
    sink.no_finding("double-buffered");
}

/// Returns the recording of a run of one second in which a producer writes blocks of `asked` bytes to a pipe; `cpu` are the
/// CPU seconds of writer and reader.
fn produced(asked: u64, cpu: [f64; 2]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let pipe = builder.file("pipe:[9]", Pipe);
    builder.process(2, None, "consumer").user_s = cpu[1];
    builder.root().user_s = cpu[0];
    builder.stream(1, 1, pipe, Out, (60 << 20) / asked, asked);
    builder.stream(2, 0, pipe, In, 960, 65_536);
    builder
}

#[test]
fn processes_that_compute_in_turns_would_overlap_with_a_larger_pipe() {
    let finding = produced(1 << 20, [0.5, 0.45]).finding("small-pipe");
    assert_eq!((finding.severity, finding.evidence["pipe_bytes"]), (Warn, 65_536.0));
    assert!((finding.gain.unwrap().elapsed_s - 0.42).abs() < 0.01, "{finding:#?}");
    assert!(finding.fix.contains("1048576"));
}

#[test]
fn the_readers_pace_tells_its_work_from_its_waiting() {
    let paced = |gap_s: f64| {
        let mut builder = produced(1 << 20, [0.01, 0.01]);
        for read in 0..8 {
            builder.read(0.02 + gap_s * f64::from(read), 2, 0, 0, b"frame");
        }
        builder
    };
    // 960 reads of 0.4 ms are 0.384 s of work; the other 0.616 s are the writer's.
    let gain = paced(0.0004).finding("small-pipe").gain.unwrap();
    assert!((gain.elapsed_s - 0.36).abs() < 0.005, "{gain:?}");
    // A reader that works all the time would not finish earlier.
    paced(0.00104).no_finding("small-pipe");
    paced(0.000_001).no_finding("small-pipe");
}

/// zstd -d | pigz: the reader works all the time, and its reads come in bursts.
#[test]
fn a_reader_that_hardly_waits_would_not_finish_earlier() {
    let waiting = |writer_s: f64, reader_s: f64| {
        let mut builder = produced(1 << 20, [0.01, 0.01]);
        for read in 0..8 {
            builder.read(0.02 + 0.0004 * f64::from(read), 2, 0, 0, b"frame");
        }
        (builder.0.counts[0].wait_s, builder.0.counts[1].wait_s) = (Some(writer_s), Some(reader_s));
        builder.findings("small-pipe").first().map_or(0.0, |one| one.gain.unwrap().elapsed_s)
    };
    assert!((waiting(0.6, 0.6) - 0.36).abs() < 0.005);
    assert!(waiting(0.9, 0.03) <= 0.03);
    assert!(waiting(0.03, 0.9) <= 0.03, "the writer is the bottleneck");
}

#[test]
fn a_reader_that_waits_for_the_next_pipe_would_not_finish_earlier() {
    let mut builder = produced(1 << 20, [0.5, 0.45]);
    (builder.0.counts[0].wait_s, builder.0.counts[1].wait_s) = (Some(0.45), Some(0.5));
    let gain = |builder: &RecordingBuilder| {
        builder.findings("small-pipe").first().map_or(0.0, |one| one.gain.unwrap().elapsed_s)
    };
    assert!(gain(&builder) > 0.4);
    let next = builder.file("pipe:[10]", Pipe);
    builder.stream(2, 1, next, Out, 960, 65_536).wait_s = Some(0.48);
    assert!(gain(&builder) <= 0.021, "{}", gain(&builder));
}

#[test]
fn delays_of_the_first_reads_do_not_count_as_work() {
    let mut builder = produced(1 << 20, [0.01, 0.01]);
    let mut at_s = 0.02;
    for gap_s in [0.0, 0.0021, 0.0004, 0.0019, 0.0004, 0.0025, 0.0022, 0.0005] {
        at_s += gap_s;
        builder.read(at_s, 2, 0, 0, b"frame");
    }
    let gain = builder.finding("small-pipe").gain.unwrap();
    assert!((gain.elapsed_s - 0.36).abs() < 0.005, "{gain:?}");
    // A reader that used the CPU all the time worked all the time.
    builder.0.processes.last_mut().unwrap().user_s = 1.0;
    builder.no_finding("small-pipe");
}

#[test]
fn a_process_that_only_copies_a_file_has_no_work_to_overlap() {
    // cat FILE | gzip on a busy machine: gzip waits for a CPU, cat does not.
    let mut builder = copying(File, Pipe, BLOCKS[2], 256);
    builder.0.elapsed_s = 1.0;
    builder
        .0
        .counts
        .iter_mut()
        .for_each(|stream| (stream.last_s, stream.max_requested_bytes) = (1.0, 131_072));
    builder.0.counts[1].requested_sizes = Default::default();
    builder.0.counts[1].requested_sizes.add(131_072, 256);
    (builder.root().user_s, builder.root().system_s) = (0.001, 0.02);
    builder.process(2, None, "gzip").user_s = 0.4;
    builder.stream(2, 0, 1, In, 512, 32_768);
    for read in 0..8 {
        builder.read(0.02 + 0.0008 * f64::from(read), 2, 0, 1, b"part");
    }
    let gain_s = builder.findings("small-pipe").first().map_or(0.0, |one| one.gain.unwrap().elapsed_s);
    assert!(gain_s < 0.02, "{gain_s}");
}

#[test]
fn small_writes_cheap_writers_and_large_pipes_do_not_wait() {
    produced(65_536, [0.5, 0.45]).no_finding("small-pipe");
    produced(1 << 20, [0.004, 0.95]).no_finding("small-pipe");
    // Both used a CPU all the time.
    produced(1 << 20, [1.0, 1.0]).no_finding("small-pipe");
    let mut large = produced(1 << 20, [0.5, 0.45]);
    large.open_file(0).pipe_bytes = Some(1 << 20);
    large.no_finding("small-pipe");
    let mut set = produced(1 << 20, [0.5, 0.45]);
    let call = set.call(0.0, 1, weir_model::trace::Op::Fcntl, 1, 0, b"");
    (call.args[1], call.result) = (1031, 1 << 20);
    set.no_finding("small-pipe");
}

#[test]
fn the_program_that_copied_is_named_not_one_that_was_executed_later() {
    let mut builder = copying(File, File, BLOCKS[2], 1600);
    builder.exec(0.09, 1, "later");
    let why = builder.finding("could-copy-in-kernel").why;
    assert!(why.starts_with("prog (1) read"), "{why}");
}

#[test]
fn the_reader_of_a_copy_is_named_not_a_program_that_was_executed_later() {
    let mut builder = feeding_in_a_gap(In, 0);
    let name = |builder: &RecordingBuilder| builder.finding("double-buffered").why;
    let before = name(&builder);
    let end_s = builder.0.elapsed_s;
    for pid in builder.0.processes.iter().map(|process| process.pid).collect::<Vec<_>>() {
        builder.exec(end_s, pid, "later");
    }
    assert_eq!(name(&builder), before);
}

/// The search for the source of each stream took minutes when each was compared with each pair of others.
#[test]
fn one_copy_is_found_among_thousands_of_files() {
    const FILES: u32 = 2000;
    let mut builder = copying(File, File, BLOCKS[2], 1600);
    builder.0.elapsed_s = 0.3;
    for number in 1..FILES {
        for (fd, direction, lasts_s) in [(3, In, 0.00005), (4, Out, 0.00006)] {
            let file = builder.file(&format!("/d/{fd}/{number}"), File);
            let stream = builder.stream(1, fd, file, direction, 1024, 4096);
            stream.first_s = 0.1 + f64::from(number) * 0.0001;
            stream.last_s = stream.first_s + lasts_s;
        }
    }
    for stream in &mut builder.0.counts[..2] {
        (stream.first_s, stream.last_s) = (0.0, 0.1);
    }
    assert_eq!(builder.finding("could-copy-in-kernel").evidence["files"], 1.0);
    builder.no_finding("tiny-reads");
    builder.no_finding("tiny-writes");
}
