//! Two looks at one moment are one: the kernel walks what it can, and another look from outside finds the rest.

use weir_model::trace::{Buffer, Event, EventKind, SnapshotMoment};

/// How far apart the two may be, seconds.
const APART_S: f64 = 0.25;
/// How far back the first is searched.
const RECENT: usize = 256;

/// Adds buffers to an earlier look at the same moment of the same process. False: there is none.
pub(super) fn join(
    events: &mut [Event],
    pid: u32,
    moment: SnapshotMoment,
    at_s: f64,
    more: &[Buffer],
    more_files: &[(i32, u32)],
) -> bool {
    if matches!(moment, SnapshotMoment::Sample | SnapshotMoment::Call) {
        return false;
    }
    let recent = events.len().saturating_sub(RECENT);
    let of_process = events[recent..].iter_mut().rev().filter(|event| event.pid == pid);
    // One that a call has followed was of an earlier fork.
    for event in of_process.take_while(|event| !matches!(event.kind, EventKind::Call(_))) {
        let EventKind::Buffers { moment: before, buffers, files, .. } = &mut event.kind else { continue };
        if *before != moment || at_s - event.at_s > APART_S {
            return false;
        }
        for buffer in more {
            let same = |other: &&mut Buffer| other.walker == buffer.walker && other.address == buffer.address;
            match buffers.iter_mut().find(same) {
                // The kernel's look came first, or the program has gone on: the larger is not lost.
                Some(other) if other.pending_bytes < buffer.pending_bytes => *other = buffer.clone(),
                Some(_) => {}
                None => buffers.push(buffer.clone()),
            }
        }
        let new = |one: &&(i32, u32)| !files.contains(one);
        let missing: Vec<(i32, u32)> = more_files.iter().filter(new).copied().collect();
        files.extend(missing);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::trace::RuntimeId;

    fn buffer(walker: RuntimeId, pending: u64) -> Buffer {
        Buffer {
            walker,
            address: 1,
            fd: 1,
            mode: None,
            buffer_bytes: 4096,
            pending_bytes: pending,
            pending: Vec::new(),
            unread_bytes: 0,
            unread: Vec::new(),
        }
    }

    fn look(at_s: f64, moment: SnapshotMoment, walker: RuntimeId) -> Event {
        let what = EventKind::Buffers {
            moment,
            buffers: vec![buffer(walker, 0)],
            waits_in: None,
            waits_in_name: String::new(),
            files: Vec::new(),
        };
        Event { at_s, pid: 1, tid: 1, kind: what }
    }

    #[test]
    fn what_another_look_finds_is_added() {
        let mut events = vec![look(1.0, SnapshotMoment::Exit, RuntimeId::GLIBC)];
        assert!(join(
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
    fn another_moment_or_process_is_another_look() {
        let mut events = vec![look(1.0, SnapshotMoment::Fork, RuntimeId::GLIBC)];
        assert!(!join(&mut events, 1, SnapshotMoment::Exit, 1.01, &[], &[]));
        assert!(!join(&mut events, 2, SnapshotMoment::Fork, 1.01, &[], &[]));
        assert!(!join(&mut events, 1, SnapshotMoment::Fork, 2.0, &[], &[]));
        assert!(!join(
            &mut [look(1.0, SnapshotMoment::Sample, RuntimeId::GLIBC)],
            1,
            SnapshotMoment::Sample,
            1.0,
            &[],
            &[]
        ));
    }
}
