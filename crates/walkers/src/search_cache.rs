//! Streams that no list leads to: where the last search found them, and when it is worth another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::candidates::StreamCandidate;

/// A search is made again when this many times of what the last one took have gone by: new streams may be there.
const PAUSE: u32 = 100;
const PAUSE_LEAST: Duration = Duration::from_millis(50);

/// What is known of earlier looks.
#[derive(Debug, Clone)]
pub(crate) struct SearchCache<Kind> {
    found: BTreeSet<(u64, Kind)>,
    next: Option<Instant>,
    /// What was in each, and whether that ever changed while its buffer was the same: then it is no copy.
    seen: BTreeMap<u64, (u64, u64, bool)>,
}

impl<Kind> Default for SearchCache<Kind> {
    fn default() -> Self {
        SearchCache { found: BTreeSet::new(), next: None, seen: BTreeMap::new() }
    }
}

impl<Kind: Ord + Copy> SearchCache<Kind> {
    /// Where they are, by a new search if it is time for one.
    pub fn objects(&mut self, search: impl FnOnce() -> BTreeSet<(u64, Kind)>) -> &BTreeSet<(u64, Kind)> {
        let begun = Instant::now();
        if self.next.is_none_or(|next| next <= begun) {
            self.found = search();
            self.next = Some(Instant::now() + (begun.elapsed() * PAUSE).max(PAUSE_LEAST));
        }
        &self.found
    }

    /// The next look searches.
    pub fn invalidate(&mut self) {
        self.next = None;
    }

    /// What was seen at this look.
    pub fn record(&mut self, candidates: &[StreamCandidate]) {
        let mut seen = BTreeMap::new();
        for one in candidates {
            let now = (one.stream.buffer.address, one.stream.buffer.pending_bytes);
            let before = self.seen.get(&one.at).filter(|before| before.0 == now.0);
            let changed = before.is_some_and(|before| before.2 || before.1 != now.1);
            seen.insert(one.at, (now.0, now.1, changed));
        }
        self.seen = seen;
    }

    /// Whether another of these was seen to change, and this one was not.
    pub fn is_stale_copy(&self, address: u64, all: &[u64]) -> bool {
        let changes = |address: &u64| self.seen.get(address).is_some_and(|seen| seen.2);
        !changes(&address) && all.iter().any(changes)
    }
}
