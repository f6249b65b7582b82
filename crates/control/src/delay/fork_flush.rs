//! `--fix-fork` and `--max-delay`: writes the bytes that are pending at a fork(2) once, before the parent or the child runs.

use weir_sys::clock::now_ns;
use weir_sys::proc;
use weir_walkers::{PendingBytes, join_pending};

use super::ahead_table::WrittenAhead;
use super::write_ahead::{ThreadActivity, forget_purged, is_handing_over, thread_activity};
use crate::foreign_file::TargetThread;
use crate::supervise::{Fork, LifecycleHandler, Tracees};

/// The longest time for which both processes wait for a file that takes no bytes, such as a full pipe. The program's own write
/// would wait longer, but a child may have work that does not concern the file.
const FULL_FILE_NS: u64 = 1_000_000_000;

pub(crate) struct ForkHandler {
    /// The user has asked for it: it is not only a part of `--max-delay`.
    pub is_requested: bool,
}

impl LifecycleHandler for ForkHandler {
    fn service(&self) -> Option<&'static str> {
        self.is_requested.then_some("written once at a fork")
    }

    fn on_fork(&mut self, tracees: &mut Tracees, fork: &Fork) -> bool {
        let Fork { parent, child, .. } = *fork;
        if fork.shares_memory || !tracees.has_inherited_bytes(child) {
            return true;
        }
        let left = match tracees.hold(parent) {
            true => write_common_bytes(tracees, parent, child),
            false => unmarked_bytes(tracees, child, Why::NotStopped),
        };
        tracees.release(parent);
        if left.iter().any(|one| one.why == Why::FullFile) && now_ns() < fork.begun_ns + FULL_FILE_NS {
            return false;
        }
        left.into_iter().for_each(|one| tracees.add_limitation(one.sentence(parent, child)));
        true
    }
}

/// Bytes that both processes still hold, and can both write.
struct CommonRest {
    fd: i32,
    bytes: usize,
    why: Why,
}

/// The reason why weir has not written bytes at a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    FullFile,
    ChangedByThread,
    NotStopped,
    Writing,
    ReadsToo,
    /// Only the program can write the bytes, for this reason.
    Refused(&'static str),
}

impl CommonRest {
    fn sentence(&self, parent: u32, child: u32) -> String {
        let why = match self.why {
            Why::FullFile => "it took no bytes for a second",
            Why::ChangedByThread => "another thread was changing the stream",
            Why::NotStopped => "the process could not be stopped",
            Why::Writing => "another thread was writing",
            Why::ReadsToo => "the program also reads the file, or weir cannot open it",
            Why::Refused(why) => why,
        };
        let path = proc::descriptor(child, self.fd).unwrap_or_default();
        let (label, bytes) = (proc::label(parent), self.bytes);
        format!("{label}: {bytes} bytes for {path} that were pending at a fork can be written twice: {why}")
    }
}

/// Returns all pending bytes of a child, with its copies of bytes that were written ahead of its parent.
fn unmarked_bytes(tracees: &mut Tracees, child: u32, why: Why) -> Vec<CommonRest> {
    let pending = join_pending(tracees.pending(child, child));
    pending
        .iter()
        .filter(|one| proc::descriptor(child, one.fd).is_some())
        .map(|one| CommonRest { fd: one.fd, bytes: one.bytes.len(), why })
        .collect()
}

/// Writes new bytes of a stream of the parent. Returns how many the file has taken, and the reason why the others can be written
/// twice; no reason if there are none, or if the program's own write gets an error.
fn write_at_fork(
    tracees: &mut Tracees,
    parent: u32,
    thread: &TargetThread,
    one: &PendingBytes,
    new: &[u8],
) -> (usize, Option<Why>) {
    let Some(file) = tracees.open_at_fork(parent, thread, one) else { return (0, Some(Why::ReadsToo)) };
    let taken = tracees.write_ahead(parent, &file, new);
    (taken, (taken < new.len() && file.may_take_more()).then_some(Why::FullFile))
}

/// Writes the bytes that both processes have pending, and marks them as written ahead of both. Returns those that the file does
/// not take now.
fn write_common_bytes(tracees: &mut Tracees, parent: u32, child: u32) -> Vec<CommonRest> {
    let mut left = Vec::new();
    let Some(tid) = tracees.live_thread(parent) else { return left };
    let child_pending = join_pending(tracees.pending(child, child));
    let mut parent_pending = join_pending(tracees.pending(parent, tid));
    let is_known = |one: &PendingBytes| parent_pending.iter().any(|own| own.stream == one.stream);
    if !child_pending.iter().all(is_known) {
        // The child's memory was searched at the fork, the parent's some time ago.
        tracees.search_for_new(parent);
        parent_pending = join_pending(tracees.pending(parent, tid));
    }
    forget_purged(tracees, parent, tid, &parent_pending);
    if thread_activity(tracees, parent) == ThreadActivity::Writing {
        return unmarked_bytes(tracees, child, Why::Writing);
    }
    let thread = TargetThread::new(tid);
    for one in child_pending {
        let common = parent_pending.iter().any(|own| own.stream == one.stream && own.bytes == one.bytes);
        // Another thread may be changing a locked stream. Its bytes are left to the program, which doubles them.
        let before = tracees.written_ahead.prefix_len(parent, one.stream, &one.bytes);
        let new = one.bytes.get(before..one.early_len()).unwrap_or_default();
        let is_moving = one.locked == Some(true)
            || is_handing_over(tracees, parent, &one)
            || tracees.written_ahead.has_unread_outer(parent, one.stream, &one.bytes, one.joined.is_some());
        if !common || is_moving {
            left.push(CommonRest { fd: one.fd, bytes: one.bytes.len(), why: Why::ChangedByThread });
            continue;
        }
        if let Some(why) = one.outside.early_refusal {
            left.push(CommonRest { fd: one.fd, bytes: one.bytes.len(), why: Why::Refused(why) });
            continue;
        }
        if before == 0 && new.is_empty() {
            continue;
        }
        let mut written = before;
        if !new.is_empty() {
            let (taken, why) = write_at_fork(tracees, parent, &thread, &one, new);
            written += taken;
            if let Some(why) = why.filter(|_| proc::descriptor(child, one.fd).is_some()) {
                left.push(CommonRest { fd: one.fd, bytes: new.len() - taken, why });
            }
        }
        // Also without new bytes: the child has a copy of those that were written before.
        for pid in [parent, child] {
            tracees.written_ahead.set(pid, WrittenAhead::of(&one, written));
        }
    }
    left
}
