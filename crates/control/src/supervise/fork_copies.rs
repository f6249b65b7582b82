//! The bytes that several processes hold since a fork(2), for a rescue: each of them can write its copy, and only one does, as a
//! daemon whose parent ends by _exit(2), or a parent whose workers do. A rescue writes them for the last of these processes that
//! ends, if none has written its copy.

use weir_walkers::PendingBytes;

use super::inherited_bytes::InheritedBytes;
use super::tracee::TracedProcess;
use super::tracees::Tracees;
use crate::rescue::last_write;

/// Bytes that one process of a family has written, or that were rescued for it.
#[derive(Debug)]
pub(super) struct WrittenCopy {
    family: u64,
    stream: u64,
    bytes: Vec<u8>,
}

impl TracedProcess {
    /// Returns all non-ambiguous bytes that the process has in common with others since a fork.
    fn common_bytes(&self) -> impl Iterator<Item = &InheritedBytes> {
        self.inherited_bytes.iter().chain(&self.given_bytes).filter(|one| !one.is_ambiguous)
    }
}

impl Tracees {
    /// Notes that a child has copies of the bytes that are pending in its parent. The bytes of former forks that are not pending
    /// any more are written.
    pub(super) fn note_fork_copies(&mut self, parent: u32, child: u32) {
        let Some(inherited) = self.processes.get(&child).map(|child| child.inherited_bytes.clone()) else {
            return;
        };
        if !inherited.is_empty() {
            for pid in [parent, child] {
                let writes = self.write_count(pid);
                self.processes.entry(pid).and_modify(|process| process.writes_at_fork = writes);
            }
        }
        let Some(process) = self.processes.get_mut(&parent) else { return };
        let family = process.family;
        let is_pending = |given: &InheritedBytes| {
            inherited.iter().any(|one| one.stream == given.stream && one.bytes.starts_with(&given.bytes))
        };
        let (kept, written): (Vec<_>, Vec<_>) =
            std::mem::take(&mut process.given_bytes).into_iter().partition(is_pending);
        process.given_bytes = kept;
        for one in inherited.iter().filter(|one| !one.is_ambiguous) {
            let is_known = |known: &InheritedBytes| known.stream == one.stream && known.bytes == one.bytes;
            if !process.given_bytes.iter().any(is_known) {
                process.given_bytes.push(one.clone());
            }
        }
        if let Some(process) = self.processes.get_mut(&child) {
            process.family = family;
        }
        written.into_iter().for_each(|one| self.add_written_copy(family, &one));
    }

    /// Decides about the common bytes of a process in its exit stop. Those that other processes have written or can still write
    /// count as inherited from then on. Those that the process has written itself, or that a rescue writes for it now, are noted as
    /// written copies. `pending` has all streams, not joined.
    pub(crate) fn decide_fork_copies(&mut self, pid: u32, tid: u32, pending: &[PendingBytes]) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let family = process.family;
        let (inherited, given) =
            (std::mem::take(&mut process.inherited_bytes), std::mem::take(&mut process.given_bytes));
        let has_written = self.has_written_since_fork(pid);
        let (mut left, mut rescued) = (Vec::new(), Vec::new());
        let all =
            inherited.into_iter().map(|one| (one, true)).chain(given.into_iter().map(|one| (one, false)));
        for (common, is_child) in all {
            if common.is_ambiguous {
                left.push(common);
                continue;
            }
            let own = pending.iter().find(|one| {
                one.stream == common.stream
                    && one.bytes.starts_with(&common.bytes)
                    && last_write::written_len(self, pid, tid, one) < common.bytes.len()
            });
            let Some(own) = own else {
                if has_written {
                    self.add_written_copy(family, &common);
                }
                continue;
            };
            // With bytes of its own after them, a parent's copy must come first.
            let may_leave = is_child || own.bytes.len() == common.bytes.len();
            if may_leave && self.has_living_relative(pid, &common) {
                left.push(common);
                continue;
            }
            if let Some(bytes) = self.written_prefix(family, own) {
                left.push(InheritedBytes { bytes, ..common.clone() });
            }
            rescued.push(common);
        }
        rescued.iter().for_each(|one| self.add_written_copy(family, one));
        // The longest one of each stream is found first.
        left.sort_by_key(|one| std::cmp::Reverse(one.bytes.len()));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.inherited_bytes = left;
        }
    }

    /// Returns whether a process may have written bytes since the last fork at which some were pending.
    fn has_written_since_fork(&self, pid: u32) -> bool {
        let at_fork = self.processes.get(&pid).and_then(|process| process.writes_at_fork);
        at_fork.is_none() || self.write_count(pid) != at_fork
    }

    /// Counts the common bytes of a process that executes another image as written if it may have written them: its memory is gone.
    pub(super) fn give_up_written_copies(&mut self, pid: u32) {
        if self.has_written_since_fork(pid) {
            self.give_up_fork_copies(pid);
        }
    }

    /// Counts the common bytes of a process as written: weir has not seen its end, or has detached from it.
    pub(super) fn give_up_fork_copies(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let family = process.family;
        let common: Vec<_> = process.common_bytes().cloned().collect();
        (process.inherited_bytes, process.given_bytes) = (Vec::new(), Vec::new());
        common.iter().for_each(|one| self.add_written_copy(family, one));
    }

    /// Returns whether another process that lives has had all these bytes since a fork, and executes the same image.
    fn has_living_relative(&self, pid: u32, common: &InheritedBytes) -> bool {
        let Some(family) = self.processes.get(&pid).map(|process| process.family) else { return false };
        let has_all =
            |one: &InheritedBytes| one.stream == common.stream && one.bytes.starts_with(&common.bytes);
        let mut others = self.processes.iter().filter(|(other, _)| **other != pid);
        others.any(|(_, process)| {
            process.family == family && !process.exit_reported && process.common_bytes().any(has_all)
        })
    }

    /// Returns the most of a stream's first bytes that processes of a family have written.
    fn written_prefix(&self, family: u64, own: &PendingBytes) -> Option<Vec<u8>> {
        let of_stream =
            self.written_copies.iter().filter(|one| one.family == family && one.stream == own.stream);
        let written = of_stream.filter(|one| own.bytes.starts_with(&one.bytes));
        written.map(|one| &one.bytes).max_by_key(|bytes| bytes.len()).cloned()
    }

    /// Notes a written copy while other processes have one, and forgets those that no process has any more.
    fn add_written_copy(&mut self, family: u64, common: &InheritedBytes) {
        let InheritedBytes { stream, ref bytes, .. } = *common;
        let is_same = |one: &WrittenCopy| (one.family, one.stream) == (family, stream) && one.bytes == *bytes;
        if !self.written_copies.iter().any(is_same) {
            self.written_copies.push(WrittenCopy { family, stream, bytes: bytes.clone() });
        }
        let processes = &self.processes;
        self.written_copies.retain(|written| {
            let mut relatives = processes.values().filter(|process| process.family == written.family);
            relatives.any(|process| process.common_bytes().any(|one| one.stream == written.stream))
        });
    }
}
