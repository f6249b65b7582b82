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
    /// The runtime sets the file's position without a flush, see [`PendingBytes::position`].
    pub sets_position: bool,
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
            sets_position: pending.position.is_some(),
        }
    }

    /// Returns the rest after the program has written `skipped` of the bytes.
    pub fn without_first(mut self, skipped: usize) -> WrittenAhead {
        self.bytes.drain(..skipped);
        self.data_address = self.data_address.map(|address| address + skipped as u64);
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

    /// Tells whether the threads of an owner stop at system calls.
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
            _ => 0,
        }
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

    /// Removes a memory that has ended or has a new image.
    pub fn forget(&mut self, owner: u32) {
        self.ahead.remove(&owner);
        self.watched.remove(&owner);
        self.update_count(owner);
    }

    /// Keeps the streams that still hold their written bytes. The process must be stopped.
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
