//! One `std::basic_filebuf<char>` of libstdc++ in memory.
//!
//! The layout is part of libstdc++'s ABI and the same since GCC 3.4. `[pbase, pptr)` are the pending bytes.
//!
//! Why no byte is written twice, lost or reordered:
//!
//! 1. A put (`sputc`, `basic_streambuf::xsputn`) stores its bytes first and moves `pptr` then. It does not use `pbase`. So
//!    the bytes before `pptr` are complete at every instruction, and a change of `pbase` does not disturb a put.
//! 2. Only `overflow` and the long case of `xsputn` write. They load `pbase` and `pptr`, write `[pbase, pptr)` by write(2)
//!    or, with further bytes behind it, by writev(2), from `pbase` on, and then set `pptr` and after it `pbase` to the
//!    beginning of the buffer. `sync`, seeks, `close` and reads call `overflow`; moves and swaps keep the buffer.
//! 3. Bytes that weir writes ahead stay in the object. The program's next write of them begins at their address: weir
//!    stops it at its entry and skips them. A write from another address is not changed.
//! 4. Between the return of that write(2) and the change of `pptr` the bytes are written and still look pending. A thread
//!    there is in user mode. `--max-delay` then writes nothing unless the process has made no write since an earlier
//!    snapshot with the same bytes and the thread has run on since. Flush waits until the thread makes another call.
//!    `--rescue` replays a killed thread up to the change of `pptr`.
//! 5. A drain moves `pbase` while all threads block in calls other than writes, so none is between the steps of 2.
//! 6. After a drain `pbase` is not the beginning of the buffer. Since `pptr` is set first, the state between the two
//!    stores of 2 has `pptr` before `pbase`, which counts as no pending bytes.
//! 7. A swap exchanges the put areas first and the buffers later. An object between the two has a buffer in use for writing and no put
//!    area: it is being changed, and not empty.
//!
//! One case cannot be detected from outside, as with stdio: a signal handler that interrupts a thread in 4 and then blocks.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, word};
use crate::pending_bytes::{CountWord, MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Offsets in `basic_streambuf`: the get area and the put area.
const EBACK: usize = 8;
const GPTR: usize = 16;
const EGPTR: usize = 24;
pub(super) const PBASE: usize = 32;
pub(super) const PPTR: usize = 40;
const EPPTR: usize = 48;
/// Size of pthread_mutex_t (`_M_lock`), which comes before `_M_file`.
const LOCK_BYTES: usize = if cfg!(target_arch = "aarch64") { 48 } else { 40 };
/// Offsets in `basic_filebuf`.
pub(super) const FILE: usize = 64 + LOCK_BYTES;
const OPEN_MODE: usize = FILE + 16;
const BUFFER: usize = FILE + 48;
const BUFFER_SIZE: usize = FILE + 56;
/// Four flags and the pushed-back character: `_M_buf_allocated`, `_M_reading`, `_M_writing`, `_M_pback`.
const ALLOCATED: usize = FILE + 64;
const READING: usize = FILE + 65;
const WRITING: usize = FILE + 66;
const PUSHED_BACK_CUR: usize = FILE + 72;
const PUSHED_BACK_END: usize = FILE + 80;
const PUSHED_BACK: usize = FILE + 88;
const CODECVT: usize = FILE + 96;
/// Size of the part that is read: up to `_M_codecvt`.
pub(super) const OBJECT_BYTES: usize = FILE + 104;

/// Values of `std::ios_base::openmode`.
const APP: i32 = 1;
const IN: i32 = 8;
const OUT: i32 = 16;
/// All bits of an open mode: app, ate, binary, in, out, trunc, noreplace.
const MODE_BITS: i32 = 0x7f;

/// Returns the C library's stream through which a file buffer opened its file (`_M_cfile`); 0 if it is closed.
pub(super) fn c_file(object: &[u8; OBJECT_BYTES]) -> u64 {
    word(object, FILE)
}

/// Returns the address of the codecvt facet.
pub(super) fn codecvt(object: &[u8; OBJECT_BYTES]) -> u64 {
    word(object, CODECVT)
}

/// Returns whether the fields of an open file buffer fit each other.
pub(super) fn is_open(object: &[u8; OBJECT_BYTES]) -> bool {
    let is_flag = |at: &usize| object[*at] <= 1;
    let (buffer, size, mode) = (word(object, BUFFER), word(object, BUFFER_SIZE), int(object, OPEN_MODE));
    let file = c_file(object);
    let has_buffer = buffer > u64::from(u16::MAX) || buffer == 0 && size <= 1;
    [ALLOCATED, READING, WRITING, PUSHED_BACK].iter().all(is_flag)
        && object[READING] & object[WRITING] == 0
        && mode & (APP | IN | OUT) != 0
        && mode & !MODE_BITS == 0
        && (1..=MAX_BUFFER).contains(&size)
        && has_buffer
        && buffer.checked_add(size).is_some()
        && file.is_multiple_of(8)
        && file > u64::from(u16::MAX)
}

/// Reads an open file buffer with this descriptor. `converts` returns whether its facet can change the bytes that it
/// writes: then only their number is known. Returns None if the fields contradict each other, as during a change.
pub(super) fn stream(
    memory: &dyn Memory,
    at: u64,
    object: &[u8; OBJECT_BYTES],
    fd: i32,
    converts: impl Fn() -> bool,
    kept: u64,
) -> Option<StreamBuffer> {
    let (buffer, size) = (word(object, BUFFER), word(object, BUFFER_SIZE));
    // The object can be moved; its buffer then belongs to the new one.
    let address = if buffer == 0 { at } else { buffer };
    let mut found = Buffer {
        mode: mode(fd, size),
        buffer_bytes: size.saturating_sub(1),
        ..Buffer::empty(RuntimeId::CPP, address, fd)
    };
    let [pbase, pptr, epptr] = [PBASE, PPTR, EPPTR].map(|field| word(object, field));
    if object[READING] == 1 {
        unread(memory, object, &mut found)?;
    } else if pbase != 0 {
        // The last byte of the buffer is for the argument of overflow().
        let end = buffer + size;
        if buffer > pbase || pbase > pptr || pptr > end || epptr != end - 1 {
            return None;
        }
        found.pending_bytes = pptr - pbase;
    } else if pptr != 0 || object[WRITING] == 1 && size > 1 {
        // In the middle of a swap, the put area is in the other object already.
        return None;
    }
    let mut stream = StreamBuffer::of(found);
    if stream.buffer.pending_bytes > 0 && !converts() {
        stream.buffer.pending = read_content(memory, pbase, stream.buffer.pending_bytes, kept)?;
        add_drain(at, pbase, pptr, &mut stream);
    }
    stream.watch_address = Some(at + PPTR as u64);
    Some(stream)
}

/// Adds the stores that leave the pending bytes out. They move `pbase`, which a put neither reads nor changes: a put
/// that was interrupted continues correctly. The next flush makes the whole buffer available again.
fn add_drain(at: u64, pbase: u64, pptr: u64, stream: &mut StreamBuffer) {
    let field = at + PBASE as u64;
    stream.data_address = Some(pbase);
    stream.note = Some(CountWord { address: at + PPTR as u64, when_written: stream.buffer.address });
    stream.drain_stores = vec![MemoryStore::u64(field, pptr)];
    stream.partial_stores = vec![PartialStore::new(field, StoredValue::WrittenPlus(pbase))];
}

/// Adds the read-ahead bytes: those of the get area, and those behind a pushed-back character.
fn unread(memory: &dyn Memory, object: &[u8; OBJECT_BYTES], found: &mut Buffer) -> Option<()> {
    let [eback, gptr, egptr] = [EBACK, GPTR, EGPTR].map(|field| word(object, field));
    let saved = match object[PUSHED_BACK] {
        0 => (0, 0),
        _ => (word(object, PUSHED_BACK_CUR), word(object, PUSHED_BACK_END)),
    };
    (eback <= gptr).then_some(())?;
    for (from, to) in [(gptr, egptr), saved] {
        let bytes = to.checked_sub(from).filter(|bytes| *bytes <= MAX_BUFFER)?;
        let room = UNREAD_KEPT - found.unread.len() as u64;
        found.unread.extend(read_content(memory, from, bytes, room)?);
        found.unread_bytes += bytes;
    }
    Some(())
}

/// Returns the buffering mode. std::cerr and std::clog may share a file buffer, which only std::cerr flushes always.
fn mode(fd: i32, size: u64) -> Option<Mode> {
    match size {
        0 | 1 => Some(Mode::None),
        _ if fd == 2 => None,
        _ => Some(Mode::Full),
    }
}
