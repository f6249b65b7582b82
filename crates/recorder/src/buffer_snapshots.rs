//! Joins two buffer snapshots of one moment: the eBPF backend reads the buffers that it can from the kernel,
//! and the walkers read the others from outside. Both become one event of the recording.

use weir_model::trace::{Buffer, Event, EventKind, SnapshotMoment};

/// Longest distance of two snapshots of one moment, in seconds: the walkers run within milliseconds, or later
/// under load.
const JOIN_WITHIN_S: f64 = 0.25;
/// Number of latest events among which the first snapshot is searched, so that a join costs constant time.
const SEARCHED_EVENTS: usize = 256;
/// Number of latest events among which snapshots are corrected after an older call.
const LATE_EVENTS: usize = 4096;

/// Adds buffers to an earlier snapshot of the same moment of the same process. Returns false if there is none.
pub(super) fn join_snapshot(
    events: &mut [Event],
    pid: u32,
    moment: SnapshotMoment,
    at_s: f64,
    new_buffers: &[Buffer],
    snapshot_files: &[(i32, u32)],
) -> bool {
    if matches!(moment, SnapshotMoment::Sample | SnapshotMoment::Call) {
        return false;
    }
    let recent = events.len().saturating_sub(SEARCHED_EVENTS);
    let of_process = events[recent..].iter_mut().rev().filter(|event| event.pid == pid);
    // A snapshot that precedes a call belongs to an earlier fork.
    for event in of_process.take_while(|event| !matches!(event.kind, EventKind::Call(_))) {
        let EventKind::Buffers { moment: earlier, buffers, files, .. } = &mut event.kind else { continue };
        if *earlier != moment || at_s - event.at_s > JOIN_WITHIN_S {
            return false;
        }
        for buffer in new_buffers {
            let same = |other: &Buffer| other.walker == buffer.walker && other.address == buffer.address;
            let Some(index) = buffers.iter().position(same) else {
                buffers.push(buffer.clone());
                continue;
            };
            let other = &buffers[index];
            // The process may have run on between the snapshots, so the larger number is kept.
            let is_better = match other.pending_bytes < buffer.pending_bytes {
                true => !is_shown_elsewhere(buffer, buffers),
                false => buffer.pending_bytes == 0 && is_shown_elsewhere(other, new_buffers),
            };
            if is_better {
                buffers[index] = buffer.clone();
            }
        }
        let is_new = |pair: &&(i32, u32)| !files.contains(pair);
        let new_files: Vec<(i32, u32)> = snapshot_files.iter().filter(is_new).copied().collect();
        files.extend(new_files);
        return true;
    }
    false
}

/// Returns whether another runtime's buffer over the same descriptor begins with the bytes of this one: the walkers show the bytes
/// that a file buffer of libc++ has handed to the C library's stream before its own, and the kernel's reader does not.
fn is_shown_elsewhere(buffer: &Buffer, all: &[Buffer]) -> bool {
    !buffer.pending.is_empty()
        && all.iter().any(|other| {
            other.fd == buffer.fd
                && other.walker != buffer.walker
                && other.pending.starts_with(&buffer.pending)
        })
}

/// Enters the file of a descriptor that a call opened at `at_s` into later snapshots. On a busy machine a snapshot is recorded
/// before hundreds of older calls: it has the file that /proc shows, without the name that the program gave, or an older file.
pub(super) fn correct_file(events: &mut [Event], (pid, fd): (u32, i32), at_s: f64, file: u32) {
    let recent = events.len().saturating_sub(LATE_EVENTS);
    for event in events[recent..].iter_mut().filter(|event| event.pid == pid && event.at_s > at_s) {
        if let EventKind::Buffers { files, .. } = &mut event.kind {
            files.iter_mut().filter(|pair| pair.0 == fd).for_each(|pair| pair.1 = file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::trace::RuntimeId;

    fn buffer(walker: RuntimeId, pending: u64) -> Buffer {
        Buffer { buffer_bytes: 4096, pending_bytes: pending, ..Buffer::empty(walker, 1, 1) }
    }

    fn snapshot(at_s: f64, moment: SnapshotMoment, walker: RuntimeId) -> Event {
        let kind = EventKind::Buffers {
            moment,
            buffers: vec![buffer(walker, 0)],
            waits_in: None,
            waits_in_name: String::new(),
            files: Vec::new(),
            read_until_s: None,
        };
        Event { at_s, pid: 1, tid: 1, kind }
    }

    #[test]
    fn a_second_snapshot_adds_its_buffers() {
        let mut events = vec![snapshot(1.0, SnapshotMoment::Exit, RuntimeId::GLIBC)];
        assert!(join_snapshot(
            &mut events,
            1,
            SnapshotMoment::Exit,
            1.01,
            &[buffer(RuntimeId::CPYTHON, 22), buffer(RuntimeId::GLIBC, 0)],
            &[(1, 0)]
        ));
        let EventKind::Buffers { buffers, .. } = &events[0].kind else { panic!() };
        assert_eq!(buffers.len(), 2);
        assert_eq!(buffers[1].pending_bytes, 22);
    }

    #[test]
    fn snapshots_of_other_moments_or_processes_are_not_joined() {
        let mut events = vec![snapshot(1.0, SnapshotMoment::Fork, RuntimeId::GLIBC)];
        assert!(!join_snapshot(&mut events, 1, SnapshotMoment::Exit, 1.01, &[], &[]));
        assert!(!join_snapshot(&mut events, 2, SnapshotMoment::Fork, 1.01, &[], &[]));
        assert!(!join_snapshot(&mut events, 1, SnapshotMoment::Fork, 2.0, &[], &[]));
        assert!(!join_snapshot(
            &mut [snapshot(1.0, SnapshotMoment::Sample, RuntimeId::GLIBC)],
            1,
            SnapshotMoment::Sample,
            1.0,
            &[],
            &[]
        ));
    }

    /// The walkers show the bytes of a FILE in the file buffer of libc++ that has handed them over.
    #[test]
    fn bytes_that_the_walkers_show_in_another_buffer_count_once() {
        let of = |walker, address, text: &[u8]| Buffer {
            address,
            pending: text.to_vec(),
            ..buffer(walker, text.len() as u64)
        };
        let file = |text| of(RuntimeId::GLIBC, 1, text);
        let walked = vec![file(b""), of(RuntimeId::CPP, 2, b"a line")];
        let join = |first: Vec<Buffer>, second: &[Buffer]| {
            let mut events = vec![snapshot(1.0, SnapshotMoment::Exit, RuntimeId::GLIBC)];
            let EventKind::Buffers { buffers, .. } = &mut events[0].kind else { panic!("a snapshot") };
            *buffers = first;
            assert!(join_snapshot(&mut events, 1, SnapshotMoment::Exit, 1.0, second, &[]));
            let EventKind::Buffers { buffers, .. } = &events[0].kind else { panic!("a snapshot") };
            buffers.iter().map(|one| (one.address, one.pending_bytes)).collect::<Vec<_>>()
        };
        assert_eq!(join(vec![file(b"a")], &walked), [(1, 0), (2, 6)]);
        assert_eq!(join(walked.clone(), &[file(b"a")]), [(1, 0), (2, 6)]);
        assert_eq!(join(vec![file(b"b")], &walked), [(1, 1), (2, 6)], "other bytes");
    }
}
