//! No recording, however odd, makes the rules panic, and their sentences are well-formed.

use proptest::prelude::*;
use weir_model::StreamKind;
use weir_model::trace::{EventKind, Exit, Op, SnapshotMoment};

use crate::testing::*;

const KINDS: [StreamKind; 6] = [File, Pipe, Socket, Terminal, StreamKind::Device, StreamKind::Other];
const MOMENTS: [SnapshotMoment; 5] = [
    SnapshotMoment::Sample,
    SnapshotMoment::Fork,
    SnapshotMoment::Exec,
    SnapshotMoment::Exit,
    SnapshotMoment::Signal,
];

/// Numbers that a recording is made from. They are small, so that events hit the same processes and files.
type Seeds = Vec<(u8, u8, u64, u64)>;

fn seeds() -> impl Strategy<Value = Seeds> {
    let odd = prop_oneof![0u64..5, 100u64..10_000, Just(1 << 31), Just(1 << 40), Just(1 << 50)];
    prop::collection::vec((any::<u8>(), any::<u8>(), odd, 0u64..5_000), 0..60)
}

fn random_recording(seeds: &Seeds, elapsed_s: f64) -> RecordingBuilder {
    let mut builder = recording(elapsed_s);
    for pid in 2..6 {
        builder.process(pid, Some(pid % 3 + 1), "other").exit = Some(Exit::Signal(9));
    }
    for &(a, b, large, small) in seeds {
        let (pid, fd, file) = (u32::from(a % 7), i32::from(b % 5) - 1, u32::from(a % 9));
        let at_s = small as f64 / 1000.0;
        match b % 6 {
            0 => {
                let id = builder.file(&format!("/d/{}", a % 3), KINDS[usize::from(a % 6)]);
                builder.open_file(id).flags = large as i32;
                builder.open_file(id).size_bytes = Some(small);
                builder.open_file(id).direct_align = Some((large as u32, small as u32));
            }
            1 | 2 => add_random_stream(&mut builder, (pid, fd, file), large, small),
            3 => odd_call(&mut builder, at_s, (pid, fd, file), large, small),
            4 => {
                let head = vec![b'x'; (large % 300) as usize];
                let mut buffers = [pending(fd, &head), unread(fd, &head)];
                buffers[0].pending_bytes = large;
                builder.snapshot_in(at_s, pid, MOMENTS[usize::from(a % 5)], "poll", &buffers);
            }
            _ => builder.event(at_s, pid, odd_event(a)),
        }
    }
    builder
}

fn odd_event(a: u8) -> EventKind {
    match a % 3 {
        0 => EventKind::Fork { child: u32::from(a % 7) },
        1 => EventKind::Exec { image: u32::from(a) },
        _ => EventKind::Signal { number: i32::from(a) },
    }
}

fn add_random_stream(
    builder: &mut RecordingBuilder,
    (pid, fd, file): (u32, i32, u32),
    large: u64,
    small: u64,
) {
    let direction = if small.is_multiple_of(2) { In } else { Out };
    let stream = builder.stream(pid, fd, file, direction, 0, 1);
    (stream.calls, stream.bytes, stream.image) = (large, small, (small % 3) as u32);
    (stream.errors, stream.zeros, stream.short) = (small, large, small);
    (stream.jumps, stream.again_bytes, stream.unaligned) = (small, large, small);
    (stream.newline_ends, stream.syncs, stream.seeks) = (large, small, small);
    (stream.first_s, stream.last_s, stream.max_requested_bytes) = (small as f64, large as f64, large);
    stream.sizes.add(small, small);
}

fn odd_call(
    builder: &mut RecordingBuilder,
    at_s: f64,
    (pid, fd, file): (u32, i32, u32),
    large: u64,
    small: u64,
) {
    let op = Op::ALL[small as usize % Op::ALL.len()];
    let head = vec![b'x'; (small % 70) as usize];
    let call = builder.call(at_s, pid, op, fd, file, &head);
    (call.requested_bytes, call.result, call.position) = (large, small as i64 - 40, Some(large));
    call.args = [large; 6];
    call.paths = vec![format!("/d/{}", small % 3).into(), "other".into()];
    call.paths.truncate((small % 4) as usize);
}

proptest! {
    #[test]
    fn any_recording_can_be_judged(seeds in seeds(), elapsed_s in prop_oneof![Just(0.0), Just(1e-9), 0.1f64..100.0]) {
        let builder = random_recording(&seeds, elapsed_s);
        let found = diagnose(&builder.0);
        prop_assert!(found.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
        for finding in &found {
            prop_assert!(!finding.why.is_empty() && !finding.fix.is_empty(), "{:?}", finding);
            prop_assert!(finding.evidence.values().all(|value| value.is_finite()));
            prop_assert!(finding.gain.is_none_or(|gain| gain.elapsed_s >= 0.0));
        }
        prop_assert!(!verdict(&builder.0, &found).text.is_empty());
        drop(crate::diagnose(&builder.0, &TestPlanner).pipelines);
    }
}
