//! Tests of the rule held-output.

use weir_model::Severity::*;
use weir_model::StreamKind;
use weir_model::trace::{Exit, RuntimeId, SnapshotMoment, UnreadableBuffers};

use crate::testing::*;

/// Returns text of this length that ends in the middle of a line.
fn text(bytes: usize) -> Vec<u8> {
    b"measured 21.5 degrees\n".iter().copied().cycle().take(bytes - 1).chain(*b"m").collect()
}

/// A filter whose input arrives in lines every `pace_s`, and that writes blocks of these sizes at these times.
struct Filter {
    pace_s: f64,
    reads: usize,
    input: StreamKind,
    output: StreamKind,
    writes: Vec<(f64, usize)>,
    /// The size of the write at the end of the input.
    rest: usize,
    elapsed_s: f64,
}

impl Default for Filter {
    fn default() -> Self {
        let writes = vec![(1.3, 4096), (2.6, 4096)];
        Self { pace_s: 0.05, reads: 80, input: Pipe, output: File, writes, rest: 700, elapsed_s: 4.0 }
    }
}

impl Filter {
    fn recording(&self) -> RecordingBuilder {
        let mut builder = recording(self.elapsed_s);
        let (input, output) = (builder.file("pipe:[3]", self.input), builder.file("/d/out", self.output));
        let line = text(110);
        for read in 0..self.reads.min(8) {
            builder.read(0.1 + read as f64 * self.pace_s, 1, 0, input, &line).requested_bytes = 4096;
        }
        let read_s = 0.1 + self.reads as f64 * self.pace_s;
        let last_s = self.writes.last().map_or(read_s, |write| read_s.max(write.0 + 0.2));
        let stream = builder.stream(1, 0, input, In, self.reads as u64, 110);
        (stream.first_s, stream.last_s) = (0.1, read_s);
        let mut writes = self.writes.clone();
        writes.extend((self.rest > 0).then_some((last_s, self.rest)));
        for &(at_s, bytes) in writes.iter().take(8) {
            builder.write(at_s, 1, 1, output, &text(bytes));
        }
        if let Some(&(first_s, _)) = writes.first() {
            let stream = builder.stream(1, 1, output, Out, writes.len() as u64, 4096);
            (stream.first_s, stream.last_s) = (first_s, writes.last().map_or(0.0, |write| write.0));
        }
        builder
    }
}

#[test]
fn full_blocks_while_lines_arrive_are_held_output() {
    let finding = Filter::default().recording().finding("held-output");
    assert_eq!((finding.severity, finding.fd, finding.path.exact()), (Warn, 1, "/d/out"));
    assert_eq!((finding.evidence["block_bytes"], finding.evidence["reads"]), (4096.0, 80.0));
    assert!(
        finding.why.contains("full blocks of 4,096 bytes, up to 1.30 s apart, while input arrives"),
        "{}",
        finding.why
    );
    assert!(finding.fix.contains("write each line") && !finding.fix.contains("weir run"), "{}", finding.fix);
    let one = Filter { writes: vec![(1.3, 4096)], ..Filter::default() };
    assert_eq!(one.recording().severity("held-output"), Warn, "and input long after it");
    let records = Filter { writes: vec![(1.3, 8120), (2.6, 8170)], ..Filter::default() };
    let finding = records.recording().finding("held-output");
    assert!(finding.why.contains("full blocks of about 8,192 bytes"), "{}", finding.why);
}

#[test]
fn output_that_follows_the_end_of_the_input_is_not_held() {
    for writes in [vec![], vec![(4.1, 4096), (4.1, 4096)], vec![(3.5, 4096), (4.1, 4096)]] {
        Filter { writes, ..Filter::default() }.recording().no_finding("held-output");
    }
}

#[test]
fn other_sizes_and_paces_are_no_held_output() {
    let of = |writes: &[(f64, usize)]| Filter { writes: writes.to_vec(), ..Filter::default() };
    of(&[(1.3, 1800), (2.6, 1800)]).recording().no_finding("held-output");
    of(&[(0.5, 4096), (1.0, 4096), (1.5, 4096), (2.0, 4096), (2.9, 4096)])
        .recording()
        .no_finding("held-output");
    of(&[(1.3, 110), (2.6, 110)]).recording().no_finding("held-output");
    // A report of one page every second, which ends at a line.
    let mut page = of(&[(1.3, 4096), (2.6, 4096)]).recording();
    for event in &mut page.0.events {
        if let weir_model::trace::EventKind::Call(call) = &mut event.kind {
            call.tail = Some(b'\n');
        }
    }
    page.no_finding("held-output");
}

#[test]
fn input_that_is_there_at_once_is_not_held() {
    Filter { input: File, ..Filter::default() }.recording().no_finding("held-output");
    // A program that limits the rate reads ahead.
    let limiter = Filter { pace_s: 0.001, reads: 4000, ..Filter::default() };
    limiter.recording().no_finding("held-output");
}

#[test]
fn a_copy_in_blocks_is_not_held_output() {
    let mut dd = Filter::default().recording();
    let mut asked = 4096;
    for event in &mut dd.0.events {
        if let weir_model::trace::EventKind::Call(call) = &mut event.kind
            && call.op.reads()
        {
            call.requested_bytes = asked;
            asked -= call.result as u64;
        }
    }
    dd.no_finding("held-output");
    // dd with obs=: it collects the pieces itself.
    let called = |words: &[&str], comm: &str| {
        let mut builder = Filter::default().recording();
        let image = &mut builder.root().images[0];
        (image.argv, image.comm) = (words.iter().map(|word| (*word).into()).collect(), comm.into());
        builder
    };
    called(&["/usr/bin/dd", "obs=4096"], "dd").no_finding("held-output");
    called(&["mbuffer", "-s", "4096"], "mbuffer").no_finding("held-output");
    assert_eq!(called(&["dd", "obs=4096"], "filter").severity("held-output"), Warn, "another program");
    let mut packed = Filter::default().recording();
    for event in &mut packed.0.events {
        if let weir_model::trace::EventKind::Call(call) = &mut event.kind
            && call.op.writes()
        {
            call.head = b"\x1f\x8b\x08\x00\x12".to_vec();
        }
    }
    packed.no_finding("held-output");
}

#[test]
fn a_slow_reader_is_not_held_output() {
    let writes = vec![(1.3, 16_384), (2.6, 16_384), (3.9, 16_384), (5.2, 16_384), (6.5, 16_384)];
    let blocked = Filter { output: Pipe, reads: 200, elapsed_s: 11.0, writes, ..Filter::default() };
    blocked.recording().no_finding("held-output");
    let short = Filter { output: Pipe, ..Filter::default() };
    assert_eq!(short.recording().severity("held-output"), Warn, "the pipe has room for it");
}

#[test]
fn a_program_without_input_must_wait() {
    let timer = |cpu_s: f64| {
        let writes = vec![(1.3, 4096), (2.6, 4096), (3.9, 4096)];
        let mut builder = Filter { reads: 0, writes, elapsed_s: 5.0, ..Filter::default() }.recording();
        builder.root().user_s = cpu_s;
        builder
    };
    let finding = timer(0.1).finding("held-output");
    assert!(finding.why.contains("up to 1.30 s apart, and waits in between"), "{}", finding.why);
    timer(2.0).no_finding("held-output");
    // A copy of a file at a limited rate.
    let mut copy = timer(0.1);
    let file = copy.file("/d/in", File);
    copy.stream(1, 3, file, In, 3, 4096);
    copy.no_finding("held-output");
    // A runtime reads its own files long before.
    let mut runtime = timer(0.1);
    let file = runtime.file("/usr/lib/runtime.go", File);
    let read = runtime.stream(1, 3, file, In, 3, 4096);
    (read.first_s, read.last_s) = (0.1, 0.2);
    assert_eq!(runtime.severity("held-output"), Warn);
}

#[test]
fn gaps_hide_what_was_written() {
    let mut builder = Filter::default().recording();
    builder.event(1.5, 1, weir_model::trace::EventKind::Gap { until_s: 2.0 });
    builder.no_finding("held-output");
}

/// A mawk whose input buffer keeps lines that arrive every 0.8 seconds; its output follows the end of the input.
fn mawk(output: &[u8]) -> RecordingBuilder {
    let mut builder = recording(2.5);
    let (input, file) = (builder.file("pipe:[3]", Pipe), builder.file("pipe:[4]", Pipe));
    let mut read = Vec::new();
    for arrival in 0..3 {
        let at_s = f64::from(arrival) * 0.8;
        builder.read(at_s, 1, 0, input, b"line\n");
        read.extend(b"line\n");
        let filling = || [weir_model::trace::Buffer { walker: RuntimeId::MAWK, ..unread(0, &read) }];
        for after_s in [0.1, 0.6] {
            builder.snapshot_in(at_s + after_s, 1, SnapshotMoment::Sample, "read", &filling());
        }
    }
    let stream = builder.stream(1, 0, input, In, 4, 0);
    (stream.bytes, stream.last_s) = (15, 2.4);
    if !output.is_empty() {
        builder.write(2.41, 1, 1, file, output);
        let stream = builder.stream(1, 1, file, Out, 1, output.len() as u64);
        (stream.first_s, stream.last_s) = (2.41, 2.41);
    }
    builder
}

#[test]
fn unused_lines_in_an_input_buffer_are_held() {
    let finding = mawk(b"line\nline\nline\n").finding("held-output");
    assert_eq!((finding.severity, finding.fd, finding.path.exact()), (Warn, 1, "pipe:[4]"));
    assert!(finding.why.contains("has held 5 of 15 bytes of input unused for 2.10 s"), "{}", finding.why);
    assert!(finding.fix.starts_with("weir run --max-delay 100ms -- "), "{}", finding.fix);
    assert_eq!(mawk(b"1 line\n2 line\n3 line\n").severity("held-output"), Info, "perhaps it needs all lines");
    mawk(b"3\n").no_finding("held-output");
    mawk(b"").no_finding("held-output");
    let mut running = mawk(b"");
    (running.root().ended_s, running.root().exit) = (None, None);
    assert_eq!(running.severity("held-output"), Info);
}

#[test]
fn unused_lines_are_lost_when_a_signal_ends_mawk() {
    let killed = |program: &str, number: i32| {
        let mut builder = mawk(b"");
        builder.root().images[0].argv = vec!["mawk".into(), program.into()];
        builder.root().exit = Some(Exit::Signal(number));
        builder
    };
    let mut builder = killed("{ print \"m\", $0 }", 9);
    assert_eq!(builder.severity("held-output"), Warn, "the kernel reads other buffers at the signal");
    let at_end = weir_model::trace::Buffer { walker: RuntimeId::MAWK, ..unread(0, &b"line\n".repeat(3)) };
    builder.snapshot(2.45, 1, SnapshotMoment::Signal, &[at_end]);
    let finding = builder.finding("held-output");
    assert_eq!((finding.severity, finding.fd), (Warn, 0));
    assert!(finding.why.contains("unused for 2.10 s, until SIGKILL ended it: it waits"), "{}", finding.why);
    assert!(finding.why.ends_with("What it would have written for them is lost."), "{}", finding.why);
    assert!(finding.fix.starts_with("weir run --max-delay 100ms -- "), "{}", finding.fix);
    assert_eq!(killed("END { print NR }", 15).severity("held-output"), Info, "it had to read all");
    let undecided = killed("END { print NR }", 15);
    let verdict = verdict(&undecided.0, &diagnose(&undecided.0)).text;
    assert_eq!(verdict, "Nothing wrong in what could be seen; one hint below.");
    killed("{ print }", 13).no_finding("held-output");
    let mut discarded = killed("{ print }", 9);
    let null = discarded.file("/dev/null", StreamKind::Device);
    discarded.stream(1, 1, null, Out, 0, 0);
    discarded.no_finding("held-output");
    let mut without_reader = killed("{ print }", 9);
    let pipe = without_reader.file("pipe:[5]", Pipe);
    without_reader.stream(1, 1, pipe, Out, 0, 0);
    without_reader.fork(0.1, 2).ended_s = Some(0.2);
    without_reader.stream(2, 0, pipe, In, 1, 0);
    assert_eq!(without_reader.severity("held-output"), Info);
}

#[test]
fn a_silent_program_that_still_runs_is_undecided() {
    let silent = |runs: bool, unreadable: bool| {
        let mut builder = Filter { writes: vec![], rest: 0, ..Filter::default() }.recording();
        if runs {
            (builder.root().ended_s, builder.root().exit) = (None, None);
        } else {
            builder.root().exit = Some(Exit::Code(0));
        }
        if unreadable {
            builder
                .0
                .unreadable
                .push(UnreadableBuffers { buffers: "Java's own buffers".into(), pids: vec![1] });
        }
        builder
    };
    let finding = silent(true, true).finding("held-output");
    assert!(
        finding.severity == Info && finding.why.contains("or it answers only at the end"),
        "{}",
        finding.why
    );
    silent(false, true).no_finding("held-output");
    silent(true, false).no_finding("held-output");
}

#[test]
fn bytes_in_a_known_buffer_are_stuck_output_only() {
    let mut builder = Filter::default().recording();
    for at_s in [0.2, 0.5, 0.8, 1.1] {
        builder.snapshot_in(at_s, 1, SnapshotMoment::Sample, "read", &[pending(1, b"measured 21.5\n")]);
    }
    let ids: Vec<String> = diagnose(&builder.0).iter().map(|finding| finding.id.to_string()).collect();
    assert_eq!(ids, ["stuck-output"]);
}
