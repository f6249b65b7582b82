//! Reads structures and buffers from a process that may change them at any time, and may hold any values.

use weir_sys::memory::Memory;

use crate::stream_buffer::StreamBuffer;

/// A bound for damaged lists: no known program has as many streams.
pub(crate) const MAX_STREAMS: usize = 65536;
/// A bound for damaged structures: no known program has a larger buffer.
pub(crate) const MAX_BUFFER: u64 = 1 << 30;
/// The most pending and the most read-ahead bytes of which a [`weir_model::trace::Buffer`] has a copy.
pub(crate) const PENDING_KEPT: u64 = 256;
pub(crate) const UNREAD_KEPT: u64 = 64;

/// The number of attempts to read a stream that the process changes during the read.
const TRIES: usize = 4;

/// Returns the 8 bytes at an offset of a copied structure; 0 if it is too short.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

/// Returns the 4 bytes at an offset of a copied structure as a signed number; 0 if it is too short.
pub(crate) fn int(bytes: &[u8], at: usize) -> i32 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| i32::from_le_bytes(*part))
}

/// Copies a structure; None if a part of it is not mapped.
pub(crate) fn structure<const BYTES: usize>(memory: &dyn Memory, address: u64) -> Option<[u8; BYTES]> {
    let mut into = [0; BYTES];
    (memory.read(address, &mut into) == BYTES).then_some(into)
}

/// Decodes a stream from the copy of its structure with `read`, which also reads what the structure points to.
/// Returns the stream if the structure is unchanged afterwards, and otherwise tries again. A stream without pending
/// and read-ahead bytes is returned without that check.
pub(crate) fn read_stable<const BYTES: usize>(
    memory: &dyn Memory,
    address: u64,
    mut copy: [u8; BYTES],
    read: impl Fn(&[u8; BYTES]) -> Option<StreamBuffer>,
) -> Option<StreamBuffer> {
    for _ in 0..TRIES {
        let found = read(&copy);
        let buffer = found.as_ref().map(|one| &one.buffer);
        if buffer.is_some_and(|one| one.pending_bytes == 0 && one.unread_bytes == 0) {
            return found;
        }
        let again = structure::<BYTES>(memory, address)?;
        if again == copy {
            return found;
        }
        copy = again;
    }
    None
}

/// Reads the first `most` of the `bytes` at an address; None if they are not mapped: the pointer is wrong.
pub(crate) fn read_content(memory: &dyn Memory, address: u64, bytes: u64, most: u64) -> Option<Vec<u8>> {
    memory.content(address, bytes, most)
}
