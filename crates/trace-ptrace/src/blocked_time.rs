//! The time for which calls block, from the times of their stops.
//!
//! From the resumption of a thread to its next stop pass the thread's CPU time, the time for which it blocks, and the delay
//! of the stop: two context switches, and on a busy machine the waits for a processor. A thread blocks only in its calls, so
//! the times between two calls show the delay.

/// The number of times of which the mean delay is taken, the latest with the most weight.
const TIMES: f64 = 64.0;

/// The most that one time adds to the mean: a scheduling period. A major page fault takes longer.
const MAX_DELAY_NS: f64 = 3_000_000.0;

/// The most by which calls may have been quicker than the mean delay.
const MAX_AHEAD_NS: f64 = 3_000_000.0;

/// The mean delay of a stop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StopDelay {
    mean_ns: f64,
    times: f64,
}

/// By how many nanoseconds the calls of a thread were quicker than the mean delay since the last one that blocked. Delays vary
/// much more than their mean, so single differences are not summed: only what exceeds the earlier shortfall has blocked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AheadOfDelay(f64);

impl StopDelay {
    /// Adds the time from resuming a thread after a call to the entry of its next call, without its CPU time.
    pub(super) fn record(&mut self, ns: f64) {
        self.times = (self.times + 1.0).min(TIMES);
        self.mean_ns += (ns.clamp(0.0, MAX_DELAY_NS) - self.mean_ns) / self.times;
    }

    /// Returns for how long a call blocked that ended this time after the thread was resumed at its entry, without its CPU
    /// time. Returns None before a delay was recorded.
    pub(super) fn blocked_ns(&self, ns: f64, ahead: &mut AheadOfDelay) -> Option<u64> {
        let beyond_ns = ns - self.mean_ns - ahead.0;
        ahead.0 = (-beyond_ns).clamp(0.0, MAX_AHEAD_NS);
        (self.times > 0.0).then_some(beyond_ns.max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the delays of a busy machine: most take 10 µs, one in eight 400 µs, which is a mean of 59 µs.
    fn delay_ns(number: u32) -> f64 {
        if number.wrapping_mul(2_654_435_761) >> 29 == 0 { 400_000.0 } else { 10_000.0 }
    }

    /// Returns the sum of the blocked times of 2000 calls that block for `blocked_ns` each, in nanoseconds.
    fn sum_of_blocked_ns(blocked_ns: f64) -> f64 {
        let (mut delay, mut ahead) = (StopDelay::default(), AheadOfDelay::default());
        let calls = (0..2000).map(|number| {
            delay.record(delay_ns(2 * number));
            delay.blocked_ns(blocked_ns + delay_ns(2 * number + 1), &mut ahead).unwrap_or(0) as f64
        });
        calls.sum()
    }

    #[test]
    fn the_delays_of_stops_are_no_blocked_time() {
        for blocked_ns in [40_000.0, 100_000.0, 1_000_000.0] {
            let ratio = sum_of_blocked_ns(blocked_ns) / (2000.0 * blocked_ns);
            assert!((0.8..1.25).contains(&ratio), "{ratio} of {blocked_ns}");
        }
        // 59 µs are the mean delay.
        assert!(sum_of_blocked_ns(0.0) < 0.1 * 2000.0 * 59_000.0, "{}", sum_of_blocked_ns(0.0));
    }

    #[test]
    fn without_a_delay_nothing_is_known() {
        assert_eq!(StopDelay::default().blocked_ns(1e6, &mut AheadOfDelay::default()), None);
    }

    #[test]
    fn a_long_wait_counts_after_many_quick_calls() {
        let (mut delay, mut ahead) = (StopDelay::default(), AheadOfDelay::default());
        delay.record(1e6);
        (0..1000).for_each(|_| assert_eq!(delay.blocked_ns(0.0, &mut ahead), Some(0)));
        assert_eq!(delay.blocked_ns(1e9, &mut ahead), Some(996_000_000));
    }
}
