//! All that waits in a stream to be written, and how the stream is emptied from outside.

use weir_model::trace::RuntimeId;

/// What one stream of a process holds that the kernel has not got yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingBytes {
    /// Whose stream it is.
    pub walker: RuntimeId,
    /// Where the stream object is, as in [`weir_model::trace::Buffer::address`].
    pub stream: u64,
    /// Its descriptor in that process.
    pub fd: i32,
    /// All the bytes, in the order in which the program would write them.
    pub bytes: Vec<u8>,
    /// Whether a thread holds the stream's own lock; None: it has none, or it is not known.
    pub locked: Option<bool>,
    /// Who holds it, as the runtime names a thread: its number, or the address of its own data; 0: nobody.
    pub lock_owner: u64,
    /// What to store, in this order, so that the stream is as its own flush would leave it. To be done only while
    /// no thread of the process is inside the stream. Empty: it cannot be emptied from outside.
    pub drain_stores: Vec<MemoryStore>,
    /// The same for when only some bytes could be written: see [`PendingBytes::left_after`].
    pub(crate) partial_stores: Vec<PartialStore>,
    /// No more bytes than these can stay: there is no room for them where they would have to be.
    pub(crate) remainder_most: u64,
}

impl PendingBytes {
    /// What to store when only the first `taken` bytes were written, so that the stream holds the others. None: this
    /// stream is emptied whole or not at all.
    pub fn partial_drain(&self, taken: usize) -> Option<Vec<MemoryStore>> {
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

    /// Whether a list of the runtime's leads to the stream. What a search finds may look different to the next: it
    /// must not be written from outside, or it could be written twice.
    pub fn is_listed(&self) -> bool {
        match self.walker {
            RuntimeId::GO => false,
            RuntimeId::RUST => !self.drain_stores.is_empty(),
            _ => true,
        }
    }

    /// Whether some bytes can be written and the others stay, whatever their number.
    pub fn can_drain_partially(&self) -> bool {
        !self.partial_stores.is_empty() && self.remainder_most >= self.bytes.len() as u64
    }
}

/// Bytes to store into a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStore {
    /// Where.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

impl MemoryStore {
    /// A little-endian word of 8 bytes.
    pub fn u64(address: u64, value: u64) -> MemoryStore {
        MemoryStore { address, bytes: value.to_le_bytes().to_vec() }
    }
}

/// A store that depends on how many bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartialStore {
    pub address: u64,
    pub value: StoredValue,
}

/// Of a [`PartialStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredValue {
    /// This and the number of bytes that were written.
    WrittenPlus(u64),
    /// This and the number of bytes that were not.
    RemainingPlus(u64),
    /// The bytes that were not.
    RemainingBytes,
    /// This, however many.
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
            locked: None,
            lock_owner: 0,
            drain_stores: Vec::new(),
            partial_stores,
            remainder_most,
        }
    }

    #[test]
    fn what_is_left_stays() {
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
}
