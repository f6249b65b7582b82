//! What the walkers share: words out of copied bytes, reading until nothing moves, lists that may be hostile.

use weir_sys::memory::Memory;

use crate::stream_buffer::StreamBuffer;

/// No process has more streams; a list that goes on longer is broken.
pub(crate) const STREAMS_MOST: usize = 65536;
/// No stream has a larger buffer.
pub(crate) const BUFFER_MOST: u64 = 1 << 30;
/// How much of what is pending and unread is kept, see [`weir_model::trace::Buffer`].
pub(crate) const PENDING_KEPT: u64 = 256;
pub(crate) const UNREAD_KEPT: u64 = 64;

/// How often a stream is read again that changes while it is read.
const TRIES: usize = 4;

/// 8 bytes of a copied structure; 0 where it is too short.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

/// 4 of them, with a sign.
pub(crate) fn int(bytes: &[u8], at: usize) -> i32 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| i32::from_le_bytes(*part))
}

/// A structure, or None where a part of it is missing.
pub(crate) fn structure<const BYTES: usize>(memory: &dyn Memory, address: u64) -> Option<[u8; BYTES]> {
    let mut into = [0; BYTES];
    (memory.read(address, &mut into) == BYTES).then_some(into)
}

/// Makes a stream of a structure's copy and of what that points to, and believes it only if the structure is the
/// same afterwards; one with nothing in it is believed at once.
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

/// `bytes` of a buffer, at most `most`; None where they cannot be read: then the pointer was wrong.
pub(crate) fn read_content(memory: &dyn Memory, address: u64, bytes: u64, most: u64) -> Option<Vec<u8>> {
    let wanted = bytes.min(most) as usize;
    let data = if wanted == 0 { Vec::new() } else { memory.bytes(address, wanted) };
    (data.len() == wanted).then_some(data)
}
