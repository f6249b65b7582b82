//! Tests of the buffering modes of the streams in a report.

use weir_model::trace::{
    Buffer, Event, EventKind, OpenFile, RuntimeId, SnapshotMoment, StreamCounts, StreamTable, trace_streams,
};
use weir_model::{Direction, Mode, StreamKind};

use super::super::fixture::pipeline;

/// A program reads the begin of a file by stdio, and opens it again for reads of any size.
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
            counts.asked.add(size, 1);
            counts.sizes.add(size, 1);
            counts.asked_max = counts.asked_max.max(size);
        }
        counts
    };
    let buffer =
        Buffer { mode: Some(Mode::Full), buffer_bytes: 4096, ..Buffer::empty(RuntimeId::GLIBC, 0x1000, 30) };
    let snapshot = EventKind::Buffers {
        moment: SnapshotMoment::Sample,
        buffers: vec![buffer],
        waits_in: None,
        waits_in_name: String::new(),
        files: vec![(30, first)],
    };
    recording.events.push(Event { at_s: 0.5, pid, tid: pid, kind: snapshot });
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
