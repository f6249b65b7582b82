//! Pending bytes that several processes have, because they were pending at a fork(2). Each holder can write them: they are lost
//! when the last holder has ended and none has written them.

use weir_model::trace::{Buffer, SnapshotMoment};

use crate::context::{BufferSnapshot, MAX_GENERATIONS, RuleContext, TimedCall, same_prefix};

/// The most seconds between a fork and the snapshot that was taken at it.
const FORK_SNAPSHOT_S: f64 = 0.5;
/// The most other holders of one buffer that are searched, which bounds the time for a program with very many children.
const MAX_HOLDERS: usize = 10_000;

/// Another process with a copy of the first pending bytes of a buffer.
struct Holder {
    pid: u32,
    /// The fork that made the copy.
    since_s: f64,
    bytes: u64,
}

/// How many of the pending bytes of a buffer, counted from the first, other processes have too.
#[derive(Clone, Copy, Default)]
pub(crate) struct CopiesAtFork {
    /// Bytes that another process has or had.
    pub copied: u64,
    /// Bytes that another process has written, or holds when this one ends.
    pub saved: u64,
}

impl RuleContext<'_> {
    /// Returns how many of a buffer's pending bytes other processes have, which run the same image since a fork.
    pub fn copies_at_fork(&self, snapshot: &BufferSnapshot, buffer: &Buffer) -> CopiesAtFork {
        let holders = self.holders(snapshot, buffer);
        let end_s = self.image_end(snapshot.pid, snapshot.at_s);
        let end_s = if end_s.is_finite() { end_s } else { snapshot.at_s };
        let saves = |holder: &&Holder| {
            let holder_end_s = self.image_end(holder.pid, holder.since_s);
            // Of processes that end at once, one reports the bytes.
            let holds = holder_end_s > end_s || (holder_end_s == end_s && holder.pid < snapshot.pid);
            holds || self.wrote_copy(holder, snapshot, buffer)
        };
        let most = |bytes: Option<u64>| bytes.unwrap_or(0);
        CopiesAtFork {
            copied: most(holders.iter().map(|holder| holder.bytes).max()),
            saved: most(holders.iter().filter(saves).map(|holder| holder.bytes).max()),
        }
    }

    fn holders(&self, snapshot: &BufferSnapshot, buffer: &Buffer) -> Vec<Holder> {
        let mut holders = Vec::new();
        let (mut pid, mut at_s, mut bytes) = (snapshot.pid, snapshot.at_s, buffer.pending_bytes);
        self.add_descendants(&mut holders, (pid, at_s), None, buffer, bytes);
        for _ in 0..MAX_GENERATIONS {
            if self.image_at(pid, at_s).is_some_and(|(index, _)| index > 0) {
                break; // the bytes are those of a program that this process has executed
            }
            let parent = self.process(pid).and_then(|process| process.parent);
            let Some(parent) = parent.filter(|&parent| self.process(parent).is_some()) else { break };
            let forked_s = self.forked_at(pid);
            bytes = self.pending_at_fork(parent, forked_s, buffer).unwrap_or(bytes).min(bytes);
            if bytes == 0 {
                break;
            }
            holders.push(Holder { pid: parent, since_s: forked_s, bytes });
            self.add_descendants(&mut holders, (parent, forked_s), Some(pid), buffer, bytes);
            (pid, at_s) = (parent, forked_s);
        }
        holders.retain(|holder| !self.flushed_since(holder, snapshot, buffer));
        holders
    }

    /// Adds the processes that the image of a process at a time has forked with the first `bytes` pending, and their children.
    fn add_descendants(
        &self,
        holders: &mut Vec<Holder>,
        (ancestor, at_s): (u32, f64),
        except: Option<u32>,
        buffer: &Buffer,
        bytes: u64,
    ) {
        let mut parents = vec![(ancestor, at_s, bytes)];
        while let Some((parent, at_s, bytes)) = parents.pop() {
            let image = |at_s: f64| self.image_at(parent, at_s).map(|(index, _)| index);
            for child in self.children(parent).filter(|child| Some(*child) != except) {
                let since_s = self.forked_at(child);
                if image(since_s) != image(at_s) || holders.len() >= MAX_HOLDERS {
                    continue;
                }
                let bytes = self.pending_at_fork(parent, since_s, buffer).unwrap_or(bytes).min(bytes);
                if bytes > 0 {
                    holders.push(Holder { pid: child, since_s, bytes });
                    parents.push((child, since_s, bytes));
                }
            }
        }
    }

    /// Returns how many of a buffer's pending bytes were pending in a process when it forked; None if unknown.
    fn pending_at_fork(&self, parent: u32, forked_s: f64, buffer: &Buffer) -> Option<u64> {
        let distance_s = |snapshot: &BufferSnapshot| (snapshot.at_s - forked_s).abs();
        let snapshots = self.snapshots(parent);
        let from = snapshots.partition_point(|snapshot| snapshot.at_s < forked_s - FORK_SNAPSHOT_S);
        let near = snapshots[from..].iter().take_while(|one| one.at_s < forked_s + FORK_SNAPSHOT_S);
        let near: Vec<_> = near.filter(|snapshot| snapshot.moment == SnapshotMoment::Fork).collect();
        let copied = |snapshot: &BufferSnapshot| {
            let same = snapshot.buffers.iter().find(|other| other.address == buffer.address)?;
            let is_copied = same_prefix(&same.pending, &buffer.pending);
            Some(if is_copied { same.pending_bytes } else { 0 })
        };
        // There may be one of the C library's streams and one of another runtime's.
        let nearest = near.iter().filter_map(|snapshot| Some((distance_s(snapshot), copied(snapshot)?)));
        if let Some((_, bytes)) = nearest.min_by(|a, b| a.0.total_cmp(&b.0)) {
            return Some(bytes);
        }
        let has_walker =
            |snapshot: &BufferSnapshot| snapshot.buffers.iter().any(|other| other.walker == buffer.walker);
        if near.iter().any(|snapshot| has_walker(snapshot)) {
            return Some(0); // the stream was opened later
        }
        let most = snapshots.iter().filter_map(copied).max().filter(|bytes| *bytes > 0);
        most.or_else(|| (!near.is_empty()).then_some(0))
    }

    /// Returns when a process executed the next image or ended; infinity if it did not.
    fn image_end(&self, pid: u32, since_s: f64) -> f64 {
        let Some(process) = self.process(pid) else { return f64::INFINITY };
        let next = process.images.iter().find(|image| image.started_s > since_s);
        next.map(|image| image.started_s).or(process.ended_s).unwrap_or(f64::INFINITY)
    }

    /// Returns whether a holder has written its copy of the bytes, as far as the recording shows.
    fn wrote_copy(&self, holder: &Holder, snapshot: &BufferSnapshot, buffer: &Buffer) -> bool {
        let (pid, since_s) = (holder.pid, holder.since_s);
        if self.has_gap(pid, since_s, self.image_end(pid, since_s)) {
            return self.wrote_between(pid, buffer.fd, since_s, f64::INFINITY);
        }
        self.writes_text((pid, since_s, f64::INFINITY), holder.bytes, snapshot, buffer)
    }

    /// Returns whether the process of the snapshot has written the copied bytes itself, so that its pending bytes are others.
    fn flushed_since(&self, holder: &Holder, snapshot: &BufferSnapshot, buffer: &Buffer) -> bool {
        let pid = snapshot.pid;
        let is_forked_later = holder.since_s < self.forked_at(pid);
        let since_s = if is_forked_later { self.forked_at(pid) } else { holder.since_s };
        self.writes_text((pid, since_s, snapshot.at_s), holder.bytes, snapshot, buffer)
    }

    /// Returns whether a recorded write of a process begins with the first `bytes` pending bytes of a buffer.
    fn writes_text(
        &self,
        (pid, from_s, to_s): (u32, f64, f64),
        bytes: u64,
        snapshot: &BufferSnapshot,
        buffer: &Buffer,
    ) -> bool {
        let file = self.file_at(snapshot.pid, buffer.fd, snapshot.at_s);
        let text = &buffer.pending[..buffer.pending.len().min(bytes as usize)];
        let is_write = |timed: &&TimedCall| {
            let call = timed.call;
            let same = call.fd == buffer.fd || (file.is_some() && call.file == file);
            same && call.op.writes() && call.result > 0
        };
        let mut writes = self.calls_between(pid, from_s, to_s).iter().filter(is_write);
        writes.any(|timed| text.is_empty() || same_prefix(&timed.call.head, text))
    }
}
