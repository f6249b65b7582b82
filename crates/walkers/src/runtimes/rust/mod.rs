//! Rust: standard output, which the symbol `std::io::stdio::STDOUT` leads to, and a program's own buffers.
//!
//! The compiler chooses the order of the fields, so the walker recognises the vector of the LineWriter: its capacity
//! of 1024, which no other word there has, and as much mapped memory at its address.

mod buffers;
pub(crate) mod fuzzing;
pub(crate) mod layouts;
mod stacks;
#[cfg(test)]
mod tests;
mod validate;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};

pub(crate) use buffers::RustBuffers;

use crate::Walker;
use crate::copied_memory::{read_content, read_stable, structure, word};
use crate::elf_image;
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::runtime_entry::section_contains;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, IgnoresEnvironment, ProcessImages, ProgramDetection, RuntimeEntry,
    UnreachedBuffers, WalkerEntry,
};
use layouts::{MAX_INFO, RustLayouts};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};
use weir_sys::elf::{ElfFile, ElfSections};
use weir_sys::memory::Memory;

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::RUST,
        name: "Rust",
        language: SourceLanguage::Rust,
        fixes: RuntimeFixes {
            unbuffered: RuntimeFix::Outside,
            line_buffered: RuntimeFix::NotNeeded("Rust's stdout writes each line"),
            fully_buffered: RuntimeFix::Impossible(
                "Rust's stdout always writes line by line: use --coalesce",
            ),
            max_delay: RuntimeFix::Outside,
            rescue: RuntimeFix::Outside,
            fork: RuntimeFix::Outside,
            order: RuntimeFix::Impossible(
                "Rust's stdout has its own buffer, which cannot be removed from outside",
            ),
            other_streams: RuntimeFix::Impossible("Rust buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits::NONE,
    },
    order: 210,
    detection: ProgramDetection::Executable(is_rust),
    buffers: BufferAccess::Readable(WalkerEntry { symbols: &[], own_symbols: &[], libraries: &[], detect }),
    unreached: &[
        UnreachedBuffers {
            name: "a BufWriter",
            options: &["--stdout none", "--stdout line"],
            possible: |sections, path| writers(sections, path).is_some_and(|writers| writers.files),
            is_drained: true,
        },
        UnreachedBuffers {
            name: "a BufWriter",
            options: &["--fix-fork"],
            possible: |sections, path| writers(sections, path).is_some_and(|writers| writers.files),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a BufWriter, because the program has no debug information of types (-g),",
            options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-fork"],
            possible: |sections, path| writers(sections, path).is_some_and(|writers| !writers.any()),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a BufWriter, because weir cannot read its type in the debug information,",
            options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-fork"],
            possible: |sections, path| writers(sections, path).is_some_and(|writers| writers.unread),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a BufWriter over Box<dyn Write> or another type than a file",
            options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-fork"],
            possible: |sections, path| writers(sections, path).is_some_and(|writers| writers.others),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "standard output, because the program has no symbols,",
            options: &["--stdout none", "--max-delay", "--rescue", "--fix-fork"],
            possible: |sections, _| hides_stdout(sections),
            is_drained: false,
        },
    ],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};

fn is_rust(sections: &ElfSections) -> bool {
    let stripped = !sections.has(".comment");
    section_contains(sections, ".comment", b"rustc version")
        || elf_image::has_rust_printers(sections)
        || stripped && section_contains(sections, ".rodata", b"RUST_BACKTRACE")
}

/// Returns whether a symbol names a BufWriter of the program's own. Standard output has one over `StdoutRaw`, and code
/// that is common to all names no type.
fn has_buf_writer(sections: &ElfSections) -> bool {
    let own = |name: &[u8]| {
        let of = memchr::memmem::find(name, b"BufWriter").map(|at| &name[at + b"BufWriter".len()..]);
        // Both manglings of a type parameter.
        let is_generic = |of: &[u8]| of.starts_with(b"$LT$W$GT$") || of.starts_with(b"pE");
        of.is_some_and(|of| !is_generic(of) && memchr::memmem::find(of, b"StdoutRaw").is_none())
    };
    // In optimized code nothing else may be left of the type. The standard library contains no call of this function.
    let is_flush = |name: &[u8]| {
        let of = memchr::memmem::find(name, b"BufGuard").map(|at| &name[at..]);
        of.is_some_and(|of| memchr::memmem::find(of, b"remaining").is_some())
    };
    sections.any_symbol(false, |name| own(name) || is_flush(name)).unwrap_or(true)
}

/// The writers of the program's own that its debug information describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DescribedWriters {
    /// There are writers over a descriptor or standard output, whose layout is known.
    files: bool,
    /// There are such writers, and no layout can be read.
    unread: bool,
    /// There are writers over another type that may lead to a file.
    others: bool,
}

impl DescribedWriters {
    fn any(self) -> bool {
        self.files || self.unread || self.others
    }
}

/// Returns the writers of the program's own in an executable; None if it has none.
fn writers(sections: &ElfSections, path: &Path) -> Option<DescribedWriters> {
    let layouts = || elf_image::image(path)?.layouts(path);
    has_buf_writer(sections).then(|| described_writers(sections, layouts))
}

/// Returns which writers are described, by the names of types. Without `-g` only the writer of standard output is. With
/// `-Cdebuginfo=1` or less there are names of functions only, in which the type's name is no whole one.
fn described_writers(
    sections: &ElfSections,
    layouts: impl FnOnce() -> Option<Arc<RustLayouts>>,
) -> DescribedWriters {
    let text = |name| sections.bytes(name, MAX_INFO);
    let named = match (text(".debug_info"), text(".debug_str")) {
        (Some(_), Some(names)) => writers_in(names),
        // Too large or compressed.
        _ => DescribedWriters { unread: sections.has(".debug_info"), ..DescribedWriters::default() },
    };
    if !named.files {
        return named;
    }
    let has_writers = |layouts: Arc<RustLayouts>| layouts.all.iter().any(|one| one.used.is_none());
    let files = layouts().is_some_and(has_writers);
    DescribedWriters { files, unread: !files, ..named }
}

fn writers_in(names: &[u8]) -> DescribedWriters {
    const WRITER: &[u8] = b"BufWriter<";
    let mut found = DescribedWriters::default();
    for at in memchr::memmem::find_iter(names, WRITER).map(|at| at + WRITER.len()) {
        let name = names[at..].split(|byte| *byte == 0).next().unwrap_or_default();
        let Some(inner) = name.strip_suffix(b">").and_then(|inner| std::str::from_utf8(inner).ok()) else {
            continue;
        };
        if is_type(inner) {
            found.files |= layouts::inner_of(inner).is_some();
            found.others |= layouts::inner_of(inner).is_none() && !stays_in_memory(inner);
        }
    }
    found
}

/// Returns whether each bracket has its pair, so that the text is one type and not the rest of a longer name.
fn is_type(text: &str) -> bool {
    let after = |depth: i32, next: char| match next {
        '<' => Some(depth + 1),
        '>' if depth == 0 => None,
        '>' => Some(depth - 1),
        _ => Some(depth),
    };
    // The arrow of a function's type is no bracket.
    text.replace("->", "").chars().try_fold(0, after) == Some(0)
}

/// Returns whether the bytes of a writer over this type go to no file, or the type is that of standard output's own writer.
fn stays_in_memory(inner: &str) -> bool {
    let inner = inner.trim_start_matches("&mut ");
    let memory = ["alloc::vec::Vec<u8", "std::io::cursor::Cursor<", "std::io::util::", "[u8]"];
    memory.iter().any(|start| inner.starts_with(start)) || inner.ends_with("StdoutRaw") || inner.len() == 1
}

fn hides_stdout(sections: &ElfSections) -> bool {
    let stdout = |name: &[u8]| elf_image::is_rust_stdout(&[name, b"\0"].concat());
    !sections.any_symbol(false, stdout).unwrap_or(false)
}

/// Returns whether an executable is a program of Rust whose standard output cannot be found.
pub(crate) fn is_without_stdout(sections: &ElfSections) -> bool {
    // The text of the panic of print!, and its name of the stream.
    let prints = |text| section_contains(sections, ".rodata", text);
    is_rust(sections) && hides_stdout(sections) && prints(b"failed printing to ") && prints(b"stdout")
}

fn detect(process: &ProcessImages, found: &mut Detected) {
    let (Some(executable), Some(region)) = (&process.executable, process.executable_start()) else { return };
    let stdout = executable.symbol_at(elf_image::RUST_STDOUT, region.start);
    if let Some(stdout) = stdout {
        found.add(region.start, Box::new(RustStdout { stdout }));
    }
    let path = weir_sys::executable::link(process.pid);
    let layouts = if executable.rust { executable.layouts(Path::new(&path)) } else { None };
    if let Some(layouts) = layouts {
        found.add(
            region.start,
            Box::new(RustBuffers {
                pid: process.pid,
                layouts,
                stdout,
                cache: RefCell::default(),
                forked: false,
            }),
        );
    }
    if let Some(hidden) = executable.hidden_writers(Path::new(&path)) {
        found.add_unreadable_buffers(region.start, hidden);
    }
}

/// Returns the writers of a Rust program that no walker reads, as the subject of a sentence; None if it has none. `layouts`
/// returns those of the executable at `path`.
pub(crate) fn hidden_writers(
    path: &Path,
    layouts: impl FnOnce() -> Option<Arc<RustLayouts>>,
) -> Option<&'static str> {
    const WITHOUT_TYPES: &str = "the BufWriters of a Rust program without debug information of types";
    let elf = ElfFile::open(path);
    let Some(sections) = elf.as_ref().and_then(|elf| elf.sections().ok()) else { return Some(WITHOUT_TYPES) };
    if !has_buf_writer(&sections) {
        return None;
    }
    let described = described_writers(&sections, layouts);
    match described {
        _ if described.unread => {
            Some("the BufWriters of a Rust program whose types weir cannot read in its debug information")
        }
        _ if described.others => {
            Some("the BufWriters over Box<dyn Write> or another type than a file in a Rust program")
        }
        _ if described.files => None,
        _ => Some(WITHOUT_TYPES),
    }
}

/// Size of `OnceLock<ReentrantLock<RefCell<LineWriter<StdoutRaw>>>>`.
const STDOUT_BYTES: usize = 64;
/// As before, in versions whose lock contains a pthread_mutex_t.
const OLD_STDOUT_BYTES: usize = 88;
/// Default capacity of a LineWriter.
const CAPACITY: u64 = 1024;

/// The walker of standard output.
#[derive(Debug, Clone)]
pub(crate) struct RustStdout {
    /// Address of `STDOUT`.
    pub stdout: u64,
}

impl Walker for RustStdout {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::RUST
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let found = self.read_object::<STDOUT_BYTES>(memory, kept);
        found.or_else(|| self.read_object::<OLD_STDOUT_BYTES>(memory, kept)).into_iter().collect()
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(self.clone()))
    }
}

impl RustStdout {
    fn read_object<const BYTES: usize>(&self, memory: &dyn Memory, kept: u64) -> Option<StreamBuffer> {
        let copy = structure::<BYTES>(memory, self.stdout)?;
        read_stable(memory, self.stdout, copy, |copy| self.read_stdout(memory, copy, kept))
    }

    /// Returns the stream; None before its first use, and if no part or several parts look like the vector.
    fn read_stdout(&self, memory: &dyn Memory, stdout: &[u8], kept: u64) -> Option<StreamBuffer> {
        let vector = |at: &usize| {
            let [first, second, length] = [0, 8, 16].map(|field| word(stdout, at + field));
            let (capacity, data) = if first == CAPACITY { (first, second) } else { (second, first) };
            (capacity == CAPACITY && length <= CAPACITY && data > u64::from(u16::MAX)).then_some((
                data,
                length,
                at + 16,
            ))
        };
        let mut found = (0..stdout.len() - 16).step_by(8).filter_map(|at| vector(&at));
        let (Some((data, length, field)), None) = (found.next(), found.next()) else { return None };
        read_content(memory, data, CAPACITY, CAPACITY)?;
        let mut stream = StreamBuffer::of(Buffer {
            mode: Some(Mode::Line),
            buffer_bytes: CAPACITY,
            pending_bytes: length,
            pending: read_content(memory, data, length, kept)?,
            ..Buffer::empty(RuntimeId::RUST, self.stdout, 1)
        });
        // The lock does not matter: main often holds it all the time, and the bytes can be drained nevertheless. Every thread can
        // reach the RefCell in the lock, so the length is in memory at each system call, unless the RefCell is borrowed: then
        // the call is the write of the bytes.
        let length_at = self.stdout + field as u64;
        stream.watch_address = Some(length_at);
        stream.drain_stores = vec![MemoryStore::u64(length_at, 0)];
        stream.partial_stores = vec![
            PartialStore::new(data, StoredValue::RemainingBytes),
            PartialStore::new(length_at, StoredValue::RemainingPlus(0)),
        ];
        Some(stream)
    }
}
