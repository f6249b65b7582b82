//! The table of bytes that weir has written ahead of programs, which the programs must not write again.

use std::collections::{HashMap, HashSet};

use weir_model::trace::RuntimeId;
use weir_walkers::PendingBytes;

/// The bytes of one stream that are written although the stream still holds them.
#[derive(Debug, Clone)]
pub(crate) struct WrittenAhead {
    /// The address of the stream object.
    pub stream: u64,
    pub fd: i32,
    /// The first pending bytes of the stream.
    pub bytes: Vec<u8>,
    /// Address of these bytes, if the program writes them from there, see [`PendingBytes::data_address`].
    pub data_address: Option<u64>,
    /// The stream is a Writer of Go.
    pub is_of_go: bool,
    /// The stream is one of CPython. Its text layer hands bytes to the buffer in an object that no walker reads. Until the
    /// buffer has stored the object, the stream seems to hold only its first bytes.
    pub is_of_cpython: bool,
    /// The runtime sets the file's position without a flush, see [`PendingBytes::position`].
    pub sets_position: bool,
    /// For two joined streams, see [`PendingBytes::joined`].
    pub joined: Option<JoinedAhead>,
}

/// Where the written-ahead bytes of two joined streams are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinedAhead {
    /// Start and end of both buffers, in one of which each of the program's writes of the bytes begins.
    pub areas: [(u64, u64); 2],
    /// The number of bytes that were in the inner stream when they were written.
    pub first_len: usize,
    /// The address of the others, in the buffer of the stream that hands its bytes to the inner one.
    pub then_address: u64,
}

impl JoinedAhead {
    fn of(pending: &PendingBytes) -> Option<JoinedAhead> {
        let joined = pending.joined.as_ref()?;
        let (inner, then_address) = (joined.then().inner?, joined.then().data_address?);
        Some(JoinedAhead { areas: inner.areas, first_len: joined.first_len(), then_address })
    }

    /// Returns whether the program can write the bytes from this address.
    pub fn contains(&self, address: u64) -> bool {
        self.areas.iter().any(|(start, end)| (*start..*end).contains(&address))
    }
}

impl WrittenAhead {
    /// Returns the first `written` bytes of a stream.
    pub fn of(pending: &PendingBytes, written: usize) -> WrittenAhead {
        let PendingBytes { stream, fd, data_address, .. } = *pending;
        WrittenAhead {
            stream,
            fd,
            bytes: pending.bytes[..written].to_vec(),
            data_address,
            is_of_go: pending.walker == RuntimeId::GO,
            is_of_cpython: pending.walker == RuntimeId::CPYTHON,
            sets_position: pending.position.is_some(),
            joined: JoinedAhead::of(pending),
        }
    }

    /// Returns whether the program can write the bytes by a write that begins at this address.
    pub fn can_be_written_from(&self, address: u64) -> bool {
        match self.joined {
            Some(joined) => joined.contains(address),
            None => self.data_address.is_none_or(|own| own == address),
        }
    }

    /// Returns the bytes behind the first `len`, and their address, if they are in the buffer of the outer of two joined streams.
    pub fn outer_bytes(&self, len: usize) -> Option<(u64, &[u8])> {
        let joined = self.joined?;
        let start = len.max(joined.first_len);
        let bytes = self.bytes.get(start..).filter(|bytes| !bytes.is_empty() && start == len)?;
        Some((joined.then_address + (start - joined.first_len) as u64, bytes))
    }

    /// Returns the rest after the program has written `skipped` of the bytes.
    pub fn without_first(mut self, skipped: usize) -> WrittenAhead {
        self.bytes.drain(..skipped);
        self.data_address = self.data_address.map(|address| address + skipped as u64);
        if let Some(joined) = &mut self.joined {
            let of_first = skipped.min(joined.first_len);
            joined.first_len -= of_first;
            joined.then_address += (skipped - of_first) as u64;
        }
        self
    }
}

/// The number of a count, and the writes to each file (device and inode number) since it began.
pub(crate) type CountedWrites = (u64, HashMap<(u64, u64), u64>);

/// The written-ahead bytes by the process that owns the memory.
#[derive(Debug, Default)]
pub(crate) struct AheadTable {
    ahead: HashMap<u32, Vec<WrittenAhead>>,
    /// The owners whose system calls weir counts although no bytes are written ahead.
    watched: HashSet<u32>,
    /// The writes of each owner whose threads stop at system calls.
    counted: HashMap<u32, CountedWrites>,
    last_number: u64,
    /// All bytes that were ever written ahead.
    pub total_bytes: u64,
}

impl AheadTable {
    pub fn contains(&self, owner: u32) -> bool {
        self.ahead.contains_key(&owner)
    }

    /// Returns whether the threads of an owner stop at system calls.
    pub fn stops_at_syscalls(&self, owner: u32) -> bool {
        self.ahead.contains_key(&owner) || self.watched.contains(&owner)
    }

    /// Begins or ends to count the writes of an owner. At the beginning all its threads must be stopped.
    pub fn watch(&mut self, owner: u32, watched: bool) {
        match watched {
            true => self.watched.insert(owner),
            false => self.watched.remove(&owner),
        };
        self.update_count(owner);
    }

    fn update_count(&mut self, owner: u32) {
        if !self.stops_at_syscalls(owner) {
            self.counted.remove(&owner);
        } else if !self.counted.contains_key(&owner) {
            self.last_number += 1;
            self.counted.insert(owner, (self.last_number, HashMap::new()));
        }
    }

    /// Counts a write of an owner to a file.
    pub fn count_write(&mut self, owner: u32, file: (u64, u64)) {
        if let Some((_, writes)) = self.counted.get_mut(&owner) {
            *writes.entry(file).or_default() += 1;
        }
    }

    /// Returns the writes to each file, and the number of this count; None without a count.
    pub fn counted_writes(&self, owner: u32) -> Option<&CountedWrites> {
        self.counted.get(&owner)
    }

    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns how many of a stream's first pending bytes are written.
    pub fn prefix_len(&self, owner: u32, stream: u64, pending: &[u8]) -> usize {
        let ahead = self.streams(owner).find(|one| one.stream == stream);
        match ahead {
            Some(one) if pending.starts_with(&one.bytes) => one.bytes.len(),
            // The old copy of a Writer on a stack has fewer bytes, all of them written.
            Some(one) if one.is_of_go && one.bytes.starts_with(pending) => pending.len(),
            // Of two joined streams, only the inner one is found; of one of CPython, the other bytes are being handed over.
            Some(one) if (one.joined.is_some() || one.is_of_cpython) && one.bytes.starts_with(pending) => {
                pending.len()
            }
            _ => 0,
        }
    }

    /// Returns how many of the first pending bytes of a stream are written ahead. They come after those of its inner stream, of which
    /// the program has not written `before` bytes yet.
    pub fn outer_prefix_len(&self, owner: u32, inner: u64, before: u64, pending: &[u8]) -> usize {
        let ahead = self.streams(owner).find(|one| one.stream == inner);
        let own = ahead.and_then(|one| one.bytes.get(before as usize..));
        own.filter(|own| pending.starts_with(own)).map_or(0, <[u8]>::len)
    }

    /// Returns whether this read of two joined streams lacks bytes that are written ahead: the outer stream was not found, or was
    /// found as an object with fewer bytes, because the program is moving the stream from one object to another.
    pub fn has_unread_outer(&self, owner: u32, stream: u64, pending: &[u8], is_joined: bool) -> bool {
        let mut same = self.streams(owner).filter(|one| one.stream == stream && one.joined.is_some());
        same.any(|one| !is_joined || one.bytes.len() > pending.len() && one.bytes.starts_with(pending))
    }

    /// Returns whether bytes of a stream of CPython are written ahead that are not its first pending bytes now, because its text
    /// layer hands them over.
    pub fn is_handed_over(&self, owner: u32, stream: u64, pending: &[u8]) -> bool {
        let mut same = self.streams(owner).filter(|one| one.stream == stream && one.is_of_cpython);
        same.any(|one| !pending.starts_with(&one.bytes))
    }

    /// Returns how many of the first bytes that a text layer of CPython hands over are written ahead. They come after those that
    /// the stream holds.
    pub fn handed_prefix_len(&self, owner: u32, stream: u64, pending: &[u8], handed: &[u8]) -> usize {
        let ahead = self.streams(owner).find(|one| one.stream == stream && one.is_of_cpython);
        let rest = ahead.and_then(|one| one.bytes.strip_prefix(pending));
        rest.map_or(0, |rest| if handed.starts_with(rest) { rest.len() } else { 0 })
    }

    /// Sets the written first bytes of a stream. Empty bytes remove the stream.
    pub fn set(&mut self, owner: u32, written: WrittenAhead) {
        let streams = self.ahead.entry(owner).or_default();
        streams.retain(|one| one.stream != written.stream);
        if !written.bytes.is_empty() {
            streams.push(written);
        }
        if streams.is_empty() {
            self.ahead.remove(&owner);
        }
        self.update_count(owner);
    }

    pub fn streams(&self, owner: u32) -> impl Iterator<Item = &WrittenAhead> {
        self.ahead.get(&owner).into_iter().flatten()
    }

    /// Removes an owner that has ended or has a new image.
    pub fn forget(&mut self, owner: u32) {
        self.ahead.remove(&owner);
        self.watched.remove(&owner);
        self.update_count(owner);
    }

    /// Keeps the streams for which `holds` returns true: they still hold their written bytes. The process must be stopped.
    pub fn retain(&mut self, owner: u32, holds: impl Fn(&WrittenAhead) -> bool) {
        if let Some(streams) = self.ahead.get_mut(&owner) {
            streams.retain(holds);
            if streams.is_empty() {
                self.ahead.remove(&owner);
            }
        }
        self.update_count(owner);
    }

    pub fn owners(&self) -> Vec<u32> {
        self.ahead.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two joined streams with this text written ahead, of which two bytes were in the inner one.
    fn joined(text: &[u8]) -> WrittenAhead {
        let areas = [(0x1000, 0x1010), (0x2000, 0x2010)];
        WrittenAhead {
            stream: 0x100,
            fd: 3,
            bytes: text.to_vec(),
            data_address: None,
            is_of_go: false,
            is_of_cpython: false,
            sets_position: false,
            joined: Some(JoinedAhead { areas, first_len: 2, then_address: 0x2000 }),
        }
    }

    #[test]
    fn joined_bytes_are_written_from_both_buffers() {
        let one = joined(b"abcde");
        assert!(one.can_be_written_from(0x1000) && one.can_be_written_from(0x200f));
        assert!(!one.can_be_written_from(0x1010) && !one.can_be_written_from(0x100));
        assert_eq!(one.outer_bytes(2), Some((0x2000, &b"cde"[..])));
        assert_eq!(one.outer_bytes(4), Some((0x2002, &b"e"[..])));
        assert_eq!((one.outer_bytes(1), one.outer_bytes(5)), (None, None), "not all are in the outer one");
        let rest = one.clone().without_first(1);
        assert_eq!((rest.outer_bytes(1), rest.outer_bytes(0)), (Some((0x2000, &b"cde"[..])), None));
        assert_eq!(one.without_first(3).outer_bytes(0), Some((0x2001, &b"de"[..])));
    }

    #[test]
    fn the_inner_stream_alone_has_nothing_new() {
        let mut table = AheadTable::default();
        table.set(1, joined(b"abcde"));
        assert_eq!(table.prefix_len(1, 0x100, b"abcdefg"), 5);
        assert_eq!(table.prefix_len(1, 0x100, b"ab"), 2, "the outer one was not found");
        assert_eq!(table.prefix_len(1, 0x100, b"abx"), 0);
        assert!(table.has_unread_outer(1, 0x100, b"abcdefg", false), "the inner one alone");
        assert!(table.has_unread_outer(1, 0x100, b"abc", true), "an object with fewer bytes");
        let others = [&b"abcde"[..], b"abcdefg", b"abx"];
        assert!(others.iter().all(|pending| !table.has_unread_outer(1, 0x100, pending, true)));
        assert!(!table.has_unread_outer(1, 0x200, b"abc", false), "another stream");
        assert_eq!(table.outer_prefix_len(1, 0x100, 2, b"cdefg"), 3);
        assert_eq!(table.outer_prefix_len(1, 0x100, 2, b"xdefg"), 0);
        assert_eq!(table.outer_prefix_len(1, 0x100, 6, b"g"), 0, "all of them are in the inner one");
    }

    #[test]
    fn bytes_that_a_text_layer_hands_over_stay_written() {
        let mut table = AheadTable::default();
        table.set(1, WrittenAhead { is_of_cpython: true, joined: None, ..joined(b"abcde") });
        assert_eq!(table.prefix_len(1, 0x100, b"abcdefg"), 5);
        assert_eq!((table.prefix_len(1, 0x100, b"ab"), table.prefix_len(1, 0x100, b"")), (2, 0));
        assert!(table.is_handed_over(1, 0x100, b"ab") && table.is_handed_over(1, 0x100, b"abx"));
        assert!(!table.is_handed_over(1, 0x100, b"abcdef") && !table.is_handed_over(1, 0x200, b"ab"));
        assert_eq!(table.handed_prefix_len(1, 0x100, b"ab", b"cdefg"), 3);
        assert_eq!(table.handed_prefix_len(1, 0x100, b"", b"abcdef"), 5);
        assert_eq!(table.handed_prefix_len(1, 0x100, b"ab", b"xdefg"), 0);
        assert_eq!(table.handed_prefix_len(1, 0x100, b"x", b"abcdef"), 0);
    }
}
