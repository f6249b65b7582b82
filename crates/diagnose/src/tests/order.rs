//! Tests of the rules mixed-order and torn-records.

use weir_model::Severity::*;
use weir_model::trace::{Buffer, EventKind, IN_VFORK, Op, RuntimeId, SnapshotMoment};

use crate::testing::*;

pub(super) fn timed(
    stream: &mut weir_model::trace::StreamCounts,
    first_s: f64,
    last_s: f64,
) -> &mut weir_model::trace::StreamCounts {
    (stream.first_s, stream.last_s) = (first_s, last_s);
    stream
}

fn heading_and_body(heading: &[u8], last: &[u8], fd: i32) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[pending(1, heading)]);
    builder.write(0.2, 1, fd, file, b"alpha 1\n");
    builder.write(0.9, 1, 1, file, last);
    builder
}

#[test]
fn a_direct_write_before_older_buffered_bytes_is_mixed() {
    let finding = heading_and_body(b"name value\n", b"name value\nend\n", 1).finding("mixed-order");
    assert_eq!((finding.severity, finding.evidence["overtaken_bytes"]), (High, 11.0));
    assert!(finding.why.contains("alpha") && finding.why.contains("name value"));
    assert_eq!(heading_and_body(b"name value\n", b"name value\nend\n", 2).severity("mixed-order"), Warn);
}

/// A worker writes "name ", sleeps, and writes "ok" without a buffer, again and again. weir read its memory while it woke up.
#[test]
fn writes_while_the_memory_was_read_do_not_overtake() {
    let run = |read_until_s: f64| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[pending(1, b"ok\n")]);
        builder.read_until(read_until_s);
        builder.write(0.21, 1, 1, file, b"name 1 ");
        builder.write(0.23, 1, 1, file, b"ok\n");
        builder.write(0.24, 1, 1, file, b"name 2 ");
        builder.write(0.26, 1, 1, file, b"ok\n");
        builder
    };
    run(0.22).no_finding("mixed-order");
    run(0.2).finding("mixed-order");
}

/// After sync_with_stdio(false), std::cout and printf have a buffer each.
#[test]
fn the_buffers_of_cout_and_printf_are_named() {
    let of = |walker: RuntimeId, rival: RuntimeId| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.root().images[0].language = Some(weir_model::SourceLanguage::Cpp);
        let buffer = Buffer { walker, ..pending(1, b"first\n") };
        let rival = Buffer { walker: rival, address: 0x9000, ..pending(1, b"") };
        builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[buffer, rival]);
        builder.write(0.3, 1, 1, file, b"second\n");
        builder.write(0.9, 1, 1, file, b"first\n");
        builder.finding("mixed-order")
    };
    let finding = of(RuntimeId::GLIBC, RuntimeId::CPP);
    let words = "when std::cout, which has another buffer than printf after sync_with_stdio(false), put";
    assert!(finding.why.contains(words), "{}", finding.why);
    assert!(finding.fix.contains("remove std::ios::sync_with_stdio(false), or "), "{}", finding.fix);
    assert!(finding.fix.contains("std::fflush(stdout); before each std::cout"), "{}", finding.fix);
    let finding = of(RuntimeId::CPP, RuntimeId::GLIBC);
    assert!(finding.why.contains("when printf, which has another buffer than std::cout"), "{}", finding.why);
    let finding = of(RuntimeId::GLIBC, RuntimeId::GLIBC);
    assert!(finding.why.contains("when a direct write put"), "{}", finding.why);
}

#[test]
fn a_thread_that_flushes_what_it_took_from_the_stream_is_in_order() {
    let run = |threads: u32, bytes: usize| {
        let mut builder = recording(1.0);
        builder.root().threads = threads;
        let file = builder.file("/d/out", File);
        let buffer = Buffer { walker: RuntimeId::CPYTHON, ..pending(1, b"worker 1: step 134\n") };
        builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[buffer]);
        builder.write(0.2, 1, 1, file, &b"worker 0: step 0\n".repeat(bytes / 17 + 1));
        builder.write(0.9, 1, 1, file, b"worker 1: step 134\n");
        builder
    };
    run(5, 4096).no_finding("mixed-order");
    run(1, 4096).finding("mixed-order");
    run(5, 17).finding("mixed-order");
}

#[test]
fn threads_with_a_stream_each_have_no_order() {
    let run = |threads: u32, buffers: &[Buffer]| {
        let mut builder = recording(1.0);
        builder.root().threads = threads;
        let files = [builder.file("/d/log", File), builder.file("/d/log", File)];
        for file in files {
            (builder.open_file(file).flags, builder.open_file(file).ino) = (APPEND, 77);
        }
        builder.snapshot(0.2, 1, SnapshotMoment::Sample, buffers);
        builder.write(0.3, 1, 4, files[1], b"right 0\n");
        builder.write(0.9, 1, 3, files[0], b"left 0\n");
        builder
    };
    let both = [pending(3, b"left 0\n"), pending(4, b"")];
    assert!(run(1, &both).finding("mixed-order").why.contains("when another stream put"));
    run(3, &both).no_finding("mixed-order");
    // The snapshot was made before the other thread had its stream.
    assert!(run(1, &both[..1]).finding("mixed-order").why.contains("when a direct write put"));
    run(3, &both[..1]).no_finding("mixed-order");
}

#[test]
fn flushed_bytes_are_in_order() {
    heading_and_body(b"", b"name value\n", 1).no_finding("mixed-order");
    // Flushed before the direct write.
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.snapshot(0.1, 1, SnapshotMoment::Sample, &[pending(1, b"name\n")]);
    builder.write(0.2, 1, 1, file, b"name\n");
    builder.write(0.3, 1, 1, file, b"alpha\n");
    builder.write(0.4, 1, 1, file, b"name\n");
    builder.no_finding("mixed-order");
}

#[test]
fn two_appending_open_files_of_one_inode_share_an_order() {
    let run = |flags: i32, number: u64| {
        let mut builder = recording(1.0);
        let (log, link) = (builder.file("/d/log", File), builder.file("/d/link", File));
        for (file, ino) in [(log, 77), (link, number)] {
            (builder.open_file(file).flags, builder.open_file(file).ino) = (flags, ino);
        }
        builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[pending(1, b"begin\n")]);
        builder.write(0.3, 1, 4, link, b"failed\n");
        builder.write(0.9, 1, 1, log, b"begin\nend\n");
        builder
    };
    let finding = run(APPEND, 77).finding("mixed-order");
    assert_eq!((finding.severity, finding.path.exact()), (High, "/d/log"));
    assert!(finding.fix.starts_with("write everything through the one stream"), "{}", finding.fix);
    run(APPEND, 78).no_finding("mixed-order");
    // Each writes at its own offset.
    run(0o101, 77).no_finding("mixed-order");
}

#[test]
fn bytes_written_by_an_unrecorded_call_are_in_order() {
    // From a recording of file(1) with many files, in a sampling gap: its buffer has the padding of its columns again and
    // again.
    let padded = |seen_between: bool| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.snapshot(0.1, 1, SnapshotMoment::Sample, &[pending(1, b"------------")]);
        if seen_between {
            builder.snapshot(0.3, 1, SnapshotMoment::Sample, &[pending(1, b"inux-x86-64.so.2, stripped")]);
        }
        builder.write(0.4, 1, 1, file, b"inux-x86-64.so.2, stripped, and more");
        builder.snapshot(0.5, 1, SnapshotMoment::Sample, &[pending(1, b"------------POSIX shell script")]);
        builder
    };
    padded(true).no_finding("mixed-order");
    padded(false).finding("mixed-order");
}

#[test]
fn a_childs_output_before_the_parents_heading_is_mixed() {
    let run = |flushed: bool| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        let heading: &[u8] = if flushed { b"" } else { b"The sysname:\n" };
        builder.write(0.1, 1, 1, file, if flushed { b"The sysname:\n" } else { b"" });
        builder.snapshot(0.2, 1, SnapshotMoment::Fork, &[pending(1, heading)]);
        builder.fork(0.2, 2);
        builder.write(0.3, 2, 1, file, b"Linux\n");
        builder.write(0.9, 1, 1, file, b"The sysname:\nThe machine:\n");
        builder
    };
    assert_eq!(run(false).severity("mixed-order"), High);
    run(true).no_finding("mixed-order");
}

#[test]
fn bytes_put_after_a_fork_are_not_the_childs() {
    let run = |moment: SnapshotMoment| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.fork(0.2, 2);
        builder.snapshot(0.201, 1, moment, &[pending(1, b"parent: done\n")]);
        builder.write(0.3, 2, 1, file, b"child: done\n");
        builder.write(0.9, 1, 1, file, b"parent: done\n");
        builder
    };
    run(SnapshotMoment::Sample).no_finding("mixed-order");
    // It shows the parent before the child runs, and can be dated later.
    assert_eq!(run(SnapshotMoment::Fork).severity("mixed-order"), High);
}

#[test]
fn a_parent_in_vfork_had_its_bytes_before() {
    let run = |blocked_in: &str| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.fork(0.2, 2);
        // The child shares the memory until it executes a program.
        builder.snapshot_in(0.202, 1, SnapshotMoment::Sample, blocked_in, &[pending(1, b"a\n")]);
        builder.write(0.3, 2, 1, file, b"b\n");
        builder.write(0.9, 1, 1, file, b"a\nc\n");
        builder
    };
    assert_eq!(run(IN_VFORK).severity("mixed-order"), High);
    run("wait4").no_finding("mixed-order");
}

/// Returns the recording of two writers of one log, each with its own open file.
fn two_writers(flags: i32, size: u64, ends: u64) -> RecordingBuilder {
    let mut builder = recording(1.0);
    for pid in [2, 3] {
        builder.fork(0.1, pid);
        let file = builder.file("/d/events.log", File);
        (builder.open_file(file).flags, builder.open_file(file).ino) = (flags, 77);
        builder.call(0.1, pid, Op::Openat, -1, file, b"").result = 3;
        timed(builder.stream(pid, 3, file, Out, 28, size), 0.2 + 0.01 * f64::from(pid), 0.8).newline_ends =
            ends;
        builder.write(0.2, pid, 3, file, &[b"process one\n".repeat(400).as_slice(), b"cut"].concat());
    }
    builder
}

const APPEND: i32 = 0o2101;

#[test]
fn full_buffers_of_two_writers_tear_their_lines() {
    let finding = two_writers(APPEND, 4096, 1).finding("torn-records");
    assert_eq!(
        (finding.severity, finding.evidence["cut_calls"], finding.evidence["writers"]),
        (High, 27.0, 2.0)
    );
    // The fix is for the whole command: one writer alone would write to another file and not change the other writer.
    // --line would change standard output only.
    let command = "weir run --file '*events.log=line' -- ./prog 'a b'   or in code: ";
    assert!(finding.fix.starts_with(command), "{}", finding.fix);
    let mut on_stdout = two_writers(APPEND, 4096, 1);
    on_stdout.0.counts.iter_mut().for_each(|stream| stream.fd = 1);
    let command = on_stdout.finding("torn-records").command;
    assert_eq!(command.as_deref(), Some("weir run --line -- ./prog 'a b'"));
    let mut attached = two_writers(APPEND, 4096, 1);
    attached.0.command.clear();
    assert!(attached.finding("torn-records").fix.starts_with("whole records"));
    for exe in ["/usr/bin/mawk", "/usr/bin/seq"] {
        let mut block_writer = two_writers(APPEND, 4096, 1);
        block_writer.0.processes[2].images[0].exe = exe.into();
        assert!(block_writer.finding("torn-records").fix.starts_with("whole records"), "{exe}");
    }
}

#[test]
fn a_database_that_writes_blocks_at_offsets_tears_no_lines() {
    // Two processes of PostgreSQL write its log of changes, whose blocks can have a newline in their first bytes.
    let mut placed = two_writers(APPEND, 8192, 1);
    placed.0.events.iter_mut().for_each(|event| {
        if let EventKind::Call(call) = &mut event.kind
            && call.op.writes()
        {
            call.op = Op::Pwrite;
        }
    });
    placed.no_finding("torn-records");
    let mut binary = two_writers(APPEND, 8192, 0);
    for (pid, file) in [(2, 0), (3, 1)] {
        binary.write(0.3, pid, 3, file, b"\x10\xd1\x05\0\n\0\0\0");
    }
    binary.no_finding("torn-records");
}

#[test]
fn a_process_without_a_recorded_write_tears_nothing() {
    // man waits for the writing process and gets a share of the bytes of a sampling gap.
    let mut guessed = two_writers(APPEND, 4096, 1);
    guessed.0.events.retain(|event| event.pid != 3);
    assert_eq!(guessed.severity("torn-records"), High, "each call was counted");
    guessed.0.counts[1].exact = false;
    guessed.no_finding("torn-records");
}

#[test]
fn files_are_compared_by_inode_not_by_name() {
    let mut by_link = two_writers(APPEND, 4096, 1);
    by_link.open_file(1).path = "/d/link".into();
    assert_eq!(by_link.severity("torn-records"), High);
    let mut another = two_writers(APPEND, 4096, 1);
    another.open_file(1).ino = 78;
    another.no_finding("torn-records");
}

#[test]
fn whole_lines_and_writers_in_turn_are_no_finding() {
    two_writers(APPEND, 4096, 28).no_finding("torn-records");
    two_writers(APPEND, 40, 28).no_finding("torn-records");
    // Short pieces on purpose: a prompt and its answer.
    two_writers(APPEND, 40, 1).no_finding("torn-records");
    let mut later = two_writers(APPEND, 4096, 1);
    timed(&mut later.0.counts[1], 0.9, 0.95);
    later.no_finding("torn-records");
}

#[test]
fn two_open_files_without_append_overwrite_each_other() {
    assert_eq!(two_writers(0o101, 40, 28).severity("torn-records"), High);
    let mut placed = two_writers(0o101, 40, 28);
    placed.call(0.3, 2, Op::Pwrite, 3, 0, b"x");
    placed.call(0.3, 3, Op::Pwrite, 3, 1, b"x");
    placed.no_finding("torn-records");
    let mut at_end = two_writers(0o101, 40, 28);
    at_end.call(0.3, 2, Op::Pwritev2, 3, 0, b"x").args[3] = u64::MAX;
    assert_eq!(at_end.severity("torn-records"), High, "-1 means the offset of the open file");
    let mut later = two_writers(0o101, 40, 28);
    timed(&mut later.0.counts[0], 0.01, 0.05);
    later.no_finding("torn-records");
}

#[test]
fn one_process_with_two_open_files_overwrites_itself() {
    let run = |own: bool| {
        let mut builder = recording(1.0);
        let one = builder.file("/d/log", File);
        let other = if own { builder.file("/d/log", File) } else { one };
        for (fd, file) in [(1, one), (2, other)] {
            (builder.open_file(file).flags, builder.open_file(file).ino) = (0o101, 77);
            timed(builder.stream(1, fd, file, Out, 40, 28), 0.1, 0.9);
        }
        builder
    };
    let finding = run(true).finding("torn-records");
    assert!(finding.why.contains("has one file open twice"), "{}", finding.why);
    assert!(finding.fix.contains("2>&1"), "{}", finding.fix);
    run(false).no_finding("torn-records");
}

#[test]
fn a_forked_child_continues_with_the_inherited_buffer() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/in", File);
    timed(builder.stream(1, 0, file, In, 1, 4096), 0.1, 0.1);
    builder.snapshot(0.2, 1, SnapshotMoment::Fork, &[unread(0, b"3000\n")]);
    builder.fork(0.2, 2);
    timed(builder.stream(2, 0, file, In, 2, 4096), 0.3, 0.4);
    builder.no_finding("over-read");
    // Another program does not have the buffer.
    builder.exec(0.25, 2, "sort");
    builder.0.counts[1].image = 1;
    assert_eq!(builder.severity("over-read"), High);
}

#[test]
fn the_programs_that_wrote_are_named_not_those_that_were_executed_later() {
    let mut overtaken = heading_and_body(b"name value\n", b"name value\nend\n", 1);
    overtaken.exec(0.95, 1, "later");
    let why = overtaken.finding("mixed-order").why;
    assert!(why.contains("of prog (1)"), "{why}");
    for flags in [APPEND, 0o101] {
        let mut torn = two_writers(flags, 4096, 1);
        torn.exec(0.95, 2, "later");
        torn.exec(0.95, 3, "later");
        let why = torn.finding("torn-records").why;
        assert!(why.contains("prog (2)") && why.contains("prog (3)"), "{why}");
    }
}

#[test]
fn a_child_that_overtakes_is_named_as_it_was_when_it_wrote() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.snapshot(0.2, 1, SnapshotMoment::Sample, &[pending(1, b"name value\n")]);
    builder.fork(0.25, 2);
    builder.exec(0.26, 2, "helper");
    builder.write(0.3, 2, 1, file, b"alpha 1\n");
    builder.exec(0.5, 2, "later");
    builder.write(0.9, 1, 1, file, b"name value\nend\n");
    let why = builder.finding("mixed-order").why;
    assert!(why.contains("when helper (2) put"), "{why}");
}
