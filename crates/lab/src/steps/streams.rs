//! The stream buffers of the processes, derived from buffer snapshots and from the calls that empty them.

use weir_model::lab::step::{KnownBytes, StepProcess, StepStream};
use weir_model::trace::{Buffer, Call, SnapshotMoment};

/// A change of a buffer between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BufferChange {
    /// The program added bytes to a buffer: their number, and the number of bytes pending before.
    Put { fd: i32, bytes: u64, before: u64 },
    /// The program used read-ahead bytes: their number, and the number of those left.
    Used { fd: i32, bytes: u64, left: u64 },
    /// A read fetched more bytes than the program used: the number of read-ahead bytes.
    ReadAhead { fd: i32, bytes: u64 },
}

/// Returns whether a buffer collects bytes.
pub(super) fn is_in_use(buffer: &Buffer) -> bool {
    buffer.fd >= 0 && (buffer.buffer_bytes > 1 || buffer.pending_bytes + buffer.unread_bytes > 0)
}

/// Applies a buffer snapshot and returns the changes. `target` returns the name of the file behind a descriptor, and whether the
/// program reads from it.
pub(super) fn apply(
    process: &mut StepProcess,
    moment: SnapshotMoment,
    buffers: &[Buffer],
    target: impl Fn(i32) -> (String, bool),
) -> Vec<BufferChange> {
    let mut changes = Vec::new();
    for buffer in buffers.iter().filter(|buffer| buffer.fd >= 0) {
        let in_use = is_in_use(buffer);
        let at = process.streams.iter().position(|stream| stream.fd == buffer.fd);
        let at = match at {
            Some(at) => at,
            None if !in_use => continue,
            None => {
                process.streams.push(empty_stream(buffer, target(buffer.fd)));
                process.streams.len() - 1
            }
        };
        let stream = &mut process.streams[at];
        // exit(3) makes a stream unbuffered after the flush, which is not the program's mode.
        if !matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal) {
            (stream.mode, stream.buffer_bytes) = (buffer.mode, buffer.buffer_bytes);
        }
        changes.extend(change(stream, buffer));
        stream.pending = KnownBytes { count: buffer.pending_bytes, head: buffer.pending.clone() };
        stream.unread = KnownBytes { count: buffer.unread_bytes, head: buffer.unread.clone() };
    }
    changes
}

fn empty_stream(buffer: &Buffer, (target, reads): (String, bool)) -> StepStream {
    StepStream {
        fd: buffer.fd,
        target,
        reads,
        mode: buffer.mode,
        buffer_bytes: buffer.buffer_bytes,
        pending: KnownBytes::default(),
        unread: KnownBytes::default(),
        copied: false,
        shared: 0,
    }
}

fn change(stream: &StepStream, buffer: &Buffer) -> Option<BufferChange> {
    let (fd, before, unread) = (stream.fd, stream.pending.count, stream.unread.count);
    if buffer.pending_bytes > before {
        return Some(BufferChange::Put { fd, bytes: buffer.pending_bytes - before, before });
    }
    match buffer.unread_bytes {
        left if left < unread => Some(BufferChange::Used { fd, bytes: unread - left, left }),
        bytes if bytes > unread => Some(BufferChange::ReadAhead { fd, bytes }),
        _ => None,
    }
}

/// Removes from a buffer the bytes that a write(2) took from it. Returns the stream as it was before, or None if the
/// bytes came from no buffer.
pub(super) fn wrote(process: &mut StepProcess, call: &Call) -> Option<StepStream> {
    let stream = process.streams.iter_mut().find(|stream| stream.fd == call.fd)?;
    let known = stream.pending.head.len().min(call.head.len());
    let same = stream.pending.count > 0 && stream.pending.head[..known] == call.head[..known];
    if !same {
        return None;
    }
    let before = stream.clone();
    let written = (call.result as u64).min(stream.pending.count);
    stream.pending.count -= written;
    stream.shared = stream.shared.saturating_sub(written);
    stream.pending.head.drain(..(written as usize).min(stream.pending.head.len()));
    Some(before)
}

/// Returns a copy of a parent's streams for its child. Marks the pending bytes of both as shared.
pub(super) fn copied(parent: &mut StepProcess) -> Vec<StepStream> {
    parent.streams.iter_mut().for_each(|stream| stream.shared = stream.pending.count);
    parent.streams.iter().map(|stream| StepStream { copied: true, ..stream.clone() }).collect()
}

/// Returns the pending bytes in all buffers of a process.
pub(super) fn pending(process: &StepProcess) -> u64 {
    process.streams.iter().map(|stream| stream.pending.count).sum()
}
