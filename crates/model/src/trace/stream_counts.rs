//! Counters of one stream: one direction of one descriptor of one process.

use serde::{Deserialize, Serialize};

use crate::Direction;

/// Counts by powers of two: slot 0 is 0, slot n is 2^(n-1) up to 2^n - 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram(pub Vec<u64>);

impl Histogram {
    /// Slots it can have: sizes up to 2^31 - 1, and one for all above.
    pub const SLOTS: usize = 33;

    /// The slot of a size.
    pub fn slot(size: u64) -> usize {
        ((64 - size.leading_zeros()) as usize).min(Self::SLOTS - 1)
    }

    /// Adds `count` sizes.
    pub fn add(&mut self, size: u64, count: u64) {
        let slot = Self::slot(size);
        if self.0.len() <= slot {
            self.0.resize(slot + 1, 0);
        }
        self.0[slot] += count;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// How many sizes there are.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many are below `size`; sizes in the same power of two as `size` are not.
    pub fn below(&self, size: u64) -> u64 {
        self.0.iter().take(Self::slot(size)).sum()
    }

    /// The smallest size of a slot.
    pub fn floor(slot: usize) -> u64 {
        if slot == 0 { 0 } else { 1 << (slot - 1) }
    }
}

/// Counters of one descriptor of one image of one process, in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// The process.
    pub pid: u32,
    /// Index in [`super::Process::images`].
    pub image: u32,
    /// The descriptor.
    pub fd: i32,
    /// The open file: index in [`super::Recording::files`].
    pub file: u32,
    /// In or Out.
    pub direction: Direction,
    /// When its first and last call was seen.
    pub first_s: f64,
    /// When its last call was seen.
    pub last_s: f64,
    /// Calls that moved bytes, ended at the end of the file (0) or failed.
    pub calls: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls that failed, EAGAIN and EINTR left out.
    pub errors: u64,
    /// Calls that returned EAGAIN or EINTR.
    pub again: u64,
    /// Calls that returned 0 though something was asked.
    pub zeros: u64,
    /// Calls that moved less than was asked, but something.
    pub short: u64,
    /// What each call moved, errors left out. Sampled where `exact` is false, scaled to `calls`.
    pub sizes: Histogram,
    /// What each call asked for.
    pub asked: Histogram,
    /// The most that a call asked for.
    pub asked_max: u64,
    /// Writes whose last byte was a newline.
    pub newline_ends: u64,
    /// Calls whose offset was not where the last one ended (p*; lseek between).
    pub jumps: u64,
    /// Bytes read again, below the highest position read before.
    pub again_bytes: u64,
    /// Calls that began or ended within a 4096-byte block of a regular file, of those whose position is known.
    pub unaligned: u64,
    /// Calls of sendfile(2), splice(2), tee(2) and copy_file_range(2) among `calls`.
    pub in_kernel: u64,
    /// fsync(2), fdatasync(2), sync_file_range(2) and msync(2) of this descriptor.
    pub syncs: u64,
    /// Those of them whose durations were seen …
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_syncs: u64,
    /// … and how long these took together, seconds.
    #[serde(default, skip_serializing_if = "is_none")]
    pub sync_s: f64,
    /// lseek(2) calls of this descriptor that moved.
    pub seeks: u64,
    /// Everything here was counted; false: sizes and kinds are from samples, `calls` and `bytes` from totals.
    pub exact: bool,
    /// Not even `calls` and `bytes` are exact: they are a share of what the kernel counted for several streams together, or
    /// reckoned from what was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Of no sync that was timed nothing is said.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl StreamCounts {
    /// The descriptor of calls of which it is not known through which streams of a process they went: it opened and closed
    /// files while nobody looked. Nothing is known of them but how many they were, and their bytes.
    pub const UNKNOWN: i32 = -1;

    /// Where those lead.
    pub const UNKNOWN_PATH: &str = "not known which stream";

    /// Whether it is known which stream that is.
    pub fn is_known(&self) -> bool {
        self.fd != Self::UNKNOWN
    }

    /// A flow that nothing was seen of yet.
    pub fn new(pid: u32, image: u32, fd: i32, file: u32, direction: Direction) -> Self {
        Self {
            pid,
            image,
            fd,
            file,
            direction,
            first_s: 0.0,
            last_s: 0.0,
            calls: 0,
            bytes: 0,
            errors: 0,
            again: 0,
            zeros: 0,
            short: 0,
            sizes: Histogram::default(),
            asked: Histogram::default(),
            asked_max: 0,
            newline_ends: 0,
            jumps: 0,
            again_bytes: 0,
            unaligned: 0,
            in_kernel: 0,
            syncs: 0,
            timed_syncs: 0,
            sync_s: 0.0,
            seeks: 0,
            exact: true,
            estimated: false,
        }
    }

    /// Adds another's counters: another opening of the same stream.
    pub fn add(&mut self, more: &Self) {
        let pairs = [
            (&mut self.calls, more.calls),
            (&mut self.bytes, more.bytes),
            (&mut self.errors, more.errors),
            (&mut self.again, more.again),
            (&mut self.zeros, more.zeros),
            (&mut self.short, more.short),
            (&mut self.newline_ends, more.newline_ends),
            (&mut self.jumps, more.jumps),
            (&mut self.again_bytes, more.again_bytes),
            (&mut self.unaligned, more.unaligned),
            (&mut self.in_kernel, more.in_kernel),
            (&mut self.syncs, more.syncs),
            (&mut self.timed_syncs, more.timed_syncs),
            (&mut self.seeks, more.seeks),
        ];
        pairs.into_iter().for_each(|(sum, part)| *sum += part);
        self.sync_s += more.sync_s;
        self.sizes.merge(&more.sizes);
        self.asked.merge(&more.asked);
        self.asked_max = self.asked_max.max(more.asked_max);
        self.first_s = self.first_s.min(more.first_s);
        self.last_s = self.last_s.max(more.last_s);
        self.exact &= more.exact;
        self.estimated |= more.estimated;
    }

    /// Mean bytes of a call that moved some; 0 when none did.
    pub fn mean_bytes(&self) -> f64 {
        let moving = self.calls.saturating_sub(self.errors + self.again + self.zeros);
        if moving == 0 { 0.0 } else { self.bytes as f64 / moving as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_by_powers_of_two() {
        let mut histogram = Histogram::default();
        for size in [0, 1, 1, 2, 3, 4096, u64::MAX] {
            histogram.add(size, 1);
        }
        assert_eq!(histogram.total(), 7);
        assert_eq!((histogram.0[0], histogram.0[1], histogram.0[2], histogram.0[13]), (1, 2, 2, 1));
        assert_eq!(histogram.below(2), 3);
        assert_eq!(histogram.0.len(), Histogram::SLOTS);
        assert_eq!(Histogram::floor(Histogram::slot(4096)), 4096);
    }
}
