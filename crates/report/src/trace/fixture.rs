//! Made-up recordings for tests and for the example.

use std::collections::BTreeMap;

use weir_model::trace::{
    BackendKind, Buffer, Call, Event, EventKind, Exit, Hop, Image, IoTotals, Op, OpenFile, Overhead, PipeEnd,
    Pipeline, Prices, Process, Recording, RuntimeId, SnapshotMoment, StreamCounts,
};
use weir_model::{Direction, Finding, FindingId, Gain, Mode, Severity, StreamKind};

pub const VERDICT: &str = "4,999,998 of 5,000,000 bytes were written one at a time: 2.90 of 3.00 s.\n\
                           With gathering the run takes 0.06 s:   weir run --coalesce -- ./tr2u a w";

pub fn process(pid: u32, parent: Option<u32>, comm: &str, argv: &[&str]) -> Process {
    let image = Image {
        started_s: 0.0,
        exe: format!("/usr/bin/{comm}").into(),
        comm: comm.into(),
        argv: argv.iter().map(|word| (*word).into()).collect(),
        ..Image::default()
    };
    Process { pid, parent, images: vec![image], threads: 1, ..Process::default() }
}

pub fn file(id: u32, path: &str, kind: StreamKind) -> OpenFile {
    OpenFile {
        id,
        path: path.into(),
        kind,
        dev: 1,
        ino: u64::from(id),
        flags: 0,
        opened_by: None,
        block_bytes: 4096,
        size_bytes: None,
        pipe_bytes: None,
        direct_align: None,
        same_as: None,
    }
}

/// Returns counts of `calls` calls of `size` bytes each.
pub fn counts(pid: u32, fd: i32, file: u32, direction: Direction, calls: u64, size: u64) -> StreamCounts {
    let mut counts = StreamCounts::new(pid, 0, fd, file, direction);
    (counts.calls, counts.bytes, counts.max_requested_bytes, counts.last_s) =
        (calls, calls * size, size, 2.5);
    counts.sizes.add(size, calls);
    counts.requested_sizes.add(size, calls);
    counts
}

fn recording(command: &[&str]) -> Recording {
    Recording {
        environment: Default::default(),
        memory_devices: Vec::new(),
        command: command.iter().map(|word| (*word).into()).collect(),
        root: 4711,
        backend: BackendKind::Ebpf,
        backend_reason: String::new(),
        exact: true,
        elapsed_s: 3.0,
        exit: Some(Exit::Code(0)),
        overhead: Overhead { startup_s: 0.041, observed_s: 3.0, ..Overhead::default() },
        blind: vec![],
        incomplete: false,
        unreadable: vec![],
        prices: Prices::default(),
        processes: vec![],
        files: vec![],
        counts: vec![],
        events: vec![],
        write_sites: vec![],
        sampled_calls: vec![],
        other_calls: vec![],
    }
}

fn event(at_s: f64, pid: u32, what: EventKind) -> Event {
    Event { at_s, pid, tid: pid, kind: what }
}

/// Returns a run that writes byte by byte, and its finding.
pub fn bytewise() -> (Recording, Vec<Finding>) {
    let mut recording = recording(&["./tr2u", "a", "w"]);
    recording.exact = false;
    recording.overhead = Overhead {
        startup_s: 0.041,
        observed_s: 1.2,
        gap_s: 1.8,
        seen_calls: 4_100_000,
        lost_events: 0,
        uncounted_calls: 0,
        stopped_s: 0.0,
        cost_s: 0.2,
    };
    let mut process = process(4711, None, "tr2u", &["./tr2u", "a", "w"]);
    process.ended_s = Some(3.0);
    process.exit = Some(Exit::Code(0));
    process.io = Some(IoTotals {
        read_calls: 5_000_001,
        write_calls: 5_000_000,
        read_bytes: 5_000_000,
        written_bytes: 5_000_000,
    });
    recording.processes = vec![process];
    recording.files = vec![
        file(0, "/home/user/data/in", StreamKind::File),
        file(1, "/home/user/data/out", StreamKind::File),
        file(2, "/usr/lib/x86_64-linux-gnu/libc.so.6", StreamKind::File),
    ];
    let mut input = counts(4711, 0, 0, Direction::In, 5_000_001, 1);
    (input.bytes, input.zeros) = (5_000_000, 1);
    let mut output = counts(4711, 1, 1, Direction::Out, 4_999_998, 1);
    (output.calls, output.bytes) = (5_000_000, 5_008_190);
    output.sizes.add(4096, 2);
    output.exact = false;
    recording.counts = vec![input, output, counts(4711, 3, 2, Direction::In, 1, 832)];
    recording.events = vec![
        event(0.01, 4711, EventKind::Call(one_byte_write())),
        event(1.2, 4711, EventKind::Gap { until_s: 3.0 }),
        event(3.0, 4711, EventKind::Exit(Exit::Code(0))),
    ];
    (recording, vec![tiny_writes()])
}

fn one_byte_write() -> Call {
    Call {
        requested_bytes: 1,
        position: Some(0),
        head: b"w".to_vec(),
        tail: Some(b'w'),
        ..Call::new(Op::Write, 1, Some(1), [1, 0, 1, 0, 0, 0], 1)
    }
}

fn tiny_writes() -> Finding {
    Finding {
        id: FindingId::new("tiny-writes"),
        severity: Severity::High,
        pid: 4711,
        fd: 1,
        path: "/home/user/data/out".into(),
        evidence: BTreeMap::from([("calls".into(), 5e6), ("mean_bytes".into(), 1.0), ("call_ns".into(), 580.0)]),
        why: "Each write of 1 byte enters the kernel: 5,000,000 times.".into(),
        fix: "weir run --coalesce -- ./tr2u a w\nchar buffer[65536];\nif (used == sizeof buffer)\n    write(1, buffer, used);"
            .into(),
        command: Some("weir run --coalesce -- ./tr2u a w".into()),
        gain: Some(Gain { elapsed_s: 2.84, calls: 4_999_923 }),
        command_gain: Some(Gain { elapsed_s: 2.72, calls: 4_999_910 }),
        wrote: None,
    }
}

/// Returns a pipeline with pending bytes in Python's buffer, more streams than the report shows, and a file name with
/// an escape sequence.
pub fn pipeline() -> (Recording, Vec<Finding>, Vec<Pipeline>) {
    let mut recording = recording(&["sh", "-c", "python3 worker.py | tee log"]);
    recording.backend = BackendKind::Ptrace;
    recording.backend_reason = "ebpf needs root or CAP_BPF and CAP_PERFMON".into();
    recording.exit = Some(Exit::Signal(9));
    recording.overhead.lost_events = 3;
    recording.blind = vec!["su (4713) is a set-user-ID program: it ran without its privilege.".into()];
    recording.processes = vec![
        process(4711, None, "sh", &["sh"]),
        process(4712, Some(4711), "python3", &["python3", "worker.py"]),
        process(4713, Some(4711), "tee", &["tee", "log"]),
    ];
    recording.files =
        vec![file(0, "pipe:[88123]", StreamKind::Pipe), file(1, "/tmp/\u{1b}[31mlog", StreamKind::File)];
    recording.counts = vec![
        counts(4712, 1, 0, Direction::Out, 3, 8192),
        counts(4713, 0, 0, Direction::In, 3, 8192),
        counts(4713, 3, 1, Direction::Out, 3, 8192),
    ];
    for number in 0..20 {
        let id = recording.files.len() as u32;
        recording.files.push(file(id, &format!("/usr/lib/python3.11/module{number}.py"), StreamKind::File));
        recording.counts.push(counts(4712, 4, id, Direction::In, 2, 1000));
    }
    recording.counts[3].errors = 1;
    recording.events = pipeline_events();
    (recording, pipeline_findings(), vec![Pipeline { hops: vec![pipeline_hop()], waits_at: Some(0) }])
}

fn pipeline_events() -> Vec<Event> {
    let buffer = Buffer {
        mode: Some(Mode::Full),
        buffer_bytes: 8192,
        pending_bytes: 41,
        pending: b"ready: listening on port 8080\nconnected\n".to_vec(),
        unread: vec![],
        ..Buffer::empty(RuntimeId::CPYTHON, 0x7f00_1000, 1)
    };
    let snapshot = EventKind::Buffers {
        moment: SnapshotMoment::Sample,
        buffers: vec![buffer],
        waits_in: None,
        waits_in_name: "poll".into(),
        files: Vec::new(),
        read_until_s: None,
    };
    vec![
        event(0.1, 4711, EventKind::Fork { child: 4712 }),
        event(0.2, 4712, EventKind::Exec { image: 0 }),
        event(1.5, 4712, snapshot),
        event(2.9, 4712, EventKind::Signal { number: 9 }),
        event(3.0, 4712, EventKind::Exit(Exit::Signal(9))),
    ]
}

fn pipeline_findings() -> Vec<Finding> {
    let finding = |id, severity, fd, why: &str, fix: &str| Finding {
        id,
        severity,
        pid: 4712,
        fd,
        path: "pipe:[88123]".into(),
        evidence: BTreeMap::from([("pending_bytes".into(), 41.0), ("since_s".into(), 1.4)]),
        why: why.into(),
        fix: fix.into(),
        command: None,
        gain: None,
        command_gain: None,
        wrote: None,
    };
    vec![
        finding(
            FindingId::new("small-pipe"),
            Severity::Info,
            1,
            "The pipe was full twice.",
            "fcntl(1, F_SETPIPE_SZ, 1048576);",
        ),
        finding(
            FindingId::new("stuck-output"),
            Severity::Warn,
            1,
            "41 bytes, \"ready: listening on port 8080\\nconnected\\n\", wait while python3 is in poll(2): its standard output \
             is a pipe, so Python fills 8 KiB before it writes.",
            "weir run --max-delay 100ms -- python3 worker.py\nprint(line, flush=True)",
        ),
        finding(
            FindingId::new("lost-at-kill"),
            Severity::High,
            1,
            "SIGKILL ended python3 with 41 bytes in its buffer.",
            "sys.stdout.flush()",
        ),
    ]
}

fn pipeline_hop() -> Hop {
    let end = |pid, comm: &str, fd, buffer_bytes, waiting_bytes| PipeEnd {
        pid,
        comm: comm.into(),
        fd,
        calls: 3,
        bytes: 24576,
        mean_bytes: 8192.0,
        mode: Some(Mode::Full),
        buffer_bytes,
        waiting_bytes,
    };
    Hop {
        pipe: "pipe:[88123]".into(),
        pipe_bytes: Some(65536),
        writer: end(4712, "python3", 1, Some(8192), 41),
        reader: end(4713, "tee", 0, None, 0),
        holds_lines: true,
    }
}

/// Returns a run without findings.
pub fn clean() -> Recording {
    let mut recording = recording(&["cp", "a", "b"]);
    recording.processes = vec![process(4711, None, "cp", &["cp", "a", "b"])];
    recording.files = vec![file(0, "/tmp/a", StreamKind::File), file(1, "/tmp/b", StreamKind::File)];
    recording.counts =
        vec![counts(4711, 3, 0, Direction::In, 80, 131_072), counts(4711, 4, 1, Direction::Out, 80, 131_072)];
    recording
}
