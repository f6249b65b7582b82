//! One `std::basic_filebuf<char>` of libc++ in memory.
//!
//! The layout is part of libc++'s ABI, version 1. `[pbase, pptr)` are the pending bytes. They come after the pending bytes of
//! the FILE of the C library to which the file buffer hands its bytes by fwrite(3).
//!
//! Why no byte is written twice, lost or reordered:
//!
//! 1. A put of several bytes stores them first and moves `pptr` then; a put of one byte (`sputc`) moves `pptr` one instruction
//!    before it stores the byte, which the rescue completes. Only `overflow` hands bytes over: it calls fwrite(3) with
//!    `[pbase, pptr)` and sets `pptr` to `pbase` afterwards. `sync`, seeks and `close` call `overflow`.
//! 2. fwrite(3) of glibc holds the FILE's lock. While the lock is held, the bytes may be in both buffers: flush leaves them,
//!    and the rescue replays the thread up to the change of `pptr`, or saves the bytes in a file of their own.
//! 3. A thread that has left fwrite(3) and has not moved `pptr` is in user mode, so flush does not meet it. One exception: it
//!    may wake a thread that waits for the lock. Flush leaves the bytes while a thread is in a call with the lock's address.
//!    The rescue replays such a thread too.
//! 4. fwrite(3) copies the bytes or writes them from the file buffer, as it likes. Each write of the program begins in the buffer
//!    of the FILE or in the file buffer, with the first unwritten byte of both. So `--max-delay` treats both as one stream
//!    ([`crate::join_pending`]): weir skips what it has written ahead in the writes from one of them. It writes nothing ahead
//!    while the lock is held, or of a thread in user mode if the FILE's pending bytes or the number of the process's writes
//!    have changed since an earlier snapshot: then no fwrite(3) has taken bytes since, and the thread has left the last one.
//! 5. Flush writes the bytes of the FILE first, and those of the file buffer only if the FILE is empty then.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, word};
use crate::pending_bytes::{CountWord, FlushPosition, InnerStream, MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Offsets in `basic_streambuf`, after the locale: the get area and the put area.
const EBACK: usize = 16;
const GPTR: usize = 24;
const EGPTR: usize = 32;
pub(super) const PBASE: usize = 40;
pub(super) const PPTR: usize = 48;
const EPPTR: usize = 56;
/// The buffer of bytes and its size. Without a conversion it is the put area.
pub(super) const BYTES: usize = 64;
const SMALL_BUFFER: usize = 88;
pub(super) const BYTES_SIZE: usize = 96;
/// The buffer of characters that are converted.
const CHARACTERS: usize = 104;
const CHARACTERS_SIZE: usize = 112;
pub(super) const FILE: usize = 120;
const OPEN_MODE: usize = 152;
/// The present use of the buffer: reading, writing, or none.
pub(super) const CURRENT_MODE: usize = 156;
/// Three flags: `__owns_eb_`, `__owns_ib_`, `__always_noconv_`.
const FLAGS: std::ops::Range<usize> = 160..163;
pub(super) const CONVERTS_NOTHING: usize = 162;
/// Size of the object.
pub(super) const OBJECT_BYTES: usize = 168;
/// The size of the buffer in the object, which is used if the file is not buffered.
const SMALL: u64 = 8;

/// Values of `std::ios_base::openmode`, the same as those of libstdc++ by chance.
const IN: i32 = 8;
pub(super) const OUT: i32 = 16;
const USES: i32 = 1 | IN | OUT;
const MODE_BITS: i32 = 0x7f;

/// Returns the address of the FILE of a file buffer; 0 if it is closed.
pub(super) fn c_file(object: &[u8; OBJECT_BYTES]) -> u64 {
    word(object, FILE)
}

/// Returns whether the fields of an open file buffer fit each other. `at` is its address.
pub(super) fn is_open(at: u64, object: &[u8; OBJECT_BYTES]) -> bool {
    let (mode, now, file) = (int(object, OPEN_MODE), int(object, CURRENT_MODE), c_file(object));
    let [bytes, size, characters, count] =
        [BYTES, BYTES_SIZE, CHARACTERS, CHARACTERS_SIZE].map(|field| word(object, field));
    let is_area = |start: u64, size: u64| {
        start > u64::from(u16::MAX)
            && (SMALL..=MAX_BUFFER).contains(&size)
            && start.checked_add(size).is_some()
    };
    let is_small = bytes == at.wrapping_add(SMALL_BUFFER as u64);
    let characters_fit = match object[CONVERTS_NOTHING] {
        0 => is_area(characters, count),
        _ => characters == 0 && count == 0,
    };
    object[FLAGS].iter().all(|flag| *flag <= 1)
        && mode & USES != 0
        && mode & !MODE_BITS == 0
        && [0, IN, OUT].contains(&now)
        && is_area(bytes, size)
        && is_small == (size == SMALL)
        && characters_fit
        && file.is_multiple_of(8)
        && file > u64::from(u16::MAX)
}

/// The FILE to which a file buffer hands its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct InnerFile {
    pub fd: i32,
    pub pending_bytes: u64,
    /// Start and end of its buffer.
    pub area: (u64, u64),
    /// Address of the lock word.
    pub lock: u64,
    pub locked: Option<bool>,
    pub lock_owner: u64,
    /// Where the bytes of the file buffer come, if a flush moves the file's offset first.
    pub flush_position: Option<FlushPosition>,
}

/// Reads an open file buffer. Returns None if the fields contradict each other, as during a change. If its facet converts
/// characters, the number of the pending bytes is known, but not the bytes.
pub(super) fn stream(
    memory: &dyn Memory,
    at: u64,
    object: &[u8; OBJECT_BYTES],
    file: InnerFile,
    kept: u64,
) -> Option<StreamBuffer> {
    let is_plain = object[CONVERTS_NOTHING] == 1;
    let (area, size) = match is_plain {
        true => (word(object, BYTES), word(object, BYTES_SIZE)),
        false => (word(object, CHARACTERS), word(object, CHARACTERS_SIZE)),
    };
    let is_buffered = word(object, BYTES_SIZE) > SMALL;
    // The object can be moved; its buffer then belongs to the new one.
    let address = if is_buffered { area } else { at };
    let mut found = Buffer {
        mode: Some(if is_buffered { Mode::Full } else { Mode::None }),
        buffer_bytes: if is_buffered { size - 1 } else { 0 },
        ..Buffer::empty(RuntimeId::CPP, address, file.fd)
    };
    let [pbase, pptr, epptr] = [PBASE, PPTR, EPPTR].map(|field| word(object, field));
    match int(object, CURRENT_MODE) {
        // The last byte of the buffer is for the argument of overflow().
        OUT if pbase == area && is_buffered => {
            (pbase <= pptr && pptr <= area + size && epptr == area + size - 1).then_some(())?;
            found.pending_bytes = pptr - pbase;
        }
        // In overflow() the put area of a file buffer without a buffer is a character on the stack.
        OUT => (pbase == 0 && pptr == 0).then_some(())?,
        IN => unread(memory, object, &mut found)?,
        _ => {}
    }
    let mut stream = StreamBuffer::of(found);
    stream.watch_address = Some(at + PPTR as u64);
    stream.inner = Some(InnerStream {
        address: c_file(object),
        pending_bytes: file.pending_bytes,
        lock: file.lock,
        areas: [file.area, (area, area.saturating_add(size))],
    });
    (stream.locked, stream.lock_owner) = (file.locked, file.lock_owner);
    stream.flush_position = file.flush_position;
    if stream.buffer.pending_bytes > 0 && is_plain {
        stream.buffer.pending = read_content(memory, pbase, stream.buffer.pending_bytes, kept)?;
        add_drain(at, pbase, &mut stream);
    }
    Some(stream)
}

/// Adds the stores that leave the stream as `overflow` does.
fn add_drain(at: u64, pbase: u64, stream: &mut StreamBuffer) {
    let field = at + PPTR as u64;
    stream.data_address = Some(pbase);
    stream.note = Some(CountWord { address: field, when_written: pbase });
    stream.drain_stores = vec![MemoryStore::u64(field, pbase)];
    stream.partial_stores = vec![
        PartialStore::new(pbase, StoredValue::RemainingBytes),
        PartialStore::new(field, StoredValue::RemainingPlus(pbase)),
    ];
}

/// Adds the read-ahead bytes of the get area.
fn unread(memory: &dyn Memory, object: &[u8; OBJECT_BYTES], found: &mut Buffer) -> Option<()> {
    let [eback, gptr, egptr] = [EBACK, GPTR, EGPTR].map(|field| word(object, field));
    let bytes = egptr.checked_sub(gptr).filter(|bytes| *bytes <= MAX_BUFFER && eback <= gptr)?;
    found.unread = read_content(memory, gptr, bytes, UNREAD_KEPT)?;
    found.unread_bytes = bytes;
    Some(())
}
