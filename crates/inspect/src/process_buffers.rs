//! The walkers of one process, and a look by them.

use weir_model::trace::Buffer;
use weir_sys::memory::ProcessMemory;
use weir_sys::ptrace;
use weir_walkers::{Glibc, Walker, walkers};

/// A program is not all there when it starts: so often its walkers are searched anew.
const SEARCHES: u32 = 3;

/// Looks into the buffers of one process.
#[derive(Default)]
pub struct ProcessBuffers {
    /// Of one that was forked and has not executed since.
    pub parent: Option<u32>,
    walkers: Vec<Box<dyn Walker>>,
    searches: u32,
    searched_late: bool,
    /// When streams were searched for at a fork or an end, by CLOCK_MONOTONIC; of its parent, if that was the last.
    searched_ns: u64,
}

impl ProcessBuffers {
    /// Of a process with glibc, which has `_IO_list_all` at this address.
    pub fn of_glibc(list: u64) -> ProcessBuffers {
        ProcessBuffers {
            walkers: vec![Box::new(Glibc::at(list))],
            searches: SEARCHES,
            ..ProcessBuffers::default()
        }
    }

    /// Of a child that has just been forked, with what is known of its parent.
    pub fn of_child(of_parent: Option<&ProcessBuffers>, parent: u32, child: u32) -> ProcessBuffers {
        let walkers =
            of_parent.and_then(|one| one.walkers.iter().map(|walker| walker.for_child(child)).collect());
        let searches = of_parent.map_or(0, |one| one.searches);
        let searched_ns = of_parent.map_or(0, |one| one.searched_ns);
        let (walkers, searches) = walkers.map_or((Vec::new(), 0), |walkers| (walkers, searches));
        ProcessBuffers { parent: Some(parent), walkers, searches, searched_late: false, searched_ns }
    }

    /// What is in its buffers now; nothing in one that has its parent's memory.
    pub fn look(&mut self, pid: u32) -> Vec<Buffer> {
        if self.parent.is_some_and(|parent| ptrace::share_memory(pid, parent)) {
            return Vec::new();
        }
        if self.searches < SEARCHES {
            self.walkers = walkers(pid);
            self.searches += 1;
        }
        let memory = ProcessMemory { pid };
        self.walkers.iter().flat_map(|walker| walker.buffers(&memory)).collect()
    }

    /// Of these buffers the stream and the word that moves at each write, where that is known.
    pub fn moves(&self, pid: u32, buffers: &[&Buffer]) -> Vec<(u64, u64)> {
        let memory = ProcessMemory { pid };
        let word = |buffer: &&Buffer| {
            let own = self.walkers.iter().filter(|walker| walker.walker() == buffer.walker);
            own.filter_map(|walker| walker.moves(&memory, buffer)).next()
        };
        buffers.iter().filter_map(|buffer| Some((buffer.address, word(buffer)?))).collect()
    }

    /// The next look finds the streams that are new since the last search.
    pub fn search_again(&mut self, now_ns: u64) {
        self.searched_ns = now_ns;
        self.walkers.iter().for_each(|walker| walker.search_again());
        // The searches of its first moments may have come before its runtime was there.
        if !std::mem::replace(&mut self.searched_late, true) {
            self.searches = self.searches.min(SEARCHES - 1);
        }
    }

    /// Whether that was before this time, or never.
    pub fn searched_before(&self, ns: u64) -> bool {
        self.searched_ns < ns
    }

    /// For looks from the first call on, when the runtime is not there yet: searches until one is found.
    pub fn search_until_found(&mut self) {
        self.searches = if self.walkers.is_empty() { SEARCHES - 1 } else { SEARCHES };
    }
}
