//! A stream whose writes are watched, in each thread of its process.

use super::OLD_NS;
use super::watchpoint::Watchpoint;
use crate::call_sites::ObservedWrite;
use crate::call_sites::stack_sample::StackSample;

/// Limit of watched threads per process: each needs a perf event for each stream.
const MAX_THREADS: usize = 8;
/// Limit of older writes that are kept: those whose bytes stayed pending longest.
const MAX_KEPT_WRITES: usize = 4;

pub(super) struct WatchedStream {
    pub stream: u64,
    word: u64,
    pub since_ns: u64,
    /// Thread ids; None if no watchpoint is available.
    threads: Vec<(u32, Option<Watchpoint>)>,
    /// At least one thread is not watched.
    has_unwatched: bool,
    latest: Option<ObservedWrite>,
    /// Time of the first snapshot with pending bytes, in ns.
    pending_since_ns: Option<u64>,
    /// A snapshot has found old pending bytes since the latest write. `snapshot_write` is the write before the
    /// last such snapshot.
    has_old_bytes: bool,
    snapshot_write: Option<ObservedWrite>,
    kept: Vec<ObservedWrite>,
}

impl WatchedStream {
    pub fn new(stream: u64, word: u64, since_ns: u64) -> WatchedStream {
        WatchedStream {
            stream,
            word,
            since_ns,
            threads: Vec::new(),
            has_unwatched: false,
            latest: None,
            pending_since_ns: None,
            has_old_bytes: false,
            snapshot_write: None,
            kept: Vec::new(),
        }
    }

    /// Returns the addresses of the stream and of the watched word.
    pub fn key(&self) -> (u64, u64) {
        (self.stream, self.word)
    }

    /// Watches new threads, and stops watching those that have exited.
    pub fn follow(&mut self, threads: &[u32]) {
        self.threads.retain(|(tid, _)| threads.contains(tid));
        for tid in threads {
            if self.threads.len() < MAX_THREADS && !self.threads.iter().any(|(known, _)| known == tid) {
                self.threads.push((*tid, Watchpoint::set(*tid, self.word).ok()));
            }
        }
        let watched = self.threads.iter().filter(|(_, point)| is_set(point)).count();
        self.has_unwatched = watched < threads.len();
        if let Some(latest) = self.latest.as_mut().filter(|_| self.has_unwatched) {
            latest.last = false;
        }
    }

    /// Removes all watchpoints until the next [`WatchedStream::follow`]. Writes in between are unknown.
    pub fn suspend(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.threads.clear();
        self.has_unwatched = true;
        if let Some(latest) = self.latest.as_mut() {
            latest.last = false;
        }
    }

    /// Returns the newest write since the last call, and whether it is certainly the last one.
    pub fn take_sample(&mut self) -> Option<(StackSample, bool)> {
        let events = self.threads.iter_mut().filter_map(|(_, point)| point.as_mut()?.take_events());
        let events: Vec<_> = events.collect();
        let last = !self.has_unwatched && events.iter().all(|one| one.last && one.sample.is_some());
        let newest = events.into_iter().filter_map(|one| one.sample).max_by_key(|sample| sample.ns);
        // There was a write without a sample.
        if let Some(latest) = self.latest.as_mut().filter(|_| newest.is_none() && !last) {
            latest.last = false;
        }
        newest.map(|sample| (sample, last))
    }

    pub fn add(&mut self, write: ObservedWrite) {
        if let Some(mut before) = self.latest.take() {
            before.until_ns = Some(write.sample.ns);
            if std::mem::take(&mut self.has_old_bytes) {
                self.snapshot_write = Some(before.clone());
            }
            self.keep(before);
        }
        self.latest = Some(write);
    }

    /// Notes a snapshot with pending bytes. Returns whether some are old.
    pub fn note_pending(&mut self, at_ns: u64) -> bool {
        let since = *self.pending_since_ns.get_or_insert(at_ns);
        let is_old = at_ns.saturating_sub(since) >= OLD_NS;
        self.has_old_bytes |= is_old;
        is_old
    }

    fn keep(&mut self, write: ObservedWrite) {
        let pending_ns =
            |one: &ObservedWrite| one.until_ns.map_or(u64::MAX, |until| until.saturating_sub(one.sample.ns));
        if pending_ns(&write) >= OLD_NS {
            self.kept.push(write);
            self.kept.sort_by_key(|one| std::cmp::Reverse(pending_ns(one)));
            self.kept.truncate(MAX_KEPT_WRITES);
        }
    }

    /// Returns the writes to keep. The bytes of the last one were pending until `at_ns`, when execve(2) replaced the memory:
    /// later stores to the word are those of another program.
    pub fn end(mut self, at_ns: Option<u64>) -> Vec<ObservedWrite> {
        let before = |one: &ObservedWrite| at_ns.is_none_or(|at| one.sample.ns < at);
        self.kept.retain(before);
        self.latest = self.latest.filter(before);
        self.snapshot_write = self.snapshot_write.filter(before);
        let latest = self.latest.take().map(|write| ObservedWrite { until_ns: at_ns, ..write });
        let new = |one: &ObservedWrite| self.kept.iter().all(|kept| kept.sample.ns != one.sample.ns);
        let snapshot_write = self.snapshot_write.take().filter(new);
        self.kept.into_iter().chain(snapshot_write).chain(latest).collect()
    }
}

fn is_set(point: &Option<Watchpoint>) -> bool {
    point.as_ref().is_some_and(Watchpoint::is_set)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call_sites::stack_sample::SampledRegisters;

    fn write_at(ns: u64) -> ObservedWrite {
        let sample = StackSample { ns, registers: SampledRegisters::default(), stack: Vec::new() };
        ObservedWrite { pid: 1, stream: 2, sample, code: Arc::from([]), last: true, until_ns: None }
    }

    #[test]
    fn the_longest_pending_writes_and_the_last_are_kept() {
        let mut one = WatchedStream::new(2, 42, 0);
        let seconds = [0, 1, 11, 13, 13, 14, 17, 18, 19];
        seconds.into_iter().for_each(|second| one.add(write_at(second * 1_000_000_000)));
        let kept = one.end(Some(20_000_000_000));
        let mut spans: Vec<_> = kept
            .iter()
            .map(|one| [one.sample.ns, one.until_ns.expect("an end")].map(|ns| ns / 1_000_000_000))
            .collect();
        spans.sort();
        assert_eq!(spans, [[0, 1], [1, 11], [11, 13], [14, 17], [19, 20]]);
    }

    #[test]
    fn the_write_before_the_last_snapshot_is_kept() {
        let mut one = WatchedStream::new(2, 42, 0);
        let mut old = Vec::new();
        for ns in [0, 400_000_000, 800_000_000, 900_000_000] {
            one.add(write_at(ns));
            old.push(one.note_pending(ns + 1));
        }
        one.add(write_at(950_000_000));
        assert_eq!(old, [false, false, true, true]);
        let kept: Vec<u64> = one.end(None).iter().map(|one| one.sample.ns).collect();
        assert_eq!(kept, [900_000_000, 950_000_000]);
    }

    #[test]
    fn suspend_makes_the_last_write_uncertain_until_the_next_follow() {
        let mut one = WatchedStream::new(2, 42, 0);
        one.follow(&[u32::MAX]);
        one.add(write_at(1));
        one.suspend();
        assert!(one.threads.is_empty() && one.has_unwatched);
        one.follow(&[u32::MAX]);
        assert_eq!(one.threads.len(), 1, "tried again");
        assert!(!one.end(None)[0].last);
    }

    #[test]
    fn an_unwatched_thread_makes_the_last_write_uncertain() {
        let mut one = WatchedStream::new(2, 42, 0);
        one.add(write_at(1));
        one.follow(&[u32::MAX]);
        assert!(one.take_sample().is_none());
        assert!(!one.end(None)[0].last);
    }
}
