//! Remembers the streams that a search of the memory found, and when to search again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use weir_sys::memory::{Memory, ProcessMemory};

use crate::candidates::StreamCandidate;
use crate::found_objects::FoundObjects;
use crate::heap_search::note_search_cut;
use crate::search_thread::{SearchBeside, SearchResult, SearchState};
use crate::write_epoch::{WriteEpoch, WriteToken};

/// A search costs at most 1 % of the time: the next one is due after 100 times the duration of the last one.
const PAUSE: u32 = 100;
const MIN_PAUSE: Duration = Duration::from_millis(50);

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
    /// The last snapshot at which the number of pending bytes differed from the snapshot before, with the same buffer: the
    /// object was no stale copy then.
    changed: Option<u64>,
    /// The token of the file; None if it is not open or no writes are known.
    token: Option<WriteToken>,
    /// The bytes were unwritten at this token.
    unwritten: Option<WriteToken>,
}

/// The treatment of a search that is due at a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DueSearch {
    /// The snapshot waits for its result.
    #[default]
    Now,
    /// Another thread searches, and a later snapshot has the result. A snapshot waits only for a search that
    /// [`crate::Walker::search_again`] requested.
    Beside,
    /// A later snapshot makes it.
    Deferred,
}

/// The results of earlier snapshots.
#[derive(Debug, Clone)]
pub(crate) struct SearchCache<T> {
    found: T,
    next: Option<Instant>,
    /// The begin of the last search that read all memory.
    searched: Option<Instant>,
    due_search: DueSearch,
    beside: SearchBeside<T>,
    /// The next snapshot needs the result of a new search.
    is_asked: bool,
    observed: BTreeMap<u64, ObservedObject>,
    /// The addresses of all candidates since the last search. If the next one is cut, only these former objects stay known, because
    /// each snapshot reads all known objects.
    valid: BTreeSet<u64>,
    /// The number of snapshots.
    snapshots: u64,
    /// The process's writes before this snapshot; None if they are not counted.
    epoch: Option<WriteEpoch>,
}

impl<T: Default> Default for SearchCache<T> {
    fn default() -> Self {
        SearchCache {
            found: T::default(),
            next: None,
            searched: None,
            due_search: DueSearch::default(),
            beside: SearchBeside::default(),
            is_asked: false,
            observed: BTreeMap::new(),
            valid: BTreeSet::new(),
            snapshots: 0,
            epoch: None,
        }
    }
}

impl<T: FoundObjects> SearchCache<T> {
    /// Returns the objects, after a new search of `memory`, which is that of `pid`, if one is due. `search` makes it; see
    /// [`DueSearch`].
    pub fn objects<S>(&mut self, (pid, memory): (u32, &dyn Memory), search: impl FnOnce() -> S) -> &T
    where
        S: FnOnce(&dyn Memory) -> T + Send + 'static,
    {
        if self.due_search == DueSearch::Deferred {
            return &self.found;
        }
        let is_running = !self.is_asked && self.take_result();
        if !is_running && self.next.is_none_or(|next| next <= Instant::now()) {
            let is_asked = std::mem::take(&mut self.is_asked);
            match self.due_search == DueSearch::Beside && !is_asked {
                true => self.begin_beside(pid, search()),
                false => self.search_now(memory, search()),
            }
        }
        &self.found
    }

    fn search_now(&mut self, memory: &dyn Memory, search: impl FnOnce(&dyn Memory) -> T) {
        self.beside.end();
        self.take(SearchResult::of(|| search(memory)));
    }

    fn begin_beside<S>(&mut self, pid: u32, search: S)
    where
        S: FnOnce(&dyn Memory) -> T + Send + 'static,
    {
        if let Err(search) = self.beside.begin(move || search(&ProcessMemory { pid })) {
            self.take(SearchResult::of(search));
        }
    }

    /// Takes the result of the search by the other thread, if it has ended. Returns whether a search still runs.
    fn take_result(&mut self) -> bool {
        match self.beside.poll() {
            SearchState::None => {}
            SearchState::Running => return true,
            SearchState::Found(result) => self.take(result),
            SearchState::Lost => self.next = Some(Instant::now() + MIN_PAUSE),
        }
        false
    }

    fn take(&mut self, result: SearchResult<T>) {
        let former = std::mem::replace(&mut self.found, result.found);
        let valid = std::mem::take(&mut self.valid);
        if result.is_cut {
            self.found.add_former(former, &|at| valid.contains(&at));
            note_search_cut();
        } else {
            self.searched = Some(result.begun);
        }
        self.next = Some(Instant::now() + (result.took * PAUSE).max(MIN_PAUSE));
    }

    /// Returns what the last search has found.
    pub fn found(&self) -> &T {
        &self.found
    }

    /// Returns the begin of the last search that read all memory.
    pub fn searched(&self) -> Option<Instant> {
        self.searched
    }

    /// Sets what a snapshot does if a search is due.
    pub fn set_due_search(&mut self, due_search: DueSearch) {
        self.due_search = due_search;
    }

    /// Makes the next snapshot search, unless searches are deferred.
    pub fn invalidate(&mut self) {
        (self.next, self.is_asked) = (None, true);
    }

    /// Replaces this cache by another one of the same process, and makes a search due.
    pub fn continue_from(&mut self, former: SearchCache<T>) {
        *self = SearchCache { next: None, ..former };
    }

    pub fn note_writes(&mut self, epoch: &WriteEpoch) {
        self.epoch = Some(epoch.clone());
    }

    /// Returns whether the process has made no write at all.
    pub fn is_none_written(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.none_yet)
    }

    /// Records the candidates of this snapshot. `is_first` returns whether nothing was ever written to the file of a candidate; its
    /// second argument is the result of [`SearchCache::is_none_written`].
    pub fn record(
        &mut self,
        pid: u32,
        candidates: &[StreamCandidate],
        is_first: impl Fn(&StreamCandidate, bool) -> bool,
    ) {
        self.valid.extend(candidates.iter().map(|one| one.at));
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

    /// Returns whether the number of pending bytes of an object has changed between two snapshots.
    pub fn has_changed(&self, address: u64) -> bool {
        self.observed.get(&address).is_some_and(|observed| observed.changed.is_some())
    }

    /// Returns whether the pending bytes of an object are certainly not written yet.
    pub fn are_unwritten(&self, address: u64) -> bool {
        let observed = self.observed.get(&address);
        observed.is_some_and(|observed| observed.unwritten.is_some() && observed.unwritten == observed.token)
    }

    /// Returns whether another of the objects `all` has changed between two snapshots that both had this object, and this object has
    /// not changed since then. A copy that a search has just found is not stale: the program may have moved the object to it.
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
            buffer_bytes: 100,
            pending_bytes,
            found_by_search: true,
            ..Buffer::empty(RuntimeId::RUST, 50, 3)
        });
        StreamCandidate { at, untouched: false, stream }
    }

    /// A program moves a writer from 1 to 2, and later to 3.
    #[test]
    fn the_copy_that_changed_last_is_the_live_one() {
        let mut cache: SearchCache<BTreeSet<u64>> = SearchCache::default();
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

    /// Memory that nothing reads.
    const NONE: (u32, &dyn Memory) = (0, &ProcessMemory { pid: 0 });

    fn finds(known: &BTreeSet<u64>) -> impl FnOnce(&dyn Memory) -> BTreeSet<u64> + Send + use<> {
        let known = known.clone();
        move |_| known
    }

    fn no_search() -> fn(&dyn Memory) -> BTreeSet<u64> {
        panic!("no search is made")
    }

    #[test]
    fn a_deferred_search_leaves_the_known_objects() {
        let mut cache = SearchCache::default();
        let known = BTreeSet::from([1]);
        assert_eq!(*cache.objects(NONE, || finds(&known)), known);
        cache.invalidate();
        cache.set_due_search(DueSearch::Deferred);
        assert_eq!(*cache.objects(NONE, no_search), known);
        cache.set_due_search(DueSearch::Now);
        assert!(cache.objects(NONE, || finds(&BTreeSet::new())).is_empty(), "the search is still due");
        assert!(cache.objects(NONE, no_search).is_empty(), "and then it is not");
    }

    /// Reads until the search beside has ended.
    fn objects_beside(cache: &mut SearchCache<BTreeSet<u64>>) -> BTreeSet<u64> {
        while cache.searched.is_none() && !crate::heap_search::take_search_cut() {
            cache.objects(NONE, no_search);
            std::thread::yield_now();
        }
        cache.objects(NONE, no_search).clone()
    }

    /// A search beside that waits for its end, and whether it was cut.
    type HeldSearch = (std::sync::mpsc::Sender<bool>, SearchCache<BTreeSet<u64>>);

    fn held_search(of: &[u64], before: &[u64]) -> HeldSearch {
        let (end, wait_for_end) = std::sync::mpsc::channel();
        let (begin, wait_for_begin) = std::sync::mpsc::channel();
        let mut cache =
            SearchCache { found: BTreeSet::from_iter(before.iter().copied()), ..SearchCache::default() };
        cache.set_due_search(DueSearch::Beside);
        let found = BTreeSet::from_iter(of.iter().copied());
        let search = move |_: &dyn Memory| {
            begin.send(()).expect("it waits");
            if wait_for_end.recv() == Ok(true) {
                note_search_cut();
            }
            found
        };
        assert_eq!(cache.objects(NONE, || search), &BTreeSet::from_iter(before.iter().copied()));
        wait_for_begin.recv().expect("the begin");
        (end, cache)
    }

    #[test]
    fn objects_count_as_found_or_gone_only_after_a_whole_search_beside() {
        let (end, mut cache) = held_search(&[2], &[1]);
        let begun = Instant::now();
        assert_eq!((*cache.objects(NONE, no_search)).clone(), BTreeSet::from([1]));
        assert_eq!(cache.searched(), None, "the search still runs");
        end.send(false).expect("it waits");
        assert_eq!(objects_beside(&mut cache), BTreeSet::from([2]));
        assert!(cache.searched().is_some_and(|searched| searched <= begun), "it is as old as its begin");
    }

    #[test]
    fn valid_objects_stay_known_after_a_search_beside_that_was_cut() {
        let (end, mut cache) = held_search(&[2], &[1, 3, 4]);
        cache.record(0, &[copy(1, 5), copy(4, 0)], |_, _| false);
        cache.record(0, &[copy(1, 5)], |_, _| false);
        end.send(true).expect("it waits");
        assert_eq!(objects_beside(&mut cache), BTreeSet::from([1, 2, 4]), "3 gave no candidate");
        assert_eq!(cache.searched(), None);
    }

    #[test]
    fn a_search_that_is_asked_for_does_not_wait_for_another_thread() {
        let (end, mut cache) = held_search(&[2], &[1]);
        cache.invalidate();
        let asked = BTreeSet::from([3]);
        assert_eq!(*cache.objects(NONE, || finds(&asked)), asked);
        drop(end);
        assert_eq!(*cache.objects(NONE, no_search), asked, "the other search has no result");
    }

    #[test]
    fn the_next_walker_continues_a_search() {
        let (end, former) = held_search(&[2], &[1]);
        let mut cache = SearchCache::default();
        cache.continue_from(former);
        assert_eq!(*cache.objects(NONE, no_search), BTreeSet::from([1]));
        end.send(false).expect("it waits");
        assert_eq!(objects_beside(&mut cache), BTreeSet::from([2]));
        let mut next = SearchCache::default();
        next.continue_from(cache);
        next.set_due_search(DueSearch::Now);
        assert_eq!(
            *next.objects(NONE, || finds(&BTreeSet::from([4]))),
            BTreeSet::from([4]),
            "a search is due"
        );
    }
}
