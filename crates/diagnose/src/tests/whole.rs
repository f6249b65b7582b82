//! Tests of all rules together: order, merging, the verdict, pipelines, and ordinary programs without findings.

use weir_model::trace::{
    Buffer, Exit, Histogram, Op, SnapshotMoment, StreamCounts, StreamTable, UnreadableBuffers,
};
use weir_model::{Mode, Severity};

use crate::testing::*;

#[test]
fn the_worst_comes_first_and_the_verdict_says_it() {
    let mut builder = recording(7.0);
    let (input, output) = (builder.file("/d/a", File), builder.file("/d/w", File));
    builder.stream(1, 3, input, In, 5_000_000, 1);
    builder.stream(1, 4, output, Out, 5_000_000, 1);
    let found = diagnose(&builder.0);
    assert_eq!(
        found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(),
        ["tiny-writes", "tiny-reads"]
    );
    let text = verdict(&builder.0, &found);
    assert_eq!(
        text.text,
        "5,000,000 of 5,000,000 bytes were written one at a time, and another stream below is like it. This \
            costs 6.50 s of 7.00 s. With gathering the run takes about 541 ms instead of 7.00 s:"
    );
    assert_eq!(text.command.as_deref(), Some("weir run --coalesce -- ./prog 'a b'"));
}

#[test]
fn a_program_that_waited_is_not_promised_a_shorter_run() {
    let mut builder = recording(2.79);
    let output = builder.file("pipe:[3]", Pipe);
    builder.stream(1, 1, output, Out, 800_000, 1);
    (builder.root().user_s, builder.root().system_s) = (0.2, 0.4);
    let text = verdict(&builder.0, &diagnose(&builder.0));
    assert_eq!(
        text.text,
        "800,000 of 800,000 bytes were written one at a time. This costs 520 ms of its 600 ms of CPU \
            time; the run takes 2.79 s. Gathering saves about 426 ms:"
    );
}

#[test]
fn a_clean_run_is_one_line() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 100, 65_536);
    let found = diagnose(&builder.0);
    assert!(found.is_empty());
    let text = verdict(&builder.0, &found);
    assert_eq!((text.to_string().lines().count(), text.command), (1, None));
    assert!(text.text.starts_with("Nothing is wrong"));
}

#[test]
fn a_call_that_blocks_all_the_time_is_named() {
    let mut builder = recording(4.0);
    let pipe = builder.file("/d/fifo", Pipe);
    builder.stream(1, 3, pipe, Out, 0, 0).wait_s = Some(4.0);
    let sentence = "prog (1) was blocked in write(2) on fd 3 (/d/fifo) for all of the time, at least 4.00 s.";
    assert_eq!(verdict(&builder.0, &diagnose(&builder.0)).text, sentence);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 100, 65_536);
    let both = verdict(&builder.0, &diagnose(&builder.0)).text;
    assert!(both.starts_with("Nothing is wrong with") && both.ends_with(sentence), "{both}");
}

#[test]
fn nothing_is_wrong_only_if_all_buffers_could_be_read() {
    let mut builder = recording(4.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 100, 65_536);
    let mut unreadable = |buffers: &str| {
        builder.0.unreadable.push(UnreadableBuffers { buffers: buffers.into(), pids: vec![1] });
        verdict(&builder.0, &[]).text
    };
    assert_eq!(
        unreadable("Java's own buffers"),
        "Nothing wrong in what could be seen; Java's own buffers cannot be read."
    );
    assert_eq!(
        unreadable("C++ file buffers (std::ofstream)"),
        "Nothing wrong in what could be seen; Java's own buffers and C++ file buffers (std::ofstream) cannot be read."
    );
    assert_eq!(
        unreadable("Node's own buffers"),
        "Nothing wrong in what could be seen; Java's own buffers and those of 2 other runtimes cannot be read."
    );
}

#[test]
fn the_verdict_claims_no_more_than_was_recorded() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 100, 65_536);
    let text = |builder: &RecordingBuilder| verdict(&builder.0, &[]).text;
    (builder.0.overhead.observed_s, builder.0.overhead.gap_s) = (0.995, 0.005);
    assert_eq!(text(&builder), "Nothing is wrong with the one stream of this run.", "nearly all");
    (builder.0.overhead.observed_s, builder.0.overhead.gap_s) = (9.98, 0.02);
    assert_eq!(text(&builder), "Nothing is wrong in the sampled 99 % of the run.", "20 ms hide many calls");
    (builder.0.overhead.observed_s, builder.0.overhead.gap_s) = (0.69, 0.31);
    assert_eq!(text(&builder), "Nothing is wrong in the sampled 69 % of the run.");
    builder.0.blind.push("process 2 (strace) is traced by another program".into());
    builder.0.incomplete = true;
    let incomplete = "Nothing wrong in what could be seen; \"not seen\" below says what is missing.";
    assert_eq!(text(&builder), incomplete);
    builder.0.unreadable.push(UnreadableBuffers { buffers: "Java's own buffers".into(), pids: vec![1] });
    assert_eq!(text(&builder), "Nothing wrong in what could be seen; Java's own buffers cannot be read.");
}

#[test]
fn many_small_calls_of_an_unknown_stream_are_named() {
    let text = |calls: u64, bytes: u64| {
        let mut builder = recording(0.5);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 100, 65_536);
        let unknown = builder.file(StreamCounts::UNKNOWN_PATH, weir_model::StreamKind::Other);
        builder.stream(1, StreamCounts::UNKNOWN, unknown, In, calls, bytes).estimated = true;
        (builder.0.overhead.observed_s, builder.0.overhead.gap_s) = (0.15, 0.35);
        verdict(&builder.0, &[]).text
    };
    assert_eq!(
        text(100_000, 1),
        "Nothing wrong in what could be seen; between samples prog (1) read about 100,000 bytes in about 100,000 \
         calls, through streams that were not recorded (--exact records them)."
    );
    let nothing = "Nothing is wrong in the sampled 30 % of the run.";
    assert_eq!((text(900, 1), text(2000, 65_536)), (nothing.into(), nothing.into()));
}

#[test]
fn the_verdict_counts_streams_and_not_their_openings() {
    let mut builder = recording(1.0);
    for _ in 0..18 {
        let file = builder.file("/d/out", File);
        builder.stream(1, 3, file, Out, 2, 65_536);
    }
    let text = |builder: &RecordingBuilder| verdict(&builder.0, &[]).text;
    assert_eq!(text(&builder), "Nothing is wrong with the one stream of this run.");
    let link = builder.file("/d/link", File);
    builder.open_file(link).same_as = Some(0);
    builder.stream(1, 3, link, Out, 2, 65_536);
    assert_eq!(text(&builder), "Nothing is wrong with the one stream of this run.", "by another name");
    let other = builder.file("/d/in", File);
    builder.stream(1, 3, other, In, 2, 65_536);
    // Opened and never used.
    builder.stream(1, 9, other, Out, 0, 0);
    assert_eq!(text(&builder), "Nothing is wrong with the 2 streams of this run.");
    builder.stream(1, 9, other, Out, 0, 0).syncs = 1;
    assert_eq!(
        text(&builder),
        "Nothing is wrong with the 3 streams of this run.",
        "waiting takes time as well"
    );
}

#[test]
fn estimated_counts_begin_with_about() {
    let mut builder = recording(7.0);
    let output = builder.file("/d/w", File);
    builder.stream(1, 4, output, Out, 4_123_456, 1).exact = false;
    let counted = diagnose(&builder.0);
    let text = |builder: &RecordingBuilder, found: &[weir_model::Finding]| verdict(&builder.0, found).text;
    assert!(
        text(&builder, &counted).starts_with("4,123,456 of 4,123,456 bytes were"),
        "the kernel counted them"
    );
    assert!(counted[0].why.contains("wrote 4,123,456 bytes with 4,123,456 calls"), "{}", counted[0].why);
    builder.0.counts[0].estimated = true;
    assert_eq!(
        text(&builder, &diagnose(&builder.0)),
        text(&builder, &counted),
        "no other stream can have made these calls"
    );
    let other = builder.file("/d/v", File);
    builder.stream(1, 5, other, Out, 10, 4096).estimated = true;
    let shared = diagnose(&builder.0);
    assert!(text(&builder, &shared).starts_with("about 4,120,000 of about 4,120,000 bytes were"));
    assert!(shared[0].why.contains("wrote about 4,120,000 bytes"), "{}", shared[0].why);
    builder.0.counts[0].at_least = true;
    let beside_unknown = diagnose(&builder.0);
    let why = &beside_unknown[0].why;
    assert!(why.contains("wrote at least about 4,120,000 bytes"), "{why}");
    // Another stream is not needed for that: the unknown one is none of the known ones.
    builder.0.counts.truncate(1);
    let alone = text(&builder, &diagnose(&builder.0));
    assert!(alone.starts_with("at least about 4,120,000 of at least about 4,120,000 bytes were"), "{alone}");
}

#[test]
fn a_finding_has_the_figures_of_its_row() {
    let mut builder = recording(7.0);
    for number in 0..3 {
        let file = builder.file("/d/w", File);
        builder.stream(1, 4, file, Out, 1_000_000 + number, 1).first_s = number as f64;
    }
    let found = diagnose(&builder.0);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].evidence["calls"], found[0].evidence.get("more")), (3_000_003.0, None));
    assert!(found[0].why.contains("3,000,003 bytes with 3,000,003 calls"), "{}", found[0].why);
    assert!(verdict(&builder.0, &found).text.starts_with("3,000,003 of 3,000,003 bytes"));
}

#[test]
fn superseding_findings_may_use_another_name_of_the_file() {
    let mut builder = recording(1.0);
    let (real, link) = (builder.file("/d/out", File), builder.file("/d/link", File));
    builder.open_file(link).same_as = Some(real);
    let streams = StreamTable::of(&builder.0);
    let context = crate::context::RuleContext::new(&streams, &TestPlanner);
    let finding = |id, file| {
        let rule = crate::rules().iter().find(|rule| rule.id == id).unwrap();
        let builder = context.finding(rule, Severity::High, 1, 1, Some(file));
        builder.count("bytes", 1).build("Why.", "Fix.")
    };
    let left = |file| {
        let found = vec![finding("doubled-at-fork", real), finding("torn-records", file)];
        crate::merge::merge(&context, found).len()
    };
    assert_eq!((left(real), left(link)), (1, 1));
}

#[test]
fn one_cause_is_one_finding() {
    let mut builder = recording(0.5);
    let file = builder.file("/d/log", File);
    builder.open_file(file).flags = 0o10001;
    let stream = builder.stream(1, 3, file, Out, 700, 600);
    (stream.syncs, stream.unaligned, stream.newline_ends) = (700, 700, 700);
    assert!(
        !builder.findings("sync-every-write").is_empty() && !builder.findings("unaligned-writes").is_empty()
    );
    let found = diagnose(&builder.0);
    assert_eq!(found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["sync-tiny-writes"]);
}

#[test]
fn bytes_that_were_stuck_and_lost_are_one_loss() {
    let mut builder = recording(3.0);
    let file = builder.file("/d/log", File);
    builder.call(0.0, 1, Op::Openat, -1, file, b"").result = 3;
    for at_s in [0.5, 1.0, 1.5, 2.0, 2.5] {
        builder.snapshot_in(at_s, 1, SnapshotMoment::Sample, "poll", &[pending(3, b"listening\n")]);
    }
    builder.root().exit = Some(Exit::Signal(9));
    assert_eq!(builder.findings("stuck-output").len(), 1);
    let found = diagnose(&builder.0);
    assert_eq!(found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["lost-at-kill"]);
    let text = verdict(&builder.0, &found);
    assert!(text.command.unwrap().starts_with("weir run --rescue"));
}

#[test]
fn the_same_fault_of_many_processes_is_one_finding() {
    let mut builder = recording(1.0);
    for pid in 2..12 {
        builder.process(pid, None, "worker");
        let file = builder.file(&format!("/d/out{pid}"), File);
        builder.stream(pid, 1, file, Out, 30_000, 1);
    }
    let found = diagnose(&builder.0);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].evidence["more"], 9.0);
    assert!((found[0].gain.unwrap().elapsed_s - 0.269).abs() < 0.005);
}

#[test]
fn a_pipeline_shows_each_hop_and_where_a_line_waits() {
    let mut builder = recording(10.0);
    for (pid, comm) in [(2, "tail"), (3, "grep"), (4, "cat")] {
        builder.process(pid, None, comm);
    }
    let (first, second) = (builder.file("pipe:[1]", Pipe), builder.file("pipe:[2]", Pipe));
    builder.stream(2, 1, first, Out, 50, 40).newline_ends = 50;
    builder.stream(3, 0, first, In, 50, 40);
    let written = builder.stream(3, 1, second, Out, 1, 4096);
    (written.first_s, written.last_s) = (1.0, 1.0);
    builder.stream(4, 0, second, In, 1, 4096);
    for tenth in 0..20 {
        let buffers = [pending(1, b"error: hot\n"), unread(0, b"")];
        builder.snapshot_in(5.0 + f64::from(tenth) / 10.0, 3, SnapshotMoment::Sample, "read", &buffers);
    }
    let found = crate::diagnose(&builder.0, &TestPlanner).pipelines;
    assert_eq!(found.len(), 1);
    let hops = &found[0].hops;
    assert_eq!(hops.iter().map(|hop| hop.writer.comm.exact()).collect::<Vec<_>>(), ["tail", "grep"]);
    assert_eq!((hops[0].writer.mode, hops[0].holds_lines), (Some(Mode::Line), false));
    assert_eq!((hops[1].writer.mode, hops[1].writer.buffer_bytes), (Some(Mode::Full), Some(4096)));
    assert_eq!((hops[1].writer.waiting_bytes, found[0].waits_at), (11, Some(1)));
}

/// The table of streams said "full 4 KiB" and the pipeline "none": exit(3) of glibc sets its streams to unbuffered.
#[test]
fn a_pipeline_has_the_modes_of_the_table() {
    let mut builder = recording(5.0);
    for (pid, comm) in [(2, "newlisp"), (3, "cat")] {
        builder.process(pid, None, comm);
    }
    let pipe = builder.file("pipe:[1]", Pipe);
    builder.stream(2, 1, pipe, Out, 24, 2).newline_ends = 8;
    builder.stream(3, 0, pipe, In, 24, 2);
    builder.snapshot(2.0, 2, SnapshotMoment::Sample, &[pending(1, b"")]);
    builder.snapshot(4.9, 2, SnapshotMoment::Exit, &[Buffer { mode: Some(Mode::None), ..pending(1, b"") }]);
    let hop = &crate::diagnose(&builder.0, &TestPlanner).pipelines[0].hops[0];
    assert_eq!((hop.writer.mode, hop.writer.buffer_bytes), (Some(Mode::Full), Some(4096)));
    assert!(!hop.holds_lines, "each write is flushed");
}

/// The report said "Nothing is wrong" beside a red "lines are delayed here".
#[test]
fn a_full_buffer_without_a_finding_delays_nobody() {
    let mut builder = recording(0.5);
    for (pid, comm) in [(2, "seq"), (3, "sort")] {
        builder.process(pid, Some(1), comm);
    }
    let pipe = builder.file("pipe:[1]", Pipe);
    builder.stream(2, 1, pipe, Out, 600, 4096);
    builder.stream(3, 0, pipe, In, 600, 4096);
    builder.snapshot(0.2, 2, SnapshotMoment::Sample, &[pending(1, b"124\n125\n")]);
    let diagnosis = crate::diagnose(&builder.0, &TestPlanner);
    assert!(diagnosis.verdict.text.starts_with("Nothing is wrong"), "{}", diagnosis.verdict);
    let pipeline = &diagnosis.pipelines[0];
    assert_eq!((pipeline.hops[0].writer.waiting_bytes, pipeline.waits_at), (8, None));
}

#[test]
fn ordinary_programs_have_nothing() {
    let mut builder = recording(2.0);
    let script = builder.file("/d/configure", File);
    let (log, archive) = (builder.file("/d/log", File), builder.file("/d/a.tar", File));
    // A shell that reads a script from a pipe one byte at a time, as POSIX requires.
    let pipe = builder.file("pipe:[1]", Pipe);
    builder.stream(1, 0, pipe, In, 4000, 1);
    builder.stream(1, 10, script, In, 12, 8192);
    // Its commands write short lines to their shared log, one after the other.
    for pid in 2..200 {
        builder.process(pid, Some(1), "expr");
        let stream = builder.stream(pid, 1, log, Out, 2, 11);
        (stream.first_s, stream.last_s, stream.newline_ends) =
            (0.01 * f64::from(pid), 0.01 * f64::from(pid) + 0.002, 2);
    }
    builder.stream(1, 1, log, Out, 400, 20).newline_ends = 150;
    builder.stream(1, 3, archive, Out, 500, 10_240);
    // make's job tokens: one byte there, one byte back.
    let tokens = builder.file("pipe:[2]", Pipe);
    builder.stream(1, 4, tokens, In, 300, 1);
    builder.stream(1, 5, tokens, Out, 300, 1);
    let found = diagnose(&builder.0);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_reader_that_asks_for_much_is_not_blamed_for_its_writer() {
    let mut builder = recording(1.0);
    let pipe = builder.file("pipe:[1]", Pipe);
    let stream = builder.stream(1, 0, pipe, In, 1_000_000, 1);
    let mut asked = Histogram::default();
    asked.add(65_536, 1_000_000);
    stream.requested_sizes = asked;
    assert!(diagnose(&builder.0).iter().all(|finding| finding.severity < Severity::Warn));
}

#[test]
fn the_verdict_has_the_sum_of_equal_losses() {
    let mut builder = recording(1.0);
    let lost: Vec<_> = (3..33)
        .map(|fd| {
            let file = builder.file(&format!("/d/out{fd}"), File);
            builder.stream(1, fd, file, Out, 0, 0);
            pending(fd, &[b'x'; 390])
        })
        .collect();
    builder.snapshot(0.9, 1, weir_model::trace::SnapshotMoment::Exit, &lost);
    let found = diagnose(&builder.0);
    assert_eq!(found.len(), 30, "the document has each");
    let text = verdict(&builder.0, &found).text;
    assert!(text.starts_with("390 bytes for /d/out3 "), "{text}");
    assert!(text.contains(" The same happened with 29 more files, 11,700 bytes in all."), "{text}");
}

#[test]
fn bytes_that_are_pending_for_a_short_time_are_named() {
    let with = |times: &[f64], ended: bool| {
        let mut builder = recording(3.0);
        if !ended {
            builder.0.processes[0].ended_s = None;
        }
        for &at_s in times {
            builder.snapshot(at_s, 1, SnapshotMoment::Sample, &[pending(1, &[b'x'; 246])]);
        }
        verdict(&builder.0, &[]).text
    };
    let short = "No stream was recorded; 246 bytes are pending in fd 1 of prog (1) (observed for too short a time to say \
        whether they are stuck).";
    assert_eq!(with(&[0.1, 0.6], false), short);
    assert!(with(&[0.1, 2.9], false).ends_with("pending in fd 1 of prog (1)."), "a rule has decided");
    assert_eq!(with(&[0.1, 0.6], true), "No stream was recorded.");
    assert_eq!(with(&[], false), "No stream was recorded.");
}
