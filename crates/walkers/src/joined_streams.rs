//! Joins each stream with the stream to which it hands its bytes: together they hold the bytes of one file, in the order in
//! which the program writes them.
//!
//! Only the file buffers of libc++ are such streams. The first byte of most of them is in the FILE of the C library, and the
//! others are in the file buffer.

use weir_model::trace::Buffer;

use crate::PENDING_KEPT;
use crate::pending_bytes::PendingBytes;
use crate::stream_buffer::StreamBuffer;

/// Returns the buffers of streams. The pending bytes of an inner stream are shown in the buffer of the stream that hands it
/// bytes, before its own. While a thread moves bytes from one to the other, only those of the inner stream count.
pub(crate) fn join_buffers(mut streams: Vec<StreamBuffer>) -> Vec<Buffer> {
    for outer in 0..streams.len() {
        let Some(inner) = streams[outer].inner else { continue };
        let is_inner = |one: &StreamBuffer| one.buffer.address == inner.address && one.inner.is_none();
        let Some(at) = streams.iter().position(is_inner) else { continue };
        let (is_moving, own) = (streams[outer].locked == Some(true), &streams[outer].buffer);
        let (own_bytes, own_text) = match is_moving {
            true => (0, Vec::new()),
            false => (own.pending_bytes, own.pending.clone()),
        };
        let first = &mut streams[at].buffer;
        let (first_bytes, mut text) =
            (std::mem::take(&mut first.pending_bytes), std::mem::take(&mut first.pending));
        if text.len() as u64 == first_bytes {
            text.extend(own_text);
            text.truncate(PENDING_KEPT as usize);
        }
        let own = &mut streams[outer].buffer;
        (own.pending_bytes, own.pending) = (first_bytes + own_bytes, text);
    }
    crate::stream_buffer::buffers(streams)
}

/// The stream whose bytes come first in joined pending bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedStreams {
    /// The pending bytes of the inner stream; None if it has none.
    pub(crate) first: Option<Box<PendingBytes>>,
    /// The pending bytes of the stream that hands its bytes to the inner one.
    pub(crate) then: Box<PendingBytes>,
}

impl JoinedStreams {
    /// Returns the stream that hands its bytes to the inner one, with its own bytes only.
    pub fn then(&self) -> &PendingBytes {
        &self.then
    }

    /// Returns the number of bytes in the inner stream.
    pub fn first_len(&self) -> usize {
        self.first.as_ref().map_or(0, |first| first.bytes.len())
    }
}

/// Joins the pending bytes of inner streams with those of the streams that hand them bytes. The result has the address of the
/// inner stream. A stream whose inner stream was changed during the read is left out.
pub fn join_pending(pending: Vec<PendingBytes>) -> Vec<PendingBytes> {
    let (outer, mut all): (Vec<_>, Vec<_>) = pending.into_iter().partition(|one| one.inner.is_some());
    for then in outer {
        let Some(inner) = then.inner else { continue };
        let at = all.iter().position(|one| one.stream == inner.address && one.joined.is_none());
        let first = at.map(|at| all[at].clone());
        if first.as_ref().map_or(0, |first| first.bytes.len() as u64) != inner.pending_bytes {
            continue;
        }
        let joined = joined(inner.address, first, then);
        match at {
            Some(at) => all[at] = joined,
            None => all.push(joined),
        }
    }
    all
}

fn joined(stream: u64, first: Option<PendingBytes>, then: PendingBytes) -> PendingBytes {
    let mut bytes = first.as_ref().map_or(Vec::new(), |first| first.bytes.clone());
    bytes.extend_from_slice(&then.bytes);
    let mut one = PendingBytes {
        stream,
        bytes,
        data_address: None,
        note: None,
        inner: None,
        partial_stores: Vec::new(),
        drain_stores: Vec::new(),
        joined: None,
        ..then.clone()
    };
    let joined = JoinedStreams { first: first.map(Box::new), then: Box::new(then) };
    one.drain_stores = joined.stores(joined.first_len() + joined.then.bytes.len()).unwrap_or_default();
    one.joined = Some(joined);
    one
}

impl JoinedStreams {
    /// Returns the stores that remove the first `len` bytes; None if one of the streams cannot be drained so.
    pub(crate) fn stores(&self, len: usize) -> Option<Vec<crate::MemoryStore>> {
        let first = match &self.first {
            Some(first) => first.stores_without(len.min(first.bytes.len()))?,
            None => Vec::new(),
        };
        let of_then = len - len.min(self.first_len());
        let then = if of_then > 0 { self.then.stores_without(of_then)? } else { Vec::new() };
        Some([first, then].concat())
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::RuntimeId;

    use super::*;
    use crate::pending_bytes::{InnerStream, MemoryStore, PartialStore, StoredValue};

    const FILE: u64 = 0x1000;
    const FILE_BUFFER: u64 = 0x2000;

    fn buffer(walker: RuntimeId, address: u64, text: &[u8]) -> Buffer {
        Buffer {
            buffer_bytes: 100,
            pending_bytes: text.len() as u64,
            pending: text.to_vec(),
            ..Buffer::empty(walker, address, 3)
        }
    }

    fn file(text: &[u8]) -> StreamBuffer {
        let mut file = StreamBuffer::of(buffer(RuntimeId::GLIBC, FILE, text));
        file.drain_stores = vec![MemoryStore::u64(FILE, 1)];
        file.partial_stores = vec![PartialStore::new(FILE, StoredValue::WrittenPlus(100))];
        file
    }

    fn file_buffer(text: &[u8], in_file: u64, locked: bool) -> StreamBuffer {
        let mut outer = StreamBuffer::of(buffer(RuntimeId::CPP, FILE_BUFFER, text));
        outer.drain_stores = vec![MemoryStore::u64(FILE_BUFFER, 2)];
        outer.partial_stores = vec![PartialStore::new(FILE_BUFFER, StoredValue::WrittenPlus(200))];
        let areas = [(FILE, FILE + 8), (FILE_BUFFER, FILE_BUFFER + 8)];
        outer.inner = Some(InnerStream { address: FILE, pending_bytes: in_file, lock: 0, areas });
        outer.locked = Some(locked);
        outer
    }

    fn pending(streams: Vec<StreamBuffer>) -> Vec<PendingBytes> {
        join_pending(crate::stream_buffer::pending(streams))
    }

    #[test]
    fn the_bytes_of_the_inner_stream_are_shown_first() {
        let shown = |streams| -> Vec<(u64, Vec<u8>)> {
            join_buffers(streams).into_iter().map(|one| (one.pending_bytes, one.pending)).collect()
        };
        let none = (0, Vec::new());
        let all = (7, b"a line\n".to_vec());
        assert_eq!(shown(vec![file(b"a"), file_buffer(b" line\n", 1, false)]), [none.clone(), all.clone()]);
        assert_eq!(shown(vec![file_buffer(b" line\n", 1, false), file(b"a")]), [all.clone(), none.clone()]);
        assert_eq!(shown(vec![file(b"a line\n"), file_buffer(b" line\n", 7, true)]), [none, all], "locked");
        let mut long = file(b"begin");
        long.buffer.pending_bytes = 500;
        assert_eq!(shown(vec![long, file_buffer(b"end", 500, false)])[1], (503, b"begin".to_vec()));
    }

    #[test]
    fn joined_bytes_leave_both_streams() {
        let [one] = &pending(vec![file(b"ab"), file_buffer(b"cde", 2, false)])[..] else { panic!("one") };
        assert_eq!((one.stream, &one.bytes[..], one.early_len()), (FILE, &b"abcde"[..], 5));
        let stores = |len| one.stores_without(len).expect("stores");
        let in_file = |value| MemoryStore::u64(FILE, value);
        let in_buffer = |value| MemoryStore::u64(FILE_BUFFER, value);
        assert_eq!(stores(5), [in_file(1), in_buffer(2)]);
        assert_eq!(stores(4), [in_file(1), in_buffer(202)]);
        assert_eq!(stores(2), [in_file(1)]);
        assert_eq!(stores(1), [in_file(101)]);
        let [one] = &pending(vec![file(b""), file_buffer(b"cde", 0, false)])[..] else { panic!("one") };
        assert_eq!((one.stream, one.stores_without(3)), (FILE, Some(vec![in_buffer(2)])));
    }

    #[test]
    fn streams_that_changed_during_the_read_are_not_joined() {
        let [one] = &pending(vec![file(b"ab"), file_buffer(b"cde", 5, false)])[..] else { panic!("one") };
        assert_eq!((one.stream, &one.bytes[..], one.joined.is_some()), (FILE, &b"ab"[..], false));
        assert_eq!(pending(vec![file(b""), file_buffer(b"cde", 5, false)]), []);
    }
}
