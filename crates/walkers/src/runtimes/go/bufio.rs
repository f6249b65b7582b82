//! `bufio.Writer`, `bufio.Reader` and `bufio.Scanner` over a descriptor. Their fields are unchanged since Go 1.5.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::itabs::GoItabs;
use crate::candidates::StreamCandidate;
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::CountWord;
use crate::stream_buffer::StreamBuffer;

/// Type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BufioType {
    Writer,
    Reader,
    Scanner,
}

impl BufioType {
    /// Returns the offset of the interface that the object writes to or reads from.
    const fn interface(self) -> u64 {
        match self {
            BufioType::Writer => 48,
            BufioType::Reader => 24,
            BufioType::Scanner => 0,
        }
    }
}

/// Offset of the number of pending bytes in a Writer.
pub(super) const PENDING_COUNT: usize = 40;
/// The size up to the last field that is used, `end` of a Scanner.
const OBJECT_BYTES: usize = 96;
/// Offset of the descriptor in `poll.FD`, after the lock.
const DESCRIPTOR: u64 = 16;
const MAX_DESCRIPTOR: i32 = 1 << 24;

/// Decides whether the memory at an address is an object, and reads it.
pub(super) struct BufioValidator<'a> {
    pub memory: &'a dyn Memory,
    pub tables: &'a GoItabs,
    /// Returns whether a descriptor is open for writing (true) or for reading.
    pub open_for: &'a dyn Fn(i32, bool) -> bool,
    pub kept: u64,
}

/// Address and length of a slice of bytes.
struct GoSlice {
    data: u64,
    length: u64,
}

impl BufioValidator<'_> {
    /// Returns the objects that can have this word, the address of an itab, at `at`.
    pub fn around(&self, at: u64, value: u64) -> impl Iterator<Item = (u64, BufioType)> {
        let writer = self.tables.writers.contains(&value).then_some(BufioType::Writer);
        let reads = self.tables.readers.contains(&value);
        let kinds = writer
            .into_iter()
            .chain([BufioType::Reader, BufioType::Scanner].into_iter().filter(move |_| reads));
        kinds.filter_map(move |kind| Some((at.checked_sub(kind.interface())?, kind)))
    }

    /// Returns the stream of the object at an address; None if there is no valid object.
    pub fn stream(&self, at: u64, kind: BufioType) -> Option<StreamBuffer> {
        let copy = structure::<OBJECT_BYTES>(self.memory, at)?;
        read_stable(self.memory, at, copy, |object| match kind {
            BufioType::Writer => self.writer(object),
            BufioType::Reader => self.reader(object),
            BufioType::Scanner => self.scanner(object),
        })
    }

    /// Reads a Writer: err, buf, n, wr.
    fn writer(&self, object: &[u8]) -> Option<StreamBuffer> {
        let (buffer, pending) = (slice(object, 16)?, word(object, PENDING_COUNT));
        let fits = is_interface(object, 0)
            && pending <= buffer.length
            && self.tables.writers.contains(&word(object, 48));
        let fd = self.descriptor(word(object, 56), true).filter(|_| fits)?;
        let mut found = self.buffer(fd, &buffer)?;
        found.pending_bytes = pending;
        found.pending = read_content(self.memory, buffer.data, pending, self.kept)?;
        // After an error the Writer never writes its bytes. A connection is left to the program, which flushes it.
        let is_drained = word(object, 0) == 0 && self.tables.file_writer == Some(word(object, 48));
        let mut stream = StreamBuffer::of(found);
        stream.data_address = is_drained.then_some(buffer.data);
        Some(stream)
    }

    /// Reads a Reader: buf, rd, r, w, err, lastByte, lastRuneSize.
    fn reader(&self, object: &[u8]) -> Option<StreamBuffer> {
        let last = |field, most| (-1..=most).contains(&(word(object, field) as i64));
        let fits = is_interface(object, 56) && last(72, 255) && last(80, 4);
        self.input(object, 0, [40, 48]).filter(|_| fits && self.tables.readers.contains(&word(object, 24)))
    }

    /// Reads a Scanner: r, split, maxTokenSize, token, buf, start, end.
    fn scanner(&self, object: &[u8]) -> Option<StreamBuffer> {
        let fits = word(object, 16) != 0 && (1..=MAX_BUFFER).contains(&word(object, 24));
        self.input(object, 56, [80, 88]).filter(|_| fits && self.tables.readers.contains(&word(object, 0)))
    }

    fn input(&self, object: &[u8], buffer: usize, [from, to]: [usize; 2]) -> Option<StreamBuffer> {
        let interface = if buffer == 0 { 24 } else { 0 };
        let (buffer, from, to) = (slice(object, buffer)?, word(object, from), word(object, to));
        let unread = to.checked_sub(from).filter(|_| to <= buffer.length)?;
        let mut found = self.buffer(self.descriptor(word(object, interface + 8), false)?, &buffer)?;
        found.unread_bytes = unread;
        found.unread = read_content(self.memory, buffer.data.checked_add(from)?, unread, UNREAD_KEPT)?;
        Some(StreamBuffer::of(found))
    }

    /// Returns an empty buffer; None if a part of its memory is not mapped.
    fn buffer(&self, fd: i32, buffer: &GoSlice) -> Option<Buffer> {
        let last = buffer.data.checked_add(buffer.length - 1)?;
        read_content(self.memory, buffer.data, 1, 1).and(read_content(self.memory, last, 1, 1))?;
        Some(Buffer {
            mode: Some(Mode::Full),
            buffer_bytes: buffer.length,
            ..Buffer::empty(RuntimeId::GO, buffer.data, fd)
        })
    }

    /// Returns the open descriptor of a file: `*os.File` and `*net.TCPConn` point to a pointer to a structure that
    /// begins with a `poll.FD`.
    fn descriptor(&self, file: u64, writes: bool) -> Option<i32> {
        let inner = self.memory.u64(file).filter(|inner| *inner > u64::from(u16::MAX))?;
        let fd = int(&structure::<8>(self.memory, inner.checked_add(DESCRIPTOR)?)?, 0);
        ((0..MAX_DESCRIPTOR).contains(&fd) && (self.open_for)(fd, writes)).then_some(fd)
    }
}

/// Returns whether two words can be an interface: data without a type is none.
fn is_interface(object: &[u8], at: usize) -> bool {
    word(object, at) != 0 || word(object, at + 8) == 0
}

fn slice(object: &[u8], at: usize) -> Option<GoSlice> {
    let [data, length, capacity] = [0, 8, 16].map(|field| word(object, at + field));
    let fits = (1..=capacity).contains(&length) && capacity <= MAX_BUFFER && data > u64::from(u16::MAX);
    fits.then_some(GoSlice { data, length })
}

/// Returns the stream of an object, and whether the object was used.
pub(super) fn candidate(
    memory: &dyn Memory,
    validator: &BufioValidator,
    at: u64,
    kind: BufioType,
) -> Option<StreamCandidate> {
    let mut stream = validator.stream(at, kind)?;
    if kind == BufioType::Writer {
        let count = at + PENDING_COUNT as u64;
        stream.watch_address = Some(count);
        stream.note = stream.data_address.map(|_| CountWord { address: count, when_written: 0 });
    }
    // The fields r, w and lastByte before the first read.
    let used = |field| memory.u64(at + field) != Some(0);
    let untouched =
        kind == BufioType::Reader && !used(40) && !used(48) && memory.u64(at + 72) == Some(u64::MAX);
    Some(StreamCandidate { at, untouched, stream })
}

/// Returns whether only the pending bytes seem to have ever been put into a buffer: zeros follow them. The buffer of a Writer that
/// was dropped may be in use for something else.
pub(super) fn is_fresh(memory: &dyn Memory, one: &StreamCandidate) -> bool {
    let Buffer { address, buffer_bytes, pending_bytes, ref pending, .. } = one.stream.buffer;
    let room = buffer_bytes - pending_bytes;
    let rest = memory.bytes(address + pending_bytes, room as usize);
    rest.len() as u64 == room && rest.iter().all(|byte| *byte == 0) && pending.last() != Some(&0)
}
