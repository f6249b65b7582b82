//! Remembers the streams that a search of the memory found, and when to search again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::candidates::StreamCandidate;

/// A search costs at most 1 % of the time: the next one is due after 100 times the duration of the last one.
const PAUSE: u32 = 100;
const PAUSE_LEAST: Duration = Duration::from_millis(50);

/// The results of earlier snapshots.
#[derive(Debug, Clone)]
pub(crate) struct SearchCache<Kind> {
    found: BTreeSet<(u64, Kind)>,
    next: Option<Instant>,
    /// For each object its buffer, its pending bytes, and whether these ever changed while the buffer was the same.
    /// An object that changed is no stale copy.
    observed: BTreeMap<u64, (u64, u64, bool)>,
}

impl<Kind> Default for SearchCache<Kind> {
    fn default() -> Self {
        SearchCache { found: BTreeSet::new(), next: None, observed: BTreeMap::new() }
    }
}

impl<Kind: Ord + Copy> SearchCache<Kind> {
    /// Returns the objects, after a new search if one is due.
    pub fn objects(&mut self, search: impl FnOnce() -> BTreeSet<(u64, Kind)>) -> &BTreeSet<(u64, Kind)> {
        let begun = Instant::now();
        if self.next.is_none_or(|next| next <= begun) {
            self.found = search();
            self.next = Some(Instant::now() + (begun.elapsed() * PAUSE).max(PAUSE_LEAST));
        }
        &self.found
    }

    /// Makes the next snapshot search.
    pub fn invalidate(&mut self) {
        self.next = None;
    }

    /// Records the candidates of this snapshot.
    pub fn record(&mut self, candidates: &[StreamCandidate]) {
        let mut observed = BTreeMap::new();
        for one in candidates {
            let now = (one.stream.buffer.address, one.stream.buffer.pending_bytes);
            let before = self.observed.get(&one.at).filter(|before| before.0 == now.0);
            let changed = before.is_some_and(|before| before.2 || before.1 != now.1);
            observed.insert(one.at, (now.0, now.1, changed));
        }
        self.observed = observed;
    }

    /// Tells whether another of these objects was seen to change, and this one was not.
    pub fn is_stale_copy(&self, address: u64, all: &[u64]) -> bool {
        let changes = |address: &u64| self.observed.get(address).is_some_and(|observed| observed.2);
        !changes(&address) && all.iter().any(changes)
    }
}
