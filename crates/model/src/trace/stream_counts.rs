//! Counts of the calls and bytes of one stream.

use serde::{Deserialize, Serialize};

use crate::Direction;
use crate::number::Certainty;

/// Counts by powers of two: slot 0 is for size 0, slot n for sizes from 2^(n-1) to 2^n - 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram(pub Vec<u64>);

impl Histogram {
    /// Largest number of slots: the last one is for all sizes from 2^31.
    pub const SLOTS: usize = 33;

    /// Returns the slot of a size.
    pub fn slot(size: u64) -> usize {
        ((64 - size.leading_zeros()) as usize).min(Self::SLOTS - 1)
    }

    /// Counts `size` `count` times.
    pub fn add(&mut self, size: u64, count: u64) {
        let slot = Self::slot(size);
        if self.0.len() <= slot {
            self.0.resize(slot + 1, 0);
        }
        self.0[slot] += count;
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Returns the number of counted sizes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of counted sizes in slots below the slot of `size`.
    pub fn below(&self, size: u64) -> u64 {
        self.0.iter().take(Self::slot(size)).sum()
    }

    /// Returns the smallest size of a slot.
    pub fn floor(slot: usize) -> u64 {
        if slot == 0 { 0 } else { 1 << (slot - 1) }
    }
}

/// Counts of one descriptor of one image of one process, in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct StreamCounts {
    pub pid: u32,
    /// Index in [`super::Process::images`].
    pub image: u32,
    /// Descriptor, or [`Self::UNKNOWN`].
    pub fd: i32,
    /// Open file: index in [`super::Recording::files`].
    pub file: u32,
    /// `In` or `Out`.
    pub direction: Direction,
    /// Time of the first call.
    pub first_s: f64,
    /// Time of the last call. One that returned EAGAIN or that a signal interrupted counts only if it is the first.
    pub last_s: f64,
    /// Calls that moved bytes, returned 0 or failed.
    pub calls: u64,
    pub bytes: u64,
    /// Failed calls, without EAGAIN and EINTR.
    pub errors: u64,
    /// Calls that returned EAGAIN or EINTR.
    pub again: u64,
    /// Calls that requested bytes and returned 0.
    pub zeros: u64,
    /// Calls that moved fewer bytes than requested, but at least one.
    pub short: u64,
    /// Bytes moved by each call without an error. If not `exact`, sampled and scaled to `calls`.
    pub sizes: Histogram,
    /// Bytes requested by each call.
    #[serde(rename = "asked")]
    pub requested_sizes: Histogram,
    /// Bytes of the largest request.
    #[serde(rename = "asked_max")]
    pub max_requested_bytes: u64,
    /// Writes whose last byte was a newline.
    pub newline_ends: u64,
    /// Calls at another offset than the end of the previous call (pread(2), pwrite(2), or after lseek(2)).
    pub jumps: u64,
    /// Bytes read below the highest offset that was read before.
    pub again_bytes: u64,
    /// Calls with a known offset that begin or end inside of a 4096-byte block of a regular file.
    pub unaligned: u64,
    /// Part of `calls` that copies inside the kernel: sendfile(2), splice(2), tee(2), copy_file_range(2).
    pub in_kernel: u64,
    /// Calls of fsync(2), fdatasync(2), sync_file_range(2) and msync(2).
    pub syncs: u64,
    /// Part of `syncs` with a known duration.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_syncs: u64,
    /// Total duration of the `timed_syncs` in seconds.
    #[serde(default, skip_serializing_if = "is_none")]
    pub sync_s: f64,
    /// lseek(2) calls that changed the offset.
    pub seeks: u64,
    /// Seconds for which `calls` blocked: the thread slept until a device, a peer or a terminal was ready. Calls that copy
    /// inside the kernel are not included. None if the backend does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Every call was counted. Otherwise sizes and kinds are sampled, `calls` and `bytes` come from the kernel's totals.
    pub exact: bool,
    /// `calls` and `bytes` are estimates too: shares of a total that the kernel counted for several streams, or
    /// extrapolated from samples.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// `estimated`, and the stream may also have calls that are counted in the unknown stream ([`Self::UNKNOWN`]) of its
    /// process and direction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl StreamCounts {
    /// The fewest known durations of sync calls that give a mean.
    pub const MIN_TIMED_SYNCS: u64 = 3;
    /// Descriptor of calls in a gap whose streams are unknown, because no file position shows them. Only their number and
    /// bytes are known.
    pub const UNKNOWN: i32 = -1;

    /// Path of the open file of [`Self::UNKNOWN`].
    pub const UNKNOWN_PATH: &str = "not known which stream";

    /// Returns whether one call has blocked for all the time, so that none is counted.
    pub fn is_blocked_throughout(&self) -> bool {
        self.calls == 0 && self.wait_s.is_some_and(|wait_s| wait_s > 0.0)
    }

    /// Returns whether the stream is known.
    pub fn is_known(&self) -> bool {
        self.fd != Self::UNKNOWN
    }

    /// Makes exact counts of zero calls.
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
            requested_sizes: Histogram::default(),
            max_requested_bytes: 0,
            newline_ends: 0,
            jumps: 0,
            again_bytes: 0,
            unaligned: 0,
            in_kernel: 0,
            syncs: 0,
            timed_syncs: 0,
            sync_s: 0.0,
            seeks: 0,
            wait_s: None,
            exact: true,
            estimated: false,
            at_least: false,
        }
    }

    /// Adds the counts of another opening of the same stream.
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
        if let Some(wait_s) = more.wait_s {
            *self.wait_s.get_or_insert(0.0) += wait_s;
        }
        self.sizes.merge(&more.sizes);
        self.requested_sizes.merge(&more.requested_sizes);
        self.max_requested_bytes = self.max_requested_bytes.max(more.max_requested_bytes);
        self.first_s = self.first_s.min(more.first_s);
        self.last_s = self.last_s.max(more.last_s);
        self.exact &= more.exact;
        // A sum with a part that may be too large is no lower limit.
        let may_be_too_large = [&*self, more].iter().any(|part| part.estimated && !part.at_least);
        self.estimated |= more.estimated;
        self.at_least = (self.at_least || more.at_least) && !may_be_too_large;
    }

    /// Returns how certain `calls` and `bytes` are.
    pub fn certainty(&self) -> Certainty {
        Certainty::of_flags(self.estimated, self.at_least)
    }

    /// Returns whether enough durations of sync calls are known for a mean.
    pub fn has_timed_syncs(&self) -> bool {
        self.timed_syncs >= Self::MIN_TIMED_SYNCS
    }

    /// Returns the seconds of the sync calls: their number times the mean of the known durations, or times `price_s` if too few
    /// are known.
    pub fn syncs_s(&self, price_s: f64) -> f64 {
        let each_s = if self.has_timed_syncs() { self.sync_s / self.timed_syncs as f64 } else { price_s };
        self.syncs as f64 * each_s
    }

    /// Returns the number of calls that moved bytes.
    pub fn moving_calls(&self) -> u64 {
        self.calls.saturating_sub(self.errors + self.again + self.zeros)
    }

    /// Returns the mean bytes of the calls that moved bytes; 0 if none did.
    pub fn mean_bytes(&self) -> f64 {
        let moving = self.moving_calls();
        if moving == 0 { 0.0 } else { self.bytes as f64 / moving as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_a_part_that_may_be_too_large_is_no_lower_limit() {
        let part = |estimated, at_least| StreamCounts {
            estimated,
            at_least,
            ..StreamCounts::new(1, 0, 1, 0, Direction::Out)
        };
        let certainty = |parts: &[(bool, bool)]| {
            let mut sum = part(false, false);
            parts.iter().for_each(|&(estimated, at_least)| sum.add(&part(estimated, at_least)));
            sum.certainty()
        };
        assert_eq!(certainty(&[(true, true), (false, false)]), Certainty::AtLeast);
        assert_eq!(certainty(&[(true, true), (true, false)]), Certainty::About);
        assert_eq!(certainty(&[(true, false), (true, true), (true, true)]), Certainty::About);
    }

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
