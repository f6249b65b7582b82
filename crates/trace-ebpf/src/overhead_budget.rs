//! The overhead budget: decides when the program at system calls is attached (a sampling window) and detached (a gap).
//!
//! A process tree that makes a thousand calls a second is observed all the time. One that makes a million is observed in
//! short windows, so that tracing hardly slows it down.

use crate::test_settings;

/// Cost of a recorded call. Measured: 240 ns in a loop of such calls only, 490 to 700 ns where the traced program's own data
/// fills the caches.
const CALL_COST_NS: u64 = 600;
/// Below this share of its time a program counts as calm and is observed all the time: it is below the noise between runs.
const CALM_SHARE: f64 = 0.02;
/// The share of time that observing a program that is not calm may cost. Unused budget is kept as credit.
const WINDOW_SHARE: f64 = 0.01;
/// The cap of the credit, in nanoseconds of cost: a build whose linker makes many calls for a moment is observed without a gap.
const MAX_CREDIT_NS: f64 = 5e6;
/// The share of time that a gap adds to the credit. It is smaller than [`WINDOW_SHARE`], so that a program whose calls need gaps is
/// slowed down less in total.
const GAP_SHARE: f64 = 0.004;
/// Credit at the start: with the debt that is allowed, enough for the start-up of a dynamically linked program.
const INITIAL_CREDIT_NS: f64 = 0.25e6;
/// Extra credit, once per run, for windows in which the program opens files. Each file may be used differently, so `find` or
/// `grep -r` over a thousand files is observed without a gap. More would be noticeable in short runs.
const FILE_CREDIT_NS: f64 = 2.4e6;
/// A program counts as opening files if at least one call in this many names a file; reading one small file takes fewer calls.
const CALLS_PER_OPEN: u64 = 16;
/// The shortest sampling window. It bounds the cost before the first poll.
const MIN_WINDOW_NS: u64 = 3_000_000;
/// Each poll of the tallies costs CPU time, so while the program is calm each window is 25 % longer than the previous one. The
/// length is capped here, because a calm program can become busy between two polls.
const MAX_WINDOW_NS: u64 = 20_000_000;
/// While it is not calm, the next poll comes when the allowed debt is used up at the present rate, but not sooner than this.
const MIN_POLL_NS: u64 = 1_000_000;
/// The shortest gap that pays off: the kernel patches its code at both ends of a gap and interrupts each other CPU ten times,
/// so a longer window costs a program less than a shorter gap.
const MIN_DEBT_NS: u64 = 60_000_000;
/// The shortest gap: before the kernel attaches a program to a tracepoint again it waits for the RCU grace period that
/// `Loaded::start_grace_period` has started. Measured: 4 to 16 ms, during which weir would be blocked.
const MIN_GAP_NS: u64 = 25_000_000;
/// If attaching takes longer than [`AT_ONCE_NS`] the minimum doubles, up to this.
const MAX_MIN_GAP_NS: u64 = 100_000_000;
/// Attaching the program takes less than this if the grace period is over.
pub(super) const AT_ONCE_NS: u64 = 1_000_000;
/// The longest gap, so that a program that becomes calm is observed again soon.
const MAX_GAP_NS: u64 = 400_000_000;
/// An execve(2) in a gap ends the gap, but not more often than this.
const MIN_SHORTENED_NS: u64 = 50_000_000;

/// The next action of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BudgetStep {
    Stay,
    BeginWindow,
    BeginGap,
}

/// Compares the rate of recorded calls with the budget. All times are nanoseconds of one clock.
#[derive(Debug)]
pub(super) struct OverheadBudget {
    exact: bool,
    /// Nanoseconds of a recorded call.
    call_cost_ns: u64,
    in_window: bool,
    /// Start of the present gap, or the last poll in the present window.
    since_ns: u64,
    /// Cost that the program may still cause; negative: debt, which a gap repays.
    credit_ns: f64,
    /// Rest of [`FILE_CREDIT_NS`].
    file_credit_ns: f64,
    /// Counts at the last poll.
    calls: u64,
    opens: u64,
    window_ns: u64,
    gap_ns: u64,
    /// Between [`MIN_GAP_NS`] and [`MAX_MIN_GAP_NS`].
    min_gap_ns: u64,
    /// When an execve(2) last shortened a gap.
    shortened_ns: u64,
    /// Time in windows and in gaps so far.
    pub observed_ns: u64,
    pub unobserved_ns: u64,
}

impl OverheadBudget {
    /// Starts with a window. With `exact` there is never a gap.
    pub fn new(now_ns: u64, exact: bool) -> Self {
        Self {
            exact,
            call_cost_ns: test_settings::call_cost_ns().unwrap_or(CALL_COST_NS),
            in_window: true,
            since_ns: now_ns,
            credit_ns: INITIAL_CREDIT_NS,
            file_credit_ns: FILE_CREDIT_NS,
            calls: 0,
            opens: 0,
            window_ns: MIN_WINDOW_NS,
            gap_ns: 0,
            min_gap_ns: MIN_GAP_NS,
            shortened_ns: 0,
            observed_ns: 0,
            unobserved_ns: 0,
        }
    }

    /// Returns the time until the next poll, at least 1 ms.
    pub fn next_ns(&self, now_ns: u64) -> u64 {
        (self.since_ns + self.length_ns()).saturating_sub(now_ns).max(1_000_000)
    }

    /// Shortens a gap, because a process has executed a program. Returns false if the program's start will be unobserved.
    pub fn shorten_gap(&mut self, now_ns: u64) -> bool {
        if self.in_window {
            return true;
        }
        let allowed = now_ns.saturating_sub(self.shortened_ns) >= MIN_SHORTENED_NS;
        if allowed {
            self.shortened_ns = now_ns;
            self.gap_ns = self.gap_ns.min(now_ns.saturating_sub(self.since_ns).max(self.min_gap_ns));
        }
        allowed
    }

    /// Returns whether [`Self::step`] may change anything. Until then the caller need not read the tallies.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= self.length_ns()
    }

    fn length_ns(&self) -> u64 {
        if self.in_window { self.window_ns } else { self.gap_ns }
    }

    /// Returns the start of the present gap, or the last poll in the present window.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    pub fn is_in_gap(&self) -> bool {
        !self.in_window
    }

    /// Decides what to do. `calls` and `opens` are the totals of recorded calls and of those that name a file.
    pub fn step(&mut self, now_ns: u64, calls: u64, opens: u64) -> BudgetStep {
        if !self.is_due(now_ns) {
            return BudgetStep::Stay;
        }
        let length = now_ns.saturating_sub(self.since_ns);
        let (new_calls, new_opens) = (calls - self.calls, opens - self.opens);
        self.advance(now_ns, calls, opens);
        if !self.in_window {
            self.add_credit(length as f64 * GAP_SHARE);
            self.in_window = true;
            return BudgetStep::BeginWindow;
        }
        let cost = (new_calls * self.call_cost_ns) as f64;
        self.add_credit(length as f64 * WINDOW_SHARE - cost);
        if new_opens * CALLS_PER_OPEN >= new_calls {
            self.use_file_credit();
        }
        let calm = cost <= CALM_SHARE * length as f64;
        self.window_ns = if calm {
            (self.window_ns * 5 / 4).min(MAX_WINDOW_NS)
        } else {
            self.time_to_max_debt_ns(cost / length as f64)
        };
        if self.exact || calm || self.repaying_gap_ns() < self.shortest_gap_ns() {
            return BudgetStep::Stay;
        }
        self.in_window = false;
        self.window_ns = MIN_WINDOW_NS;
        self.gap_ns = self.repaying_gap_ns().min(MAX_GAP_NS);
        BudgetStep::BeginGap
    }

    fn shortest_gap_ns(&self) -> u64 {
        MIN_DEBT_NS.max(self.min_gap_ns)
    }

    /// Returns the length of the gap that repays the debt.
    fn repaying_gap_ns(&self) -> u64 {
        (-self.credit_ns / GAP_SHARE) as u64
    }

    /// Returns the time until the debt is worth a gap, if observing continues to cost this share of the time.
    fn time_to_max_debt_ns(&self, cost_share: f64) -> u64 {
        let left = self.credit_ns + self.shortest_gap_ns() as f64 * GAP_SHARE;
        let loss = (cost_share - WINDOW_SHARE).max(f64::MIN_POSITIVE);
        (left / loss).clamp(MIN_POLL_NS as f64, MIN_WINDOW_NS as f64) as u64
    }

    /// Continues the last gap, because the program could not be attached.
    pub fn continue_gap(&mut self, now_ns: u64) {
        (self.in_window, self.gap_ns) = (false, MAX_GAP_NS);
        self.end(now_ns);
    }

    /// Adapts the shortest gap to the time that attaching the program has taken.
    pub fn attached(&mut self, took_ns: u64) {
        if took_ns >= AT_ONCE_NS {
            self.min_gap_ns = (2 * self.min_gap_ns).min(MAX_MIN_GAP_NS);
        }
    }

    /// Adds to the credit, which may become negative. Debt is capped at what one gap of maximal length repays.
    fn add_credit(&mut self, ns: f64) {
        let max_debt = MAX_GAP_NS as f64 * GAP_SHARE;
        self.credit_ns = (self.credit_ns + ns).clamp(-max_debt, MAX_CREDIT_NS);
    }

    /// Pays the debt from the file credit, down to just below what is worth a gap. The rest of the file credit stays for
    /// later windows that open files.
    fn use_file_credit(&mut self) {
        if self.repaying_gap_ns() >= self.shortest_gap_ns() && self.file_credit_ns > 0.0 {
            let needed = 1.0 - self.credit_ns - self.shortest_gap_ns() as f64 * GAP_SHARE;
            let used = needed.min(self.file_credit_ns);
            self.file_credit_ns -= used;
            self.credit_ns += used;
        }
    }

    fn advance(&mut self, now_ns: u64, calls: u64, opens: u64) {
        let length = now_ns.saturating_sub(self.since_ns);
        *(if self.in_window { &mut self.observed_ns } else { &mut self.unobserved_ns }) += length;
        self.since_ns = now_ns;
        (self.calls, self.opens) = (calls, opens);
    }

    /// Adds the time since the last step to the window or gap.
    pub fn end(&mut self, now_ns: u64) {
        self.advance(now_ns, self.calls, self.opens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Calls whose cost is the initial credit plus the debt that is worth a gap.
    const FIRST_CALLS: u64 = (INITIAL_CREDIT_NS + MIN_DEBT_NS as f64 * GAP_SHARE) as u64 / CALL_COST_NS;

    #[test]
    fn a_calm_program_is_always_observed() {
        let mut budget = OverheadBudget::new(0, false);
        let mut next = MIN_WINDOW_NS;
        for i in 1..100 {
            assert_eq!(budget.step(i * MAX_WINDOW_NS, i * 100, 0), BudgetStep::Stay);
            next = (next + next / 4).min(MAX_WINDOW_NS);
            assert_eq!(
                budget.next_ns(i * MAX_WINDOW_NS),
                next,
                "each window is longer than the previous one"
            );
        }
        assert_eq!(next, MAX_WINDOW_NS);
        assert_eq!(budget.unobserved_ns, 0);
    }

    #[test]
    fn a_busy_program_is_observed_in_windows_that_cost_at_most_the_share() {
        let mut budget = OverheadBudget::new(0, false);
        let (mut now, mut calls) = (0, 0);
        let (mut cost, mut end) = (0, 0);
        while now < 20_000 * MS {
            let length = budget.next_ns(now);
            now += length;
            // 200,000 a second.
            calls += if budget.is_in_gap() { 0 } else { length / 5_000 };
            cost = calls * CALL_COST_NS;
            end = now;
            budget.step(now, calls, 0);
        }
        let share = budget.unobserved_ns as f64 * GAP_SHARE + budget.observed_ns as f64 * WINDOW_SHARE;
        let most = share + INITIAL_CREDIT_NS + (MAX_WINDOW_NS / 5_000 * CALL_COST_NS) as f64;
        assert!(cost as f64 <= most, "{cost} of {most}");
        assert!(cost as f64 >= share * 0.9, "{cost}: the budget is used");
        assert!(share < end as f64 * (GAP_SHARE + WINDOW_SHARE) / 2.0, "{share} of {end}: gaps cost less");
    }

    #[test]
    fn a_very_busy_program_is_observed_for_one_window() {
        let mut budget = OverheadBudget::new(0, false);
        assert_eq!(budget.next_ns(0), MIN_WINDOW_NS);
        assert_eq!(budget.step(MIN_WINDOW_NS - 1, 100_000, 0), BudgetStep::Stay);
        assert_eq!(budget.step(MIN_WINDOW_NS, 100_000, 0), BudgetStep::BeginGap);
        assert_eq!(budget.next_ns(MIN_WINDOW_NS), MAX_GAP_NS);
        assert_eq!(budget.step(MIN_WINDOW_NS + MAX_GAP_NS - 1, 100_000, 0), BudgetStep::Stay);
        assert_eq!(budget.step(MIN_WINDOW_NS + MAX_GAP_NS, 100_000, 0), BudgetStep::BeginWindow);
    }

    #[test]
    fn the_next_poll_comes_when_the_allowed_debt_is_used_up() {
        for calls_a_ms in [100, 200, 270, 300, 400] {
            let mut budget = OverheadBudget::new(0, false);
            // Calm in the first window.
            assert_eq!(budget.step(MIN_WINDOW_NS, 50, 0), BudgetStep::Stay);
            let (mut now, mut calls) = (MIN_WINDOW_NS, 50);
            while !budget.is_in_gap() {
                let length = budget.next_ns(now);
                (now, calls) = (now + length, calls + calls_a_ms * length / MS);
                budget.step(now, calls, 0);
            }
            let owed = (calls * CALL_COST_NS) as f64 - now as f64 * WINDOW_SHARE - INITIAL_CREDIT_NS;
            let of = |ns: u64| (calls_a_ms * ns / MS * CALL_COST_NS) as f64;
            // The overshoot is at most the window under way or one of the shortest.
            let most = (MIN_DEBT_NS as f64 * GAP_SHARE + of(MIN_POLL_NS)).max(of(MIN_WINDOW_NS * 5 / 4));
            assert!(owed <= most, "{calls_a_ms} a ms: {owed} of {most}");
        }
    }

    #[test]
    fn a_program_that_opens_files_is_observed_longer() {
        let last = |opens: u64| {
            let mut budget = OverheadBudget::new(0, false);
            (1..)
                .find(|i| {
                    budget.step(i * MIN_WINDOW_NS, i * FIRST_CALLS / 2, i * opens) == BudgetStep::BeginGap
                })
                .unwrap()
        };
        assert_eq!(last(0), 3);
        assert_eq!(last(FIRST_CALLS / 2 / CALLS_PER_OPEN - 1), 3, "a few opens get no file credit");
        assert_eq!(last(FIRST_CALLS / 2 / CALLS_PER_OPEN + 1), 14);
    }

    #[test]
    fn a_program_that_opened_files_only_at_its_start_is_not_observed_longer() {
        let last = |opens: fn(u64) -> u64| {
            let (mut budget, mut opened) = (OverheadBudget::new(0, false), 0);
            let step = |i: &u64| {
                opened += opens(*i);
                budget.step(i * MIN_WINDOW_NS, i * FIRST_CALLS / 2, opened) == BudgetStep::BeginGap
            };
            (1..).find(step).unwrap()
        };
        assert_eq!(last(|_| 0), 3);
        assert_eq!(last(|i| if i < 4 { FIRST_CALLS / 2 } else { 0 }), 4, "one window more");
    }

    #[test]
    fn the_file_credit_is_given_once() {
        let mut budget = OverheadBudget::new(0, false);
        let (mut now, mut calls, mut windows) = (0, 0, 0);
        for _ in 0..1000 {
            now += budget.next_ns(now);
            windows += u64::from(!budget.is_in_gap());
            calls += if budget.is_in_gap() { 0 } else { FIRST_CALLS };
            budget.step(now, calls, calls / 4);
        }
        let cost = (windows * FIRST_CALLS * CALL_COST_NS) as f64;
        let most = now as f64 * WINDOW_SHARE + INITIAL_CREDIT_NS + FILE_CREDIT_NS + 2.0 * INITIAL_CREDIT_NS;
        assert!(cost <= most, "{cost} of {most}");
    }

    #[test]
    fn unused_budget_is_kept_for_a_busy_moment() {
        let mut budget = OverheadBudget::new(0, false);
        for i in 1..=100 {
            assert_eq!(budget.step(i * 10 * MS, i * 100, 0), BudgetStep::Stay);
        }
        // A cost of 4.8 ms: a credit of 4.2 ms, what is added meanwhile, and a small debt.
        for i in 1..=4 {
            assert_eq!(budget.step((1000 + i * 10) * MS, 10_000 + i * 2_000, 0), BudgetStep::Stay, "{i}");
        }
        assert_eq!(budget.step(1050 * MS, 26_000, 0), BudgetStep::BeginGap);
    }

    #[test]
    fn an_execve_in_a_gap_ends_it_now_and_then() {
        let mut budget = OverheadBudget::new(0, false);
        assert!(budget.shorten_gap(MS), "in a window");
        assert_eq!(budget.step(60 * MS, 100_000, 0), BudgetStep::BeginGap);
        assert!(budget.shorten_gap(61 * MS));
        assert!(!budget.is_due(84 * MS) && budget.is_due(85 * MS), "not before the grace period is over");
        assert_eq!(budget.step(90 * MS, 100_000, 0), BudgetStep::BeginWindow);
        assert_eq!(budget.step(93 * MS, 200_000, 0), BudgetStep::BeginGap);
        assert!(!budget.shorten_gap(110 * MS) && !budget.is_due(130 * MS));
        assert!(budget.shorten_gap(130 * MS) && budget.is_due(130 * MS));
    }

    #[test]
    fn gaps_are_longer_where_attaching_is_slow() {
        let gap = |took: u64| {
            let mut budget = OverheadBudget::new(0, false);
            (0..2).for_each(|_| budget.attached(took));
            (1..).find(|i| budget.step(i * MIN_WINDOW_NS, i * FIRST_CALLS / 2, 0) == BudgetStep::BeginGap);
            budget.next_ns(budget.since_ns())
        };
        let (at_once, late) = (gap(AT_ONCE_NS - 1), gap(AT_ONCE_NS));
        assert!((MIN_DEBT_NS..2 * MIN_DEBT_NS).contains(&at_once), "{at_once}");
        assert!((4 * MIN_GAP_NS..8 * MIN_GAP_NS).contains(&late), "{late}");
    }

    #[test]
    fn exact_has_no_gaps() {
        let mut budget = OverheadBudget::new(0, true);
        assert_eq!(budget.step(60 * MS, 10_000_000, 0), BudgetStep::Stay);
        budget.end(70 * MS);
        assert_eq!((budget.observed_ns, budget.unobserved_ns), (70 * MS, 0));
    }
}
