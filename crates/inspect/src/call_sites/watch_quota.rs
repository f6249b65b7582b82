//! Limits how often a process begins to be watched: a build starts thousands, and each costs tens of
//! microseconds.

/// Processes that may be watched at once, and the interval in ns at which one more is allowed.
const MAX_AT_ONCE: u64 = 32;
const EACH_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(crate) struct WatchQuota {
    used: u64,
    since_ns: u64,
}

impl WatchQuota {
    /// Takes one from the quota. Returns false if it is exhausted.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let earned = now_ns.saturating_sub(self.since_ns) / EACH_NS;
        self.used = self.used.saturating_sub(earned);
        self.since_ns = if self.used == 0 { now_ns } else { self.since_ns + earned * EACH_NS };
        let allowed = self.used < MAX_AT_ONCE;
        self.used += u64::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_at_once_and_then_one_at_a_time() {
        let mut quota = WatchQuota::default();
        let start = 1 << 40;
        assert_eq!((0..100).filter(|_| quota.take(start)).count(), MAX_AT_ONCE as usize);
        assert_eq!((0..100).filter(|_| quota.take(start + 5 * EACH_NS / 2)).count(), 2);
        assert!(!quota.take(start + 5 * EACH_NS / 2) && quota.take(start + 3 * EACH_NS));
        let late = start + 1000 * EACH_NS;
        assert_eq!((0..100).filter(|_| quota.take(late)).count(), MAX_AT_ONCE as usize);
    }
}
