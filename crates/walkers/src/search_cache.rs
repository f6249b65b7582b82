//! Remembers the streams that a search of the memory found, and when to search again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::candidates::StreamCandidate;
use crate::heap_search::with_former;
use crate::write_epoch::{WriteEpoch, WriteToken};

/// A search costs at most 1 % of the time: the next one is due after 100 times the duration of the last one.
const PAUSE: u32 = 100;
const PAUSE_LEAST: Duration = Duration::from_millis(50);

/// An object in the last snapshot.
#[derive(Debug, Clone, Copy)]
struct ObservedObject {
    buffer: u64,
    fd: i32,
    pending: u64,
    /// A hash of the pending bytes: memory that was freed and used again changes without a write to the file.
    content: u64,
    /// The pending bytes changed while the buffer was the same, so the object was no stale copy.
    changed: bool,
    /// The token of the file; None if it is not open or no writes are known.
    token: Option<WriteToken>,
    /// The bytes were unwritten at this token.
    unwritten: Option<WriteToken>,
}

/// The results of earlier snapshots.
#[derive(Debug, Clone)]
pub(crate) struct SearchCache<Kind> {
    found: BTreeSet<(u64, Kind)>,
    next: Option<Instant>,
    /// No search is made, although one is due.
    is_deferred: bool,
    observed: BTreeMap<u64, ObservedObject>,
    /// The process's writes before this snapshot; None if nobody counts them.
    epoch: Option<WriteEpoch>,
}

impl<Kind> Default for SearchCache<Kind> {
    fn default() -> Self {
        SearchCache {
            found: BTreeSet::new(),
            next: None,
            is_deferred: false,
            observed: BTreeMap::new(),
            epoch: None,
        }
    }
}

impl<Kind: Ord + Copy> SearchCache<Kind> {
    /// Returns the objects, after a new search if one is due.
    pub fn objects(&mut self, search: impl FnOnce() -> BTreeSet<(u64, Kind)>) -> &BTreeSet<(u64, Kind)> {
        let begun = Instant::now();
        if !self.is_deferred && self.next.is_none_or(|next| next <= begun) {
            self.found = with_former(std::mem::take(&mut self.found), search);
            self.next = Some(Instant::now() + (begun.elapsed() * PAUSE).max(PAUSE_LEAST));
        }
        &self.found
    }

    /// Sets whether searches wait, so that snapshots read only the objects that are known.
    pub fn defer(&mut self, is_deferred: bool) {
        self.is_deferred = is_deferred;
    }

    /// Makes the next snapshot search.
    pub fn invalidate(&mut self) {
        self.next = None;
    }

    pub fn note_writes(&mut self, epoch: &WriteEpoch) {
        self.epoch = Some(epoch.clone());
    }

    /// Tells whether the process has made no write at all.
    pub fn is_none_written(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.none_yet)
    }

    /// Records the candidates of this snapshot. `is_first` tells whether nothing was ever written to the file of a
    /// candidate. It gets whether the process has made no write at all.
    pub fn record(
        &mut self,
        pid: u32,
        candidates: &[StreamCandidate],
        is_first: impl Fn(&StreamCandidate, bool) -> bool,
    ) {
        let mut observed = BTreeMap::new();
        let none_yet = self.is_none_written();
        for one in candidates {
            let (buffer, pending) = (one.stream.buffer.address, one.stream.buffer.pending_bytes);
            let (fd, content) = (one.stream.buffer.fd, hash(&one.stream.buffer.pending));
            let is_same = |before: &&ObservedObject| (before.buffer, before.fd) == (buffer, fd);
            let before = self.observed.get(&one.at).filter(is_same);
            let changed = before.is_some_and(|before| before.changed || before.pending != pending);
            let token = self.epoch.as_ref().and_then(|epoch| epoch.token(pid, one.stream.buffer.fd));
            let no_write = |before: &&ObservedObject| before.token == token;
            let has_grown = |before: &ObservedObject| before.pending < pending;
            let is_first = || is_first(one, none_yet);
            let unwritten = match before.filter(no_write) {
                Some(before) if has_grown(before) => token,
                Some(before) if before.pending == pending && before.content == content => before.unwritten,
                _ => None,
            };
            let unwritten = unwritten.or_else(|| token.filter(|_| is_first()));
            observed
                .insert(one.at, ObservedObject { buffer, fd, pending, content, changed, token, unwritten });
        }
        self.observed = observed;
    }

    /// Tells whether the pending bytes of an object were seen to change.
    pub fn has_changed(&self, address: u64) -> bool {
        self.observed.get(&address).is_some_and(|observed| observed.changed)
    }

    /// Tells whether the pending bytes of an object are surely not written yet.
    pub fn are_unwritten(&self, address: u64) -> bool {
        let observed = self.observed.get(&address);
        observed.is_some_and(|observed| observed.unwritten.is_some() && observed.unwritten == observed.token)
    }

    /// Tells whether another of these objects was seen to change, and this one was not.
    pub fn is_stale_copy(&self, address: u64, all: &[u64]) -> bool {
        !self.has_changed(address) && all.iter().any(|address| self.has_changed(*address))
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferred_search_leaves_the_known_objects() {
        let mut cache: SearchCache<()> = SearchCache::default();
        let known = BTreeSet::from([(1, ())]);
        assert_eq!(*cache.objects(|| known.clone()), known);
        cache.invalidate();
        cache.defer(true);
        assert_eq!(*cache.objects(|| panic!("the search is deferred")), known);
        cache.defer(false);
        assert!(cache.objects(BTreeSet::new).is_empty(), "the search is still due");
    }
}
