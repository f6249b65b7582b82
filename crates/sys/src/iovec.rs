//! Vectors of segments in the memory of another process: arrays of `struct iovec` (readv(2), writev(2), sendmsg(2)).

use crate::memory::Memory;

/// The most segments of one call, and the most messages of sendmmsg(2) and recvmmsg(2): UIO_MAXIOV of linux/uio.h.
pub const UIO_MAXIOV: usize = 1024;

/// Bytes of a `struct iovec`: an address and a length.
pub const IOVEC_BYTES: usize = 16;

/// Offset of `msg_iov` in a `struct msghdr`; `msg_iovlen` follows.
const MSG_IOV: u64 = 16;

/// Returns address and length of each segment in the bytes of a vector. Bytes behind the last whole one are ignored.
pub fn parse(bytes: &[u8]) -> Vec<(u64, u64)> {
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>();
    words.as_chunks::<2>().0.iter().map(|[address, length]| (*address, *length)).collect()
}

/// Returns the bytes of a vector of these segments.
pub fn to_bytes(segments: impl IntoIterator<Item = (u64, u64)>) -> Vec<u8> {
    let words = segments.into_iter().flat_map(|(address, length)| [address, length]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Reads address and length of the segments of a vector, at most `most` of `count`; fewer if memory cannot be read.
pub fn read(memory: &dyn Memory, address: u64, count: u64, most: usize) -> Vec<(u64, u64)> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(most);
    parse(&memory.bytes(address, count * IOVEC_BYTES))
}

/// Reads address and number of segments of the vector of a `struct msghdr`.
pub fn of_message(memory: &dyn Memory, message: u64) -> Option<(u64, u64)> {
    let header = message.checked_add(MSG_IOV)?;
    Some((memory.u64(header)?, memory.u64(header.checked_add(8)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptrace::last_write::tests::{BASE, Bytes};

    #[test]
    fn a_vector_is_read_up_to_its_last_whole_segment() {
        let segments = [(0x7000, 50), (u64::MAX, 0), (0x8000, 1 << 40)];
        let mut memory = Bytes(to_bytes(segments));
        let read = |memory: &Bytes, count, most| read(memory, BASE, count, most);
        assert_eq!(read(&memory, 3, UIO_MAXIOV), segments);
        assert_eq!(
            (read(&memory, 2, UIO_MAXIOV), read(&memory, 3, 1)),
            (segments[..2].to_vec(), segments[..1].to_vec())
        );
        memory.0.truncate(40);
        assert_eq!(read(&memory, u64::MAX, UIO_MAXIOV), segments[..2]);
        assert_eq!(super::read(&memory, 8, 3, UIO_MAXIOV), []);
    }

    #[test]
    fn a_message_has_its_vector_in_its_third_and_fourth_word() {
        let memory = Bytes(to_bytes([(1, 2), (0x7000, 3)]));
        assert_eq!(of_message(&memory, BASE), Some((0x7000, 3)));
        assert_eq!([of_message(&memory, BASE + 16), of_message(&memory, u64::MAX)], [None; 2]);
    }
}
