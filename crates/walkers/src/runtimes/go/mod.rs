//! Go: the buffers of `bufio` over a file or a connection. os.Stdout has no buffer, and system calls bypass libc.
//!
//! No list leads to the buffers. Each contains a pointer to the itab that makes a file an `io.Writer` or `io.Reader`,
//! so the walker searches the heap, which also holds the stacks, for that pointer. It accepts an object if its fields
//! and its descriptor agree. The buffers cannot be drained from outside: the scheduler may have suspended a goroutine
//! in the middle of a write while all threads wait.

mod bufio;
pub(crate) mod fuzzing;
mod itabs;
mod stacks;
#[cfg(test)]
mod tests;

use std::cell::{LazyCell, RefCell};
use std::collections::BTreeSet;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::candidates::{self, StreamCandidate};
use crate::copied_memory::STREAMS_MOST;
use crate::elf_image;
use crate::heap_search::touched;
use crate::open_descriptors::OpenDescriptors;
use crate::runtime_entry::section_contains;
use crate::search_cache::SearchCache;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, IgnoresEnvironment, ProcessImages, ProgramDetection, RuntimeEntry,
    UnreachedBuffers, WalkerEntry,
};
use bufio::{BufioType, BufioValidator};
pub(crate) use itabs::{GoItabs, GoSections};
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};
use weir_sys::elf::ElfSections;

const NOT_NEEDED: RuntimeFix = RuntimeFix::NotNeeded("os.Stdout has no buffer and writes at once");
const IMPOSSIBLE: RuntimeFix = RuntimeFix::Impossible(
    "Go makes its system calls itself and has no streams to change: use a bufio.Writer in the program",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::GO,
        name: "Go",
        language: SourceLanguage::Go,
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
    buffers: BufferAccess::Readable(WalkerEntry { symbols: &[], own_symbols: &[], libraries: &[], detect }),
    unreached: &[UnreachedBuffers {
        name: "a bufio.Writer",
        options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-fork", "--fix-order"],
        possible: has_bufio_writer,
        is_drained: false,
    }],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};

fn is_go(sections: &ElfSections) -> bool {
    sections.has(".go.buildinfo")
}

/// Tells whether the linker has kept a method of bufio.Writer. A stripped program has the names of its functions too.
fn has_bufio_writer(sections: &ElfSections) -> bool {
    let names = [".gopclntab", ".data.rel.ro.gopclntab"];
    !names.iter().any(|name| sections.has(name))
        || names.iter().any(|name| section_contains(sections, name, b"bufio.(*Writer)."))
}

/// A Go program's walker comes before all others.
const FIRST: u64 = 0;

fn detect(process: &ProcessImages, found: &mut Detected) {
    let Some(executable) = process.executable.as_ref().filter(|executable| executable.go) else { return };
    let go = || {
        let start = process.executable_start()?.start;
        let tables = GoItabs::of(&process.memory, executable.go_parts.as_ref()?, executable.bias(start))?;
        Some(GoStreams::new(process.pid, tables, executable.symbol_at(elf_image::GOROUTINES, start)))
    };
    match go() {
        Some(go) => found.add(FIRST, Box::new(go)),
        None => found.add_unreadable(FIRST, "a Go program"),
    }
}

/// The walker of Go.
#[derive(Debug)]
pub(crate) struct GoStreams {
    pid: u32,
    tables: GoItabs,
    /// Address of the list of goroutines, if the program has the symbol.
    goroutines: Option<u64>,
    cache: RefCell<SearchCache<BufioType>>,
}

impl GoStreams {
    pub fn new(pid: u32, tables: GoItabs, goroutines: Option<u64>) -> GoStreams {
        GoStreams { pid, tables, goroutines, cache: RefCell::default() }
    }

    fn objects(&self, memory: &dyn Memory, validator: &BufioValidator) -> BTreeSet<(u64, BufioType)> {
        let (mut found, range) = (BTreeSet::new(), self.tables.range());
        touched(self.pid, memory, |start, data| {
            for (index, value) in
                data.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).enumerate()
            {
                if range.contains(&value) && found.len() < STREAMS_MOST {
                    let candidates = validator.around(start + 8 * index as u64, value);
                    found.extend(candidates.filter(|(at, kind)| validator.stream(*at, *kind).is_some()));
                }
            }
        });
        found
    }
}

/// Returns the stream of an object, and whether the object was used.
fn candidate(
    memory: &dyn Memory,
    validator: &BufioValidator,
    at: u64,
    kind: BufioType,
) -> Option<StreamCandidate> {
    let mut stream = validator.stream(at, kind)?;
    // The field n of a Writer.
    stream.watch_address = (kind == BufioType::Writer).then_some(at + 40);
    // The fields r, w and lastByte before the first read.
    let used = |field| memory.u64(at + field) != Some(0);
    let untouched =
        kind == BufioType::Reader && !used(40) && !used(48) && memory.u64(at + 72) == Some(u64::MAX);
    Some(StreamCandidate { at, untouched, stream })
}

impl Walker for GoStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::GO
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let descriptors = OpenDescriptors::of(self.pid);
        let open_for = |fd, writes| descriptors.open_for(fd, writes);
        let validator = BufioValidator { memory, tables: &self.tables, open_for: &open_for, kept };
        let mut cache = self.cache.borrow_mut();
        let objects = cache.objects(|| self.objects(memory, &validator));
        let candidates_now: Vec<StreamCandidate> =
            objects.iter().filter_map(|&(at, kind)| candidate(memory, &validator, at, kind)).collect();
        cache.record(self.pid, &candidates_now, |_| false);
        let used = LazyCell::new(|| stacks::read(memory, self.goroutines));
        candidates::resolve(candidates_now, |one, all| {
            let all = candidates::addresses(all);
            stacks::is_stale(one.at, &all, &used) || cache.is_stale_copy(one.at, &all)
        })
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(GoStreams {
            pid: child,
            tables: self.tables.clone(),
            goroutines: self.goroutines,
            cache: self.cache.clone(),
        }))
    }

    fn search_again(&self) {
        self.cache.borrow_mut().invalidate();
    }
}
