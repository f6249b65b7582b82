//! Tests of the buffering modes of the streams in a report.

use weir_model::trace::{
    Buffer, Event, EventKind, OpenFile, RuntimeId, SnapshotMoment, StreamCounts, StreamTable, trace_streams,
};
use weir_model::{Direction, Mode, StreamKind};

use super::super::fixture::pipeline;

/// A program reads the beginning of a file by stdio, and opens it again for reads of any size.
#[test]
fn a_second_opening_without_a_buffer_has_not_the_mode_of_the_first() {
    let (mut recording, ..) = pipeline();
    let file = recording.files[0].clone();
    let pid = recording.processes[0].pid;
    let first = recording.files.len() as u32;
    let opening =
        |id: u32| OpenFile { id, path: "/d/table.db".into(), kind: StreamKind::File, ..file.clone() };
    recording.files.extend([opening(first), opening(first + 1)]);
    let read = |file: u32, sizes: &[u64]| {
        let mut counts = StreamCounts::new(pid, 0, 30, file, Direction::In);
        for &size in sizes {
            (counts.calls, counts.bytes) = (counts.calls + 1, counts.bytes + size);
            counts.requested_sizes.add(size, 1);
            counts.sizes.add(size, 1);
            counts.max_requested_bytes = counts.max_requested_bytes.max(size);
        }
        counts
    };
    recording.events.push(full_buffer(pid, first));
    let mode = |second: &[u64]| {
        let mut recording = recording.clone();
        recording.counts.extend([read(first, &[4096]), read(first + 1, second)]);
        let table = StreamTable::of(&recording);
        let streams = trace_streams(&table);
        let mode = streams.iter().find(|stream| stream.counts.fd == 30).unwrap().mode.unwrap();
        (mode.mode, mode.walked)
    };
    assert_eq!(mode(&[100, 4096, 16, 4096]), (Mode::Mixed, false));
    assert_eq!(mode(&[4096, 4096]), (Mode::Full, true));
}

/// Returns a snapshot in which the stream of descriptor 30, open on `file`, is fully buffered with 4 KiB.
fn full_buffer(pid: u32, file: u32) -> Event {
    let buffer =
        Buffer { mode: Some(Mode::Full), buffer_bytes: 4096, ..Buffer::empty(RuntimeId::GLIBC, 0x1000, 30) };
    let snapshot = EventKind::Buffers {
        moment: SnapshotMoment::Sample,
        buffers: vec![buffer],
        waits_in: None,
        waits_in_name: String::new(),
        files: vec![(30, file)],
        read_until_s: None,
    };
    Event { at_s: 0.5, pid, tid: pid, kind: snapshot }
}

/// A program reads a file by stdio, and opens it again on the same descriptor for writes without a buffer; and the other way round.
#[test]
fn an_opening_in_the_other_direction_has_not_the_mode_of_the_first() {
    const O_RDONLY: i32 = 0;
    const O_WRONLY: i32 = 1;
    const O_RDWR: i32 = 2;
    let mode = |first_flags: i32, direction: Direction| {
        let (mut recording, ..) = pipeline();
        let pid = recording.processes[0].pid;
        let first = recording.files.len() as u32;
        let opening = |id: u32, flags: i32, file: &OpenFile| OpenFile {
            id,
            flags,
            path: "/d/settings".into(),
            kind: StreamKind::File,
            ..file.clone()
        };
        let file = recording.files[0].clone();
        let second_flags = if direction == Direction::Out { O_WRONLY } else { O_RDONLY };
        recording.files.extend([opening(first, first_flags, &file), opening(first + 1, second_flags, &file)]);
        recording.events.push(full_buffer(pid, first));
        let mut counts = StreamCounts::new(pid, 0, 30, first + 1, direction);
        for size in [7000, 5000, 6000] {
            (counts.calls, counts.bytes) = (counts.calls + 1, counts.bytes + size);
            counts.requested_sizes.add(size, 1);
            counts.sizes.add(size, 1);
            counts.max_requested_bytes = counts.max_requested_bytes.max(size);
        }
        recording.counts.push(counts);
        let table = StreamTable::of(&recording);
        let streams = trace_streams(&table);
        let mode = streams.iter().find(|stream| stream.counts.fd == 30).unwrap().mode.unwrap();
        (mode.mode, mode.walked)
    };
    assert_eq!(mode(O_RDONLY, Direction::Out), (Mode::Mixed, false));
    assert_eq!(mode(O_WRONLY, Direction::In), (Mode::Mixed, false));
    assert_eq!(mode(O_WRONLY, Direction::Out), (Mode::Full, true), "another opening for writes");
    assert_eq!(mode(O_RDWR, Direction::Out), (Mode::Full, true));
}
