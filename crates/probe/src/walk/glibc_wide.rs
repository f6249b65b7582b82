//! glibc's streams of wide characters: a second buffer, of 4 bytes a character, before the one of bytes.

use weir_model::trace::Buffer;

use super::read::{BUFFER_MOST, PENDING_KEPT, UNREAD_KEPT, content, structure, word};
use crate::memory::Memory;

/// Of `struct _IO_wide_data`, the pointers of its buffer.
const WIDE_BYTES: usize = 64;

/// Adds what waits in the wide buffer at `wide`: written after the bytes, read before them. It is counted in
/// UTF-8, which is what nearly every locale writes; of a long text the rest is taken to be as its beginning.
pub(super) fn add(memory: &dyn Memory, wide: u64, putting: bool, buffer: &mut Buffer) -> Option<()> {
    let data = structure::<WIDE_BYTES>(memory, wide)?;
    let [read_ptr, read_end, _, write_base, write_ptr, _, base, end] =
        std::array::from_fn(|field| word(&data, 8 * field));
    let (from, to) = if putting { (write_base, write_ptr) } else { (read_ptr, read_end) };
    if base > from || from > to || to > end || end - base > BUFFER_MOST {
        return None;
    }
    let (text, bytes) = utf8(&content(memory, from, to - from, 1 << 16)?, to - from);
    if structure::<WIDE_BYTES>(memory, wide)? != data {
        return None;
    }
    if putting {
        buffer.pending_bytes += bytes;
        buffer.pending.extend(text);
        buffer.pending.truncate(PENDING_KEPT as usize);
    } else {
        buffer.unread_bytes += bytes;
        buffer.unread.splice(0..0, text);
        buffer.unread.truncate(UNREAD_KEPT as usize);
    }
    Some(())
}

/// Characters as UTF-8, and how long all of them would be.
fn utf8(characters: &[u8], all_bytes: u64) -> (Vec<u8>, u64) {
    let decoded = characters.chunks_exact(4).map(|four| {
        let number = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let text = decoded.collect::<String>().into_bytes();
    let bytes =
        if characters.is_empty() { 0 } else { all_bytes * text.len() as u64 / characters.len() as u64 };
    (text, bytes)
}
