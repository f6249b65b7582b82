//! What is to be stored so that Python's layers hold nothing.

use weir_sys::memory::Memory;

use crate::pending_bytes::{PartialStore, MemoryStore, StoredValue};
use crate::stream_buffer::{StreamBuffer};
use crate::copied_memory::{int, structure, word};

/// Of `buffered` in bufferedio.c.
const BUFFERED_BYTES: usize = 128;
const READABLE: usize = 32;
const FILE_POSITION: usize = 48;
const BUFFER: usize = 56;
const POSITION: usize = 64;
const RAW_POSITION: usize = 72;
const READ_END: usize = 80;
const WRITE_POSITION: usize = 88;
const WRITE_END: usize = 96;
const OWNER: usize = 112;
const SIZE: usize = 120;
/// Of `textio` in textio.c.
const TEXT_HELD: u64 = 136;
const TEXT_HELD_BYTES: u64 = 144;

/// Not known, or not valid.
const NONE: u64 = u64::MAX;

/// As the flush of the text layer, if there is one, and of the buffer under it leaves them; nothing where the flush
/// would seek: in a file that is open for both and was read before.
pub(super) fn add_drain(memory: &dyn Memory, buffered: Option<u64>, text: Option<u64>, stream: &mut StreamBuffer) {
    (stream.drain_stores, stream.partial_stores, stream.locked) = Default::default();
    if let Some(at) = buffered {
        let Some(copy) = structure::<BUFFERED_BYTES>(memory, at) else { return };
        stream.lock_owner = word(&copy, OWNER);
        stream.locked = Some(stream.lock_owner != 0);
        if !lies_well(&copy, text.is_some()) {
            return;
        }
        add_writer_drain(at, &copy, stream);
    }
    // The object that is let go of here is never freed: one of some hundred bytes each time.
    for field in text.into_iter().flat_map(|at| [at + TEXT_HELD, at + TEXT_HELD_BYTES]) {
        stream.drain_stores.push(MemoryStore::u64(field, 0));
        if buffered.is_some() {
            stream.partial_stores.push(PartialStore::new(field, StoredValue::Constant(0)));
        }
    }
}

/// Whether the file's position is where the buffer's first byte belongs, and the last byte where text would follow.
fn lies_well(copy: &[u8; BUFFERED_BYTES], text: bool) -> bool {
    let [position, raw, read_end, write_position, write_end] =
        [POSITION, RAW_POSITION, READ_END, WRITE_POSITION, WRITE_END].map(|field| word(copy, field));
    let is_read = int(copy, READABLE) != 0 && read_end != NONE;
    let waits = write_end != NONE && write_position != write_end;
    match waits {
        true => raw == write_position && (!text || position == write_end && !is_read),
        false => !is_read,
    }
}

/// As `_bufferedwriter_flush_unlocked`; `whole` has the number of all bytes, those of the text as well. When some
/// stay they are put into the buffer, if it is large enough.
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
    // What was read ahead lies in the same buffer.
    let is_read = int(copy, READABLE) != 0 && word(copy, READ_END) != NONE;
    stream.remainder_most = if is_read { 0 } else { word(copy, SIZE) };
    stream.partial_stores.push(PartialStore::new(word(copy, BUFFER), StoredValue::RemainingBytes));
    stream.partial_stores.extend([RAW_POSITION, WRITE_POSITION].map(|at| PartialStore::new(field(at), StoredValue::Constant(0))));
    stream.partial_stores.extend([POSITION, WRITE_END].map(|at| PartialStore::new(field(at), StoredValue::RemainingPlus(0))));
}
