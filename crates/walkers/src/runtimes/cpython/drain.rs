//! What is to be stored so that Python's layers hold nothing.

use weir_sys::memory::Memory;

use crate::pending::{Part, Store, Value, Whole};
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
pub(super) fn empty(memory: &dyn Memory, buffered: Option<u64>, text: Option<u64>, whole: &mut Whole) {
    (whole.emptied, whole.partly, whole.locked) = Default::default();
    if let Some(at) = buffered {
        let Some(copy) = structure::<BUFFERED_BYTES>(memory, at) else { return };
        whole.holder = word(&copy, OWNER);
        whole.locked = Some(whole.holder != 0);
        if !lies_well(&copy, text.is_some()) {
            return;
        }
        empty_buffered(at, &copy, whole);
    }
    // The object that is let go of here is never freed: one of some hundred bytes each time.
    for field in text.into_iter().flat_map(|at| [at + TEXT_HELD, at + TEXT_HELD_BYTES]) {
        whole.emptied.push(Store::u64(field, 0));
        if buffered.is_some() {
            whole.partly.push(Part::new(field, Value::Just(0)));
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
fn empty_buffered(at: u64, copy: &[u8; BUFFERED_BYTES], whole: &mut Whole) {
    let field = |field: usize| at + field as u64;
    let (end, file) = (word(copy, WRITE_END), word(copy, FILE_POSITION));
    if end != NONE {
        let stores = [(WRITE_END, NONE), (WRITE_POSITION, 0), (RAW_POSITION, end)];
        whole.emptied.extend(stores.map(|(at, value)| Store::u64(field(at), value)));
    }
    if file != NONE {
        let moved = file.wrapping_add(whole.buffer.pending_bytes);
        whole.emptied.push(Store::u64(field(FILE_POSITION), moved));
        whole.partly.push(Part::new(field(FILE_POSITION), Value::Taken(file)));
    }
    // What was read ahead lies in the same buffer.
    let is_read = int(copy, READABLE) != 0 && word(copy, READ_END) != NONE;
    whole.left_most = if is_read { 0 } else { word(copy, SIZE) };
    whole.partly.push(Part::new(word(copy, BUFFER), Value::Bytes));
    whole.partly.extend([RAW_POSITION, WRITE_POSITION].map(|at| Part::new(field(at), Value::Just(0))));
    whole.partly.extend([POSITION, WRITE_END].map(|at| Part::new(field(at), Value::Left(0))));
}
