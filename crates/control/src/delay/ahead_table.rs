//! What was written ahead of a program: the beginning of what waits in its streams, which it must not write again.

use std::collections::HashMap;

/// Of one stream, the bytes that the kernel has although the stream still holds them.
#[derive(Debug, Clone)]
pub(crate) struct WrittenAhead {
    /// Where the stream object is.
    pub stream: u64,
    pub fd: i32,
    /// What the stream begins with.
    pub bytes: Vec<u8>,
}

/// By the process whose memory it is.
#[derive(Debug, Default)]
pub(crate) struct AheadTable {
    ahead: HashMap<u32, Vec<WrittenAhead>>,
    /// In all, ever.
    pub bytes: u64,
}

impl AheadTable {
    /// Whether there is something of this memory.
    pub fn any(&self, owner: u32) -> bool {
        self.ahead.contains_key(&owner)
    }

    /// Whether there is something at all.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// How many of the bytes that wait in a stream have been written.
    pub fn of(&self, owner: u32, stream: u64, pending: &[u8]) -> usize {
        let ahead = self.ahead.get(&owner).into_iter().flatten().find(|one| one.stream == stream);
        ahead.filter(|one| pending.starts_with(&one.bytes)).map_or(0, |one| one.bytes.len())
    }

    /// A stream now holds these bytes that have been written; none: forget it.
    pub fn set(&mut self, owner: u32, stream: u64, fd: i32, bytes: &[u8]) {
        let all = self.ahead.entry(owner).or_default();
        all.retain(|one| one.stream != stream);
        if !bytes.is_empty() {
            all.push(WrittenAhead { stream, fd, bytes: bytes.to_vec() });
        }
        if all.is_empty() {
            self.ahead.remove(&owner);
        }
    }

    /// What was written ahead of this memory's streams.
    pub fn of_memory(&self, owner: u32) -> impl Iterator<Item = &WrittenAhead> {
        self.ahead.get(&owner).into_iter().flatten()
    }

    /// The streams of this memory are no more.
    pub fn forget(&mut self, owner: u32) {
        self.ahead.remove(&owner);
    }

    /// Forgets what was written ahead of streams that do not hold it any more: the program threw it away. To be
    /// called only while the process is held.
    pub fn keep(&mut self, owner: u32, holds: impl Fn(u64, &[u8]) -> bool) {
        if let Some(all) = self.ahead.get_mut(&owner) {
            all.retain(|one| holds(one.stream, &one.bytes));
            if all.is_empty() {
                self.ahead.remove(&owner);
            }
        }
    }

    /// Whose memory has something.
    pub fn owners(&self) -> Vec<u32> {
        self.ahead.keys().copied().collect()
    }
}
