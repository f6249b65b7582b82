//! libweir: streams in anonymous pages that begin with a magic number.

use std::ops::Range;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::elf::ElfSections;
use weir_sys::maps::{MappedRegion, MappingKind};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::outside_write::OutsideWrite;
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, ProcessImages, ProgramDetection, RuntimeEntry, UnreachedBuffers, WalkerEntry,
};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["weir_flush"],
        own_symbols: &[],
        libraries: &[],
        detect,
    }),
    unreached: &[
        UnreachedBuffers {
            name: "a stream of libweir with WEIR_LOCK_FILE, WEIR_URING or WEIR_DIRECT, if the program has one",
            options: &["--max-delay", "--fix-fork"],
            possible: |sections, _| uses_libweir(sections),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "a stream of libweir with WEIR_LOCK_FILE, or a write of WEIR_URING in flight: their bytes are saved",
            options: &["--rescue"],
            possible: |sections, _| uses_libweir(sections),
            is_drained: false,
        },
    ],
    ..RuntimeEntry::stdio("libweir", "libweir", 300, ProgramDetection::Never)
};

/// Returns whether an executable imports libweir or contains it. False for a stripped one that contains it.
fn uses_libweir(sections: &ElfSections) -> bool {
    sections.imports(b"weir_flush") || sections.any_symbol(false, |name| name == b"weir_flush") == Some(true)
}

/// Adds one walker, which reads the streams of all copies of libweir in the process.
fn detect(process: &ProcessImages, found: &mut Detected) {
    let linked = |region: &MappedRegion| {
        let executable = process.executable.as_ref().filter(|_| process.is_executable(region));
        executable.is_some_and(|image| image.symbol("weir_flush").is_some())
    };
    let is_library =
        |region: &MappedRegion| region.name().starts_with("libweir") && region.name().contains(".so");
    if let Some(region) = process.starts().find(|region| is_library(region) || linked(region)) {
        found.add(region.start, Box::new(LibweirStreams { pid: process.pid }));
    }
}

pub(crate) const STREAM_MAGIC: u64 = 0x6d72_7473_7269_6577; // "weirstrm"
const HEAD_MAGIC: u64 = 0x6461_6568_7269_6577; // "weirhead"
const LAYOUT: i32 = 1;

/// Size of `struct weir_stream` of weir.h, and offsets in it.
const STREAM_BYTES: usize = 128;
const FD: usize = 12;
const BUFFER: usize = 32;
const READ: usize = 48;
const READ_LIMIT: usize = 64;
const HEAD: usize = 80;
/// Offset in the head of the stream: the end of the written bytes.
const WRITTEN: usize = 32;

/// WEIR__PRIVATE_LAYOUT of private.h. offsets.c there has the offsets that follow.
const PRIVATE_LAYOUT: u32 = 1;
/// Offsets in `struct weir__state`, which begins with the stream.
const HOT_LOCK: u64 = 128;
const HOT_ERROR: u64 = 156;
const HOT_POSITION: u64 = 176;
const HOT_WRITTEN_BYTES: u64 = 320;

/// Offsets in `struct weir__config`, in the page after the stream.
const OWN_FD: u64 = 56;
/// A word whose first byte is `lock_file`, and whose last one is `layout`.
const OWN_FLAGS: u64 = 76;
const OWN_MODE: u64 = 80;
const OWN_SEPARATOR: u64 = 96;
/// Addresses; 0 for a stream without them.
const OWN_SPILL: u64 = 208;
const OWN_DIRECT: u64 = 224;
const OWN_URING: u64 = 232;
/// WEIR_RECORD of weir.h.
const RECORD: i32 = 4;

/// The largest mapping that is searched page by page. A stream has a small mapping of its own, unless the kernel
/// merged a few; of a larger mapping only the first page is read.
const MAX_MAPPING: u64 = 256 << 10;

/// The walker of libweir. It leaves out streams whose buffer outlives the process (WEIR_KILL), because their bytes
/// cannot be lost.
#[derive(Debug)]
pub struct LibweirStreams {
    /// The process, whose mappings are read at each snapshot.
    pub pid: u32,
}

impl Walker for LibweirStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::LIBWEIR
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let page = rustix::param::page_size() as u64;
        let regions = memory.mappings(self.pid);
        let likely =
            regions.iter().filter(|one| one.writable && one.private && one.kind == MappingKind::Anonymous);
        let starts: Vec<u64> = likely.flat_map(|one| pages(one, page)).collect();
        let words = memory.words(&starts);
        let streams = starts.into_iter().zip(words).filter(|(_, word)| *word == Some(STREAM_MAGIC));
        let copies = streams.filter_map(|(at, _)| Some((at, structure(memory, at)?)));
        copies
            .filter_map(|(at, copy)| {
                read_stable(memory, at, copy, |stream| read(memory, at, stream, page, kept))
            })
            .collect()
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(LibweirStreams { pid: child }))
    }
}

fn pages(region: &MappedRegion, page: u64) -> impl Iterator<Item = u64> {
    let is_small = region.end - region.start <= MAX_MAPPING;
    let end = if is_small { region.end } else { region.start + page };
    (region.start..end).step_by(page as usize)
}

pub(crate) fn read(
    memory: &dyn Memory,
    at: u64,
    object: &[u8; STREAM_BYTES],
    page: u64,
    kept: u64,
) -> Option<StreamBuffer> {
    let head = &object[HEAD..];
    if int(object, 8) != LAYOUT || word(head, 0) != HEAD_MAGIC || int(head, 8) != LAYOUT {
        return None;
    }
    let [size, base, written, drained] = [16, 24, WRITTEN, 40].map(|at| word(head, at));
    // written < base + drained: the owner is about to reset both, and no bytes are pending.
    let pending = written.checked_sub(base)?.saturating_sub(drained);
    let unread = word(object, READ_LIMIT).saturating_sub(word(object, READ));
    if size > MAX_BUFFER || pending > size.max(1) || unread > MAX_BUFFER {
        return None;
    }
    let mut stream = StreamBuffer::of(Buffer {
        mode: mode(memory, at + page, int(object, FD)),
        buffer_bytes: size,
        pending_bytes: pending,
        pending: read_content(memory, word(object, BUFFER).wrapping_add(drained), pending, kept)?,
        unread_bytes: unread,
        unread: read_content(memory, word(object, READ), unread, UNREAD_KEPT)?,
        ..Buffer::empty(RuntimeId::LIBWEIR, at, int(object, FD).max(-1))
    });
    stream.watch_address = Some(at + (HEAD + WRITTEN) as u64);
    let first_pending = word(object, BUFFER).wrapping_add(drained);
    add_outside_write(memory, at + page, first_pending..first_pending.saturating_add(pending), &mut stream)?;
    if pending > 0 {
        add_drain(memory, at, page, (drained, pending), &mut stream);
    }
    Some(stream)
}

/// Adds the terms of a write from outside, and the bytes that a ring has taken from the buffer.
///
/// With WEIR_LOCK_FILE the bytes belong at the end of the file at a time at which no other writer has its lock. The kernel takes
/// a ring's bytes at any time, and the write that the library makes of them then is no system call that weir could skip. A
/// direct write keeps the file's offset on whole blocks.
fn add_outside_write(
    memory: &dyn Memory,
    own: u64,
    pending: Range<u64>,
    stream: &mut StreamBuffer,
) -> Option<()> {
    let flags = memory.i32(own + OWN_FLAGS).map_or(0, |flags| flags as u32);
    let has = |field: u64| memory.u64(own + field).is_some_and(|address| address != 0);
    stream.outside = if flags >> 24 != PRIVATE_LAYOUT {
        OutsideWrite::never(
            "weir does not know the layout of its stream: the program has another version of libweir",
        )
    } else if flags & 0xff != 0 {
        OutsideWrite::never("the program writes it with the file locked (WEIR_LOCK_FILE)")
    } else if has(OWN_SPILL) {
        OutsideWrite::never("the bytes outlive the process (WEIR_KILL)")
    } else if has(OWN_URING) {
        let ring = memory.u64(own + OWN_URING)?;
        let (from, bytes) = (memory.u64(ring)?, memory.u64(ring + 8)?);
        stream.in_flight = match bytes {
            0 => Vec::new(),
            // Between the submission and the note of it the buffer has these bytes, too.
            _ if pending.contains(&from) => Vec::new(),
            _ => read_content(memory, from, bytes, MAX_BUFFER).filter(|_| bytes <= MAX_BUFFER)?,
        };
        match bytes {
            0 => OutsideWrite::at_end("the program writes it by io_uring (WEIR_URING)"),
            _ => OutsideWrite::never("an asynchronous write may have written the first of them (WEIR_URING)"),
        }
    } else if has(OWN_DIRECT) {
        OutsideWrite::at_end("the program writes it without the page cache (WEIR_DIRECT)")
    } else {
        let is_record = memory.i32(own + OWN_MODE) == Some(RECORD);
        let record_end = memory.i32(own + OWN_SEPARATOR).filter(|_| is_record);
        OutsideWrite {
            record_end: record_end.and_then(|end| u8::try_from(end).ok()),
            ..OutsideWrite::default()
        }
    };
    Some(())
}

/// Adds the stores that drain the stream as the library's timer does: the bytes count as drained and written, and the owner
/// resets the offsets later. Their sum is the number of bytes that the stream has accepted, by which weir_sync and weir_commit
/// recognise new bytes. A known file position becomes unknown, and the library reads it again when needed.
fn add_drain(
    memory: &dyn Memory,
    at: u64,
    page: u64,
    (drained, pending): (u64, u64),
    stream: &mut StreamBuffer,
) {
    let own = at + page;
    let well = memory.i32(at + HOT_ERROR) == Some(0) && memory.i32(own + OWN_FD) == Some(stream.buffer.fd);
    stream.lock_owner = memory.u64(at + HOT_LOCK).unwrap_or(0);
    stream.locked = Some(stream.lock_owner != 0);
    let is_drainable = well && stream.outside.early_refusal.is_none();
    let (Some(position), Some(written)) = (memory.u64(at + HOT_POSITION), memory.u64(at + HOT_WRITTEN_BYTES))
    else {
        return;
    };
    if !is_drainable {
        return;
    }
    for (address, before) in [(at + (HEAD + 40) as u64, drained), (at + HOT_WRITTEN_BYTES, written)] {
        stream.drain_stores.push(MemoryStore::u64(address, before.wrapping_add(pending)));
        stream.partial_stores.push(PartialStore::new(address, StoredValue::WrittenPlus(before)));
    }
    if position as i64 >= 0 {
        stream.drain_stores.push(MemoryStore::u64(at + HOT_POSITION, u64::MAX));
        stream.partial_stores.push(PartialStore::new(at + HOT_POSITION, StoredValue::Constant(u64::MAX)));
    }
}

/// Reads the buffering mode from the stream's private page; None if the page has another descriptor.
fn mode(memory: &dyn Memory, own: u64, fd: i32) -> Option<Mode> {
    if memory.i32(own + OWN_FD)? != fd {
        return None;
    }
    match memory.i32(own + OWN_MODE)? {
        1 => Some(Mode::None),
        2 => Some(Mode::Line),
        3 => Some(Mode::Full),
        RECORD => Some(Mode::Record),
        _ => None,
    }
}
