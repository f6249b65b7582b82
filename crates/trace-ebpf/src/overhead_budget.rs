//! When to look at calls and when not to: a program that makes a million calls a second is seen in short
//! bursts, so that it is hardly slowed; one that makes a thousand is seen all the time.

/// What one seen call costs the program, about. Measured: 240 ns in a loop that does nothing else, 490 to 700 where the
/// program has the processor's caches full of its own things (git log).
const CALL_COST_NS: u64 = 600;
/// A program of which looking takes no more of its time than this is looked at all the time.
const CALM: f64 = 0.02;
/// The share of time that may be lost by looking at one that is not calm. What a calm time has left over is kept …
const SHARE: f64 = 0.01;
/// … up to this much, in nanoseconds of cost: a build whose linker makes many calls for an instant is seen whole.
const CREDIT_MOST_NS: f64 = 5e6;
/// What a pause makes up for, a share of its time: who makes so many calls that there have to be pauses is to lose less by them
/// all than [`SHARE`].
const PAUSE_SHARE: f64 = 0.004;
/// A program begins with this much: enough, with what it may owe, for what is always the same.
const CREDIT_FIRST_NS: f64 = 0.25e6;
/// While one opens files, this much more is spent on it in all: what it does with the next is not known from what it did
/// with the last, and `find` or `grep -r` over a thousand files are to be seen whole. More, and somebody would notice.
const CREDIT_OPENS_NS: f64 = 2.4e6;
/// It does if one call in so many opens one.
const OPENS: u64 = 16;
/// A burst is at least this long …
const BURST_NS: u64 = 3_000_000;
/// … and while looking costs little, one is a quarter longer than the one before, up to this: whoever asks is in the way, but
/// who was calm for a moment only may make a thousand calls before he is asked about again.
const CALM_NS: u64 = 20_000_000;
/// Where it does not, the next question comes when what may be owed is used up at the rate of the last, but not sooner.
const SOON_NS: u64 = 1_000_000;
/// No pause is made for less than this is owed for: its ends interrupt the other processors ten times each, as the kernel
/// changes its own code for them, and a longer burst costs a program less.
const WORTH_NS: u64 = 60_000_000;
/// None is shorter: before the kernel puts a program back to a tracepoint that it has just been taken from, it waits until every
/// processor has let go of what was there before (an RCU grace period that `Loaded::hasten` has begun: 4 to 16 ms), and weir
/// would stand still with it.
const PAUSE_NS: u64 = 25_000_000;
/// Where that takes longer than a pause was, the next ones are twice as long, up to this.
const SLOW_PAUSE_NS: u64 = 100_000_000;
/// Putting the program back takes less than this if there is nothing to wait for.
pub(super) const AT_ONCE_NS: u64 = 1_000_000;
/// A pause is at most this long, so that nothing is missed for long when the program calms down.
const LONGEST_PAUSE_NS: u64 = 400_000_000;

/// A program that begins in a pause ends it as soon as weir is told of it, which of a plain one is with the next tick; but not
/// more often than this.
const HURRY_NS: u64 = 50_000_000;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BudgetStep {
    /// Go on as it is.
    Stay,
    /// Look from now on.
    Look,
    /// Look away from now on.
    Pause,
}

/// Watches the rate of calls.
#[derive(Debug)]
pub(super) struct OverheadBudget {
    exact: bool,
    looking: bool,
    since_ns: u64,
    /// What looking may cost before the share is lost; below 0 it is, and a pause makes up for it.
    credit_ns: f64,
    /// What is left for times when it opens files.
    opens_ns: f64,
    calls: u64,
    opens: u64,
    burst_ns: u64,
    pause_ns: u64,
    least_ns: u64,
    /// When a pause was cut short last.
    hurried_ns: u64,
    /// Nanoseconds of looking and of pauses, so far.
    pub watched_ns: u64,
    pub unwatched_ns: u64,
}

impl OverheadBudget {
    /// Looks from the beginning; always, if it has to be exact.
    pub fn new(now_ns: u64, exact: bool) -> Self {
        Self {
            exact,
            looking: true,
            since_ns: now_ns,
            credit_ns: CREDIT_FIRST_NS,
            opens_ns: CREDIT_OPENS_NS,
            calls: 0,
            opens: 0,
            burst_ns: BURST_NS,
            pause_ns: 0,
            least_ns: PAUSE_NS,
            hurried_ns: 0,
            watched_ns: 0,
            unwatched_ns: 0,
        }
    }

    /// When to be asked again, nanoseconds from now.
    pub fn next_ns(&self, now_ns: u64) -> u64 {
        (self.since_ns + self.length_ns()).saturating_sub(now_ns).max(1_000_000)
    }

    /// A program begins. False: what it does first will go unseen.
    pub fn hurry(&mut self, now_ns: u64) -> bool {
        if self.looking {
            return true;
        }
        let may = now_ns.saturating_sub(self.hurried_ns) >= HURRY_NS;
        if may {
            self.hurried_ns = now_ns;
            self.pause_ns = self.pause_ns.min(now_ns.saturating_sub(self.since_ns).max(self.least_ns));
        }
        may
    }

    /// Whether a step may change anything: until then nobody needs to count the calls.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= self.length_ns()
    }

    /// Of the present burst, at least, or pause.
    fn length_ns(&self) -> u64 {
        if self.looking { self.burst_ns } else { self.pause_ns }
    }

    /// When the present burst or pause began.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Calls are not seen at present.
    pub fn is_paused(&self) -> bool {
        !self.looking
    }

    /// `calls`: all that were ever seen, `opens` those of them that opened a file.
    pub fn step(&mut self, now_ns: u64, calls: u64, opens: u64) -> BudgetStep {
        if !self.is_due(now_ns) {
            return BudgetStep::Stay;
        }
        let length = now_ns.saturating_sub(self.since_ns);
        let (seen, opened) = (calls - self.calls, opens - self.opens);
        self.begin(now_ns, calls, opens);
        if !self.looking {
            self.earn(length as f64 * PAUSE_SHARE);
            self.looking = true;
            return BudgetStep::Look;
        }
        let cost = (seen * CALL_COST_NS) as f64;
        self.earn(length as f64 * SHARE - cost);
        if opened * OPENS >= seen {
            self.draw_for_files();
        }
        let calm = cost <= CALM * length as f64;
        self.burst_ns =
            if calm { (self.burst_ns * 5 / 4).min(CALM_NS) } else { self.used_up_ns(cost / length as f64) };
        if self.exact || calm || self.owed_ns() < self.worth_ns() {
            return BudgetStep::Stay;
        }
        self.looking = false;
        self.burst_ns = BURST_NS;
        self.pause_ns = self.owed_ns().min(LONGEST_PAUSE_NS);
        BudgetStep::Pause
    }

    /// No pause is made that would be shorter.
    fn worth_ns(&self) -> u64 {
        WORTH_NS.max(self.least_ns)
    }

    /// The pause that would make up for what is owed.
    fn owed_ns(&self) -> u64 {
        (-self.credit_ns / PAUSE_SHARE) as u64
    }

    /// How long it takes until a pause is worth it, if looking goes on to cost this part of the time.
    fn used_up_ns(&self, costs: f64) -> u64 {
        let left = self.credit_ns + self.worth_ns() as f64 * PAUSE_SHARE;
        let loses = (costs - SHARE).max(f64::MIN_POSITIVE);
        (left / loses).clamp(SOON_NS as f64, BURST_NS as f64) as u64
    }

    /// Calls are seen again; that took so long.
    pub fn looks(&mut self, took_ns: u64) {
        if took_ns >= AT_ONCE_NS {
            self.least_ns = (2 * self.least_ns).min(SLOW_PAUSE_NS);
        }
    }

    /// Or loses. A debt is not more than the longest pause makes up for.
    fn earn(&mut self, ns: f64) {
        let least = -(LONGEST_PAUSE_NS as f64) * PAUSE_SHARE;
        self.credit_ns = (self.credit_ns + ns).clamp(least, CREDIT_MOST_NS);
    }

    /// Makes up for what is owed too much, as far as there is something for files left. What is not owed stays there: a program
    /// that opens files only at its beginning is not looked at for longer because of that.
    fn draw_for_files(&mut self) {
        if self.owed_ns() >= self.worth_ns() && self.opens_ns > 0.0 {
            let drawn = (1.0 - self.credit_ns - self.worth_ns() as f64 * PAUSE_SHARE).min(self.opens_ns);
            self.opens_ns -= drawn;
            self.credit_ns += drawn;
        }
    }

    fn begin(&mut self, now_ns: u64, calls: u64, opens: u64) {
        let length = now_ns.saturating_sub(self.since_ns);
        *(if self.looking { &mut self.watched_ns } else { &mut self.unwatched_ns }) += length;
        self.since_ns = now_ns;
        (self.calls, self.opens) = (calls, opens);
    }

    /// The end: what has passed since the last step counts too.
    pub fn end(&mut self, now_ns: u64) {
        self.begin(now_ns, self.calls, self.opens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// So many calls in a burst are as much as it begins with, and may owe.
    const FIRST: u64 = (CREDIT_FIRST_NS + WORTH_NS as f64 * PAUSE_SHARE) as u64 / CALL_COST_NS;

    #[test]
    fn a_calm_program_is_always_seen() {
        let mut duty = OverheadBudget::new(0, false);
        let mut next = BURST_NS;
        for i in 1..100 {
            assert_eq!(duty.step(i * CALM_NS, i * 100, 0), BudgetStep::Stay);
            next = (next + next / 4).min(CALM_NS);
            assert_eq!(duty.next_ns(i * CALM_NS), next, "it is asked about less and less often");
        }
        assert_eq!(next, CALM_NS);
        assert_eq!(duty.unwatched_ns, 0);
    }

    #[test]
    fn a_wild_one_is_seen_in_bursts_that_cost_the_share_at_most() {
        let mut duty = OverheadBudget::new(0, false);
        let (mut now, mut calls) = (0, 0);
        let (mut cost, mut end) = (0, 0);
        while now < 20_000 * MS {
            let length = duty.next_ns(now);
            now += length;
            // 200,000 a second.
            calls += if duty.is_paused() { 0 } else { length / 5_000 };
            cost = calls * CALL_COST_NS;
            end = now;
            duty.step(now, calls, 0);
        }
        let share = duty.unwatched_ns as f64 * PAUSE_SHARE + duty.watched_ns as f64 * SHARE;
        let most = share + CREDIT_FIRST_NS + (CALM_NS / 5_000 * CALL_COST_NS) as f64;
        assert!(cost as f64 <= most, "{cost} of {most}");
        assert!(cost as f64 >= share * 0.9, "{cost}: what may be seen is seen");
        assert!(
            share < end as f64 * (PAUSE_SHARE + SHARE) / 2.0,
            "{share} of {end}: by pauses it loses less"
        );
    }

    #[test]
    fn one_that_would_cost_much_more_is_not_looked_at_for_long() {
        let mut duty = OverheadBudget::new(0, false);
        assert_eq!(duty.next_ns(0), BURST_NS);
        assert_eq!(duty.step(BURST_NS - 1, 100_000, 0), BudgetStep::Stay);
        assert_eq!(duty.step(BURST_NS, 100_000, 0), BudgetStep::Pause);
        assert_eq!(duty.next_ns(BURST_NS), LONGEST_PAUSE_NS);
        assert_eq!(duty.step(BURST_NS + LONGEST_PAUSE_NS - 1, 100_000, 0), BudgetStep::Stay);
        assert_eq!(duty.step(BURST_NS + LONGEST_PAUSE_NS, 100_000, 0), BudgetStep::Look);
    }

    #[test]
    fn a_wild_one_is_asked_about_when_what_it_may_owe_is_used_up() {
        for calls_a_ms in [100, 200, 270, 300, 400] {
            let mut duty = OverheadBudget::new(0, false);
            // It was calm until its loop began.
            assert_eq!(duty.step(BURST_NS, 50, 0), BudgetStep::Stay);
            let (mut now, mut calls) = (BURST_NS, 50);
            while !duty.is_paused() {
                let length = duty.next_ns(now);
                (now, calls) = (now + length, calls + calls_a_ms * length / MS);
                duty.step(now, calls, 0);
            }
            let owed = (calls * CALL_COST_NS) as f64 - now as f64 * SHARE - CREDIT_FIRST_NS;
            let of = |ns: u64| (calls_a_ms * ns / MS * CALL_COST_NS) as f64;
            // Of what nobody could know: the burst that was under way, or one of the shortest.
            let most = (WORTH_NS as f64 * PAUSE_SHARE + of(SOON_NS)).max(of(BURST_NS * 5 / 4));
            assert!(owed <= most, "{calls_a_ms} a ms: {owed} of {most}");
        }
    }

    #[test]
    fn one_that_opens_files_is_seen_longer_than_one_that_does_not() {
        let last = |opens: u64| {
            let mut duty = OverheadBudget::new(0, false);
            (1..).find(|i| duty.step(i * BURST_NS, i * FIRST / 2, i * opens) == BudgetStep::Pause).unwrap()
        };
        assert_eq!(last(0), 3);
        assert_eq!(last(FIRST / 2 / OPENS - 1), 3, "a few are not what it does");
        assert_eq!(last(FIRST / 2 / OPENS + 1), 14);
    }

    #[test]
    fn one_that_opened_files_at_its_beginning_only_is_not_seen_longer() {
        let last = |opens: fn(u64) -> u64| {
            let (mut duty, mut opened) = (OverheadBudget::new(0, false), 0);
            let step = |i: &u64| {
                opened += opens(*i);
                duty.step(i * BURST_NS, i * FIRST / 2, opened) == BudgetStep::Pause
            };
            (1..).find(step).unwrap()
        };
        assert_eq!(last(|_| 0), 3);
        assert_eq!(last(|i| if i < 4 { FIRST / 2 } else { 0 }), 4, "one burst more");
    }

    #[test]
    fn what_it_gets_for_files_it_gets_once() {
        let mut duty = OverheadBudget::new(0, false);
        let (mut now, mut calls, mut looked) = (0, 0, 0);
        for _ in 0..1000 {
            now += duty.next_ns(now);
            looked += u64::from(!duty.is_paused());
            calls += if duty.is_paused() { 0 } else { FIRST };
            duty.step(now, calls, calls / 4);
        }
        let cost = (looked * FIRST * CALL_COST_NS) as f64;
        let most = now as f64 * SHARE + CREDIT_FIRST_NS + CREDIT_OPENS_NS + 2.0 * CREDIT_FIRST_NS;
        assert!(cost <= most, "{cost} of {most}");
    }

    #[test]
    fn what_a_calm_time_leaves_over_is_for_a_wild_moment() {
        let mut duty = OverheadBudget::new(0, false);
        for i in 1..=100 {
            assert_eq!(duty.step(i * 10 * MS, i * 100, 0), BudgetStep::Stay);
        }
        // 4.8 ms of cost: 4.2 and what is earned meanwhile are there, and a little is owed.
        for i in 1..=4 {
            assert_eq!(duty.step((1000 + i * 10) * MS, 10_000 + i * 2_000, 0), BudgetStep::Stay, "{i}");
        }
        assert_eq!(duty.step(1050 * MS, 26_000, 0), BudgetStep::Pause);
    }

    #[test]
    fn a_program_that_begins_in_a_pause_ends_it_now_and_then() {
        let mut duty = OverheadBudget::new(0, false);
        assert!(duty.hurry(MS), "it is looked at");
        assert_eq!(duty.step(60 * MS, 100_000, 0), BudgetStep::Pause);
        assert!(duty.hurry(61 * MS));
        assert!(!duty.is_due(84 * MS) && duty.is_due(85 * MS), "not before the kernel is ready for it");
        assert_eq!(duty.step(90 * MS, 100_000, 0), BudgetStep::Look);
        assert_eq!(duty.step(93 * MS, 200_000, 0), BudgetStep::Pause);
        assert!(!duty.hurry(110 * MS) && !duty.is_due(130 * MS));
        assert!(duty.hurry(130 * MS) && duty.is_due(130 * MS));
    }

    #[test]
    fn where_looking_again_takes_long_pauses_do_as_well() {
        let pause = |took: u64| {
            let mut duty = OverheadBudget::new(0, false);
            (0..2).for_each(|_| duty.looks(took));
            (1..).find(|i| duty.step(i * BURST_NS, i * FIRST / 2, 0) == BudgetStep::Pause);
            duty.next_ns(duty.since_ns())
        };
        let (at_once, late) = (pause(AT_ONCE_NS - 1), pause(AT_ONCE_NS));
        assert!((WORTH_NS..2 * WORTH_NS).contains(&at_once), "{at_once}");
        assert!((4 * PAUSE_NS..8 * PAUSE_NS).contains(&late), "{late}");
    }

    #[test]
    fn exact_never_looks_away() {
        let mut duty = OverheadBudget::new(0, true);
        assert_eq!(duty.step(60 * MS, 10_000_000, 0), BudgetStep::Stay);
        duty.end(70 * MS);
        assert_eq!((duty.watched_ns, duty.unwatched_ns), (70 * MS, 0));
    }
}
