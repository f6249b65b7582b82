//! Remembers the streams that a search of the memory found, and when to search again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::candidates::StreamCandidate;
use crate::heap_search::{is_search_cut, with_former};
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
    /// The first snapshot in a row with this object.
    since: u64,
    /// The last snapshot at which the number of pending bytes was another one than before, with the same buffer: the object was
    /// no stale copy then.
    changed: Option<u64>,
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
    /// The begin of the last search that read all memory.
    searched: Option<Instant>,
    /// No search is made, although one is due.
    is_deferred: bool,
    observed: BTreeMap<u64, ObservedObject>,
    /// The number of snapshots.
    snapshots: u64,
    /// The process's writes before this snapshot; None if nobody counts them.
    epoch: Option<WriteEpoch>,
}

impl<Kind> Default for SearchCache<Kind> {
    fn default() -> Self {
        SearchCache {
            found: BTreeSet::new(),
            next: None,
            searched: None,
            is_deferred: false,
            observed: BTreeMap::new(),
            snapshots: 0,
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
            self.searched = Some(begun).filter(|_| !is_search_cut()).or(self.searched);
            self.next = Some(Instant::now() + (begun.elapsed() * PAUSE).max(PAUSE_LEAST));
        }
        &self.found
    }

    /// Returns the begin of the last search that read all memory.
    pub fn searched(&self) -> Option<Instant> {
        self.searched
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
        self.snapshots += 1;
        let now = self.snapshots;
        let none_yet = self.is_none_written();
        for one in candidates {
            let (buffer, pending) = (one.stream.buffer.address, one.stream.buffer.pending_bytes);
            let (fd, content) = (one.stream.buffer.fd, hash(&one.stream.buffer.pending));
            let is_same = |before: &&ObservedObject| (before.buffer, before.fd) == (buffer, fd);
            let before = self.observed.get(&one.at).filter(is_same);
            let changed = before.and_then(|before| match before.pending == pending {
                true => before.changed,
                false => Some(now),
            });
            let since = before.map_or(now, |before| before.since);
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
            let object = ObservedObject { buffer, fd, pending, content, since, changed, token, unwritten };
            observed.insert(one.at, object);
        }
        self.observed = observed;
    }

    /// Tells whether the pending bytes of an object were seen to change.
    pub fn has_changed(&self, address: u64) -> bool {
        self.observed.get(&address).is_some_and(|observed| observed.changed.is_some())
    }

    /// Tells whether the pending bytes of an object are surely not written yet.
    pub fn are_unwritten(&self, address: u64) -> bool {
        let observed = self.observed.get(&address);
        observed.is_some_and(|observed| observed.unwritten.is_some() && observed.unwritten == observed.token)
    }

    /// Tells whether another of these objects was seen to change between two snapshots that had this one too, and this one has not
    /// changed since then. A copy that a search has just found is not stale: the program may have moved the object to it.
    pub fn is_stale_copy(&self, address: u64, all: &[u64]) -> bool {
        let Some(own) = self.observed.get(&address) else { return false };
        let last = own.changed.map_or(own.since, |changed| changed.max(own.since));
        let changed = |other: &u64| self.observed.get(other).and_then(|other| other.changed);
        all.iter().filter_map(changed).any(|changed| changed > last)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Buffer, RuntimeId};

    use super::*;
    use crate::stream_buffer::StreamBuffer;

    fn copy(at: u64, pending_bytes: u64) -> StreamCandidate {
        let stream = StreamBuffer::of(Buffer {
            walker: RuntimeId::RUST,
            address: 50,
            fd: 3,
            mode: None,
            buffer_bytes: 100,
            pending_bytes,
            pending: Vec::new(),
            unread_bytes: 0,
            unread: Vec::new(),
            found_by_search: true,
            has_write_address: false,
        });
        StreamCandidate { at, untouched: false, stream }
    }

    /// A program moves a writer from 1 to 2, and later to 3.
    #[test]
    fn the_copy_that_changed_last_is_the_live_one() {
        let mut cache: SearchCache<()> = SearchCache::default();
        let mut stale = |copies: &[(u64, u64)]| {
            let copies: Vec<StreamCandidate> = copies.iter().map(|(at, bytes)| copy(*at, *bytes)).collect();
            cache.record(0, &copies, |_, _| false);
            let all = crate::candidates::addresses(&copies);
            all.iter().filter(|at| cache.is_stale_copy(**at, &all)).copied().collect::<Vec<_>>()
        };
        assert!(stale(&[(1, 0)]).is_empty());
        assert!(stale(&[(1, 5), (2, 0)]).is_empty(), "2 may be what 1 was moved to");
        assert_eq!(stale(&[(1, 5), (2, 6)]), [1]);
        assert_eq!(stale(&[(1, 5), (2, 6), (3, 6)]), [1]);
        assert_eq!(stale(&[(1, 5), (2, 6), (3, 7)]), [1, 2]);
        assert_eq!(stale(&[(1, 5), (2, 6), (3, 7)]), [1, 2], "nothing has changed");
    }

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
