//! How many processes may begin to be watched: a build makes thousands, and each takes tens of microseconds.

/// So many at once, and then one each so often.
const AT_ONCE: u64 = 32;
const EACH_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(crate) struct WatchQuota {
    used: u64,
    since_ns: u64,
}

impl WatchQuota {
    /// Whether one more may be, at this time.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let earned = now_ns.saturating_sub(self.since_ns) / EACH_NS;
        self.used = self.used.saturating_sub(earned);
        self.since_ns = if self.used == 0 { now_ns } else { self.since_ns + earned * EACH_NS };
        let may = self.used < AT_ONCE;
        self.used += u64::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_at_once_and_then_one_at_a_time() {
        let mut allowance = WatchQuota::default();
        let start = 1 << 40;
        assert_eq!((0..100).filter(|_| allowance.take(start)).count(), AT_ONCE as usize);
        assert_eq!((0..100).filter(|_| allowance.take(start + 5 * EACH_NS / 2)).count(), 2);
        assert!(!allowance.take(start + 5 * EACH_NS / 2) && allowance.take(start + 3 * EACH_NS));
        let late = start + 1000 * EACH_NS;
        assert_eq!((0..100).filter(|_| allowance.take(late)).count(), AT_ONCE as usize);
    }
}
