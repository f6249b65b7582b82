//! One IO object of Ruby 3.1: `struct RFile`, and the `rb_io_t` that it leads to.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::head;
use crate::pending_bytes::{PartialStore, MemoryStore, StoredValue};
use crate::stream_buffer::{StreamBuffer};
use crate::copied_memory::{BUFFER_MOST, UNREAD_KEPT, read_content, int, read_stable, structure, word};

/// In the flags of an object: its type, and that of an IO.
const TYPE: u64 = 0x1f;
const T_FILE: u64 = 0x0b;
/// Flags have no more bits.
const FLAGS_MOST: u64 = u32::MAX as u64;

/// Of `rb_io_t`: up to `write_lock`. Its buffers are packed: 20 bytes each.
const IO_BYTES: usize = 200;
const SELF: usize = 0;
const FD: usize = 16;
const MODE: usize = 20;
const WRITTEN: usize = 48;
const READ: usize = 68;
const DECODED: usize = 136;
const LOCK: usize = 192;

/// Of `rb_io_buffer_t`.
const OFFSET: usize = 8;
const LENGTH: usize = 12;
const CAPACITY: usize = 16;

/// In `mode`.
const SYNC: i32 = 0x8;
const TERMINAL: i32 = 0x10;

/// A mutex is an object with data; its first word is the fiber that holds it.
const DATA: u64 = 32;

/// Could an object of type T_FILE have these flags?
pub(super) fn may_be_flags(flags: u64) -> bool {
    flags & TYPE == T_FILE && flags <= FLAGS_MOST
}

/// Could an object of type T_FILE begin so?
pub(super) fn may_be(bytes: &[u8]) -> bool {
    let [flags, class, fptr] = head(bytes);
    let pointer = |at: u64| at > u64::from(u16::MAX) && at.is_multiple_of(8) && at < 1 << 56;
    may_be_flags(flags) && pointer(class) && pointer(fptr)
}

/// Where the rb_io_t of an object is; None where it is no IO, or one that was never opened.
pub(super) fn fptr(memory: &dyn Memory, object: u64) -> Option<u64> {
    let bytes: [u8; 24] = structure(memory, object).filter(|bytes| may_be(bytes))?;
    let [_, _, fptr] = head(&bytes);
    (memory.u64(fptr) == Some(object)).then_some(fptr)
}

/// What waits in an IO; None where it is closed.
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
    });
    if written.1 > 0 {
        add_drain(memory, at, io, &mut stream);
    }
    Some(stream)
}

/// Where the bytes of one buffer are, and how many; None where it is none.
fn part(io: &[u8; IO_BYTES], at: usize) -> Option<(u64, u64)> {
    let field = |field| u64::try_from(int(io, at + field)).ok();
    let (start, offset, length, capacity) = (word(io, at), field(OFFSET)?, field(LENGTH)?, field(CAPACITY)?);
    let fits = offset + length <= capacity && capacity <= BUFFER_MOST && (start != 0 || length == 0);
    Some((start.checked_add(offset)?, length)).filter(|_| fits)
}

/// A terminal is flushed at each line, `sync` at each write.
fn mode(mode: i32) -> Mode {
    match () {
        () if mode & SYNC != 0 => Mode::None,
        () if mode & TERMINAL != 0 => Mode::Line,
        () => Mode::Full,
    }
}

/// As io_flush_buffer leaves it: no offset and no length. What stays goes to the beginning.
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

/// A stream has its lock from its first buffered write on.
fn lock(memory: &dyn Memory, mutex: u64) -> (Option<bool>, u64) {
    if mutex == 0 {
        return (Some(false), 0);
    }
    let data = mutex.checked_add(DATA).and_then(|at| memory.u64(at));
    let fiber = data.and_then(|data| memory.u64(data));
    (fiber.map(|fiber| fiber != 0), fiber.unwrap_or(0))
}
