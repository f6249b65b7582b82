//! `--fix-fork`: writes the bytes that are pending at a fork(2) once, before the parent or the child runs.

use weir_walkers::{PendingBytes, join_pending};

use super::ahead_table::WrittenAhead;
use super::write_ahead::{ThreadActivity, forget_purged, is_handing_over, thread_activity};
use crate::foreign_file::TargetThread;
use crate::supervise::{LifecycleHandler, Tracees};

pub(crate) struct ForkHandler;

impl LifecycleHandler for ForkHandler {
    fn on_fork(&mut self, tracees: &mut Tracees, parent: u32, child: u32, shares_memory: bool) {
        if !shares_memory {
            if tracees.hold(parent) {
                write_common_bytes(tracees, parent, child);
            }
            tracees.release(parent);
        }
    }
}

/// Writes the bytes that both processes have pending, and marks them as written ahead of both.
fn write_common_bytes(tracees: &mut Tracees, parent: u32, child: u32) {
    let Some(tid) = tracees.live_thread(parent) else { return };
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
        return;
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
        if !common || is_moving || (before == 0 && new.is_empty()) {
            continue;
        }
        let mut written = before;
        if !new.is_empty() {
            let Some(file) = tracees.open_ahead(parent, &thread, &one) else { continue };
            written += tracees.write_ahead(parent, &file, new);
        }
        // Also without new bytes: the child has a copy of those that were written before.
        for pid in [parent, child] {
            tracees.written_ahead.set(pid, WrittenAhead::of(&one, written));
        }
    }
}
