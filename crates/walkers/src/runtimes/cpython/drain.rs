//! The stores that drain Python's io layers.

use weir_sys::memory::Memory;

use super::layout::PythonLayout;
use crate::copied_memory::{int, structure, word};
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Size of `buffered` in bufferedio.c, and offsets in it after [`PythonLayout::counts_at`].
const BUFFERED_BYTES: usize = 128;
const READABLE: usize = 32;
const FILE_POSITION: usize = 48;
const BUFFER: usize = 56;
const POSITION: usize = 64;
const RAW_POSITION: usize = 72;
const READ_END: usize = 80;
const WRITE_POSITION: usize = 88;
const WRITE_END: usize = 96;
const LOCK: usize = 104;
const OWNER: usize = 112;
const SIZE: usize = 120;
/// Offsets in `textio` of textio.c.
const TEXT_HELD: u64 = 136;
const TEXT_HELD_BYTES: u64 = 144;

/// The value -1 of an unknown position.
const NONE: u64 = u64::MAX;

/// Sets the stores that leave the text layer, if there is one, and the buffer below it as their flush does. Sets none
/// if the flush would seek, in a file that is open for both and was read before.
pub(super) fn add_drain(
    memory: &dyn Memory,
    layout: &PythonLayout,
    buffered: Option<u64>,
    text: Option<u64>,
    stream: &mut StreamBuffer,
) {
    (stream.drain_stores, stream.partial_stores, stream.locked) = Default::default();
    let in_section = buffered.iter().chain(&text).any(|object| layout.in_critical_section(memory, *object));
    stream.locked = in_section.then_some(true);
    let [buffered, text] = [buffered, text].map(|object| object.and_then(|at| layout.counts_at(at)));
    if let Some(at) = buffered {
        let Some(copy) = structure::<BUFFERED_BYTES>(memory, at) else { return };
        stream.lock_owner = word(&copy, OWNER);
        stream.locked = Some(in_section || is_locked(memory, layout, &copy));
        if !can_drain(&copy, text.is_some()) {
            return;
        }
        add_writer_drain(at, &copy, stream);
    }
    // The pending text object is never freed, a leak of a few hundred bytes at each drain.
    for field in text.into_iter().flat_map(|at| [at + TEXT_HELD, at + TEXT_HELD_BYTES]) {
        stream.drain_stores.push(MemoryStore::u64(field, 0));
        if buffered.is_some() {
            stream.partial_stores.push(PartialStore::new(field, StoredValue::Constant(0)));
        }
    }
}

/// Returns whether a thread holds the lock of a writer or waits for it. A waiting thread may have taken bytes from the text layer,
/// which are then in neither of the two layers; after its wait it holds the lock a moment before the owner shows it. `copy`
/// begins at the writer's counts.
pub(super) fn is_locked(memory: &dyn Memory, layout: &PythonLayout, copy: &[u8]) -> bool {
    /// The value 1 of `sem_t`, and no waiters, in glibc and musl.
    const FREE: u64 = 1;
    let is_held = || layout.has_semaphores && memory.u64(word(copy, LOCK)) != Some(FREE);
    word(copy, OWNER) != 0 || is_held()
}

/// Returns whether the file position is that of the first pending byte, and whether text would follow the last one.
fn can_drain(copy: &[u8; BUFFERED_BYTES], text: bool) -> bool {
    let [position, raw, read_end, write_position, write_end] =
        [POSITION, RAW_POSITION, READ_END, WRITE_POSITION, WRITE_END].map(|field| word(copy, field));
    let is_read = int(copy, READABLE) != 0 && read_end != NONE;
    let is_pending = write_end != NONE && write_position != write_end;
    match is_pending {
        true => raw == write_position && (!text || position == write_end && !is_read),
        false => !is_read,
    }
}

/// Adds the stores of `_bufferedwriter_flush_unlocked`. `stream` counts all pending bytes, also those of the text
/// layer. After a partial write the buffer holds the remaining bytes if it is large enough.
fn add_writer_drain(at: u64, copy: &[u8; BUFFERED_BYTES], stream: &mut StreamBuffer) {
    let field = |field: usize| at + field as u64;
    let (end, file) = (word(copy, WRITE_END), word(copy, FILE_POSITION));
    if end != NONE {
        let stores = [(WRITE_END, NONE), (WRITE_POSITION, 0), (RAW_POSITION, end)];
        stream.drain_stores.extend(stores.map(|(at, value)| MemoryStore::u64(field(at), value)));
    }
    if file != NONE {
        let moved = file.wrapping_add(stream.buffer.pending_bytes);
        stream.drain_stores.push(MemoryStore::u64(field(FILE_POSITION), moved));
        stream.partial_stores.push(PartialStore::new(field(FILE_POSITION), StoredValue::WrittenPlus(file)));
    }
    // Read-ahead bytes are in the same buffer.
    let is_read = int(copy, READABLE) != 0 && word(copy, READ_END) != NONE;
    stream.remainder_most = if is_read { 0 } else { word(copy, SIZE) };
    stream.partial_stores.push(PartialStore::new(word(copy, BUFFER), StoredValue::RemainingBytes));
    stream.partial_stores.extend(
        [RAW_POSITION, WRITE_POSITION].map(|at| PartialStore::new(field(at), StoredValue::Constant(0))),
    );
    stream
        .partial_stores
        .extend([POSITION, WRITE_END].map(|at| PartialStore::new(field(at), StoredValue::RemainingPlus(0))));
}
