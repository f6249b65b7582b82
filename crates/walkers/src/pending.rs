//! All that waits in a stream to be written, and how the stream is emptied from outside.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};

/// What one stream of a process holds that the kernel has not got yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
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
    pub holder: u64,
    /// What to store, in this order, so that the stream is as its own flush would leave it. To be done only while
    /// no thread of the process is inside the stream. Empty: it cannot be emptied from outside.
    pub emptied: Vec<Store>,
    /// The same for when only some bytes could be written: see [`Pending::left_after`].
    pub(crate) partly: Vec<Part>,
    /// No more bytes than these can stay: there is no room for them where they would have to be.
    pub(crate) left_most: u64,
}

impl Pending {
    /// What to store when only the first `taken` bytes were written, so that the stream holds the others. None: this
    /// stream is emptied whole or not at all.
    pub fn left_after(&self, taken: usize) -> Option<Vec<Store>> {
        let left = self.bytes.get(taken..).filter(|left| !self.partly.is_empty() && !left.is_empty())?;
        let store = |part: &Part| match part.value {
            Value::Taken(from) => Store::u64(part.address, from.wrapping_add(taken as u64)),
            Value::Left(from) => Store::u64(part.address, from.wrapping_add(left.len() as u64)),
            Value::Just(value) => Store::u64(part.address, value),
            Value::Bytes => Store { address: part.address, bytes: left.to_vec() },
        };
        (left.len() as u64 <= self.left_most).then(|| self.partly.iter().map(store).collect())
    }

    /// Whether a list of the runtime's leads to the stream. What a search finds may look different to the next: it
    /// must not be written from outside, or it could be written twice.
    pub fn is_listed(&self) -> bool {
        match self.walker {
            RuntimeId::GO => false,
            RuntimeId::RUST => !self.emptied.is_empty(),
            _ => true,
        }
    }

    /// Whether some bytes can be written and the others stay, whatever their number.
    pub fn divides(&self) -> bool {
        !self.partly.is_empty() && self.left_most >= self.bytes.len() as u64
    }
}

/// Bytes to store into a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Where.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

impl Store {
    /// A little-endian word of 8 bytes.
    pub fn u64(address: u64, value: u64) -> Store {
        Store { address, bytes: value.to_le_bytes().to_vec() }
    }
}

/// A store that depends on how many bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub address: u64,
    pub value: Value,
}

/// Of a [`Part`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// This and the number of bytes that were written.
    Taken(u64),
    /// This and the number of bytes that were not.
    Left(u64),
    /// The bytes that were not.
    Bytes,
    /// This, however many.
    Just(u64),
}

impl Part {
    pub fn new(address: u64, value: Value) -> Part {
        Part { address, value }
    }
}

/// A stream as a walker reads it: what everyone is told of it, and what is needed to empty it.
#[derive(Debug, Clone)]
pub struct Whole {
    pub(crate) buffer: Buffer,
    pub(crate) locked: Option<bool>,
    pub(crate) holder: u64,
    pub(crate) emptied: Vec<Store>,
    pub(crate) partly: Vec<Part>,
    pub(crate) left_most: u64,
    /// The word that changes at each write into the buffer, where that is known.
    pub(crate) moves: Option<u64>,
}

impl Whole {
    /// One that cannot be emptied, as far as this tells.
    pub(crate) fn of(buffer: Buffer) -> Whole {
        Whole {
            buffer,
            locked: None,
            holder: 0,
            emptied: Vec::new(),
            partly: Vec::new(),
            left_most: u64::MAX,
            moves: None,
        }
    }

    /// One that has no buffer, or none yet.
    pub(crate) fn unbuffered(walker: RuntimeId, address: u64, fd: i32) -> Whole {
        Whole::of(Buffer {
            walker,
            address,
            fd,
            mode: Some(Mode::None),
            buffer_bytes: 0,
            pending_bytes: 0,
            pending: Vec::new(),
            unread_bytes: 0,
            unread: Vec::new(),
        })
    }

    /// None where nothing waits, where it goes to no descriptor, and where not all of it could be read.
    pub(crate) fn pending(self) -> Option<Pending> {
        let Buffer { walker, address, fd, pending_bytes, pending, .. } = self.buffer;
        let whole = pending_bytes > 0 && fd >= 0 && pending.len() as u64 == pending_bytes;
        whole.then_some(Pending {
            walker,
            stream: address,
            fd,
            bytes: pending,
            locked: self.locked,
            holder: self.holder,
            emptied: self.emptied,
            partly: self.partly,
            left_most: self.left_most,
        })
    }
}

/// What is told of every stream.
pub(crate) fn buffers(found: Vec<Whole>) -> Vec<Buffer> {
    found.into_iter().map(|one| one.buffer).collect()
}

/// The word that changes at each write into this buffer.
pub(crate) fn moves(found: Vec<Whole>, buffer: &Buffer) -> Option<u64> {
    let own = found.into_iter().find(|one| one.buffer.address == buffer.address);
    // Breakpoints of the processor want it aligned.
    own?.moves.filter(|at| at.is_multiple_of(8))
}

/// What waits in those that have something.
pub(crate) fn pending(found: Vec<Whole>) -> Vec<Pending> {
    found.into_iter().filter_map(Whole::pending).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(partly: Vec<Part>, left_most: u64) -> Pending {
        Pending {
            walker: RuntimeId::GLIBC,
            stream: 1,
            fd: 1,
            bytes: b"abcdef".to_vec(),
            locked: None,
            holder: 0,
            emptied: Vec::new(),
            partly,
            left_most,
        }
    }

    #[test]
    fn what_is_left_stays() {
        let parts = vec![
            Part::new(8, Value::Taken(100)),
            Part::new(16, Value::Left(100)),
            Part::new(24, Value::Bytes),
        ];
        let left = of(parts.clone(), u64::MAX).left_after(2).expect("it divides");
        let bytes = Store { address: 24, bytes: b"cdef".to_vec() };
        assert_eq!(left, [Store::u64(8, 102), Store::u64(16, 104), bytes]);
        assert_eq!(of(parts.clone(), u64::MAX).left_after(6), None, "nothing is left: emptied says it");
        assert!(of(parts.clone(), 3).left_after(2).is_none() && of(parts, 3).left_after(3).is_some());
        assert_eq!(of(Vec::new(), u64::MAX).left_after(2), None);
    }
}
