//! glibc: the FILE structures in the list `_IO_list_all`.

mod charset;
mod cookie;
pub(crate) mod list_search;
pub(crate) mod wide;

use std::collections::HashSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::c_library;
use crate::copied_memory::{
    MAX_BUFFER, MAX_STREAMS, UNREAD_KEPT, int, read_content, read_stable, structure, word,
};
use crate::pending_bytes::{FlushPosition, MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::{self, StreamBuffer};
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, WalkerEntry};

/// Programs that no other runtime claims write through the C library's stdio.
pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["_IO_list_all"],
        own_symbols: &[],
        libraries: &[],
        detect: c_library::detect,
    }),
    ..RuntimeEntry::stdio("glibc", "C", 1000, ProgramDetection::AnyProgram)
};

/// Size of `struct _IO_FILE` and the vtable pointer, and offsets in it; the same on x86-64 and aarch64 since glibc
/// 2.1.
pub(crate) const FILE_BYTES: usize = 224;
pub(crate) const WRITE_BASE: usize = 32;
/// Offset of `_IO_write_ptr`, up to which the bytes are pending.
pub const WRITE_PTR: usize = 40;
/// Offsets of `_IO_buf_base` and `_IO_buf_end`.
pub(crate) const BUFFER_START: usize = 56;
pub(crate) const BUFFER_END: usize = 64;
pub(crate) const CHAIN: usize = 104;
pub(crate) const FILENO: usize = 112;
/// Offsets of `_lock` and `_offset`.
pub(crate) const LOCK: usize = 136;
const OFFSET: usize = 144;
pub(crate) const WIDE_DATA: usize = 160;
/// Offset of `_mode`, which is greater than 0 for a stream of wide characters.
pub(crate) const ORIENTATION: usize = 192;
pub(crate) const VTABLE: usize = 216;

const MAGIC: u64 = 0xfbad_0000;
pub(crate) const UNBUFFERED: u64 = 0x2;
const NO_WRITES: u64 = 0x8;
const IN_BACKUP: u64 = 0x100;
pub(crate) const LINE_BUFFERED: u64 = 0x200;
pub(crate) const PUTTING: u64 = 0x800;
const APPENDING: u64 = 0x1000;

/// The walker of glibc.
#[derive(Debug, Clone)]
pub struct GlibcStreams {
    heads: Vec<u64>,
    /// A stream that the list must contain, if a search found the head.
    must: Option<u64>,
}

impl GlibcStreams {
    /// Makes the walker of a process that has `_IO_list_all` at this address.
    pub fn at(head: u64) -> GlibcStreams {
        GlibcStreams { heads: vec![head], must: None }
    }

    /// Makes a walker from several candidates for `_IO_list_all`, of which the one with the longest list counts.
    pub(crate) fn one_of(heads: Vec<u64>, must: u64) -> GlibcStreams {
        GlibcStreams { heads, must: Some(must) }
    }

    /// Returns the addresses and copies of all streams.
    pub(crate) fn files(&self, memory: &dyn Memory) -> Vec<(u64, [u8; FILE_BYTES])> {
        let mut left = MAX_STREAMS;
        let lists = self.heads.iter().filter_map(|head| Some(list(memory, memory.u64(*head)?, &mut left)));
        let complete = lists.filter(|list| self.must.is_none_or(|must| list.iter().any(|one| one.0 == must)));
        complete.max_by_key(Vec::len).unwrap_or_default()
    }
}

impl Walker for GlibcStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::GLIBC
    }

    /// Reads the streams in the order of the list, in which exit(3) flushes them.
    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        self.files(memory)
            .into_iter()
            .filter_map(|(at, file)| read_stable(memory, at, file, |file| stream(memory, at, file, kept)))
            .collect()
    }

    fn cookie_buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let mut files = self.files(memory);
        files.retain(|(at, file)| cookie::has_own_writer(memory, *at, file));
        let streams = files.into_iter().filter_map(|(at, file)| stream(memory, at, &file, 0));
        streams.map(|one| one.buffer).filter(|one| one.pending_bytes > 0).collect()
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(self.clone()))
    }
}

/// Returns the addresses and copies of the streams in a list, up to the first structure that is no stream. Reads at most
/// `left` structures, and lowers `left` by those that it reads: crafted memory can hold many lists that share their ends.
pub(crate) fn list(memory: &dyn Memory, first: u64, left: &mut usize) -> Vec<(u64, [u8; FILE_BYTES])> {
    let (mut found, mut visited) = (Vec::new(), HashSet::new());
    let mut at = first;
    while at != 0 && *left > 0 && visited.insert(at) {
        *left -= 1;
        let Some(file) = structure::<FILE_BYTES>(memory, at).filter(is_file) else { break };
        found.push((at, file));
        at = word(&file, CHAIN);
    }
    found
}

/// Returns whether bytes begin with the magic number of a FILE.
pub(crate) fn begins_as_file(bytes: &[u8]) -> bool {
    u64::from(int(bytes, 0) as u32) & 0xffff_0000 == MAGIC
}

/// Returns whether a structure has the magic number of a FILE and a vtable.
pub(crate) fn is_file(file: &[u8; FILE_BYTES]) -> bool {
    begins_as_file(file) && word(file, VTABLE) != 0
}

/// Returns whether nothing was written or read through a stream yet. It may have a buffer from setvbuf(3).
pub(crate) fn is_unused(file: &[u8; FILE_BYTES]) -> bool {
    let [read_end, read_base] = [16, 24].map(|field| word(file, field));
    word(file, 0) & PUTTING == 0 && read_end == read_base
}

/// Returns whether a stream was opened for writing.
pub(crate) fn is_writable(file: &[u8; FILE_BYTES]) -> bool {
    word(file, 0) & NO_WRITES == 0
}

fn stream(memory: &dyn Memory, address: u64, file: &[u8; FILE_BYTES], kept: u64) -> Option<StreamBuffer> {
    let flags = word(file, 0);
    let [read_ptr, read_end, read_base, write_base, write_ptr, _, base, end] =
        std::array::from_fn(|field| word(file, 8 + 8 * field));
    let size = end.checked_sub(base).filter(|size| *size <= MAX_BUFFER)?;
    let mut buffer = Buffer {
        mode: mode(flags, base),
        buffer_bytes: size,
        ..Buffer::empty(RuntimeId::GLIBC, address, int(file, FILENO).max(-1))
    };
    if flags & PUTTING != 0 {
        if base > write_base || write_base > write_ptr || write_ptr > end {
            return None;
        }
        buffer.pending_bytes = write_ptr - write_base;
        buffer.pending = read_content(memory, write_base, buffer.pending_bytes, kept)?;
    } else {
        let pushed_back = flags & IN_BACKUP != 0;
        if read_base > read_ptr || read_ptr > read_end || !pushed_back && (base > read_base || read_end > end)
        {
            return None;
        }
        // Bytes pushed back by ungetc(3) come before the bytes of the buffer, which _IO_save_base then points to.
        let parts =
            [(read_ptr, read_end), if pushed_back { (word(file, 72), word(file, 88)) } else { (0, 0) }];
        unread(memory, &mut buffer, parts)?;
    }
    with_wide_buffer(memory, file, kept, buffer)
}

/// Adds the pending bytes of the wide buffer, the state of the lock, and the stores that drain both buffers.
fn with_wide_buffer(
    memory: &dyn Memory,
    file: &[u8; FILE_BYTES],
    kept: u64,
    buffer: Buffer,
) -> Option<StreamBuffer> {
    let mut stream = StreamBuffer::of(buffer);
    stream.watch_address = Some(stream.buffer.address.wrapping_add(WRITE_PTR as u64));
    if stream.buffer.pending_bytes > 0 {
        add_drain(file, &mut stream);
    }
    stream.flush_position = flush_position(file);
    if int(file, ORIENTATION) > 0 {
        wide::add(memory, file, kept, &mut stream)?;
    }
    if word(file, 0) & PUTTING != 0 {
        (stream.locked, stream.lock_owner) = lock(memory, word(file, LOCK));
    }
    Some(stream)
}

/// Adds the stores that leave the stream as `_IO_new_do_write` does. A stream that was read before (open for both, no
/// seek between) would seek in its flush, which is impossible from outside, so it gets no stores.
fn add_drain(file: &[u8; FILE_BYTES], stream: &mut StreamBuffer) {
    let at = stream.buffer.address;
    let [read_end, write_base, base, end] =
        [16, WRITE_BASE, BUFFER_START, BUFFER_END].map(|field| word(file, field));
    if read_end != write_base {
        return;
    }
    let by_byte = word(file, 0) & (LINE_BUFFERED | UNBUFFERED) != 0 && int(file, ORIENTATION) <= 0;
    let (reads, offset) = ([8, 16, 24], word(file, OFFSET));
    stream.drain_stores.extend(reads.map(|field| MemoryStore::u64(at + field, base)));
    stream.drain_stores.extend([32, 40].map(|field| MemoryStore::u64(at + field, base)));
    stream.drain_stores.push(MemoryStore::u64(at + 48, if by_byte { base } else { end }));
    stream
        .partial_stores
        .extend(reads.map(|field| PartialStore::new(at + field, StoredValue::WrittenPlus(write_base))));
    stream.partial_stores.push(PartialStore::new(at + 32, StoredValue::WrittenPlus(write_base)));
    // The known file position moves with the written bytes. With O_APPEND the position becomes unknown (-1).
    if offset as i64 >= 0 {
        let (at, appends) = (at + OFFSET as u64, word(file, 0) & APPENDING != 0);
        let moved = offset.wrapping_add(stream.buffer.pending_bytes);
        stream.drain_stores.push(MemoryStore::u64(at, if appends { u64::MAX } else { moved }));
        stream.partial_stores.push(PartialStore::new(
            at,
            if appends { StoredValue::Constant(u64::MAX) } else { StoredValue::WrittenPlus(offset) },
        ));
    }
}

/// Returns where `_IO_new_do_write` writes the next bytes, if it moves the file's offset first, because bytes were read ahead.
pub(crate) fn flush_position(file: &[u8; FILE_BYTES]) -> Option<FlushPosition> {
    let [read_ptr, read_end, write_base] = [8, 16, WRITE_BASE].map(|field| word(file, field));
    let first = if word(file, 0) & PUTTING != 0 { write_base } else { read_ptr };
    // With O_APPEND the kernel writes at the end of the file.
    let distance =
        if word(file, 0) & APPENDING != 0 { 0 } else { first.wrapping_sub(read_end).cast_signed() };
    let offset = word(file, OFFSET);
    FlushPosition::moved((offset.cast_signed() >= 0).then_some(offset), distance)
}

/// Reads `_IO_lock_t`: the lock word, the recursion count and the owner.
pub(crate) fn lock(memory: &dyn Memory, at: u64) -> (Option<bool>, u64) {
    if at == 0 {
        return (None, 0);
    }
    let Some(lock) = structure::<16>(memory, at) else { return (None, 0) };
    (Some(int(&lock, 0) != 0 || word(&lock, 8) != 0), word(&lock, 8))
}

fn unread(memory: &dyn Memory, buffer: &mut Buffer, parts: [(u64, u64); 2]) -> Option<()> {
    for (from, to) in parts {
        let bytes = to.checked_sub(from).filter(|bytes| *bytes <= MAX_BUFFER)?;
        let room = UNREAD_KEPT - buffer.unread.len() as u64;
        buffer.unread.extend(read_content(memory, from, bytes, room)?);
        buffer.unread_bytes += bytes;
    }
    Some(())
}

fn mode(flags: u64, base: u64) -> Option<Mode> {
    match flags {
        _ if flags & UNBUFFERED != 0 => Some(Mode::None),
        _ if flags & LINE_BUFFERED != 0 => Some(Mode::Line),
        _ if base == 0 => None,
        _ => Some(Mode::Full),
    }
}
