//! One IO object of Ruby 3.1: `struct RFile`, and the `rb_io_t` that it points to.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::head;
use crate::copied_memory::{BUFFER_MOST, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// In the flags of an object: the bits of the type, and the type of an IO.
const TYPE: u64 = 0x1f;
const T_FILE: u64 = 0x0b;
/// No flag uses a higher bit.
const FLAGS_MOST: u64 = u32::MAX as u64;

/// Size of `rb_io_t` up to `write_lock`, and offsets in it. Its buffers are packed structures of 20 bytes.
const IO_BYTES: usize = 200;
const SELF: usize = 0;
const FD: usize = 16;
const MODE: usize = 20;
const WRITTEN: usize = 48;
const READ: usize = 68;
const DECODED: usize = 136;
const LOCK: usize = 192;

/// Offsets in `rb_io_buffer_t`.
const OFFSET: usize = 8;
const LENGTH: usize = 12;
const CAPACITY: usize = 16;

/// Bits of `mode`: FMODE_SYNC, FMODE_TTY.
const SYNC: i32 = 0x8;
const TERMINAL: i32 = 0x10;

/// Offset of a mutex object's data, whose first word is the fiber that holds the mutex.
const DATA: u64 = 32;

/// Tells whether an object of type T_FILE can have these flags.
pub(super) fn may_be_flags(flags: u64) -> bool {
    flags & TYPE == T_FILE && flags <= FLAGS_MOST
}

/// Tells whether an object of type T_FILE can begin with these bytes.
pub(super) fn may_be(bytes: &[u8]) -> bool {
    let [flags, class, fptr] = head(bytes);
    let pointer = |at: u64| at > u64::from(u16::MAX) && at.is_multiple_of(8) && at < 1 << 56;
    may_be_flags(flags) && pointer(class) && pointer(fptr)
}

/// Returns the address of the rb_io_t of an object; None if the object is no IO or was never opened.
pub(super) fn fptr(memory: &dyn Memory, object: u64) -> Option<u64> {
    let bytes: [u8; 24] = structure(memory, object).filter(|bytes| may_be(bytes))?;
    let [_, _, fptr] = head(&bytes);
    (memory.u64(fptr) == Some(object)).then_some(fptr)
}

/// Reads the stream of an IO object; None if it is closed.
pub(super) fn stream(memory: &dyn Memory, object: u64, kept: u64) -> Option<StreamBuffer> {
    let at = fptr(memory, object)?;
    let copy = structure::<IO_BYTES>(memory, at)?;
    read_stable(memory, at, copy, |io| read(memory, object, at, io, kept))
}

fn read(memory: &dyn Memory, object: u64, at: u64, io: &[u8; IO_BYTES], kept: u64) -> Option<StreamBuffer> {
    let fd = int(io, FD);
    if word(io, SELF) != object || fd < 0 {
        return None;
    }
    let written = part(io, WRITTEN)?;
    let (decoded, ahead) = (part(io, DECODED)?, part(io, READ)?);
    let mut unread = read_content(memory, decoded.0, decoded.1, UNREAD_KEPT)?;
    unread.extend(read_content(memory, ahead.0, ahead.1, UNREAD_KEPT - unread.len() as u64)?);
    let mut stream = StreamBuffer::of(Buffer {
        walker: RuntimeId::RUBY,
        address: object,
        fd,
        mode: Some(mode(int(io, MODE))),
        buffer_bytes: int(io, WRITTEN + CAPACITY).max(int(io, READ + CAPACITY)) as u64,
        pending_bytes: written.1,
        pending: read_content(memory, written.0, written.1, kept)?,
        unread_bytes: decoded.1 + ahead.1,
        unread,
        found_by_search: false,
    });
    if written.1 > 0 {
        add_drain(memory, at, io, &mut stream);
    }
    Some(stream)
}

/// Returns the address and the number of the bytes in a buffer; None if its fields contradict each other.
fn part(io: &[u8; IO_BYTES], at: usize) -> Option<(u64, u64)> {
    let field = |field| u64::try_from(int(io, at + field)).ok();
    let (start, offset, length, capacity) = (word(io, at), field(OFFSET)?, field(LENGTH)?, field(CAPACITY)?);
    let fits = offset + length <= capacity && capacity <= BUFFER_MOST && (start != 0 || length == 0);
    Some((start.checked_add(offset)?, length)).filter(|_| fits)
}

/// Ruby flushes a terminal at each line, and a stream with `sync` at each write.
fn mode(mode: i32) -> Mode {
    match () {
        () if mode & SYNC != 0 => Mode::None,
        () if mode & TERMINAL != 0 => Mode::Line,
        () => Mode::Full,
    }
}

/// Adds the stores that leave the buffer as io_flush_buffer does, without offset and length. Remaining bytes move to
/// the beginning.
fn add_drain(memory: &dyn Memory, at: u64, io: &[u8; IO_BYTES], stream: &mut StreamBuffer) {
    let (field, capacity) =
        (|field: usize| at + (WRITTEN + field) as u64, int(io, WRITTEN + CAPACITY) as u64);
    stream.drain_stores = vec![MemoryStore::u64(field(OFFSET), 0)];
    stream.partial_stores = vec![
        PartialStore::new(word(io, WRITTEN), StoredValue::RemainingBytes),
        PartialStore::new(field(OFFSET), StoredValue::Constant(0)),
        PartialStore::new(field(LENGTH), StoredValue::RemainingPlus(capacity << 32)),
    ];
    stream.remainder_most = capacity;
    (stream.locked, stream.lock_owner) = lock(memory, word(io, LOCK));
}

/// Reads the state and the owner of a lock, which a stream has from its first buffered write on.
fn lock(memory: &dyn Memory, mutex: u64) -> (Option<bool>, u64) {
    if mutex == 0 {
        return (Some(false), 0);
    }
    let data = mutex.checked_add(DATA).and_then(|at| memory.u64(at));
    let fiber = data.and_then(|data| memory.u64(data));
    (fiber.map(|fiber| fiber != 0), fiber.unwrap_or(0))
}
