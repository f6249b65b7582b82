//! The buffer of wide characters, with 4 bytes each, which glibc converts into the buffer of bytes.

use weir_sys::memory::Memory;

use super::charset::{self, Charset};
use super::{FILE_BYTES, LINE_BUFFERED, PUTTING, UNBUFFERED, WIDE_DATA, WRITE_BASE, WRITE_PTR};
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, read_content, structure, word};
use crate::pending_bytes::MemoryStore;
use crate::stream_buffer::StreamBuffer;

/// Size of the pointers at the start of `struct _IO_wide_data`, and the offset of `_IO_write_ptr` there.
const WIDE_BYTES: usize = 64;
const WRITE_POINTER: u64 = 32;

/// The beginnings of the functions' names by which a program writes wide characters to a stream, after the end of another name.
pub(crate) const WIDE_WRITERS: [&[u8]; 9] = [
    b"\0fputw",
    b"\0putwc",
    b"\0fwprintf",
    b"\0wprintf",
    b"\0vfwprintf",
    b"\0vwprintf",
    b"\0__fwprintf_chk",
    b"\0__wprintf_chk",
    b"\0__vfwprintf_chk",
];

/// Adds the characters in the wide buffer: pending ones after the pending bytes, read-ahead ones before the
/// read-ahead bytes. If only the beginning of a long text is read, its average size per character applies to the rest.
/// Characters of an encoding into which weir cannot convert them exactly are counted in UTF-8, and left to the program.
pub(crate) fn add(
    memory: &dyn Memory,
    file: &[u8; FILE_BYTES],
    kept: u64,
    stream: &mut StreamBuffer,
) -> Option<()> {
    let (at, putting) = (word(file, WIDE_DATA), word(file, 0) & PUTTING != 0);
    let data = structure::<WIDE_BYTES>(memory, at)?;
    let [read_ptr, read_end, _, write_base, write_ptr, _, base, end] =
        std::array::from_fn(|field| word(&data, 8 * field));
    let (from, to) = if putting { (write_base, write_ptr) } else { (read_ptr, read_end) };
    if base > from || from > to || to > end || end - base > MAX_BUFFER {
        return None;
    }
    let characters = read_content(memory, from, to - from, kept.max(1 << 16))?;
    let exact = Charset::of(memory, at).and_then(|charset| charset.convert(&characters));
    let is_exact = exact.is_some();
    let text = exact.unwrap_or_else(|| charset::as_text(&characters));
    let bytes = match characters.len() as u64 {
        0 => 0,
        read => (to - from) * text.len() as u64 / read,
    };
    if structure::<WIDE_BYTES>(memory, at)? != data {
        return None;
    }
    let buffer = &mut stream.buffer;
    // The program writes into the wide buffer; the buffer of bytes changes only at a flush.
    stream.watch_address = at.checked_add(WRITE_POINTER);
    if putting {
        buffer.pending_bytes += bytes;
        buffer.pending.extend(text);
        buffer.pending.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        if is_exact {
            add_drain(at, file, &data, stream);
        } else {
            buffer.unconverted_bytes = bytes;
        }
    } else {
        buffer.unread_bytes += bytes;
        buffer.unread.splice(0..0, text);
        buffer.unread.truncate(UNREAD_KEPT as usize);
    }
    Some(())
}

/// Adds the stores that leave the wide buffer as `_IO_wdo_write` does. It cannot be drained partially.
fn add_drain(at: u64, file: &[u8; FILE_BYTES], data: &[u8; WIDE_BYTES], stream: &mut StreamBuffer) {
    let [read_end, write_base, write_ptr, base, end] = [8, 24, 32, 48, 56].map(|field| word(data, field));
    stream.partial_stores.clear();
    if write_base == write_ptr {
        return;
    }
    let bytes_wait = word(file, WRITE_PTR) != word(file, WRITE_BASE);
    if read_end != write_base || bytes_wait && stream.drain_stores.is_empty() {
        stream.drain_stores.clear();
        return;
    }
    let by_byte = word(file, 0) & (LINE_BUFFERED | UNBUFFERED) != 0;
    stream.drain_stores.extend([0, 8, 16, 24, 32].map(|field| MemoryStore::u64(at + field, base)));
    stream.drain_stores.push(MemoryStore::u64(at + 40, if by_byte { base } else { end }));
}
