//! Group commit with `--ack`: when a sync waits a moment, so that it covers more senders.
//!
//! Senders that wait for acknowledgements send their next records soon after a sync. Without a pause the records that arrived
//! during a sync take the next one alone, and two groups of senders alternate with half the records each.
//!
//! A short sync needs no pause, but each record that wakes the collector during it costs as much as a share of the sync. The
//! records wait in the sockets instead, and are read and written together.

use std::time::{Duration, Instant};

/// The last group of records, and the pause after it.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    begun: Option<Instant>,
    /// The records of the log that the syncs before the last one cover.
    before: u64,
    /// The records of the log that make the next sync worth its time.
    wanted: u64,
    hold_until: Option<Instant>,
    /// The last sync was short.
    is_short: bool,
}

/// A shorter sync ends before all senders have sent again, so a pause would cost more than it saves.
const WORTH: Duration = Duration::from_millis(1);

/// The share of the last sync's duration that the next one may wait for more records.
const SHARE: u32 = 4;

impl GroupCommit {
    /// Notes the begin of a sync, whose duration limits the pause after it.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
        self.hold_until = None;
    }

    /// A sync has ended that covers the first `covered` records of `records`: the next one waits for as many senders as both
    /// groups have.
    pub(super) fn end(&mut self, now: Instant, covered: u64, records: u64) {
        let Some(begun) = self.begun.take() else { return };
        self.wanted = records + covered.saturating_sub(self.before);
        self.before = covered;
        let took = now.saturating_duration_since(begun);
        self.is_short = took < WORTH;
        self.hold_until = (took >= WORTH).then(|| now + took / SHARE);
    }

    /// Returns whether a sync runs that is short if it takes as long as the last one.
    pub(super) fn is_in_short_sync(&self) -> bool {
        self.is_short && self.begun.is_some()
    }

    /// Returns until when a sync of `records` records waits; none if it begins now.
    pub(super) fn holds(&self, now: Instant, records: u64) -> Option<Instant> {
        self.hold_until.filter(|&until| records < self.wanted && now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_never_waits_and_two_groups_join() {
        let start = Instant::now();
        let took = Duration::from_millis(8);
        let mut group = GroupCommit::default();
        group.begin(start);
        group.end(start + took, 1, 1);
        assert_eq!(group.holds(start + took, 2), None, "its next record is all that can come");

        group.begin(start);
        group.end(start + took, 9, 17);
        let until = start + took + took / SHARE;
        assert_eq!(group.holds(start + took, 17), Some(until), "eight senders have their answers now");
        assert_eq!(group.holds(start + took, 25), None, "all have sent");
        assert_eq!(group.holds(until, 20), None, "not longer than a share of the sync");

        group.begin(start);
        assert!(!group.is_in_short_sync(), "the last one was long");
        group.end(start + WORTH / 2, 25, 33);
        assert!(!group.is_in_short_sync(), "it has ended");
        assert_eq!(group.holds(start + WORTH / 2, 33), None, "a short sync");
        group.begin(start);
        assert!(group.is_in_short_sync());
    }
}
