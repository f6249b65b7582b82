//! One stream as a walker reads it.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};

use crate::outside_write::OutsideWrite;
use crate::pending_bytes::{
    CountWord, FlushPosition, InnerStream, MemoryStore, PartialStore, PendingBytes, StreamCopy,
};

/// A stream, and what is needed to drain it. The fields are those of [`PendingBytes`].
#[derive(Debug, Clone)]
pub struct StreamBuffer {
    pub(crate) buffer: Buffer,
    pub(crate) locked: Option<bool>,
    pub(crate) lock_owner: u64,
    pub(crate) drain_stores: Vec<MemoryStore>,
    pub(crate) partial_stores: Vec<PartialStore>,
    pub(crate) remainder_most: u64,
    pub(crate) data_address: Option<u64>,
    pub(crate) note: Option<CountWord>,
    pub(crate) position: Option<u64>,
    pub(crate) flush_position: Option<FlushPosition>,
    pub(crate) inner: Option<InnerStream>,
    pub(crate) by_lines: bool,
    pub(crate) unwritten: bool,
    pub(crate) copies: Vec<StreamCopy>,
    pub(crate) is_ambiguous: bool,
    pub(crate) outside: OutsideWrite,
    /// The bytes before the pending ones that an asynchronous write may not have written. `buffer` does not count them.
    pub(crate) in_flight: Vec<u8>,
    /// The stores are known only while all threads are stopped, see [`crate::Walker::pending_of_stopped`].
    pub(crate) is_drained_when_stopped: bool,
    /// Address of the word that changes at each write into the buffer, if it is known.
    pub(crate) watch_address: Option<u64>,
}

impl StreamBuffer {
    /// Returns a stream that cannot be drained, unless the caller adds stores.
    pub(crate) fn of(buffer: Buffer) -> StreamBuffer {
        StreamBuffer {
            buffer,
            locked: None,
            lock_owner: 0,
            drain_stores: Vec::new(),
            partial_stores: Vec::new(),
            remainder_most: u64::MAX,
            data_address: None,
            note: None,
            position: None,
            flush_position: None,
            inner: None,
            by_lines: false,
            unwritten: false,
            copies: Vec::new(),
            is_ambiguous: false,
            outside: OutsideWrite::default(),
            in_flight: Vec::new(),
            is_drained_when_stopped: false,
            watch_address: None,
        }
    }

    /// Returns a stream that has no buffer, or none yet.
    pub(crate) fn unbuffered(walker: RuntimeId, address: u64, fd: i32) -> StreamBuffer {
        StreamBuffer::of(Buffer { mode: Some(Mode::None), ..Buffer::empty(walker, address, fd) })
    }

    /// Returns the stream with a mark that its descriptor may belong to another stream, which has none of its bytes.
    pub(crate) fn with_ambiguous_owner(mut self, is_ambiguous: bool) -> StreamBuffer {
        self.is_ambiguous |= is_ambiguous;
        if self.copies.is_empty() {
            self.add_itself_as_copy();
        }
        self.copies.push(StreamCopy { fd: -1, pending_bytes: 0, note: None });
        self
    }

    /// Returns whether the pending bytes can be written from outside, except of those that the program still converts.
    pub(crate) fn can_be_drained(&self) -> bool {
        let has_bytes = self.buffer.unconverted_bytes == 0 || self.buffer.converted_bytes() > 0;
        has_bytes && (!self.drain_stores.is_empty() || self.is_drained_when_stopped)
    }

    /// Returns the stream without the data for a write from outside, because functions of the program itself handle its
    /// bytes.
    pub(crate) fn only_shown(mut self) -> StreamBuffer {
        self.buffer.found_by_search = true;
        StreamBuffer { watch_address: self.watch_address, ..StreamBuffer::of(self.buffer) }
    }

    /// Marks that it is unknown whether the bytes are written, although their number is known.
    pub(crate) fn add_itself_as_copy(&mut self) {
        let Buffer { fd, pending_bytes, .. } = self.buffer;
        self.copies.push(StreamCopy { fd, pending_bytes, note: self.note });
    }

    /// Returns the pending bytes, without those that the program still converts. None if there are none, if the stream has
    /// no descriptor, or if `buffer` has not all of them.
    pub(crate) fn pending(self) -> Option<PendingBytes> {
        let converted = self.buffer.converted_bytes();
        let Buffer { walker, address, fd, buffer_bytes, pending_bytes, mut pending, found_by_search, .. } =
            self.buffer;
        let has_bytes = converted > 0 || !self.in_flight.is_empty();
        let stream = has_bytes && fd >= 0 && pending.len() as u64 == pending_bytes;
        pending.truncate(usize::try_from(converted).unwrap_or(0));
        pending.splice(0..0, self.in_flight);
        stream.then_some(PendingBytes {
            walker,
            stream: address,
            fd,
            bytes: pending,
            buffer_bytes,
            locked: self.locked,
            lock_owner: self.lock_owner,
            drain_stores: self.drain_stores,
            partial_stores: self.partial_stores,
            remainder_most: self.remainder_most,
            found_by_search,
            data_address: self.data_address,
            note: self.note,
            position: self.position,
            flush_position: self.flush_position,
            inner: self.inner,
            joined: None,
            by_lines: self.by_lines,
            unwritten: self.unwritten,
            copies: self.copies,
            is_ambiguous: self.is_ambiguous,
            outside: self.outside,
        })
    }
}

/// Returns the buffers of streams, except of those whose number of bytes is unknown.
pub(crate) fn buffers(found: Vec<StreamBuffer>) -> Vec<Buffer> {
    let buffer = |one: StreamBuffer| Buffer {
        has_write_address: one.data_address.is_some() && one.copies.is_empty(),
        ..one.buffer
    };
    found.into_iter().filter(|one| !one.is_ambiguous).map(buffer).collect()
}

/// Returns the address of the word that changes at each write into this buffer, for a hardware breakpoint.
pub(crate) fn watch_address(found: Vec<StreamBuffer>, buffer: &Buffer) -> Option<u64> {
    let own = found.into_iter().find(|one| one.buffer.address == buffer.address);
    // A hardware breakpoint on 8 bytes needs an aligned address.
    own?.watch_address.filter(|at| at.is_multiple_of(8))
}

/// Returns the pending bytes of those streams that have some.
pub(crate) fn pending(found: Vec<StreamBuffer>) -> Vec<PendingBytes> {
    found.into_iter().filter_map(StreamBuffer::pending).collect()
}
