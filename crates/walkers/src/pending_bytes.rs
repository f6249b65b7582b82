//! Pending bytes of a stream, and the stores that drain the stream from outside.

use weir_model::trace::RuntimeId;

use crate::joined_streams::JoinedStreams;
use crate::outside_write::OutsideWrite;

/// The pending bytes of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingBytes {
    /// Runtime that owns the stream.
    pub walker: RuntimeId,
    /// Address of the stream, as in [`weir_model::trace::Buffer::address`].
    pub stream: u64,
    /// Descriptor in the process.
    pub fd: i32,
    /// All pending bytes, in the order in which the program would write them.
    pub bytes: Vec<u8>,
    /// The size of the buffer.
    pub buffer_bytes: u64,
    /// A thread holds the stream's lock; None if the stream has no lock or its state is unknown.
    pub locked: Option<bool>,
    /// Owner of the lock as the runtime identifies threads: a thread number, or an address; 0 for no owner.
    pub lock_owner: u64,
    /// The stores, in this order, that leave the stream as its own flush would. They are valid only while no thread
    /// of the process is inside the stream. Empty: the stream cannot be drained from outside.
    pub drain_stores: Vec<MemoryStore>,
    /// The stores for a partial write, see [`PendingBytes::partial_drain`].
    pub(crate) partial_stores: Vec<PartialStore>,
    /// A search of the memory found the stream, as in [`weir_model::trace::Buffer::found_by_search`].
    pub found_by_search: bool,
    /// Address of the bytes, if the runtime writes them from there: each of its writes of these bytes begins at their
    /// first byte that is not written yet. The address distinguishes bytes that were written ahead from equal bytes
    /// elsewhere, also while no walker finds the stream. None: unknown, or the runtime copies the bytes first.
    pub data_address: Option<u64>,
    /// The word in which the runtime notes that it has put or written bytes; None: unknown.
    pub note: Option<CountWord>,
    /// The file position that the runtime assumes, if it can set the position back to it without a flush.
    pub position: Option<u64>,
    /// Where a flush writes the bytes if it moves the file's offset first; None: at the offset that the file has.
    pub flush_position: Option<FlushPosition>,
    /// The stream to which a flush hands the bytes, which come after its own; None: a flush writes them.
    pub inner: Option<InnerStream>,
    /// The two streams that hold the bytes, see [`crate::join_pending`]; None: one stream holds them.
    pub joined: Option<JoinedStreams>,
    /// The most bytes that can remain in the stream after a partial write: the size of the memory that must hold them.
    pub(crate) remainder_most: u64,
    /// A flush hands the bytes to a line buffer, which writes the complete lines at once and keeps the rest.
    pub(crate) by_lines: bool,
    /// A search found the stream, and its bytes are certainly not written yet.
    pub(crate) unwritten: bool,
    /// The copies of the stream, if it is unknown which one the program uses; this stream is the one with the most bytes. A copy
    /// with the descriptor -1 marks that the descriptor may belong to another stream.
    pub copies: Vec<StreamCopy>,
    /// Only the end of its file shows how many bytes are pending. peek, flush and trace leave the stream out.
    pub(crate) is_ambiguous: bool,
    /// The terms of a write by weir.
    pub outside: OutsideWrite,
}

/// A copy of a stream with its own number of bytes. A move of the object leaves a copy behind, which the program no longer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamCopy {
    /// Descriptor in the process; -1 if the descriptor is that of another stream.
    pub fd: i32,
    #[allow(missing_docs)]
    pub pending_bytes: u64,
    /// As [`PendingBytes::note`].
    pub note: Option<CountWord>,
}

impl PendingBytes {
    /// Returns how many of the first bytes can be written while the process lives. The bytes of a stream that a search found
    /// must be certainly unwritten. Bytes that a flush hands to another stream are written by the program only.
    pub fn early_len(&self) -> usize {
        if self.outside.early_refusal.is_some()
            || self.inner.is_some()
            || self.found_by_search && (self.data_address.is_none() || !self.unwritten)
        {
            return 0;
        }
        match self.by_lines {
            true => memchr::memrchr(b'\n', &self.bytes).map_or(0, |at| at + 1),
            false => self.bytes.len(),
        }
    }

    /// Returns whether the end of a file can show how many bytes of the stream are not written: they are in a buffer, and a flush writes
    /// them from there to the file.
    pub fn can_show_by_file(&self) -> bool {
        self.found_by_search && self.data_address.is_some() && self.inner.is_none() && !self.by_lines
    }

    /// Returns the stream with only its first `len` bytes, which are now known to be the pending ones.
    #[must_use]
    pub fn with_decided(mut self, len: usize) -> PendingBytes {
        let is_live = |one: &&StreamCopy| one.fd == self.fd && one.pending_bytes == len as u64;
        self.note = self.copies.iter().find(is_live).and_then(|one| one.note);
        self.bytes.truncate(len);
        self.copies.clear();
        self.is_ambiguous = false;
        self
    }

    /// Returns whether the bytes come after those of another stream, because the stream hands its bytes to that one.
    pub fn follows(&self, other: &PendingBytes) -> bool {
        self.by_lines && !other.by_lines && self.fd == other.fd
    }

    /// Returns the stores after a write of only the first `taken` bytes, which leave the other bytes in the stream.
    /// None if the stream cannot be drained partially.
    pub fn partial_drain(&self, taken: usize) -> Option<Vec<MemoryStore>> {
        if let Some(joined) = &self.joined {
            return joined.stores(taken);
        }
        let left =
            self.bytes.get(taken..).filter(|left| !self.partial_stores.is_empty() && !left.is_empty())?;
        let store = |part: &PartialStore| match part.value {
            StoredValue::WrittenPlus(from) => MemoryStore::u64(part.address, from.wrapping_add(taken as u64)),
            StoredValue::RemainingPlus(from) => {
                MemoryStore::u64(part.address, from.wrapping_add(left.len() as u64))
            }
            StoredValue::Constant(value) => MemoryStore::u64(part.address, value),
            StoredValue::RemainingBytes => MemoryStore { address: part.address, bytes: left.to_vec() },
        };
        (left.len() as u64 <= self.remainder_most).then(|| self.partial_stores.iter().map(store).collect())
    }

    /// Returns the stores that remove the first `len` bytes; None if the stream cannot be drained so.
    pub fn stores_without(&self, len: usize) -> Option<Vec<MemoryStore>> {
        if len == self.bytes.len() {
            return Some(self.drain_stores.clone()).filter(|stores| !stores.is_empty());
        }
        self.partial_drain(len)
    }

    /// Returns the stores that note the first `taken` bytes as written and change nothing else. Code of the program that puts a byte
    /// inline holds only the address of the next byte, which stays. None for a runtime of which this is not known.
    pub fn noted_as_written(&self, taken: usize) -> Option<Vec<MemoryStore>> {
        let is_own =
            self.walker == RuntimeId::GLIBC && self.joined.is_none() && !self.partial_stores.is_empty();
        let store = |part: &PartialStore| match part.value {
            StoredValue::WrittenPlus(from) => {
                Some(MemoryStore::u64(part.address, from.wrapping_add(taken as u64)))
            }
            StoredValue::Constant(value) => Some(MemoryStore::u64(part.address, value)),
            StoredValue::RemainingPlus(_) | StoredValue::RemainingBytes => None,
        };
        if is_own && taken <= self.bytes.len() {
            self.partial_stores.iter().map(store).collect()
        } else {
            None
        }
    }

    /// Returns whether any number of the bytes can be written while the others remain.
    pub fn can_drain_partially(&self) -> bool {
        !self.partial_stores.is_empty() && self.remainder_most >= self.bytes.len() as u64
    }
}

/// Where a flush writes the bytes of a stream that has read ahead in a file for reading and writing: before it writes, it moves
/// the file's offset back from the end of the read-ahead bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushPosition {
    /// The file's offset before the flush moves it; None: unknown.
    pub before: Option<u64>,
    /// The offset of the first pending byte; None: unknown.
    pub at: Option<u64>,
}

impl FlushPosition {
    /// Returns the position of a flush that moves the offset by `distance` bytes. None if it does not move it.
    pub(crate) fn moved(before: Option<u64>, distance: i64) -> Option<FlushPosition> {
        let at = before.and_then(|before| before.checked_add_signed(distance));
        (distance != 0).then_some(FlushPosition { before, at })
    }

    /// Returns the position of the last `left` of `all` bytes.
    #[must_use]
    pub fn of_rest(self, all: usize, left: usize) -> FlushPosition {
        let written = all as i64 - left as i64;
        FlushPosition { at: self.at.and_then(|at| at.checked_add_signed(written)), ..self }
    }
}

/// A stream to which another one hands its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerStream {
    /// As [`PendingBytes::stream`].
    pub address: u64,
    /// The number of pending bytes of the inner stream.
    pub pending_bytes: u64,
    /// The address of the inner stream's lock word.
    pub lock: u64,
    /// Start and end of the buffers of both streams: each write of their bytes begins in one of them.
    pub areas: [(u64, u64); 2],
}

/// A word of a stream that changes with the number of its pending bytes. The runtime changes it within some hundred
/// instructions after the write(2) that has written the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountWord {
    #[allow(missing_docs)]
    pub address: u64,
    /// The value that notes that all bytes were written.
    pub when_written: u64,
}

/// Bytes to store into a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MemoryStore {
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl MemoryStore {
    /// Returns the store of a little-endian word of 8 bytes.
    pub fn u64(address: u64, value: u64) -> MemoryStore {
        MemoryStore { address, bytes: value.to_le_bytes().to_vec() }
    }
}

/// A store whose value depends on how many bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartialStore {
    pub address: u64,
    pub value: StoredValue,
}

/// The value of a [`PartialStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredValue {
    /// This number plus the number of bytes that were written.
    WrittenPlus(u64),
    /// This number plus the number of bytes that remain.
    RemainingPlus(u64),
    /// The bytes that remain.
    RemainingBytes,
    /// This number, independent of the written bytes.
    Constant(u64),
}

impl PartialStore {
    pub fn new(address: u64, value: StoredValue) -> PartialStore {
        PartialStore { address, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(partial_stores: Vec<PartialStore>, remainder_most: u64) -> PendingBytes {
        PendingBytes {
            walker: RuntimeId::GLIBC,
            stream: 1,
            fd: 1,
            bytes: b"abcdef".to_vec(),
            buffer_bytes: 100,
            locked: None,
            lock_owner: 0,
            drain_stores: Vec::new(),
            partial_stores,
            found_by_search: false,
            data_address: None,
            note: None,
            position: None,
            flush_position: None,
            inner: None,
            joined: None,
            remainder_most,
            by_lines: false,
            unwritten: false,
            copies: Vec::new(),
            is_ambiguous: false,
            outside: OutsideWrite::default(),
        }
    }

    #[test]
    fn noted_bytes_leave_the_address_of_the_next_one() {
        let base = PartialStore::new(8, StoredValue::WrittenPlus(100));
        let one = of(vec![base, PartialStore::new(16, StoredValue::Constant(7))], u64::MAX);
        let noted = |len: u64| Some(vec![MemoryStore::u64(8, 100 + len), MemoryStore::u64(16, 7)]);
        assert_eq!((one.noted_as_written(2), one.noted_as_written(6)), (noted(2), noted(6)));
        assert_eq!((one.noted_as_written(7), of(Vec::new(), 0).noted_as_written(2)), (None, None));
        assert_eq!(PendingBytes { walker: RuntimeId::MUSL, ..one }.noted_as_written(2), None);
        let moving = of(vec![base, PartialStore::new(16, StoredValue::RemainingPlus(7))], u64::MAX);
        assert_eq!(moving.noted_as_written(2), None, "the next byte gets another address");
    }

    #[test]
    fn remaining_bytes_stay() {
        let parts = vec![
            PartialStore::new(8, StoredValue::WrittenPlus(100)),
            PartialStore::new(16, StoredValue::RemainingPlus(100)),
            PartialStore::new(24, StoredValue::RemainingBytes),
        ];
        let left = of(parts.clone(), u64::MAX).partial_drain(2).expect("it can_drain_partially");
        let bytes = MemoryStore { address: 24, bytes: b"cdef".to_vec() };
        assert_eq!(left, [MemoryStore::u64(8, 102), MemoryStore::u64(16, 104), bytes]);
        assert_eq!(
            of(parts.clone(), u64::MAX).partial_drain(6),
            None,
            "nothing is left: drain_stores says it"
        );
        assert!(of(parts.clone(), 3).partial_drain(2).is_none() && of(parts, 3).partial_drain(3).is_some());
        assert_eq!(of(Vec::new(), u64::MAX).partial_drain(2), None);
    }

    #[test]
    fn a_stream_over_a_line_buffer_writes_its_complete_lines_early() {
        let stream = |by_lines, found_by_search, unwritten| PendingBytes {
            bytes: b"one\ntwo".to_vec(),
            by_lines,
            found_by_search,
            unwritten,
            data_address: Some(1),
            ..of(Vec::new(), u64::MAX)
        };
        assert_eq!(stream(false, false, false).early_len(), 7);
        assert_eq!(stream(true, false, false).early_len(), 4);
        assert_eq!(stream(false, true, false).early_len(), 0, "it may be written already");
        assert_eq!(stream(true, true, true).early_len(), 4);
    }
}
