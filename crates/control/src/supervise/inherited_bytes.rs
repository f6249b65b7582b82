//! The bytes that a forked process has from its parent: another process writes them, so that a rescue of this one does not.

use weir_walkers::{PendingBytes, UnconvertedBytes};

use super::tracees::Tracees;

/// The bytes that were pending in a stream of the parent at the fork.
#[derive(Debug, Clone)]
pub(super) struct InheritedBytes {
    /// The address of the stream object, in parent and child.
    pub stream: u64,
    pub fd: i32,
    pub bytes: Vec<u8>,
    /// How many of them were pending is unknown, see [`PendingBytes::copies`].
    pub is_ambiguous: bool,
}

impl Tracees {
    /// Gives a forked child the walkers of its parent, and notes the pending bytes that both have. Before that it searches the
    /// walkers of a parent that forks early, and the memory for new streams: bytes of a stream that is unknown now would count as
    /// the child's own later. The parent's walkers get the found streams too.
    pub(crate) fn inherit_streams(&mut self, parent_pid: u32, child: u32) {
        if let Some(parent) = self.processes.get_mut(&parent_pid).filter(|parent| !parent.has_final_walkers())
        {
            parent.search_walkers(child);
            // They were found in the child, and search the parent's memory from now on.
            for walker in &mut parent.walkers {
                if let Some(of_parent) = walker.for_child(parent_pid) {
                    *walker = of_parent;
                }
            }
        }
        let Some(parent) = self.processes.get(&parent_pid) else { return };
        let walkers: Option<Vec<_>> = parent.walkers.iter().map(|walker| walker.for_child(child)).collect();
        let (stage, age, started) = (parent.search_stage, parent.search_age_ns, parent.image_started_ns);
        if let (Some(walkers), Some(process)) = (walkers, self.processes.get_mut(&child)) {
            (process.walkers, process.search_stage, process.search_age_ns) = (walkers, stage, age);
            (process.image_started_ns, process.forked) = (started, true);
        }
        self.search_for_new(child);
        let pending = self.pending_and_ambiguous(child, child);
        let Some(process) = self.processes.get_mut(&child) else { return };
        let inherited = |one: PendingBytes| InheritedBytes {
            stream: one.stream,
            fd: one.fd,
            bytes: one.bytes,
            is_ambiguous: !one.copies.is_empty(),
        };
        process.inherited_bytes = pending.into_iter().map(inherited).collect();
        self.note_fork_copies(parent_pid, child);
        let unconverted = self.unconverted(child, child);
        if let Some(process) = self.processes.get_mut(&child) {
            process.inherited_unconverted = unconverted;
        }
        if let (Some(parent), Some(process)) = (self.processes.get(&parent_pid), self.processes.get(&child)) {
            parent.continue_searches(&process.walkers);
        }
    }

    /// Returns how many of a stream's first pending bytes a fork copied from the parent. The child may end without
    /// writing them. In its exit stop: how many another process has written or writes.
    pub(crate) fn inherited_len(&self, pid: u32, pending: &PendingBytes) -> usize {
        let of = |stream: u64| {
            let inherited =
                self.inherited_bytes(pid).iter().find(|one| one.stream == stream && !one.is_ambiguous);
            inherited.map_or(&[][..], |one| &one.bytes)
        };
        let outer = pending.joined.as_ref().map_or(&[][..], |joined| of(joined.then().stream));
        let bytes = [of(pending.stream), outer].concat();
        if pending.bytes.starts_with(&bytes) { bytes.len() } else { 0 }
    }

    /// As [`Tracees::inherited_len`], of the bytes that the program still converts.
    pub(crate) fn inherited_unconverted_len(&self, pid: u32, now: &UnconvertedBytes) -> usize {
        let inherited = self.processes.get(&pid).map_or(&[][..], |process| &process.inherited_unconverted);
        let same = inherited.iter().find(|one| one.stream == now.stream && now.bytes.starts_with(&one.bytes));
        same.map_or(0, |one| one.bytes.len())
    }

    /// Returns the first bytes of the buffer of a stream at the fork, if it was unknown how many of them were pending.
    pub(crate) fn ambiguous_at_fork(&self, pid: u32, stream: u64) -> Option<&[u8]> {
        let inherited = self.inherited_bytes(pid).iter().find(|one| one.stream == stream && one.is_ambiguous);
        inherited.map(|one| one.bytes.as_slice())
    }

    pub(crate) fn has_inherited_bytes(&self, pid: u32) -> bool {
        !self.inherited_bytes(pid).is_empty()
    }

    fn inherited_bytes(&self, pid: u32) -> &[InheritedBytes] {
        self.processes.get(&pid).map(|process| process.inherited_bytes.as_slice()).unwrap_or_default()
    }

    /// Returns how many of the first bytes of a stream need no rescue: they were written ahead, or are the parent's. `stream` is 0
    /// if it is unknown: then each stream of the descriptor counts. `outer` is the stream that hands its bytes to this one.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))] // only replays ask
    pub(crate) fn settled_len(
        &self,
        pid: u32,
        (stream, outer): (u64, Option<u64>),
        fd: i32,
        bytes: &[u8],
    ) -> usize {
        let same = |known: u64, its_fd: i32| known == stream || stream == 0 && its_fd == fd;
        let ahead = self.written_ahead.streams(pid).filter(|one| same(one.stream, one.fd));
        let of = |wanted: &dyn Fn(&InheritedBytes) -> bool| {
            let inherited = self.inherited_bytes(pid).iter().filter(|one| !one.is_ambiguous && wanted(one));
            inherited.map(|one| one.bytes.clone()).collect::<Vec<_>>()
        };
        let mut prefixes = of(&|one| same(one.stream, one.fd));
        if let Some(outer) = outer {
            let of_outer = of(&|one| one.stream == outer).concat();
            prefixes.push([prefixes.concat(), of_outer.clone()].concat());
            prefixes.push(of_outer);
        }
        let prefixes = ahead.map(|one| &one.bytes).chain(&prefixes);
        prefixes.filter(|one| bytes.starts_with(one)).map(Vec::len).max().unwrap_or(0)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::supervise::tracee::TracedProcess;

    /// Makes a process that has inherited bytes in streams of descriptor 1.
    fn child(inherited: &[(u64, &str)]) -> Tracees {
        let mut tracees = Tracees::new(1, None).expect("a timer");
        let mut process = TracedProcess::new(7);
        let of = |(stream, text): &(u64, &str)| InheritedBytes {
            stream: *stream,
            fd: 1,
            bytes: (*text).into(),
            is_ambiguous: false,
        };
        process.inherited_bytes = inherited.iter().map(of).collect();
        tracees.processes.insert(7, process);
        tracees
    }

    #[test]
    fn bytes_of_an_unknown_stream_can_be_the_parents() {
        let tracees = child(&[(0x1000, "parent's ")]);
        let settled = |stream, fd| tracees.settled_len(7, (stream, None), fd, b"parent's and own");
        assert_eq!([settled(0x1000, 1), settled(0, 1)], [9, 9]);
        assert_eq!([settled(0x2000, 1), settled(0, 2)], [0, 0]);
    }

    #[test]
    fn bytes_of_an_outer_stream_come_after_those_of_the_inner() {
        let tracees = child(&[(0x1000, "inner "), (0x2000, "outer ")]);
        let settled = |text: &str| tracees.settled_len(7, (0x1000, Some(0x2000)), 1, text.as_bytes());
        assert_eq!(["inner outer own", "outer own", "inner own", "own"].map(settled), [12, 6, 6, 0]);
    }
}
