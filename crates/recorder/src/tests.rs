//! What the assembler makes of reports.

use weir_model::Direction;
use weir_model::trace::{Buffer, EventKind, Exit, IoTotals, Op, RuntimeId, SnapshotMoment, StreamCounts};
use weir_sys::proc::ResourceUsage;
use weir_trace_api::{RawCall, RawCounts, RawEvent, RawEventKind, RawFile};

use crate::Recorder;

/// There is no such process.
const NOBODY: u32 = 4_194_305;

const MS: u64 = 1_000_000;

/// At so many milliseconds.
fn raw(at: u64, kind: RawEventKind) -> RawEvent {
    RawEvent { ns: at * MS, pid: NOBODY, tid: NOBODY, kind }
}

fn opened(fd: i64, path: &str) -> RawEventKind {
    let call = RawCall::new(Op::Openat, [0, 0, libc::O_WRONLY as u64, 0, 0, 0], fd);
    RawEventKind::Call(RawCall { paths: vec![path.into()], ..call })
}

fn call_of(kind: RawEventKind) -> RawCall {
    let RawEventKind::Call(call) = kind else { panic!("{kind:?}") };
    call
}

fn counts(seeks: u64, untold_seek: Option<(u64, u64)>) -> RawEventKind {
    RawEventKind::Counts(Box::new(RawCounts {
        counts: StreamCounts {
            calls: 100,
            bytes: 4096,
            seeks,
            ..StreamCounts::new(NOBODY, 0, 3, 0, Direction::In)
        },
        first_ns: 20 * MS,
        last_ns: 30 * MS,
        unreported_seeks: seeks.saturating_sub(64),
        last_unreported_seek: untold_seek,
    }))
}

#[test]
fn moves_of_an_offset_come_with_the_counters_and_the_last_one_as_a_call() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "/d/table")));
    assembler.take(raw(40, counts(5000, Some((35 * MS, 160)))));
    let made = assembler.finish();
    assert_eq!((made.flows[0].seeks, made.flows[0].calls), (5000, 100));
    let last = made.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Call(call) if call.op == Op::Lseek => Some((event.at_s, call.file, call.result)),
        _ => None,
    });
    assert_eq!(last, Some((0.035, Some(made.flows[0].file), 160)));
}

#[test]
fn a_stream_that_was_never_written_has_its_file() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "/d/log")));
    let buffer = |fd| Buffer {
        walker: RuntimeId::GLIBC,
        address: 0x1000,
        fd,
        mode: None,
        buffer_bytes: 4096,
        pending_bytes: 5,
        pending: b"lost\n".to_vec(),
        unread_bytes: 0,
        unread: Vec::new(),
    };
    let (moment, waits_in) = (SnapshotMoment::Exit, String::new());
    let buffers = vec![buffer(3), buffer(-1)];
    assembler.take(raw(
        20,
        RawEventKind::Buffers { moment, buffers, blocked_in: waits_in, open_files: Vec::new() },
    ));
    let made = assembler.finish();
    let Some(EventKind::Buffers { files, .. }) = made.events.last().map(|event| &event.kind) else {
        panic!("{:?}", made.events);
    };
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].0, made.files[files[0].1 as usize].path.as_str()), (3, "/d/log"));
}

#[test]
fn what_was_closed_before_the_first_look_away_takes_no_share_of_what_went_unseen() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "/d/library")));
    assembler.take(raw(11, opened(4, "/d/data")));
    assembler.take(raw(31, counts(0, None)));
    let close = RawCall { op: Op::Close, args: [3, 0, 0, 0, 0, 0], result: 0, ..call_of(opened(3, "")) };
    assembler.take(raw(32, RawEventKind::Call(close)));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.fd, busy.counts.calls, busy.counts.bytes, busy.last_ns) = (4, 1000, 1000, 39 * MS);
    assembler.take(raw(40, RawEventKind::Counts(busy)));
    // Looks away from 50 on, which is said with the beginning of the burst, and the process ends meanwhile.
    assembler.take(RawEvent { ns: 5 * MS, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: 5 * MS } });
    let totals = IoTotals { read_calls: 1100, read_bytes: 5096, ..IoTotals::default() };
    assembler.take(raw(50, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { read_calls: 5100, read_bytes: 9096, ..IoTotals::default() };
    assembler.take(raw(
        90,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    let made = assembler.finish();
    let calls: Vec<_> = made.flows.iter().map(|flow| (flow.fd, flow.calls, flow.bytes)).collect();
    assert_eq!(calls, [(3, 100, 4096), (4, 5000, 5000)]);
}

#[test]
fn beside_a_part_that_went_nobody_knows_where_no_stream_of_that_way_is_exact() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "/d/library")));
    assembler.take(raw(11, opened(4, "/d/log")));
    assembler.take(raw(31, counts(0, None)));
    let close = RawCall { op: Op::Close, args: [3, 0, 0, 0, 0, 0], result: 0, ..call_of(opened(3, "")) };
    assembler.take(raw(32, RawEventKind::Call(close)));
    let RawEventKind::Counts(mut log) = counts(0, None) else { unreachable!() };
    (log.counts.fd, log.counts.direction) = (4, Direction::Out);
    assembler.take(raw(33, RawEventKind::Counts(log)));
    assembler.take(RawEvent { ns: 5 * MS, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: 5 * MS } });
    let totals = IoTotals { read_calls: 100, read_bytes: 4096, write_calls: 100, written_bytes: 4096 };
    assembler.take(raw(50, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { read_calls: 9000, read_bytes: 90_000, ..totals };
    assembler.take(raw(
        90,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    let made = assembler.finish();
    let flows: Vec<_> = made.flows.iter().map(|flow| (flow.fd, flow.calls, flow.exact)).collect();
    assert_eq!(flows, [(3, 100, false), (4, 100, true), (StreamCounts::UNKNOWN, 8900, false)]);
}

#[test]
fn a_busy_stream_goes_on_to_the_end_of_its_process_while_nobody_looks() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "/dev/pts/7")));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.calls, busy.counts.bytes, busy.last_ns) = (1000, 30_000, 40 * MS);
    busy.counts.direction = Direction::Out;
    assembler.take(raw(40, RawEventKind::Counts(busy)));
    let everybody = |at, until| RawEvent {
        ns: at * MS,
        pid: 0,
        tid: 0,
        kind: RawEventKind::Gap { until_ns: until * MS },
    };
    assembler.take(everybody(5, 5));
    let totals = IoTotals { write_calls: 1000, written_bytes: 30_000, ..IoTotals::default() };
    assembler.take(raw(41, RawEventKind::GapEdge { totals, ends: false }));
    let io = IoTotals { write_calls: 40_000, written_bytes: 1_200_000, ..IoTotals::default() };
    assembler.take(raw(
        190,
        RawEventKind::Exit { exit: Exit::Code(0), io: Some(io), usage: ResourceUsage::default() },
    ));
    assembler.take(everybody(41, 220));
    let made = assembler.finish();
    assert_eq!((made.flows[0].calls, made.flows[0].last_s), (40_000, 0.19));
}

#[test]
fn syncs_last_from_the_write_before_them_or_from_the_last_call_that_was_told() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(1, opened(3, "/gone/log")));
    let sync = |began_ns| {
        let call = RawCall::new(Op::Fsync, [3, 0, 0, 0, 0, 0], 0);
        RawEventKind::Call(RawCall { began_ns, ..call })
    };
    // 4 ms since the opening; 2 ms since a write, which was not told; 10 since the sync before.
    assembler.take(raw(5, sync(None)));
    assembler.take(raw(10, sync(Some(8 * MS))));
    assembler.take(raw(20, sync(Some(8 * MS))));
    let flow = assembler.finish().flows.remove(0);
    assert_eq!((flow.syncs, flow.timed_syncs, flow.last_s), (3, 3, 0.02));
    assert!((flow.sync_s - 0.016).abs() < 1e-9, "{}", flow.sync_s);
}

#[test]
fn a_socket_goes_on_while_nobody_looks_at_its_process_alone() {
    let mut assembler = Recorder::new(0, true);
    assembler.take(raw(10, opened(3, "socket")));
    let socket = RawFile { key: 1, mode: libc::S_IFSOCK, ..RawFile::default() };
    assembler.take(raw(10, RawEventKind::File { fd: 3, file: socket, name: String::new() }));
    let RawEventKind::Counts(mut busy) = counts(0, None) else { unreachable!() };
    (busy.counts.calls, busy.counts.bytes, busy.counts.direction) = (1000, 1000, Direction::Out);
    (busy.first_ns, busy.last_ns) = (20 * MS, 40 * MS);
    assembler.take(raw(40, RawEventKind::Counts(busy)));
    assembler.take(raw(40, RawEventKind::Gap { until_ns: 140 * MS }));
    assembler.take(raw(
        140,
        RawEventKind::Exit { exit: Exit::Code(0), io: None, usage: ResourceUsage::default() },
    ));
    let made = assembler.finish();
    assert_eq!((made.flows[0].calls, made.flows[0].estimated), (6000, true));
}
