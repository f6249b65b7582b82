//! Orders the policies: the cheapest first, then those that lose less, then the simpler ones.

use weir_model::Mode;
use weir_model::advise::{AdviceQuestion, AllowedLoss, PredictedCost, SyncPoint, WriteMethod};

use crate::limits::Problem;
use crate::write_policy::WritePolicy;

/// Percent of the time below which a cost does not decide: no tool on the machine would show the difference.
pub const NEGLIGIBLE_PERCENT: f64 = 0.5;
/// Ratio of two costs that count as equal, the noise of the prices.
pub const TIE: f64 = 1.05;
/// Choices side by side: three fit 80 columns.
const CHOICES: usize = 3;

/// A policy with its price and the reason against it.
#[derive(Debug, Clone)]
pub struct Judged {
    pub policy: WritePolicy,
    pub predicted: Option<PredictedCost>,
    pub problem: Option<Problem>,
}

/// Returns the share of time that decides, in percent: small costs count as equal. The CPU time of a timer counts, too, though no record
/// waits for it.
pub(crate) fn deciding_percent(cost: &PredictedCost) -> f64 {
    cost.busy_percent.max(cost.cpu_percent).max(NEGLIGIBLE_PERCENT)
}

impl Judged {
    /// Returns [`deciding_percent`] of the predicted cost; infinity without one.
    pub fn deciding_percent(&self) -> f64 {
        self.predicted.map_or(f64::INFINITY, |cost| deciding_percent(&cost))
    }

    /// Returns the sum of the bytes at risk. A power cut counts unless the question's loss is [`AllowedLoss::Buffer`].
    fn at_risk(&self, question: &AdviceQuestion) -> u64 {
        let Some(cost) = self.predicted else { return u64::MAX };
        let power = if question.loss == AllowedLoss::Buffer { 0 } else { cost.at_risk_power_bytes };
        cost.at_risk_kill_bytes.saturating_add(power)
    }

    fn flash(&self) -> f64 {
        self.predicted.and_then(|cost| cost.flash_bytes_per_day).unwrap_or(0.0)
    }

    /// Returns 0 for a policy that holds all limits, 1 for one that is too slow, 2 for one that loses more than the question allows,
    /// 3 for one that needs an expert (mmap, O_DIRECT, io_uring), 4 for one that does not apply.
    fn class(&self) -> u8 {
        match &self.problem {
            Some(problem) if !problem.is_limit => 4,
            _ if self.policy.is_for_experts() => 3,
            Some(problem) if problem.loses_more => 2,
            Some(_) => 1,
            None => 0,
        }
    }

    /// Two policies of a family differ only in the size of the buffer and the interval of the timer.
    fn family(&self) -> (WriteMethod, Mode, SyncPoint, bool) {
        (self.policy.method, self.policy.mode, self.policy.sync, self.policy.timer_s().is_some())
    }
}

/// Returns how much a program needs for the policy: threads, a library, calls.
pub fn complexity(policy: &WritePolicy) -> u32 {
    let base = match policy.method {
        WriteMethod::Syscall => 0,
        WriteMethod::Stdio => 1,
        WriteMethod::Libweir => 3,
        _ => 9,
    };
    let own_thread = match policy.method {
        // libweir has the timer and the group commit; a timer that syncs is the program's.
        WriteMethod::Libweir => u32::from(policy.sync_period_s.is_some()),
        _ => 2 * u32::from(policy.timer_s().is_some() || policy.sync == SyncPoint::Group),
    };
    base + own_thread + u32::from(policy.sync == SyncPoint::Record)
}

/// Divides the policies into the three best, the best first, and the rest in the same order.
pub fn order(judged: Vec<Judged>, question: &AdviceQuestion) -> (Vec<Judged>, Vec<Judged>) {
    let mut left = judged;
    let (mut best, mut rest): (Vec<Judged>, Vec<Judged>) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let at = next(&left, question);
        let one = left.swap_remove(at);
        let repeats = best.iter().any(|other| other.family() == one.family());
        if best.len() < CHOICES && !repeats { best.push(one) } else { rest.push(one) }
    }
    (best, rest)
}

/// Returns the index of the best of `judged`, which is not empty.
fn next(judged: &[Judged], question: &AdviceQuestion) -> usize {
    let class = judged.iter().map(Judged::class).min().unwrap_or(0);
    let of_class = || judged.iter().enumerate().filter(move |(_, one)| one.class() == class);
    let least = of_class().map(|(_, one)| one.deciding_percent()).fold(f64::INFINITY, f64::min);
    let tied = of_class().filter(|(_, one)| one.deciding_percent() <= least * TIE);
    let key = |one: &Judged| {
        // Small flash wears out before a little risk matters; amounts within one step of 5 % count as equal.
        let flash =
            if question.medium.is_small_flash() { (one.flash().max(1.0).ln() / TIE.ln()) as u64 } else { 0 };
        (flash, one.at_risk(question), complexity(&one.policy))
    };
    let cost = |one: &Judged| one.predicted.map_or(f64::INFINITY, |cost| cost.busy_percent);
    tied.min_by(|(_, one), (_, other)| key(one).cmp(&key(other)).then(cost(one).total_cmp(&cost(other))))
        .map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use weir_model::advise::Medium;

    use super::*;
    use crate::advise;
    use crate::fixture::{host, prices, question};

    fn names(question: &AdviceQuestion) -> Vec<String> {
        let document = advise(question, &host(), &prices(), None);
        assert_eq!(document.choices.len(), 3, "{question:?}");
        assert_eq!(document.choices[0].why_not, None, "{question:?}");
        assert!(document.choices.iter().skip(1).all(|choice| choice.why_not.is_some()));
        document.choices.into_iter().map(|choice| choice.name).collect()
    }

    #[test]
    fn bulk_is_collected_in_a_buffer() {
        let bulk = AdviceQuestion { rate: 1e6, latency_s: 60.0, ..question() };
        let names = names(&bulk);
        assert!(names[0].contains("buffer of 64 KiB") || names[0].contains("buffer of 16 KiB"), "{names:?}");
    }

    #[test]
    fn what_must_survive_is_synced() {
        let safe = AdviceQuestion { rate: 50.0, record_bytes: 200, loss: AllowedLoss::None, ..question() };
        assert_eq!(names(&safe)[0], "write each record, O_DSYNC");
    }

    #[test]
    fn a_slow_program_writes_at_once() {
        let slow = AdviceQuestion { rate: 10.0, record_bytes: 80, loss: AllowedLoss::Second, ..question() };
        assert_eq!(names(&slow)[0], "write each record, fdatasync every 900 ms");
        let prompt = AdviceQuestion { rate: 1.0, record_bytes: 20, latency_s: 0.005, ..question() };
        assert_eq!(names(&prompt)[0], "write each record");
    }

    #[test]
    fn if_no_way_holds_the_first_is_too_slow_and_loses_nothing() {
        let fast = AdviceQuestion { rate: 1e5, loss: AllowedLoss::None, ..question() };
        let first = advise(&fast, &host(), &prices(), None).choices.swap_remove(0);
        let why_not = first.why_not.expect("a broken limit");
        assert!(!first.holds && first.sync != SyncPoint::None, "{}", first.name);
        assert!(why_not.contains("records a second"), "{why_not}");
        for (key, program) in &first.code {
            let comment = program.lines().take(2).collect::<String>();
            assert!(comment.contains(&format!("BREAKS A LIMIT: {why_not}")), "{key}: {comment}");
        }
    }

    #[test]
    fn many_threads_share_syncs() {
        let many = AdviceQuestion { rate: 3000.0, loss: AllowedLoss::None, sharers: 8, ..question() };
        assert!(names(&many)[0].contains("one fdatasync for all threads"), "{:?}", names(&many));
    }

    #[test]
    fn a_card_is_spared() {
        let card = AdviceQuestion {
            rate: 5.0,
            record_bytes: 40,
            loss: AllowedLoss::Second,
            medium: Medium::Sd,
            ..question()
        };
        let document = advise(&card, &host(), &prices(), None);
        assert_eq!(document.choices[0].sync, SyncPoint::Period);
        assert!(document.choices[0].predicted.flash_bytes_per_day.unwrap() > 0.0);
    }

    #[test]
    fn a_question_that_nothing_holds_says_so() {
        let hard = AdviceQuestion { rate: 1e6, loss: AllowedLoss::None, ..question() };
        let document = advise(&hard, &host(), &prices(), None);
        assert!(document.choices.iter().all(|choice| !choice.holds && choice.why_not.is_some()));
        assert_eq!(document.choices.len(), 3);
    }
}
