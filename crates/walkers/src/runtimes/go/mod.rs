//! Go's own buffers: `bufio` over a file or a connection.
//!
//! There is no list of them. Each has in it a pointer to the table that makes a file an `io.Writer` or `io.Reader`,
//! so the heap, in which the stacks are too, is searched for that pointer; what is around it is believed if its
//! fields and its descriptor agree. It cannot be emptied from outside: a goroutine may have been put aside in the
//! middle of a write, while every thread waits.

mod bufio;
mod stacks;
mod itabs;
#[cfg(test)]
mod tests;

use std::cell::{LazyCell, RefCell};
use std::collections::BTreeSet;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::candidates::{self, Sighting};
use crate::open_descriptors::Descriptors;
use crate::heap_search::touched;
use crate::pending::{self, Whole};
use crate::copied_memory::STREAMS_MOST;
use crate::search_cache::Sought;
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits};
use weir_sys::elf::ElfSections;
use crate::elf_image;
use crate::{BufferAccess, Detected, IgnoresEnvironment, ProcessImages, ProgramDetection, RuntimeEntry, WalkerEntry};
use crate::Walker;
use bufio::{Judge, Kind};
pub(crate) use itabs::{Parts, Tables};

const NOT_NEEDED: RuntimeFix =
    RuntimeFix::NotNeeded("os.Stdout writes at once; weir cannot reach the program's own bufio.Writer");
const IMPOSSIBLE: RuntimeFix = RuntimeFix::Impossible(
    "Go makes its system calls itself and has no streams to change: use a bufio.Writer in the program",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::GO,
        name: "Go",
        fixes: RuntimeFixes {
            unbuffered: NOT_NEEDED,
            line_buffered: NOT_NEEDED,
            fully_buffered: IMPOSSIBLE,
            max_delay: NOT_NEEDED,
            rescue: NOT_NEEDED,
            fork: NOT_NEEDED,
            order: NOT_NEEDED,
            other_streams: IMPOSSIBLE,
        },
        limits: RuntimeLimits { coalesce: Some("Go makes its system calls itself: they bypass libc") },
    },
    order: 200,
    detection: ProgramDetection::Executable(is_go),
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &[],
        own_symbols: &[],
        libraries: &[],
        detect: detect,
    }),
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};

fn is_go(sections: &ElfSections) -> bool {
    sections.has(".go.buildinfo")
}

/// A Go program's walker comes before all others.
const FIRST: u64 = 0;

fn detect(process: &ProcessImages, found: &mut Detected) {
    let Some(executable) = process.executable.as_ref().filter(|executable| executable.go) else { return };
    let go = || {
        let start = process.executable_start()?.start;
        let tables = Tables::of(&process.memory, executable.go_parts.as_ref()?, executable.bias(start))?;
        Some(Go::new(process.pid, tables, executable.symbol_at(elf_image::GOROUTINES, start)))
    };
    match go() {
        Some(go) => found.add(FIRST, Box::new(go)),
        None => found.add_unreadable(FIRST, "a Go program"),
    }
}

/// The streams of a Go process.
#[derive(Debug)]
pub(crate) struct Go {
    pid: u32,
    tables: Tables,
    /// Where the list of goroutines is, if a symbol says so.
    goroutines: Option<u64>,
    sought: RefCell<Sought<Kind>>,
}

impl Go {
    pub fn new(pid: u32, tables: Tables, goroutines: Option<u64>) -> Go {
        Go { pid, tables, goroutines, sought: RefCell::default() }
    }

    fn objects(&self, memory: &dyn Memory, judge: &Judge) -> BTreeSet<(u64, Kind)> {
        let (mut found, range) = (BTreeSet::new(), self.tables.range());
        touched(self.pid, memory, |start, data| {
            for (index, value) in
                data.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).enumerate()
            {
                if range.contains(&value) && found.len() < STREAMS_MOST {
                    let candidates = judge.around(start + 8 * index as u64, value);
                    found.extend(candidates.filter(|(at, kind)| judge.stream(*at, *kind).is_some()));
                }
            }
        });
        found
    }
}

/// A stream, and whether it was used.
fn sighting(memory: &dyn Memory, judge: &Judge, at: u64, kind: Kind) -> Option<Sighting> {
    let mut whole = judge.stream(at, kind)?;
    // n of a Writer.
    whole.moves = (kind == Kind::Writer).then_some(at + 40);
    // r, w and the last byte that was read, before the first read.
    let used = |field| memory.u64(at + field) != Some(0);
    let fresh = kind == Kind::Reader && !used(40) && !used(48) && memory.u64(at + 72) == Some(u64::MAX);
    Some(Sighting { at, fresh, whole })
}

impl Walker for Go {
    fn walker(&self) -> RuntimeId {
        RuntimeId::GO
    }

    fn streams(&self, memory: &dyn Memory, kept: u64) -> Vec<Whole> {
        let descriptors = Descriptors::of(self.pid);
        let open_for = |fd, writes| descriptors.open_for(fd, writes);
        let judge = Judge { memory, tables: &self.tables, open_for: &open_for, kept };
        let mut sought = self.sought.borrow_mut();
        let places = sought.places(|| self.objects(memory, &judge));
        let seen: Vec<Sighting> =
            places.iter().filter_map(|&(at, kind)| sighting(memory, &judge, at, kind)).collect();
        sought.note(&seen);
        let used = LazyCell::new(|| stacks::of_goroutines(memory, self.goroutines));
        candidates::settled(seen, |one, all| {
            let all = candidates::addresses(all);
            stacks::left_behind(one.at, &all, &used) || sought.is_still(one.at, &all)
        })
    }

    fn moves(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        pending::moves(self.streams(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(Go {
            pid: child,
            tables: self.tables.clone(),
            goroutines: self.goroutines,
            sought: self.sought.clone(),
        }))
    }

    fn search_again(&self) {
        self.sought.borrow_mut().forget();
    }
}
