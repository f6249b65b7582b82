//! How much a process may be slowed: an allowance that time fills and stops empty.
//!
//! A process that makes few calls never empties it, and every call is seen. One that makes many runs it dry and
//! then goes unwatched until it has filled for another burst. So the burst's share of the time is bounded by
//! [`SHARE`] whatever a stop costs here, and nothing has to be known about the program.

/// The part of a process's time that watching may take.
const SHARE: f64 = 0.1;

/// The same of one that opens file after file: which files these are is seen in bursts only.
const OPENING_SHARE: f64 = 0.25;

/// The most that is saved up.
const FULL_NS: f64 = 20_000_000.0;

/// What a new program may take of the [`SharedBudget`]: enough to see all of its start, that of an interpreter with what it imports
/// too, and what a short script does behind that.
const FIRST_NS: f64 = 40_000_000.0;

/// What a run has for the starts of all of its programs: a shell and two such interpreters. A hundred short commands would
/// otherwise cost a hundred starts, and a run takes as long as they do.
const PURSE_NS: f64 = 100_000_000.0;

/// The part of the run's time that comes to it: of programs that are started all the time some are seen.
const PURSE_SHARE: f64 = 0.05;

/// Calls that a burst is to see.
const BURST_CALLS: f64 = 100.0;

/// What is free at the starts of programs, for all of a run together.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedBudget {
    left_ns: f64,
    filled_at: u64,
}

impl SharedBudget {
    pub(super) fn new(now: u64) -> Self {
        Self { left_ns: PURSE_NS, filled_at: now }
    }

    /// Takes as much of it as there is.
    fn take(&mut self, now: u64, wanted_ns: f64) -> f64 {
        let passed = now.saturating_sub(self.filled_at) as f64;
        // What is left of the first may be more.
        self.left_ns = (self.left_ns + passed * PURSE_SHARE).min(FIRST_NS.max(self.left_ns));
        self.filled_at = self.filled_at.max(now);
        let taken = self.left_ns.min(wanted_ns);
        self.left_ns -= taken;
        taken
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessBudget {
    left_ns: f64,
    /// What it may still take of what is free.
    first_ns: f64,
    filled_at: u64,
    share: f64,
}

impl ProcessBudget {
    pub(super) fn new(now: u64) -> Self {
        Self { left_ns: 0.0, first_ns: FIRST_NS, filled_at: now, share: SHARE }
    }

    /// A stop at `now` cost this much. False: nothing is left.
    pub(super) fn spend(&mut self, now: u64, cost_ns: f64, purse: &mut SharedBudget) -> bool {
        self.fill(now);
        let own_ns = cost_ns.min(self.left_ns.max(0.0));
        self.left_ns -= own_ns;
        let beyond_ns = cost_ns - own_ns;
        let free_ns = purse.take(now, beyond_ns.min(self.first_ns));
        if free_ns >= beyond_ns {
            self.first_ns -= free_ns;
            return self.left_ns + self.first_ns > 0.0;
        }
        // Its start is over. Events that are always seen, such as births, may run up no debt without end.
        self.first_ns = 0.0;
        self.left_ns = (self.left_ns - (beyond_ns - free_ns)).max(-FULL_NS);
        false
    }

    /// Whether the process was seen to open file after file, from now on.
    pub(super) fn opens(&mut self, now: u64, opens: bool) {
        self.fill(now);
        self.share = if opens { OPENING_SHARE } else { SHARE };
    }

    /// When it will have filled for a burst whose calls cost `call_ns` each.
    pub(super) fn ready_at(&self, call_ns: f64) -> u64 {
        let missing = (BURST_CALLS * call_ns).min(FULL_NS) - self.left_ns;
        self.filled_at + (missing.max(0.0) / self.share) as u64
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.filled_at) as f64;
        self.left_ns = (self.left_ns + passed * self.share).min(FULL_NS);
        self.filled_at = self.filled_at.max(now);
    }
}

/// What a stop costs here, beyond the tracer's own work: two switches between processes.
///
/// Seen is only the time from letting a thread go to its next stop, in which the program works as well; so the
/// lower fifth of these times is taken, which is that of calls and work too short to matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct StopCost {
    switches_ns: f64,
}

impl Default for StopCost {
    fn default() -> Self {
        Self { switches_ns: 10_000.0 }
    }
}

impl StopCost {
    /// A thread was let go and stopped again after this time.
    pub(super) fn away(&mut self, ns: u64) {
        // Steps whose sizes are as 4 to 1 settle where four in five times are above.
        self.switches_ns *= if (ns as f64) < self.switches_ns { 0.96 } else { 1.01 };
        self.switches_ns = self.switches_ns.clamp(1_000.0, 200_000.0);
    }

    /// A stop that took the tracer `work_ns`.
    pub(super) fn stop_ns(&self, work_ns: u64) -> f64 {
        self.switches_ns + work_ns as f64
    }

    /// A call: two stops with a little work.
    pub(super) fn call_ns(&self) -> f64 {
        2.0 * (self.switches_ns + 3_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_few_calls_is_always_watched() {
        let (mut budget, mut purse) = (ProcessBudget::new(0), SharedBudget::new(0));
        let ran_dry = (1..10_000u64).any(|call| !budget.spend(call * 1_000_000, 30_000.0, &mut purse));
        assert!(!ran_dry);
    }

    /// What part of its time such a process is stopped, and for how long in a hundred bursts.
    fn share_of_a_busy_one(opens: bool) -> (f64, f64) {
        let (mut now, mut stopped) = (0u64, 0.0);
        let (mut budget, mut purse) = (ProcessBudget::new(0), SharedBudget::new(0));
        while budget.spend(now, 20_000.0, &mut purse) {
            now += 20_000 + 1_000;
        }
        let began = now;
        for _burst in 0..100 {
            budget.opens(now, opens);
            now = now.max(budget.ready_at(40_000.0));
            while budget.spend(now, 20_000.0, &mut purse) {
                stopped += 20_000.0;
                now += 20_000 + 1_000;
            }
        }
        (stopped / (now - began) as f64, stopped)
    }

    #[test]
    fn a_busy_one_is_watched_for_its_share_of_the_time() {
        for (opens, most) in [(false, SHARE), (true, OPENING_SHARE)] {
            let (share, stopped) = share_of_a_busy_one(opens);
            assert!(share < most * 1.15 && share > most * 0.85, "{share} for {most}");
            assert!(stopped > 100.0 * BURST_CALLS * 40_000.0);
        }
    }

    #[test]
    fn the_start_of_an_interpreter_is_seen_whole() {
        let (mut budget, mut purse) = (ProcessBudget::new(0), SharedBudget::new(0));
        // 1200 calls, each two stops of 15 µs.
        let ran_dry = (1..=2400u64).any(|stop| !budget.spend(stop * 20_000, 15_000.0, &mut purse));
        assert!(!ran_dry);
    }

    #[test]
    fn short_programs_share_what_is_free() {
        let (mut purse, mut now, mut spent, mut whole) = (SharedBudget::new(0), 0u64, 0.0, 0);
        // 300 programs one after the other, each of 100 calls.
        for _program in 0..300 {
            let mut budget = ProcessBudget::new(now);
            let mut seen = true;
            for _stop in 0..200 {
                now += 3_000;
                seen = seen && budget.spend(now, 20_000.0, &mut purse);
                spent += if seen { 20_000.0 } else { 0.0 };
                now += if seen { 20_000 } else { 0 };
            }
            whole += u32::from(seen);
        }
        assert!(whole >= 25, "the first are seen: {whole}");
        assert!(spent < PURSE_NS + now as f64 * (PURSE_SHARE + SHARE), "{spent} of {now}");
    }

    #[test]
    fn the_cost_of_switches_is_learnt() {
        let mut cost = StopCost::default();
        for time in 0..5_000u64 {
            cost.away(if time % 3 == 0 { 25_000 } else { 400_000 });
        }
        assert!((20_000.0..35_000.0).contains(&cost.switches_ns), "{}", cost.switches_ns);
    }
}
