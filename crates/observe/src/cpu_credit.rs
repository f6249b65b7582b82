//! A credit of CPU time: what an activity may cost in a share of all time that passes.

/// CPU time that may be spent. It grows by a share of the time that passes, and starts with an advance.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuCredit {
    /// Nanoseconds left; negative after an activity that cost more than there was.
    pub left_ns: i64,
    /// The time up to which the share is added, CLOCK_MONOTONIC.
    pub earned_until_ns: u64,
}

impl CpuCredit {
    /// Makes a credit with an advance.
    pub fn with_advance(advance_ns: i64) -> Self {
        Self { left_ns: advance_ns, earned_until_ns: 0 }
    }

    /// Adds one part in `share` of the time since the last call. Unused credit is capped at `cap_ns`, but credit above
    /// the cap, such as the advance, is not taken away.
    pub fn earn(&mut self, now_ns: u64, share: u64, cap_ns: i64) {
        let earned = now_ns.saturating_sub(self.earned_until_ns) / share;
        self.left_ns = self.left_ns.saturating_add_unsigned(earned).min(self.left_ns.max(cap_ns));
        self.earned_until_ns = now_ns;
    }

    /// Subtracts what an activity cost.
    pub fn spend(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub_unsigned(ns);
    }
}
