//! Reads the user-space buffers of one process with its buffer walkers.

use weir_model::trace::Buffer;
use weir_sys::memory::ProcessMemory;
use weir_sys::ptrace;
use weir_walkers::{DueSearch, GlibcStreams, Walker, kept_records, take_search_ns, walkers};

/// How many buffer snapshots search for walkers. A program loads its runtime some time after it starts.
const WALKER_SEARCHES: u32 = 3;

/// The buffer walkers of one process, and when they last searched for streams.
#[derive(Default)]
pub struct ProcessBuffers {
    /// The parent, until the process calls execve(2).
    pub parent: Option<u32>,
    walkers: Vec<Box<dyn Walker>>,
    searches_done: u32,
    searched_late: bool,
    /// The walkers have searched the memory.
    has_searched: bool,
    /// The next snapshot searches all memory.
    searches_all: bool,
    /// The last search for streams at a fork or an exit, CLOCK_MONOTONIC; inherited from the parent at a fork.
    searched_ns: u64,
}

impl ProcessBuffers {
    /// Makes the walker of a process with glibc, whose `_IO_list_all` is at the address `list`.
    pub fn with_glibc(list: u64) -> ProcessBuffers {
        ProcessBuffers {
            walkers: vec![Box::new(GlibcStreams::at(list))],
            searches_done: WALKER_SEARCHES,
            ..ProcessBuffers::default()
        }
    }

    /// Makes the walkers of a child that was just forked from those of its parent, if they are known.
    pub fn of_child(of_parent: Option<&ProcessBuffers>, parent: u32, child: u32) -> ProcessBuffers {
        let walkers =
            of_parent.and_then(|one| one.walkers.iter().map(|walker| walker.for_child(child)).collect());
        let searches = of_parent.map_or(0, |one| one.searches_done);
        let searched_ns = of_parent.map_or(0, |one| one.searched_ns);
        let (walkers, searches_done) = walkers.map_or((Vec::new(), 0), |walkers| (walkers, searches));
        let parent = Some(parent);
        ProcessBuffers { parent, walkers, searches_done, searched_ns, ..ProcessBuffers::default() }
    }

    /// Reads all stream buffers. Returns none for a child that shares its parent's memory (vfork(2)).
    pub fn snapshot(&mut self, pid: u32) -> Vec<Buffer> {
        self.read(pid, true)
    }

    /// As [`ProcessBuffers::snapshot`], but does not search the memory: reads the streams that earlier snapshots have found.
    pub fn snapshot_of_known(&mut self, pid: u32) -> Vec<Buffer> {
        self.read(pid, false)
    }

    fn read(&mut self, pid: u32, may_search: bool) -> Vec<Buffer> {
        if self.parent.is_some_and(|parent| ptrace::share_memory(pid, parent)) {
            return Vec::new();
        }
        // New walkers do not know the streams that the former ones have found.
        if self.searches_done < WALKER_SEARCHES && (may_search || !self.has_searched) {
            self.walkers = walkers(pid);
            self.searches_done += 1;
        }
        if std::mem::take(&mut self.searches_all) {
            self.walkers.iter().for_each(|walker| walker.search_again());
        }
        let due_search = if may_search { DueSearch::Now } else { DueSearch::Deferred };
        self.walkers.iter().for_each(|walker| walker.set_due_search(due_search));
        weir_walkers::buffers(&self.walkers, &ProcessMemory { pid })
    }

    /// Returns the addresses of those `buffers` of the last snapshot that the process may have written without noting it, at its
    /// end.
    pub fn flushing(&self, pid: u32, buffers: &[Buffer]) -> Vec<u64> {
        let memory = ProcessMemory { pid };
        self.walkers.iter().flat_map(|walker| walker.flushing(&memory, buffers)).collect()
    }

    /// Returns the records that the program of the process keeps as objects, see [`kept_records`].
    pub fn kept_records(&self, pid: u32) -> Option<String> {
        kept_records(&self.walkers, &ProcessMemory { pid })
    }

    /// Returns the CPU time in nanoseconds of the searches of the memory by this thread since the last call.
    pub fn take_search_ns(&mut self) -> u64 {
        let search_ns = take_search_ns();
        self.has_searched |= search_ns > 0;
        search_ns
    }

    /// Returns the stream address of each buffer and the address of the word that changes at each write to it.
    /// Leaves out the buffers whose word is not known.
    pub fn write_positions(&self, pid: u32, buffers: &[&Buffer]) -> Vec<(u64, u64)> {
        let memory = ProcessMemory { pid };
        let word = |buffer: &&Buffer| {
            let own = self.walkers.iter().filter(|walker| walker.runtime() == buffer.walker);
            own.filter_map(|walker| walker.watch_address(&memory, buffer)).next()
        };
        buffers.iter().filter_map(|buffer| Some((buffer.address, word(buffer)?))).collect()
    }

    /// Makes the next snapshot search for streams that are new since the last search.
    pub fn search_again(&mut self, now_ns: u64) {
        self.searched_ns = now_ns;
        self.searches_all = true;
        // The first searches may have come before the program had loaded its runtime.
        if !std::mem::replace(&mut self.searched_late, true) {
            self.searches_done = self.searches_done.min(WALKER_SEARCHES - 1);
        }
    }

    /// Returns whether the last search at a fork or an exit was before `ns`, or never.
    pub fn searched_before(&self, ns: u64) -> bool {
        self.searched_ns < ns
    }

    /// Makes the next snapshot search for walkers until it finds one. For snapshots from a program's first call on,
    /// before it has loaded its runtime.
    pub fn search_until_found(&mut self) {
        self.searches_done = if self.walkers.is_empty() { WALKER_SEARCHES - 1 } else { WALKER_SEARCHES };
    }
}
