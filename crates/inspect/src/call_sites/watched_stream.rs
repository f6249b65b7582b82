//! A stream whose writes are watched, in each thread of its process.

use super::LONG_NS;
use super::watchpoint::Watchpoint;
use crate::call_sites::ObservedWrite;
use crate::call_sites::watchpoint_sample::WatchpointSample;

/// So many threads of a process are watched.
const THREADS_MOST: usize = 8;
/// So many writes are kept of a stream behind the last: those that stood longest.
const KEPT_MOST: usize = 4;

pub(super) struct WatchedStream {
    pub stream: u64,
    word: u64,
    pub since_ns: u64,
    /// None where it cannot be watched.
    threads: Vec<(u32, Option<Watchpoint>)>,
    /// Some thread is not watched.
    partly: bool,
    latest: Option<ObservedWrite>,
    /// When bytes were first seen waiting.
    waits_since: Option<u64>,
    /// A look has found bytes that wait for long since the latest write; and the write of the last such look.
    looked_at: bool,
    of_look: Option<ObservedWrite>,
    kept: Vec<ObservedWrite>,
}

impl WatchedStream {
    pub fn new(stream: u64, word: u64, since_ns: u64) -> WatchedStream {
        WatchedStream {
            stream,
            word,
            since_ns,
            threads: Vec::new(),
            partly: false,
            latest: None,
            waits_since: None,
            looked_at: false,
            of_look: None,
            kept: Vec::new(),
        }
    }

    /// The stream, and the word that moves.
    pub fn key(&self) -> (u64, u64) {
        (self.stream, self.word)
    }

    /// Watches threads that are new, and no longer those that have ended.
    pub fn follow(&mut self, threads: &[u32]) {
        self.threads.retain(|(tid, _)| threads.contains(tid));
        for tid in threads {
            if self.threads.len() < THREADS_MOST && !self.threads.iter().any(|(known, _)| known == tid) {
                self.threads.push((*tid, Watchpoint::set(*tid, self.word).ok()));
            }
        }
        let watched = self.threads.iter().filter(|(_, point)| is_set(point)).count();
        self.partly = watched < threads.len();
        if let Some(latest) = self.latest.as_mut().filter(|_| self.partly) {
            latest.last = false;
        }
    }

    /// Watches no thread until it is told of them again: what is written meanwhile nobody sees.
    pub fn rest(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.threads.clear();
        self.partly = true;
        if let Some(latest) = self.latest.as_mut() {
            latest.last = false;
        }
    }

    /// The newest write since the last call, and whether it is the last of all.
    pub fn news(&mut self) -> Option<(WatchpointSample, bool)> {
        let news = self.threads.iter_mut().filter_map(|(_, point)| point.as_mut()?.news());
        let news: Vec<_> = news.collect();
        let last = !self.partly && news.iter().all(|one| one.last && one.sample.is_some());
        let newest = news.into_iter().filter_map(|one| one.sample).max_by_key(|sample| sample.ns);
        // Something was written, and nobody knows where.
        if let Some(latest) = self.latest.as_mut().filter(|_| newest.is_none() && !last) {
            latest.last = false;
        }
        newest.map(|sample| (sample, last))
    }

    pub fn add(&mut self, seen: ObservedWrite) {
        if let Some(mut before) = self.latest.take() {
            before.until_ns = Some(seen.sample.ns);
            if std::mem::take(&mut self.looked_at) {
                self.of_look = Some(before.clone());
            }
            self.keep(before);
        }
        self.latest = Some(seen);
    }

    /// A look has found bytes that wait. Whether some have for long.
    pub fn waits(&mut self, at_ns: u64) -> bool {
        let since = *self.waits_since.get_or_insert(at_ns);
        let long = at_ns.saturating_sub(since) >= LONG_NS;
        self.looked_at |= long;
        long
    }

    fn keep(&mut self, seen: ObservedWrite) {
        let stood =
            |one: &ObservedWrite| one.until_ns.map_or(u64::MAX, |until| until.saturating_sub(one.sample.ns));
        if stood(&seen) >= LONG_NS {
            self.kept.push(seen);
            self.kept.sort_by_key(|one| std::cmp::Reverse(stood(one)));
            self.kept.truncate(KEPT_MOST);
        }
    }

    /// It is watched no more; the last write stood until then.
    pub fn end(mut self, at_ns: Option<u64>) -> Vec<ObservedWrite> {
        let latest = self.latest.take().map(|seen| ObservedWrite { until_ns: at_ns, ..seen });
        let new = |one: &ObservedWrite| self.kept.iter().all(|kept| kept.sample.ns != one.sample.ns);
        let of_look = self.of_look.take().filter(new);
        self.kept.into_iter().chain(of_look).chain(latest).collect()
    }
}

fn is_set(point: &Option<Watchpoint>) -> bool {
    point.as_ref().is_some_and(Watchpoint::is_set)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call_sites::watchpoint_sample::SampledRegisters;

    fn seen(ns: u64) -> ObservedWrite {
        let sample = WatchpointSample { ns, registers: SampledRegisters::default(), stack: Vec::new() };
        ObservedWrite { pid: 1, stream: 2, sample, code: Arc::from([]), last: true, until_ns: None }
    }

    #[test]
    fn writes_are_kept_that_stood_longest_and_the_last() {
        let mut one = WatchedStream::new(2, 42, 0);
        let seconds = [0, 1, 11, 13, 13, 14, 17, 18, 19];
        seconds.into_iter().for_each(|second| one.add(seen(second * 1_000_000_000)));
        let kept = one.end(Some(20_000_000_000));
        let mut spans: Vec<_> = kept
            .iter()
            .map(|one| [one.sample.ns, one.until_ns.expect("an end")].map(|ns| ns / 1_000_000_000))
            .collect();
        spans.sort();
        assert_eq!(spans, [[0, 1], [1, 11], [11, 13], [14, 17], [19, 20]]);
    }

    #[test]
    fn the_write_before_the_last_look_is_kept_however_short_it_stood() {
        let mut one = WatchedStream::new(2, 42, 0);
        let mut waits = Vec::new();
        for ns in [0, 400_000_000, 800_000_000, 900_000_000] {
            one.add(seen(ns));
            waits.push(one.waits(ns + 1));
        }
        one.add(seen(950_000_000));
        assert_eq!(waits, [false, false, true, true]);
        let kept: Vec<u64> = one.end(None).iter().map(|one| one.sample.ns).collect();
        assert_eq!(kept, [900_000_000, 950_000_000]);
    }

    #[test]
    fn rest_leaves_a_doubt_and_ends_with_the_next_look() {
        let mut one = WatchedStream::new(2, 42, 0);
        one.follow(&[u32::MAX]);
        one.add(seen(1));
        one.rest();
        assert!(one.threads.is_empty() && one.partly);
        one.follow(&[u32::MAX]);
        assert_eq!(one.threads.len(), 1, "tried again");
        assert!(!one.end(None)[0].last);
    }

    #[test]
    fn a_thread_that_cannot_be_watched_leaves_a_doubt() {
        let mut one = WatchedStream::new(2, 42, 0);
        one.add(seen(1));
        one.follow(&[u32::MAX]);
        assert!(one.news().is_none());
        assert!(!one.end(None)[0].last);
    }
}
