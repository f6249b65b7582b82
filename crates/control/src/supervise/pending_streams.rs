//! The pending bytes of a process's streams, as its walkers find them.

use std::time::Instant;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc;
#[cfg(target_arch = "x86_64")]
use weir_walkers::SuspendedFlushes;
use weir_walkers::{
    DueSearch, MAX_PENDING, PendingBytes, UnconvertedBytes, Walker, WriteEpoch, take_search_cut,
};

use super::tracees::Tracees;

/// A buffered writer of CPython that has a text layer.
pub(crate) struct PythonText {
    pub writer: Buffer,
    /// The address of the text layer.
    pub text: u64,
    /// As [`Walker::bytes_before_counts`].
    pub before_counts: u64,
}

impl Tracees {
    /// Returns the pending bytes of a process's streams, read through its thread `tid`. Bytes that were written
    /// ahead are included.
    pub fn pending(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let mut pending = self.pending_and_ambiguous(pid, tid);
        pending.retain(|one| one.copies.is_empty());
        pending
    }

    /// As [`Tracees::pending`], with the streams whose copies contradict each other, see [`PendingBytes::copies`]. A search that is
    /// due is made by another thread: meanwhile the tracees' stops are handled.
    pub(crate) fn pending_and_ambiguous(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.update_walkers(tid);
        }
        self.pending_now(pid, tid, DueSearch::Beside)
    }

    fn pending_now(&mut self, pid: u32, tid: u32, due_search: DueSearch) -> Vec<PendingBytes> {
        self.note_writes(pid);
        let set_due_search =
            |all: &Self, how| all.walkers(pid).iter().for_each(|walker| walker.set_due_search(how));
        set_due_search(self, due_search);
        let pending = self.read_pending(pid, &ProcessMemory { pid: tid });
        set_due_search(self, DueSearch::default());
        pending
    }

    /// As [`Tracees::pending`] for a process whose threads are stopped: its memory is not searched for other streams, which would take
    /// some 0.1 s with a large heap. Its walkers are those of the last read while it ran: new ones would know no streams.
    pub(crate) fn pending_when_held(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let mut pending = self.pending_and_ambiguous_when_held(pid, tid);
        pending.retain(|one| one.copies.is_empty());
        pending
    }

    /// As [`Tracees::pending_when_held`], with the streams whose copies contradict each other.
    pub(crate) fn pending_and_ambiguous_when_held(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        self.pending_now(pid, tid, DueSearch::Deferred)
    }

    /// Returns the walkers of a process; none if it is unknown.
    fn walkers(&self, pid: u32) -> &[Box<dyn Walker>] {
        self.processes.get(&pid).map_or(&[], |process| &process.walkers)
    }

    /// As [`Tracees::pending`] for a process in its exit stop, with a new search for walkers and streams, and with streams whose copies
    /// contradict each other. A forked process keeps the walkers of its parent.
    pub(crate) fn final_pending(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        if !(process.forked && process.has_final_walkers()) {
            process.search_walkers(tid);
        }
        self.search_again(pid);
        self.read_pending(pid, &ProcessMemory { pid: tid })
    }

    /// Returns the oldest begin of the walkers' last full searches; None if no walker has made one.
    pub(crate) fn last_search(&self, pid: u32) -> Option<Instant> {
        self.walkers(pid).iter().filter_map(|walker| walker.last_search()).min()
    }

    /// Makes the next snapshot of a process search all memory.
    pub(crate) fn search_again(&self, pid: u32) {
        self.walkers(pid).iter().for_each(|walker| walker.search_again());
    }

    /// Makes the next snapshot of a process find the streams that were made since the last search.
    pub(crate) fn search_for_new(&self, pid: u32) {
        self.walkers(pid).iter().for_each(|walker| walker.search_for_new());
    }

    /// Returns the pending bytes of a process's streams in `memory`, by the walkers that the last search has found. Notes as a
    /// limitation that streams are left out or may be found late.
    pub(crate) fn pending_in_memory(&mut self, pid: u32, memory: &dyn Memory) -> Vec<PendingBytes> {
        let mut pending = self.read_pending(pid, memory);
        pending.retain(|one| one.copies.is_empty());
        pending
    }

    /// As [`Tracees::pending_in_memory`], with the streams whose copies contradict each other, see [`PendingBytes::copies`].
    fn read_pending(&mut self, pid: u32, memory: &dyn Memory) -> Vec<PendingBytes> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        let pending = weir_walkers::pending_and_ambiguous(&process.walkers, memory, MAX_PENDING);
        process.partly_read = pending.is_partial;
        if pending.is_partial {
            self.add_limitation(format!(
                "{}: more than {} MiB are pending in its streams: weir leaves out streams that do not fit",
                proc::label(pid),
                MAX_PENDING >> 20
            ));
        }
        if take_search_cut() {
            let text =
                "its memory is too large to search at once: weir may find some streams late or not at all";
            self.add_limitation(format!("{}: {text}", proc::label(pid)));
        }
        // Without the address of the bytes no write shows whether the program still has them.
        pending.streams.into_iter().filter(|one| !one.found_by_search || one.data_address.is_some()).collect()
    }

    /// Returns the flushes that the runtime's own threads (goroutines) of a dead process have not ended, after
    /// [`Tracees::final_pending`].
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn suspended_flushes(&self, pid: u32, tid: u32) -> SuspendedFlushes {
        let Some(process) = self.processes.get(&pid) else { return SuspendedFlushes::default() };
        let memory = ProcessMemory { pid: tid };
        let mut walkers = process.walkers.iter();
        let found = walkers.find_map(|one| one.suspended_flushes(&memory, &process.final_registers));
        found.unwrap_or_default()
    }

    /// Tells the walkers of a process which writes it has made.
    fn note_writes(&self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else { return };
        let Some(writes) = self.write_count(pid) else { return };
        let counted = self.written_ahead.counted_writes(pid);
        let epoch = WriteEpoch {
            none_yet: writes == 0 && !process.forked,
            all: (counted.map_or(0, |counted| counted.0), writes),
            by_file: counted.map(|counted| counted.1.clone()),
        };
        process.walkers.iter().for_each(|walker| walker.note_writes(&epoch));
    }

    /// Returns the addresses of the streams in which a walker finds no pending bytes.
    pub(crate) fn empty_streams(&self, pid: u32, tid: u32) -> Vec<u64> {
        let buffers = self.walkers(pid).iter().flat_map(|walker| walker.buffers(&ProcessMemory { pid: tid }));
        buffers.filter(|buffer| buffer.converted_bytes() == 0).map(|buffer| buffer.address).collect()
    }

    /// Returns CPython's buffered writers that have a text layer.
    pub(crate) fn python_text_streams(&self, pid: u32, tid: u32) -> Vec<PythonText> {
        let memory = ProcessMemory { pid: tid };
        let text_streams = |walker: &dyn Walker| {
            let buffers = walker.buffers(&memory);
            let with_writer = |(text, writer): (u64, u64)| {
                let writer = buffers.iter().find(|buffer| buffer.address == writer)?.clone();
                Some(PythonText { writer, text, before_counts: walker.bytes_before_counts() })
            };
            walker.text_layers(&memory).into_iter().filter_map(with_writer).collect::<Vec<_>>()
        };
        let cpython = self.walkers(pid).iter().filter(|walker| walker.runtime() == RuntimeId::CPYTHON);
        cpython.flat_map(|walker| text_streams(walker.as_ref())).collect()
    }

    /// Returns the pending bytes that a process still converts to another encoding, by the walkers of the last read.
    pub(crate) fn unconverted(&self, pid: u32, tid: u32) -> Vec<UnconvertedBytes> {
        weir_walkers::unconverted(self.walkers(pid), &ProcessMemory { pid: tid }, MAX_PENDING)
    }

    /// Returns a sentence about the files for which a process in its exit stop may have kept bytes in buffers that no walker reads, by
    /// the walkers of the last read.
    pub(crate) fn unseen_at_kill(&self, pid: u32, tid: u32) -> Option<String> {
        let (walkers, memory) = (self.walkers(pid), ProcessMemory { pid: tid });
        let buffers = walkers.iter().flat_map(|walker| walker.buffers(&memory));
        let known: Vec<i32> = buffers.map(|buffer| buffer.fd).collect();
        weir_walkers::unseen_at_kill((pid, tid), walkers, &known)
    }

    /// Returns the records that the program of a process in its exit stop keeps as objects, by the walkers of the last read.
    pub(crate) fn kept_records(&self, pid: u32, tid: u32) -> Option<String> {
        weir_walkers::kept_records(self.walkers(pid), &ProcessMemory { pid: tid })
    }

    /// Returns the address and descriptor of each stream that a thread uses at the moment, as `memory` shows. Returns none for a
    /// process with one thread: only one killed thread is replayed, and with several threads others can be inside of streams.
    pub(crate) fn streams_in_use(&self, pid: u32, memory: &dyn Memory) -> Vec<(u64, i32)> {
        let process = self.processes.get(&pid).filter(|process| process.final_stacks.len() > 1);
        let walkers = process.into_iter().flat_map(|process| &process.walkers);
        let of_walker = |walker: &dyn Walker| {
            let in_use = walker.streams_in_use(memory);
            let buffers = if in_use.is_empty() { Vec::new() } else { walker.buffers(memory) };
            let mine = buffers.into_iter().filter(move |buffer| in_use.contains(&buffer.address));
            mine.map(|buffer| (buffer.address, buffer.fd)).collect::<Vec<_>>()
        };
        walkers.flat_map(|walker| of_walker(walker.as_ref())).collect()
    }

    /// Returns the code range of the interpreter's loop and the addresses of all text layers and their writers. A thread that
    /// reaches the loop has left these streams consistent.
    pub(crate) fn interpreter_code(&self, pid: u32, tid: u32) -> Option<(std::ops::Range<u64>, Vec<u64>)> {
        let walkers = &self.processes.get(&pid)?.walkers;
        let walker = walkers.iter().find(|walker| !walker.interpreter_code().is_empty())?;
        let texts = walker.text_layers(&ProcessMemory { pid: tid });
        Some((
            walker.interpreter_code(),
            texts.into_iter().flat_map(|(text, writer)| [text, writer]).collect(),
        ))
    }
}
