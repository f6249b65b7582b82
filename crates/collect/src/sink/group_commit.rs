//! Group commit with `--ack`: when a sync waits a moment, so that it covers more senders.
//!
//! Senders that wait for acknowledgements send their next records soon after a sync. Without a pause the first few of them take
//! the next sync alone, and two groups of senders alternate with a part of the records each.
//!
//! During a short sync, each record that wakes the collector costs as much as a share of the sync. The records wait in the
//! sockets instead, and are read and written together.

use std::time::{Duration, Instant};

/// The senders of the last groups of records, and the pause after the last sync.
#[derive(Debug)]
pub(super) struct GroupCommit {
    begun: Option<Instant>,
    /// The number of the group that gathers.
    number: u64,
    /// The group that gathers, and the one that the last sync covers.
    current: Group,
    last: Group,
    /// How many senders the group before the last one has.
    before: usize,
    hold_until: Option<Instant>,
    /// The last sync was short.
    is_short: bool,
}

/// The senders whose records one sync covers.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    senders: usize,
    /// So many of them have records in the group before it, too.
    repeated: usize,
}

/// The number of the last group in which a sender has records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastGroup(u64);

impl Default for GroupCommit {
    fn default() -> Self {
        // A sender without records has the number 0, which is not the group before the first one.
        let number = 2;
        let (current, last) = (Group::default(), Group::default());
        Self { begun: None, number, current, last, before: 0, hold_until: None, is_short: false }
    }
}

/// A sync below this duration is short.
const SHORT: Duration = Duration::from_millis(1);

impl GroupCommit {
    /// Notes a record of a sender.
    pub(super) fn add(&mut self, sender: &mut LastGroup) {
        if sender.0 != self.number {
            self.current.senders += 1;
            self.current.repeated += usize::from(sender.0 + 1 == self.number);
            sender.0 = self.number;
        }
    }

    /// Notes the begin of a sync of the current group. Its duration limits the pause after it.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
        self.hold_until = None;
        self.number += 1;
        self.before = self.last.senders;
        self.last = std::mem::take(&mut self.current);
    }

    /// A sync has ended: the next one waits for the senders of the last two groups.
    pub(super) fn end(&mut self, now: Instant) {
        let Some(begun) = self.begun.take() else { return };
        let took = now.saturating_duration_since(begun);
        self.is_short = took < SHORT;
        // All senders need longer to send again than a short sync takes. A sender that pauses delays the others by so much.
        self.hold_until = Some(now + if self.is_short { took * 2 } else { took / 4 });
    }

    /// Returns whether a sync runs that is short if it takes as long as the last one.
    pub(super) fn is_in_short_sync(&self) -> bool {
        self.is_short && self.begun.is_some()
    }

    /// Returns until when the next sync waits; none if it begins now.
    pub(super) fn holds(&self, now: Instant) -> Option<Instant> {
        let expected = self.last.senders + self.before - self.last.repeated;
        self.hold_until.filter(|&until| self.current.senders < expected && now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a record of each of these senders, and syncs for `took`. Returns the end of the sync.
    fn sync(
        group: &mut GroupCommit,
        senders: &mut [LastGroup],
        indices: std::ops::Range<usize>,
        took: Duration,
    ) -> Instant {
        senders[indices].iter_mut().for_each(|sender| group.add(sender));
        let begun = Instant::now();
        group.begin(begun);
        group.end(begun + took);
        begun + took
    }

    #[test]
    fn one_sender_never_waits() {
        let (mut group, mut senders) = (GroupCommit::default(), [LastGroup::default()]);
        for _ in 0..3 {
            let now = sync(&mut group, &mut senders, 0..1, Duration::from_millis(8));
            assert!(group.holds(now).is_some(), "nothing was sent");
            group.add(&mut senders[0]);
            assert_eq!(group.holds(now), None, "its next record is all that can come");
            group.add(&mut senders[0]);
            assert_eq!(group.current.senders, 1, "two records of one sender");
        }
    }

    #[test]
    fn two_groups_join_and_stay_joined() {
        for (took, pause) in [(8000, 2000), (100, 200)]
            .map(|(took, pause)| (Duration::from_micros(took), Duration::from_micros(pause)))
        {
            let (mut group, mut senders) = (GroupCommit::default(), [LastGroup::default(); 16]);
            sync(&mut group, &mut senders, 0..3, took);
            let mut now = sync(&mut group, &mut senders, 3..16, took);
            for _ in 0..3 {
                senders[..15].iter_mut().for_each(|sender| group.add(sender));
                assert_eq!(group.holds(now), Some(now + pause), "one is missing");
                assert_eq!(group.holds(now + pause), None, "not longer");
                group.add(&mut senders[15]);
                assert_eq!(group.holds(now), None, "all have sent");
                now = sync(&mut group, &mut senders, 0..0, took);
            }
        }
    }

    #[test]
    fn senders_that_stop_are_expected_twice() {
        let (mut group, mut senders) = (GroupCommit::default(), [LastGroup::default(); 4]);
        let took = Duration::from_millis(2);
        sync(&mut group, &mut senders, 0..4, took);
        let now = sync(&mut group, &mut senders, 0..2, took);
        (0..2).for_each(|index| group.add(&mut senders[index]));
        assert!(group.holds(now).is_some());
        let now = sync(&mut group, &mut senders, 0..0, took);
        (0..2).for_each(|index| group.add(&mut senders[index]));
        assert_eq!(group.holds(now), None);
    }

    #[test]
    fn a_short_sync_is_known_by_the_one_before() {
        let mut group = GroupCommit::default();
        let start = Instant::now();
        group.begin(start);
        assert!(!group.is_in_short_sync(), "there was none before");
        group.end(start + SHORT / 2);
        assert!(!group.is_in_short_sync(), "it has ended");
        group.begin(start);
        assert!(group.is_in_short_sync());
        group.end(start + SHORT);
        group.begin(start);
        assert!(!group.is_in_short_sync(), "the last one was long");
    }
}
