//! Unit tests of the recorder as a whole: raw events in, a recording out.

use weir_model::trace::{Buffer, EventKind, Exit, IoTotals, Op, RuntimeId, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Untrusted};
use weir_sys::proc::ResourceUsage;
use weir_trace_api::{RawCall, RawCounts, RawEvent, RawEventKind, RawFile};

use crate::Recorder;

/// Above the kernel's largest PID (PID_MAX_LIMIT).
const NO_PID: u32 = 4_194_305;

const MS: u64 = 1_000_000;

/// Returns an event at this time in milliseconds.
fn raw(at: u64, kind: RawEventKind) -> RawEvent {
    RawEvent { ns: at * MS, pid: NO_PID, tid: NO_PID, kind }
}

fn opened(fd: i64, path: &str) -> RawEventKind {
    let call = RawCall::new(Op::Openat, [0, 0, libc::O_WRONLY as u64, 0, 0, 0], fd);
    RawEventKind::Call(RawCall { paths: vec![path.into()], ..call })
}

fn call_of(kind: RawEventKind) -> RawCall {
    let RawEventKind::Call(call) = kind else { panic!("{kind:?}") };
    call
}

fn counts(seeks: u64, unreported_seek: Option<(u64, u64)>) -> RawEventKind {
    RawEventKind::Counts(Box::new(RawCounts {
        counts: StreamCounts {
            calls: 100,
            bytes: 4096,
            seeks,
            ..StreamCounts::new(NO_PID, 0, 3, 0, Direction::In)
        },
        first_ns: 20 * MS,
        last_ns: 30 * MS,
        unreported_seeks: seeks.saturating_sub(64),
        last_unreported_seek: unreported_seek,
    }))
}

#[test]
fn seeks_come_with_the_counters_and_the_last_one_as_a_call() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/table")));
    recorder.record(raw(40, counts(5000, Some((35 * MS, 160)))));
    let output = recorder.finish();
    assert_eq!((output.streams[0].seeks, output.streams[0].calls), (5000, 100));
    let last = output.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Call(call) if call.op == Op::Lseek => Some((event.at_s, call.file, call.result)),
        _ => None,
    });
    assert_eq!(last, Some((0.035, Some(output.streams[0].file), 160)));
}

#[test]
fn results_that_no_kernel_gives_do_not_overflow_the_sums() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/table")));
    for at in 20..40 {
        // A tracer of the process has set the result and the offset.
        let forged = RawCall::new(Op::Pread, [3, 0, u64::MAX, u64::MAX - 1, 0, 0], i64::MAX);
        recorder.record(raw(at, RawEventKind::Call(forged)));
        let failed = RawCall::new(Op::Write, [3, 0, 1, 0, 0, 0], i64::MIN);
        recorder.record(raw(at, RawEventKind::Call(failed)));
        let RawEventKind::Counts(mut many) = counts(0, None) else { unreachable!() };
        (many.counts.bytes, many.counts.max_requested_bytes) = (u64::MAX - at, u64::MAX);
        recorder.record(raw(at, RawEventKind::Counts(many)));
    }
    let output = recorder.finish();
    let errors = output
        .events
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::Call(call) if call.result == -4095));
    assert!(errors.count() > 0);
    let bytes: u64 = output.streams.iter().map(|stream| stream.bytes).sum();
    assert!((40 << 30..64 << 56).contains(&bytes), "{bytes}");
}

fn buffer(fd: i32) -> Buffer {
    Buffer {
        buffer_bytes: 4096,
        pending_bytes: 5,
        pending: b"lost\n".to_vec(),
        ..Buffer::empty(RuntimeId::GLIBC, 0x1000, fd)
    }
}

fn snapshot(moment: SnapshotMoment, buffers: Vec<Buffer>) -> RawEventKind {
    RawEventKind::Buffers {
        moment,
        buffers,
        blocked_in: String::new(),
        open_files: Vec::new(),
        read_until_ns: None,
    }
}

#[test]
fn a_stream_that_was_never_written_has_its_file() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/log")));
    recorder.record(raw(20, snapshot(SnapshotMoment::Exit, vec![buffer(3), buffer(-1)])));
    let output = recorder.finish();
    let Some(EventKind::Buffers { files, .. }) = output.events.last().map(|event| &event.kind) else {
        panic!("{:?}", output.events);
    };
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].0, output.files[files[0].1 as usize].path.exact()), (3, "/d/log"));
}

/// On a busy machine the threads of a killed process end one after the other, and the watch of the buffers reads its memory meanwhile.
/// The bytes that the last write has written were called lost.
#[test]
fn a_process_that_has_ended_gets_no_further_samples() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, snapshot(SnapshotMoment::Sample, vec![buffer(1)])));
    recorder.record(raw(20, snapshot(SnapshotMoment::Signal, Vec::new())));
    recorder.record(raw(21, snapshot(SnapshotMoment::Sample, vec![buffer(1)])));
    let output = recorder.finish();
    let moments = output.events.iter().filter_map(|event| match &event.kind {
        EventKind::Buffers { moment, .. } => Some(*moment),
        _ => None,
    });
    assert_eq!(moments.collect::<Vec<_>>(), [SnapshotMoment::Sample, SnapshotMoment::Signal]);
}

/// A snapshot of a process on a busy machine can be taken before the events of its calls are read.
#[test]
fn a_snapshot_has_the_file_that_was_open_then() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(5, opened(3, "/d/older")));
    recorder.record(raw(20, snapshot(SnapshotMoment::Sample, vec![buffer(3)])));
    recorder.record(raw(10, opened(4, "/d/other")));
    recorder.record(raw(12, opened(3, "/d/link")));
    recorder.record(raw(30, opened(3, "/d/later")));
    let output = recorder.finish();
    let files = output.events.iter().find_map(|event| match &event.kind {
        EventKind::Buffers { files, .. } => Some(files.clone()),
        _ => None,
    });
    let files: Vec<_> = files.expect("a snapshot").into_iter().collect();
    let paths = files.iter().map(|(fd, file)| (*fd, output.files[*file as usize].path.exact()));
    assert_eq!(paths.collect::<Vec<_>>(), [(3, "/d/link")]);
}

#[test]
fn a_file_closed_before_the_first_gap_gets_no_share_of_it() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/library")));
    recorder.record(raw(11, opened(4, "/d/data")));
    recorder.record(raw(31, counts(0, None)));
    let close = RawCall { op: Op::Close, args: [3, 0, 0, 0, 0, 0], result: 0, ..call_of(opened(3, "")) };
    recorder.record(raw(32, RawEventKind::Call(close)));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.fd, busy.counts.calls, busy.counts.bytes, busy.last_ns) = (4, 1000, 1000, 39 * MS);
    recorder.record(raw(40, RawEventKind::Counts(busy)));
    // A gap begins at 50 ms. It is reported with the start of the window, and the process exits in the gap.
    recorder.record(RawEvent { ns: 5 * MS, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: 5 * MS } });
    let totals = IoTotals { read_calls: 1100, read_bytes: 5096, ..IoTotals::default() };
    recorder.record(raw(50, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { read_calls: 5100, read_bytes: 9096, ..IoTotals::default() };
    recorder.record(raw(
        90,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    let output = recorder.finish();
    let calls: Vec<_> = output.streams.iter().map(|stream| (stream.fd, stream.calls, stream.bytes)).collect();
    assert_eq!(calls, [(3, 100, 4096), (4, 5000, 5000)]);
}

#[test]
fn unknown_bytes_make_all_streams_of_their_direction_inexact() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/library")));
    recorder.record(raw(11, opened(4, "/d/log")));
    recorder.record(raw(31, counts(0, None)));
    let close = RawCall { op: Op::Close, args: [3, 0, 0, 0, 0, 0], result: 0, ..call_of(opened(3, "")) };
    recorder.record(raw(32, RawEventKind::Call(close)));
    let RawEventKind::Counts(mut log) = counts(0, None) else { unreachable!() };
    (log.counts.fd, log.counts.direction) = (4, Direction::Out);
    recorder.record(raw(33, RawEventKind::Counts(log)));
    recorder.record(RawEvent { ns: 5 * MS, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: 5 * MS } });
    let totals = IoTotals { read_calls: 100, read_bytes: 4096, write_calls: 100, written_bytes: 4096 };
    recorder.record(raw(50, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { read_calls: 9000, read_bytes: 90_000, ..totals };
    recorder.record(raw(
        90,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    let output = recorder.finish();
    let streams: Vec<_> =
        output.streams.iter().map(|stream| (stream.fd, stream.calls, stream.exact)).collect();
    assert_eq!(streams, [(3, 100, false), (4, 100, true), (StreamCounts::UNKNOWN, 8900, false)]);
    let certainty: Vec<_> = output.streams.iter().map(|stream| (stream.estimated, stream.at_least)).collect();
    assert_eq!(certainty, [(true, true), (false, false), (true, false)], "8,900 calls may be of stream 3");
}

#[test]
fn a_busy_stream_continues_in_a_gap_until_its_process_exits() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/dev/pts/7")));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.calls, busy.counts.bytes, busy.last_ns) = (1000, 30_000, 40 * MS);
    busy.counts.direction = Direction::Out;
    recorder.record(raw(40, RawEventKind::Counts(busy)));
    let gap_of_all = |at, until| RawEvent {
        ns: at * MS,
        pid: 0,
        tid: 0,
        kind: RawEventKind::Gap { until_ns: until * MS },
    };
    recorder.record(gap_of_all(5, 5));
    let totals = IoTotals { write_calls: 1000, written_bytes: 30_000, ..IoTotals::default() };
    recorder.record(raw(41, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { write_calls: 40_000, written_bytes: 1_200_000, ..IoTotals::default() };
    recorder.record(raw(
        190,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    recorder.record(gap_of_all(41, 220));
    let output = recorder.finish();
    assert_eq!((output.streams[0].calls, output.streams[0].last_s), (40_000, 0.19));
}

#[test]
fn a_sync_lasts_from_the_previous_write_or_reported_call() {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(1, opened(3, "/gone/log")));
    let sync = |began_ns| {
        let call = RawCall::new(Op::Fsync, [3, 0, 0, 0, 0, 0], 0);
        RawEventKind::Call(RawCall { began_ns, ..call })
    };
    // 4 ms after the open; 2 ms after a write that was not reported; 10 ms after the previous fsync.
    recorder.record(raw(5, sync(None)));
    recorder.record(raw(10, sync(Some(8 * MS))));
    recorder.record(raw(20, sync(Some(8 * MS))));
    let stream = recorder.finish().streams.remove(0);
    assert_eq!((stream.syncs, stream.timed_syncs, stream.last_s), (3, 3, 0.02));
    assert!((stream.sync_s - 0.016).abs() < 1e-9, "{}", stream.sync_s);
}

/// The kernel programs note in a gap when a sync first blocks, but not that it has returned. So the first sync after the gap seemed to
/// last since then, or since the last call before the gap.
#[test]
fn a_sync_after_a_gap_does_not_last_since_the_gap() {
    let sync = |recorder: &mut Recorder, at, began_ns| {
        let file = RawFile { key: 1, mode: libc::S_IFREG, ..RawFile::default() };
        recorder.record(raw(at, RawEventKind::File { fd: 3, file, name: Untrusted::default() }));
        let call = RawCall::new(Op::Fdatasync, [3, 0, 0, 0, 0, 0], 0);
        recorder.record(raw(at, RawEventKind::Call(RawCall { began_ns, ..call })));
    };
    let gap = |recorder: &mut Recorder, from, until| {
        recorder.record(RawEvent { pid: 0, ..raw(from, RawEventKind::Gap { until_ns: until * MS }) });
    };
    let mut owned = Recorder::new(0, true);
    let recorder = &mut owned;
    recorder.record(raw(1, opened(3, "/gone/log")));
    sync(recorder, 5, Some(3 * MS));
    gap(recorder, 0, 0);
    gap(recorder, 10, 400);
    sync(recorder, 403, Some(12 * MS));
    sync(recorder, 412, Some(410 * MS));
    gap(recorder, 400, 400);
    gap(recorder, 420, 800);
    sync(recorder, 803, None);
    let streams = owned.finish().streams;
    let sum = |of: fn(&StreamCounts) -> u64| streams.iter().map(of).sum::<u64>();
    assert_eq!((sum(|stream| stream.syncs), sum(|stream| stream.timed_syncs)), (4, 2));
    let sync_s: f64 = streams.iter().map(|stream| stream.sync_s).sum();
    assert!((sync_s - 0.004).abs() < 1e-9, "{sync_s}");
}

/// Returns the streams of a process that makes 1,000 calls on a socket in 20 ms, before a gap of 100 ms and its exit.
fn socket_before_a_gap(io: Option<IoTotals>) -> Vec<StreamCounts> {
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "socket")));
    let socket = RawFile { key: 1, mode: libc::S_IFSOCK, ..RawFile::default() };
    recorder.record(raw(10, RawEventKind::File { fd: 3, file: socket, name: Untrusted::default() }));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.calls, busy.counts.bytes, busy.counts.direction) = (1000, 1000, Direction::Out);
    (busy.first_ns, busy.last_ns) = (20 * MS, 40 * MS);
    recorder.record(raw(40, RawEventKind::Counts(busy)));
    recorder.record(raw(40, RawEventKind::Gap { until_ns: 140 * MS }));
    let usage = ResourceUsage::default();
    recorder.record(raw(140, RawEventKind::Exit { exit: Exit::Code(0), io, usage }));
    recorder.finish().streams
}

#[test]
fn a_socket_continues_in_a_gap_of_its_process() {
    let streams = socket_before_a_gap(None);
    assert_eq!((streams[0].calls, streams[0].estimated), (6000, true));
}

/// A program that uses write(2) on a socket: the kernel's totals contain these calls (those of send(2) they do not).
#[test]
fn calls_on_a_socket_that_the_kernel_counts_are_not_counted_twice() {
    for (total, expected) in [(4000, vec![4000]), (6000, vec![6000]), (9000, vec![6000, 3000])] {
        let io = IoTotals { write_calls: total, written_bytes: total, ..IoTotals::default() };
        let streams = socket_before_a_gap(Some(io));
        let calls: Vec<u64> = streams.iter().map(|stream| stream.calls).collect();
        assert_eq!(calls, expected);
        assert_eq!(streams.iter().map(|stream| stream.bytes).sum::<u64>(), total);
        assert!(streams.iter().all(|stream| stream.estimated && !stream.exact));
        assert!(streams.iter().all(|stream| !stream.at_least), "a share of a gap can be too large");
    }
}

#[test]
fn a_snapshot_beyond_the_limit_of_events_is_counted() {
    let mut recorder = Recorder::new(0, true);
    let snapshot = || RawEventKind::Buffers {
        moment: SnapshotMoment::Exit,
        buffers: Vec::new(),
        blocked_in: String::new(),
        open_files: Vec::new(),
        read_until_ns: None,
    };
    recorder.record(raw(1, RawEventKind::Signal { number: 10 }));
    let kept = crate::MAX_EVENTS - recorder.events.len();
    (0..kept).for_each(|_| recorder.record(raw(1, RawEventKind::Signal { number: 10 })));
    recorder.record(raw(2, snapshot()));
    recorder.record(raw(2, RawEventKind::Signal { number: 10 }));
    let output = recorder.finish();
    assert_eq!((output.events.len(), output.dropped_events), (crate::MAX_EVENTS, 2));
}

/// The kernel reuses the address of a struct file, also for the same inode.
#[test]
fn a_file_that_is_opened_again_after_an_exit_in_a_gap_is_another_open_file() {
    let mut recorder = Recorder::new(0, true);
    let of = |pid: u32, at: u64, kind| RawEvent { ns: at * MS, pid, tid: pid, kind };
    let file = || RawFile {
        key: 0xffff_8881,
        dev: 1,
        ino: 7,
        mode: libc::S_IFREG | 0o644,
        flags: 0,
        size_bytes: 30_000_000,
        block_bytes: 4096,
        pipe_bytes: None,
    };
    let reported = || RawEventKind::File { fd: 3, file: file(), name: "big".into() };
    let exit = || RawEventKind::Exit { exit: Exit::Code(0), io: None, usage: ResourceUsage::default() };
    recorder.record(of(NO_PID, 5, RawEventKind::Fork { child: NO_PID + 1, shares_files: false }));
    recorder.record(of(NO_PID + 1, 10, opened(3, "/d/big")));
    recorder.record(of(NO_PID + 1, 11, reported()));
    // A child that inherits the descriptor has the same open file, also after its parent.
    recorder.record(of(NO_PID + 1, 12, RawEventKind::Fork { child: NO_PID + 2, shares_files: false }));
    recorder.record(of(NO_PID + 1, 13, exit()));
    recorder.record(of(NO_PID + 2, 14, reported()));
    let inherited = recorder.file_of(NO_PID + 2, 3);
    assert_eq!(recorder.file_of(NO_PID + 2, 3), 0);
    recorder.record(of(NO_PID + 2, 15, exit()));
    recorder.record(of(NO_PID, 20, RawEventKind::Fork { child: NO_PID + 3, shares_files: false }));
    recorder.record(of(NO_PID + 3, 21, reported()));
    assert_ne!(recorder.file_of(NO_PID + 3, 3), inherited);
}

#[test]
fn a_blocked_call_has_a_stream_if_no_other_call_on_it_ended() {
    let blocked = |fd: i32| {
        let mut recorder = Recorder::new(0, true);
        recorder.record(raw(10, opened(3, "/d/table")));
        recorder.record(raw(40, counts(0, None)));
        recorder.add_blocked_call(NO_PID, fd, Direction::In, 2.5);
        let streams = recorder.finish().streams;
        let stream = streams.iter().find(|stream| stream.is_blocked_throughout());
        stream.map(|stream| (stream.fd, stream.calls, stream.wait_s))
    };
    assert_eq!((blocked(4), blocked(3)), (Some((4, 0, Some(2.5))), None));
}

/// At the end of a process its counters have the time for which a call blocked in a gap, and its descriptors are closed.
#[test]
fn the_wait_in_a_gap_is_no_call_that_blocked_for_all_of_the_time() {
    let wait = |fd: i32| {
        let RawEventKind::Counts(mut stale) = counts(0, None) else { unreachable!() };
        stale.counts =
            StreamCounts { wait_s: Some(0.005), ..StreamCounts::new(NO_PID, 0, fd, 0, Direction::In) };
        raw(60, RawEventKind::Counts(stale))
    };
    let mut recorder = Recorder::new(0, true);
    recorder.record(raw(10, opened(3, "/d/table")));
    recorder.record(raw(11, opened(5, "/d/other")));
    recorder.record(raw(40, counts(0, None)));
    recorder.record(raw(45, RawEventKind::Gap { until_ns: 50 * MS }));
    // Descriptor 4 has no stream; the open file of 3 has, and 5 has a file that was not read.
    [4, 3].into_iter().for_each(|fd| recorder.record(wait(fd)));
    recorder.record(raw(61, opened(5, "/d/other")));
    recorder.record(wait(5));
    let streams = recorder.finish().streams;
    let found: Vec<_> = streams.iter().map(|stream| (stream.fd, stream.calls, stream.wait_s)).collect();
    assert_eq!(found, [(3, 100, Some(0.005))]);
}
