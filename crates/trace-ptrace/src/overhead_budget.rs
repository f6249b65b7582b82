//! The overhead budget: a credit that grows with time and pays for stops.
//!
//! A process that makes few calls never uses up its credit, so all of its calls are recorded. One that makes many calls
//! uses it up and then runs in a gap until the credit pays for another sampling window. So the windows' share of the time
//! is bounded by [`SHARE`], whatever a stop costs on this machine.

/// The share of a process's time that tracing may cost: the default overhead budget of this backend.
const SHARE: f64 = 0.1;

/// The share for a process that opens many files, whose names are known from sampling windows only.
const OPENING_SHARE: f64 = 0.25;

/// The cap of the credit of one process.
const MAX_CREDIT_NS: f64 = 20_000_000.0;

/// The share of the [`SharedBudget`] that one new image may use: enough to record the start of an interpreter with its
/// imports, and a short script after that.
const START_NS: f64 = 40_000_000.0;

/// The initial credit for the starts of all images of a run: a shell and two interpreters. It bounds the cost of a run of
/// hundreds of short commands.
const SHARED_NS: f64 = 100_000_000.0;

/// The share of the run's time by which that credit grows, so that some of the later images are recorded too.
const SHARED_SHARE: f64 = 0.05;

/// The calls that a sampling window should record: enough to emit the size and mode of a stream.
const WINDOW_CALLS: f64 = 100.0;

/// The credit for the starts of images, shared by all processes of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedBudget {
    credit_ns: f64,
    updated_ns: u64,
}

impl SharedBudget {
    pub(super) fn new(now: u64) -> Self {
        Self { credit_ns: SHARED_NS, updated_ns: now }
    }

    /// Takes up to `wanted_ns` from the credit. Returns the amount.
    fn take(&mut self, now: u64, wanted_ns: f64) -> f64 {
        let passed = now.saturating_sub(self.updated_ns) as f64;
        // The initial credit may exceed the cap.
        self.credit_ns = (self.credit_ns + passed * SHARED_SHARE).min(START_NS.max(self.credit_ns));
        self.updated_ns = self.updated_ns.max(now);
        let taken = self.credit_ns.min(wanted_ns);
        self.credit_ns -= taken;
        taken
    }
}

/// The credit of one process in its current image.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessBudget {
    credit_ns: f64,
    /// The part of the [`SharedBudget`] that the process may still use.
    start_ns: f64,
    updated_ns: u64,
    share: f64,
}

impl ProcessBudget {
    pub(super) fn new(now: u64) -> Self {
        Self { credit_ns: 0.0, start_ns: START_NS, updated_ns: now, share: SHARE }
    }

    /// Pays for a stop at `now`. Returns false if the credit is used up.
    pub(super) fn spend(&mut self, now: u64, cost_ns: f64, shared: &mut SharedBudget) -> bool {
        self.fill(now);
        let own_ns = cost_ns.min(self.credit_ns.max(0.0));
        self.credit_ns -= own_ns;
        let beyond_ns = cost_ns - own_ns;
        let shared_ns = shared.take(now, beyond_ns.min(self.start_ns));
        if shared_ns >= beyond_ns {
            self.start_ns -= shared_ns;
            return self.credit_ns + self.start_ns > 0.0;
        }
        // The start of the image is over. Debt from stops that always occur, such as clone stops, is capped.
        self.start_ns = 0.0;
        self.credit_ns = (self.credit_ns - (beyond_ns - shared_ns)).max(-MAX_CREDIT_NS);
        false
    }

    /// Sets the share from now on, by whether the process opens many files.
    pub(super) fn set_share(&mut self, now: u64, opens_many: bool) {
        self.fill(now);
        self.share = if opens_many { OPENING_SHARE } else { SHARE };
    }

    /// Returns the time at which the credit pays for a sampling window whose calls cost `call_ns` each.
    pub(super) fn ready_at(&self, call_ns: f64) -> u64 {
        let missing = (WINDOW_CALLS * call_ns).min(MAX_CREDIT_NS) - self.credit_ns;
        self.updated_ns + (missing.max(0.0) / self.share) as u64
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.updated_ns) as f64;
        self.credit_ns = (self.credit_ns + passed * self.share).min(MAX_CREDIT_NS);
        self.updated_ns = self.updated_ns.max(now);
    }
}

/// An estimate of the cost of a stop on this machine, beyond the tracer's own work: two context switches.
///
/// Only the time from resuming a thread to its next stop can be measured, which includes the program's work. So the
/// estimate is the 20th percentile of these times, where the program's work is negligible.
#[derive(Debug, Clone, Copy)]
pub(super) struct StopCost {
    switches_ns: f64,
}

impl Default for StopCost {
    fn default() -> Self {
        // A typical value; the estimate adapts within some hundred stops.
        Self { switches_ns: 10_000.0 }
    }
}

impl StopCost {
    /// Updates the estimate with the time from resuming a thread to its next stop.
    pub(super) fn record_round_trip(&mut self, ns: u64) {
        // Steps down and up in the ratio 4 : 1 converge where four in five times are larger.
        self.switches_ns *= if (ns as f64) < self.switches_ns { 0.96 } else { 1.01 };
        self.switches_ns = self.switches_ns.clamp(1_000.0, 200_000.0);
    }

    /// Returns the cost of a stop for which the tracer worked `work_ns`.
    pub(super) fn stop_ns(&self, work_ns: u64) -> f64 {
        self.switches_ns + work_ns as f64
    }

    /// Returns the estimated cost of a call: two stops with 3 µs of work each.
    pub(super) fn call_ns(&self) -> f64 {
        2.0 * (self.switches_ns + 3_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_few_calls_has_no_gaps() {
        let (mut budget, mut shared) = (ProcessBudget::new(0), SharedBudget::new(0));
        let used_up = (1..10_000u64).any(|call| !budget.spend(call * 1_000_000, 30_000.0, &mut shared));
        assert!(!used_up);
    }

    /// Returns the share of time that a busy process is stopped, and the stopped time in 100 sampling windows.
    fn stopped_share(opens: bool) -> (f64, f64) {
        let (mut now, mut stopped) = (0u64, 0.0);
        let (mut budget, mut shared) = (ProcessBudget::new(0), SharedBudget::new(0));
        while budget.spend(now, 20_000.0, &mut shared) {
            now += 20_000 + 1_000;
        }
        let began = now;
        for _window in 0..100 {
            budget.set_share(now, opens);
            now = now.max(budget.ready_at(40_000.0));
            while budget.spend(now, 20_000.0, &mut shared) {
                stopped += 20_000.0;
                now += 20_000 + 1_000;
            }
        }
        (stopped / (now - began) as f64, stopped)
    }

    #[test]
    fn a_busy_process_is_stopped_for_its_share_of_the_time() {
        for (opens, most) in [(false, SHARE), (true, OPENING_SHARE)] {
            let (share, stopped) = stopped_share(opens);
            assert!(share < most * 1.15 && share > most * 0.85, "{share} for {most}");
            assert!(stopped > 100.0 * WINDOW_CALLS * 40_000.0);
        }
    }

    #[test]
    fn the_start_of_an_interpreter_has_no_gap() {
        let (mut budget, mut shared) = (ProcessBudget::new(0), SharedBudget::new(0));
        // 1200 calls, each two stops of 15 µs.
        let used_up = (1..=2400u64).any(|stop| !budget.spend(stop * 20_000, 15_000.0, &mut shared));
        assert!(!used_up);
    }

    #[test]
    fn short_programs_share_the_start_credit() {
        let (mut shared, mut now, mut spent, mut complete) = (SharedBudget::new(0), 0u64, 0.0, 0);
        // 300 programs one after the other, each of 100 calls.
        for _program in 0..300 {
            let mut budget = ProcessBudget::new(now);
            let mut recorded = true;
            for _stop in 0..200 {
                now += 3_000;
                recorded = recorded && budget.spend(now, 20_000.0, &mut shared);
                spent += if recorded { 20_000.0 } else { 0.0 };
                now += if recorded { 20_000 } else { 0 };
            }
            complete += u32::from(recorded);
        }
        assert!(complete >= 25, "complete starts: {complete}");
        assert!(spent < SHARED_NS + now as f64 * (SHARED_SHARE + SHARE), "{spent} of {now}");
    }

    #[test]
    fn the_cost_of_switches_converges() {
        let mut cost = StopCost::default();
        for time in 0..5_000u64 {
            cost.record_round_trip(if time % 3 == 0 { 25_000 } else { 400_000 });
        }
        assert!((20_000.0..35_000.0).contains(&cost.switches_ns), "{}", cost.switches_ns);
    }
}
