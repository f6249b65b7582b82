//! Go: the buffers of `bufio` over a file or a connection. os.Stdout has no buffer, and system calls bypass libc.
//!
//! No list leads to the buffers. Each contains a pointer to the itab that makes a file an `io.Writer` or `io.Reader`,
//! so the walker searches the heap, which also holds the stacks, for that pointer. It accepts an object if its fields
//! and its descriptor agree.
//!
//! `weir run` never changes a Writer: the scheduler may have suspended a goroutine in the middle of a flush while all threads
//! wait. It writes the bytes of a Writer over a file ahead of the program, whose own write(2) of them begins at the
//! buffer's address and is skipped. So the only condition is that the bytes are not written yet. While the program runs,
//! [`crate::write_epoch`] shows it: a Writer whose bytes have grown is not in a flush, and its heap object never moves. A
//! Writer on a stack counts only before the first write to its file. At the program's end the goroutines' stacks
//! show it, see [`suspended`]. `weir flush` examines them while all threads are stopped, and empties a Writer that no
//! goroutine uses, see [`idle_writers`]. It searches a large heap before the stop: nothing moves an object of the heap, and
//! its span, which is read again, shows whether it is still in use. Only a copy by assignment in between is missed.

mod bufio;
mod examination;
mod functions;
pub(crate) mod fuzzing;
mod idle_writers;
mod itabs;
mod live_objects;
mod returned_flush;
mod search;
mod stacks;
mod suspended;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::{Cell, LazyCell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::candidates::{self, StreamCandidate};
use crate::copied_memory::MAX_BUFFER;
use crate::elf_image;
use crate::open_descriptors::OpenDescriptors;
use crate::pending_bytes::PendingBytes;
use crate::runtime_entry::in_file;
use crate::search_cache::SearchCache;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, DueSearch, IgnoresEnvironment, ProcessImages, ProgramDetection, RuntimeEntry,
    SuspendedFlushes, ThreadRegisters, UnreachedBuffers, Walker, WalkerEntry, WriteEpoch,
};
use bufio::{BufioValidator, candidate, is_fresh};
use examination::{Examination, ExaminedObjects};
use functions::GoFunctions;
use idle_writers::WriterUse;
pub(crate) use itabs::{GoItabs, GoSections, ItabSection};
use search::GoObjects;
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};
use weir_sys::elf::{ElfSections, MAX_SECTION_BYTES};

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
        limits: RuntimeLimits {
            coalesce: Some("Go makes its system calls itself: they bypass libc"),
            ..RuntimeLimits::NONE
        },
    },
    order: 200,
    detection: ProgramDetection::Executable(is_go),
    buffers: BufferAccess::Readable(WalkerEntry { symbols: &[], own_symbols: &[], libraries: &[], detect }),
    unreached: &[
        UnreachedBuffers {
            name: "a bufio.Writer",
            options: &["--stdout none", "--stdout line"],
            possible: has_bufio_writer,
            is_drained: true,
        },
        UnreachedBuffers {
            name: "a bufio.Writer",
            options: &["--fix-fork", "--fix-order"],
            possible: has_bufio_writer,
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a bufio.Writer over a writer of the program's own",
            options: &UNREACHED,
            possible: |sections, path| has_bufio_writer(sections, path) && has_own_writer(sections),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a gzip.Writer or another compressor",
            options: &UNREACHED,
            possible: |sections, _| function_names(sections).is_none_or(has_compressor),
            is_drained: false,
        },
    ],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};

/// The options that do not reach a writer which weir does not find.
const UNREACHED: [&str; 6] =
    ["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-fork", "--fix-order"];

fn is_go(sections: &ElfSections) -> bool {
    sections.has(".go.buildinfo")
}

/// Returns whether the linker has kept a method of bufio.Writer. A stripped program has the names of its functions too.
fn has_bufio_writer(sections: &ElfSections, _executable: &Path) -> bool {
    function_names(sections).is_none_or(|names| contains(names, b"bufio.(*Writer)."))
}

/// Returns the table with the names of the functions that the linker has kept; None without it.
fn function_names<'a>(sections: &ElfSections<'a>) -> Option<&'a [u8]> {
    let named = [".gopclntab", ".data.rel.ro.gopclntab"].into_iter().find(|name| sections.has(name))?;
    Some(sections.bytes(named, MAX_SECTION_BYTES).unwrap_or_default())
}

fn contains(names: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(names, part).is_some()
}

/// Returns whether the Go program in a file contains a compressor, whose bytes no walker finds.
pub fn contains_compressor(executable: &Path) -> bool {
    in_file(executable, |sections| function_names(sections).is_some_and(has_compressor)) == Some(true)
}

fn has_compressor(names: &[u8]) -> bool {
    contains(names, b"compress/flate.(*compressor).")
}

/// Returns whether a type outside of the standard library has a method Write, so that a bufio.Writer may be over it.
fn has_own_writer(sections: &ElfSections) -> bool {
    let Some(names) = function_names(sections) else { return true };
    const WRITE: &[u8] = b".Write\0";
    memchr::memmem::find_iter(names, WRITE).any(|end| {
        let start = names[..end].iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
        is_own_method(&names[start..end])
    })
}

/// Returns whether a method, by its name without the last part, is not one of the standard library, whose paths begin without a dot.
fn is_own_method(name: &[u8]) -> bool {
    let (path, is_qualified) = match name.iter().position(|byte| *byte == b'/') {
        Some(end) => (&name[..end], true),
        None => (name, false),
    };
    let has_type = name.iter().rev().take_while(|byte| **byte != b'/').any(|byte| *byte == b'.');
    has_type && (name.starts_with(b"main.") || is_qualified && path.contains(&b'.'))
}

/// A Go program's walker comes before all others.
const FIRST: u64 = 0;

fn detect(process: &ProcessImages, found: &mut Detected) {
    let Some(executable) = process.executable.as_ref().filter(|executable| executable.go) else { return };
    let go = || {
        let region = process.executable_start()?;
        let (parts, bias) = (executable.go_parts.clone()?, executable.bias(region.start));
        let tables = GoItabs::of(&process.memory, &parts, bias)?;
        // A writer without a known itab is over a type of the program's own.
        let has_writer = |path: &Path| in_file(path, |sections| has_bufio_writer(sections, path));
        if tables.is_empty() && has_writer(&process.image_file(region)?.0)? {
            return None;
        }
        let goroutines = executable.symbol_at(elf_image::GOROUTINES, region.start);
        Some(GoStreams { sections: Some((parts, bias)), ..GoStreams::new(process.pid, tables, goroutines) })
    };
    match go() {
        Some(go) => found.add(FIRST, Box::new(go)),
        None if process.executable_start().is_some_and(|region| process.is_mapped(region)) => {
            found.add_unreadable(FIRST, "a Go program")
        }
        None => {} // it has ended meanwhile
    }
}

/// The walker of Go.
#[derive(Debug)]
pub(crate) struct GoStreams {
    pid: u32,
    tables: GoItabs,
    /// Address of the list of goroutines; None if the program has no symbol of it, and no search has found it yet.
    goroutines: Cell<Option<u64>>,
    /// The program's functions, once they were needed.
    functions: OnceCell<Option<GoFunctions>>,
    /// The program's sections and its load bias.
    sections: Option<(GoSections, u64)>,
    cache: RefCell<SearchCache<GoObjects>>,
    /// How the next read examines which objects are in use.
    next_examination: Cell<Examination>,
    examined: RefCell<ExaminedObjects>,
}

/// The memory that is searched while a program is stopped: some 3 ms. A larger heap is searched before the stop only.
const SEARCHED_WHEN_STOPPED: u64 = 4 << 20;

impl GoStreams {
    pub fn new(pid: u32, tables: GoItabs, goroutines: Option<u64>) -> GoStreams {
        GoStreams {
            pid,
            tables,
            goroutines: Cell::new(goroutines),
            functions: OnceCell::new(),
            sections: None,
            cache: RefCell::default(),
            next_examination: Cell::default(),
            examined: RefCell::default(),
        }
    }

    /// Returns the functions. They are in memory that the program only reads.
    fn functions(&self, memory: &dyn Memory) -> Option<&GoFunctions> {
        self.functions.get_or_init(|| GoFunctions::read(memory, &self.module(memory)?)).as_ref()
    }

    fn module(&self, memory: &dyn Memory) -> Option<Vec<u64>> {
        let (sections, bias) = self.sections.as_ref()?;
        itabs::module(memory, sections, *bias)
    }

    /// Returns the address of the list of goroutines, after a search among the variables if it is not known.
    fn goroutine_list(&self, memory: &dyn Memory) -> Option<u64> {
        let search = || {
            let (start, end) = functions::variables(memory, &self.module(memory)?)?;
            stacks::find_list(memory, start, end)
        };
        self.goroutines.set(self.goroutines.get().or_else(search));
        self.goroutines.get()
    }

    /// Reads the streams of the objects that the last search has found, after a new search if one is due.
    fn read_with(&self, memory: &dyn Memory, kept: u64, examination: Examination) -> Vec<StreamBuffer> {
        let descriptors = OpenDescriptors::of(self.pid);
        let mut cache = self.cache.borrow_mut();
        let objects = cache.objects((self.pid, memory), || self.search()).clone();
        self.goroutines.set(self.goroutines.get().or(objects.goroutines));
        let open_for = |fd, writes| descriptors.open_for(fd, writes);
        let validator = BufioValidator { memory, tables: &self.tables, open_for: &open_for, kept };
        let valid = objects.objects.iter().filter_map(|&(at, kind)| candidate(memory, &validator, at, kind));
        let mut candidates_now: Vec<StreamCandidate> = valid.collect();
        self.examine(memory, &mut candidates_now, examination);
        let fixed = &objects.fixed;
        let unwritten = self.record(memory, &mut cache, &descriptors, fixed, &candidates_now);
        for one in &mut candidates_now {
            let can_be_drained = fixed.contains(&one.at) && one.stream.note.is_some();
            one.stream.is_drained_when_stopped = can_be_drained && cfg!(target_arch = "x86_64");
        }
        let used = LazyCell::new(|| stacks::read(memory, self.goroutines.get()));
        let mut streams = candidates::resolve(candidates_now, |one, all| {
            let all = candidates::addresses(all);
            stacks::is_stale(one.at, &all, &used) || cache.is_stale_copy(one.at, &all)
        });
        for one in &mut streams {
            one.unwritten = one.note.is_some_and(|note| unwritten.contains(&note.address));
            if one.note.is_none() && one.copies.is_empty() && one.data_address.is_some() {
                // The stacks do not show whether a goroutine flushes one of several equal copies; the file can.
                one.add_itself_as_copy();
            }
        }
        streams
    }

    /// Records the candidates in the cache. Returns the addresses of the notes of those whose bytes are certainly not written.
    fn record(
        &self,
        memory: &dyn Memory,
        cache: &mut SearchCache<GoObjects>,
        descriptors: &OpenDescriptors,
        fixed: &BTreeSet<u64>,
        candidates_now: &[StreamCandidate],
    ) -> BTreeSet<u64> {
        // Reads the whole buffer, so each Writer is judged once.
        let first: RefCell<BTreeMap<u64, bool>> = RefCell::default();
        let is_first = |one: &StreamCandidate, none_yet: bool| {
            let is_one =
                || (none_yet || descriptors.is_unwritten(one.stream.buffer.fd)) && is_fresh(memory, one);
            *first.borrow_mut().entry(one.at).or_insert_with(is_one)
        };
        cache.record(self.pid, candidates_now, is_first);
        // On a stack only the first bytes are sure: the copy of a Writer can seem to grow, because a stack that moves into its
        // place brings a later copy.
        let is_unwritten = |one: &&StreamCandidate| match fixed.contains(&one.at) {
            true => cache.are_unwritten(one.at),
            false => is_first(one, cache.is_none_written()),
        };
        let unwritten = candidates_now.iter().filter(is_unwritten);
        unwritten.filter_map(|one| Some(one.stream.note?.address)).collect()
    }
}

impl Walker for GoStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::GO
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        self.read_with(memory, kept, self.next_examination.take())
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(GoStreams {
            sections: self.sections.clone(),
            cache: self.cache.clone(),
            ..GoStreams::new(child, self.tables.clone(), self.goroutines.get())
        }))
    }

    fn note_writes(&self, epoch: &WriteEpoch) {
        self.cache.borrow_mut().note_writes(epoch);
    }

    fn pending_of_stopped(&self, memory: &dyn Memory, threads: &[ThreadRegisters]) -> Vec<PendingBytes> {
        // With a large heap the last search was made before the stop. An object that is new since then is left to the next
        // attempt.
        let mut examination = Examination::KnownSpans;
        if self.cache.borrow().found().bytes <= SEARCHED_WHEN_STOPPED {
            self.search_again();
            self.set_due_search(DueSearch::Now);
            examination = self.next_examination.take();
        }
        let mut pending = stream_buffer::pending(self.read_with(memory, MAX_BUFFER, examination));
        let is_profiled = self.sections.as_ref().is_none_or(|(sections, _)| sections.is_profiled);
        if pending.is_empty() || is_profiled {
            return pending;
        }
        let functions = self.functions(memory);
        let ExaminedObjects { live, writers, .. } = &*self.examined.borrow();
        let usage = WriterUse::read(memory, functions, live, threads, writers);
        pending.iter_mut().for_each(|one| usage.add_stores(memory, live, one));
        pending
    }

    fn suspended_flushes(
        &self,
        memory: &dyn Memory,
        threads: &[ThreadRegisters],
    ) -> Option<SuspendedFlushes> {
        let functions = self.functions(memory);
        let ExaminedObjects { live, writers, .. } = &*self.examined.borrow();
        Some(suspended::find(memory, functions, live, threads, writers))
    }

    fn flushing(&self, memory: &dyn Memory, buffers: &[Buffer]) -> Vec<u64> {
        let ExaminedObjects { live, writers, is_of_last_read } = &*self.examined.borrow();
        if !is_of_last_read {
            let of_go = buffers.iter().filter(|one| one.walker == RuntimeId::GO && one.pending_bytes > 0);
            return of_go.map(|one| one.address).collect();
        }
        if writers.is_empty() {
            return Vec::new();
        }
        let flushing = returned_flush::find(memory, self.functions(memory), live, writers);
        flushing.into_iter().map(|writer| returned_flush::buffer_of(memory, writer)).collect()
    }

    fn last_search(&self) -> Option<std::time::Instant> {
        self.cache.borrow().searched()
    }

    fn set_due_search(&self, due_search: DueSearch) {
        self.cache.borrow_mut().set_due_search(due_search);
    }

    fn searches(&self) -> Option<&dyn Any> {
        Some(&self.cache)
    }

    fn adopt_searches(&self, former: &dyn Any) {
        if let Some(former) = former.downcast_ref::<RefCell<SearchCache<GoObjects>>>() {
            self.cache.borrow_mut().continue_from(former.take());
        }
    }

    fn search_again(&self) {
        self.next_examination.set(Examination::Search);
        self.cache.borrow_mut().invalidate();
    }
}
