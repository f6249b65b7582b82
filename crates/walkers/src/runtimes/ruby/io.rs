//! One IO object of Ruby: `struct RFile`, and the `rb_io_t` that it points to.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::head;
use super::layout::RubyLayout;
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// In the flags of an object: the bits of the type, and the type of an IO.
const TYPE: u64 = 0x1f;
const T_FILE: u64 = 0x0b;

/// Size of `rb_io_t` from `stdio_file` to `write_lock`, and offsets from `stdio_file`. Its buffers are packed structures
/// of 20 bytes.
const IO_BYTES: usize = 192;
const FD: usize = 8;
const MODE: usize = 12;
const WRITTEN: usize = 40;
const READ: usize = 60;
const DECODED: usize = 128;
const LOCK: usize = 184;

/// Offsets in `rb_io_buffer_t`.
const OFFSET: usize = 8;
const LENGTH: usize = 12;
const CAPACITY: usize = 16;

/// Bits of `mode`: FMODE_READABLE or FMODE_WRITABLE, FMODE_SYNC, FMODE_TTY.
const OPENED: i32 = 0x3;
const SYNC: i32 = 0x8;
const TERMINAL: i32 = 0x10;

/// Offsets in `struct RTypedData`: the flags of the data, and the data or the pointer to it. The first word of a mutex
/// is the fiber or thread that holds it.
const DATA_FLAGS: u64 = 24;
const DATA: u64 = 32;
/// The bit of DATA_FLAGS that the data is inside the object (TYPED_DATA_EMBEDDED, since 3.3).
const EMBEDDED: u64 = 2;

/// Offset of the superclass in `struct RClass` of Ruby 2.7, and a bound for damaged chains of superclasses.
const SUPERCLASS: u64 = 16;
const MAX_ANCESTORS: usize = 64;

/// The layout of a Ruby and the address of its class IO; 0 if that is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct IoClass {
    pub layout: &'static RubyLayout,
    pub address: u64,
}

impl IoClass {
    /// Returns whether an object of type T_FILE can have these flags.
    pub fn may_be_flags(&self, flags: u64) -> bool {
        flags & TYPE == T_FILE && flags <= self.layout.flags_most
    }

    /// Returns whether an object of type T_FILE can begin with these bytes.
    pub fn may_be(&self, bytes: &[u8]) -> bool {
        let [flags, class, fptr] = head(bytes);
        let pointer = |at: u64| at > u64::from(u16::MAX) && at.is_multiple_of(8) && at < 1 << 56;
        self.may_be_flags(flags) && pointer(class) && pointer(fptr)
    }

    /// Returns the address of the rb_io_t of an object; None if the object is no IO or was never opened.
    pub fn fptr(&self, memory: &dyn Memory, object: u64) -> Option<u64> {
        let bytes: [u8; 24] = structure(memory, object).filter(|bytes| self.may_be(bytes))?;
        let [_, class, fptr] = head(&bytes);
        let is_io = match self.layout.has_self() {
            true => memory.u64(fptr) == Some(object),
            false => self.is_ancestor_of(memory, class),
        };
        is_io.then_some(fptr)
    }

    /// Returns whether this class is the other one or an ancestor of it.
    fn is_ancestor_of(&self, memory: &dyn Memory, class: u64) -> bool {
        let superclass = |class: &u64| memory.u64(class.checked_add(SUPERCLASS)?);
        let mut ancestors = std::iter::successors(Some(class), superclass).take(MAX_ANCESTORS);
        self.address != 0 && ancestors.any(|one| one == self.address)
    }

    /// Reads the stream of an IO object; None if it is closed.
    pub fn stream(&self, memory: &dyn Memory, object: u64, kept: u64) -> Option<StreamBuffer> {
        let at = self.fptr(memory, object)?.checked_add(self.layout.before as u64)?;
        let copy = structure::<IO_BYTES>(memory, at)?;
        read_stable(memory, at, copy, |io| read(memory, object, at, io, kept))
    }
}

/// Reads a stream from the copy of its rb_io_t, which is at `at` without the pointer to the object.
fn read(memory: &dyn Memory, object: u64, at: u64, io: &[u8; IO_BYTES], kept: u64) -> Option<StreamBuffer> {
    let fd = int(io, FD);
    if fd < 0 || int(io, MODE) & OPENED == 0 {
        return None;
    }
    let written = part(io, WRITTEN)?;
    let (decoded, ahead) = (part(io, DECODED)?, part(io, READ)?);
    let mut unread = read_content(memory, decoded.0, decoded.1, UNREAD_KEPT)?;
    unread.extend(read_content(memory, ahead.0, ahead.1, UNREAD_KEPT - unread.len() as u64)?);
    let mut stream = StreamBuffer::of(Buffer {
        mode: Some(mode(int(io, MODE))),
        buffer_bytes: int(io, WRITTEN + CAPACITY).max(int(io, READ + CAPACITY)) as u64,
        pending_bytes: written.1,
        pending: read_content(memory, written.0, written.1, kept)?,
        unread_bytes: decoded.1 + ahead.1,
        unread,
        ..Buffer::empty(RuntimeId::RUBY, object, fd)
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
    let fits = offset + length <= capacity && capacity <= MAX_BUFFER && (start != 0 || length == 0);
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
    let field = |offset: u64| mutex.checked_add(offset).and_then(|at| memory.u64(at));
    let is_embedded = field(DATA_FLAGS).is_some_and(|flags| flags & EMBEDDED != 0);
    let owner = match is_embedded {
        true => field(DATA),
        false => field(DATA).and_then(|data| memory.u64(data)),
    };
    (owner.map(|owner| owner != 0), owner.unwrap_or(0))
}
