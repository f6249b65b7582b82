//! Decides whether memory with the form of a stream is one.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::STDOUT_BYTES;
use super::layouts::{BufferTarget, OBJECT_BYTES, RustLayout, RustLayouts};
use crate::candidates::StreamCandidate;
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::CountWord;
use crate::stream_buffer::StreamBuffer;

/// Default sizes of a BufWriter or BufReader, and of a LineWriter.
const USUAL: u64 = 8192;
const USUAL_OF_LINES: u64 = 1024;
/// Accepted sizes: programs ask for multiples of 64 from 256 on, and other data with two numbers after it rarely has
/// such a size.
const MIN_SIZE: u64 = 256;
const SIZE_STEP: u64 = 64;
/// The lowest descriptor of an owned File: programs seldom own a standard stream, and much other data has the numbers
/// 0 to 2.
const MIN_OWNED: i32 = 3;

impl RustLayout {
    /// Returns the offsets in a block of memory at which the numbers fit this layout.
    pub fn candidates<'a>(&self, data: &'a [u8]) -> impl Iterator<Item = usize> + use<'a> {
        let layout = *self;
        let end = (data.len() + 1).saturating_sub(OBJECT_BYTES);
        (0..end).step_by(8).filter(move |at| layout.fits(&data[*at..*at + OBJECT_BYTES]))
    }

    fn fits(&self, object: &[u8]) -> bool {
        let capacity = word(object, self.capacity);
        let likely = (MIN_SIZE..=MAX_BUFFER).contains(&capacity) && capacity.is_multiple_of(SIZE_STEP);
        if !likely || word(object, self.length) > capacity {
            return false;
        }
        let data = word(object, self.data);
        (1 << 16..1 << 56).contains(&data)
            && self.panicked.is_none_or(|at| object[at] <= 1)
            && self.used.is_none_or(|at| word(object, at) <= word(object, self.length))
            // An empty reader looks like much other data, so only the default size counts.
            && (self.used.is_none() || word(object, self.length) > 0 || capacity == USUAL)
    }
}

/// Decides whether the memory at an address is a stream, and reads it.
pub(super) struct BufferValidator<'a> {
    pub memory: &'a dyn Memory,
    pub layouts: &'a RustLayouts,
    /// Address of `STDOUT`.
    pub stdout: Option<u64>,
    /// Returns whether a descriptor is open for writing (true) or for reading.
    pub open_for: &'a dyn Fn(i32, bool) -> bool,
    pub kept: u64,
}

impl BufferValidator<'_> {
    /// Returns the stream at an address; None if there is no valid one.
    pub fn candidate(&self, at: u64, layout: &RustLayout) -> Option<StreamCandidate> {
        let copy = structure::<OBJECT_BYTES>(self.memory, at)?;
        let mut stream = read_stable(self.memory, at, copy, |object| self.read(object, layout))?;
        if layout.used.is_none() {
            let count = at + layout.length as u64;
            stream.watch_address = Some(count);
            stream.note = Some(CountWord { address: count, when_written: 0 });
            stream.data_address = Some(stream.buffer.address);
            stream.by_lines = layout.inner == BufferTarget::Stdout;
        }
        // A used reader is empty only at the end of its input.
        let length = self.memory.u64(at + layout.length as u64)?;
        Some(StreamCandidate { at, untouched: layout.used.is_some() && length == 0, stream })
    }

    fn read(&self, object: &[u8], layout: &RustLayout) -> Option<StreamBuffer> {
        let fd = self.descriptor(object, layout).filter(|_| layout.fits(object))?;
        let [capacity, data, length] =
            [layout.capacity, layout.data, layout.length].map(|field| word(object, field));
        if !self.was_allocated(data, capacity) {
            return None;
        }
        let last = data.checked_add(capacity - 1)?;
        read_content(self.memory, data, 1, 1).and(read_content(self.memory, last, 1, 1))?;
        let mut found = Buffer {
            mode: self.mode(capacity, layout),
            buffer_bytes: capacity,
            ..Buffer::empty(RuntimeId::RUST, data, fd)
        };
        match layout.used.map(|at| word(object, at)) {
            None => {
                found.pending_bytes = length;
                found.pending = read_content(self.memory, data, length, self.kept)?;
            }
            Some(used) => {
                found.unread_bytes = length.checked_sub(used)?;
                found.unread = read_content(self.memory, data + used, found.unread_bytes, UNREAD_KEPT)?;
            }
        }
        let mut stream = StreamBuffer::of(found);
        // The flag is set during each write.
        stream.locked = layout.panicked.map(|at| object[at] != 0);
        Some(stream)
    }

    fn descriptor(&self, object: &[u8], layout: &RustLayout) -> Option<i32> {
        let fd = match layout.inner {
            BufferTarget::Descriptor => int(object, layout.inner_at),
            BufferTarget::Stdout => {
                let stdout = self.stdout?;
                let within = stdout..stdout.saturating_add(STDOUT_BYTES as u64);
                within.contains(&word(object, layout.inner_at)).then_some(1)?
            }
        };
        let least = if layout.inner == BufferTarget::Stdout || layout.used.is_some() { 0 } else { MIN_OWNED };
        (fd >= least && (self.open_for)(fd, layout.used.is_none())).then_some(fd)
    }

    /// Returns the buffering mode. In a program with LineWriters the default size of a LineWriter means line
    /// buffering, and another size may too.
    fn mode(&self, capacity: u64, layout: &RustLayout) -> Option<Mode> {
        match (self.layouts.lines && layout.used.is_none(), capacity) {
            (true, USUAL_OF_LINES) => Some(Mode::Line),
            (true, capacity) if capacity != USUAL => None,
            _ => Some(Mode::Full),
        }
    }

    /// Returns whether an allocator can have returned a buffer of this size. With other allocators than glibc's only the
    /// default sizes are accepted.
    fn was_allocated(&self, data: u64, capacity: u64) -> bool {
        let is_usual = [USUAL, USUAL_OF_LINES].contains(&capacity);
        chunk_is_used(self.memory, data, capacity).unwrap_or(is_usual)
    }
}

/// Returns whether glibc's malloc returned a buffer of this size and it is not freed; None if malloc did not return it.
/// malloc stores the size in front of the memory, and behind it whether the memory is used. The smallest sizes look used
/// after free(3), too.
pub(super) fn chunk_is_used(memory: &dyn Memory, data: u64, capacity: u64) -> Option<bool> {
    const USED: u64 = 1;
    const MAPPED: u64 = 2;
    let size = memory.u64(data - 8)?;
    let (bytes, is_mapped) = (size & !7, size & MAPPED != 0);
    let room = if is_mapped { 8192 } else { 32 };
    let fits = bytes.is_multiple_of(16) && (capacity + 8..capacity + 8 + room).contains(&bytes);
    let is_used = || memory.u64((data - 8).checked_add(bytes)?).map(|next| next & USED != 0);
    if fits { Some(is_mapped || is_used()?) } else { None }
}
