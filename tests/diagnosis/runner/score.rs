//! The score of the whole set: a table by finding, gains, and one line.

use std::fmt::Write;

use weir_diagnose::rules;

use super::judge::Verdict;
use super::set::{Case, Ordinary};

/// Everything that was judged.
pub struct Score<'a> {
    pub cases: Vec<(&'a Case, Verdict)>,
    pub ordinary: Vec<(&'a Ordinary, Verdict)>,
}

impl Score<'_> {
    fn shown(&self) -> usize {
        self.cases.iter().filter(|(_, verdict)| verdict.shown).count()
    }

    /// The share of cases whose finding was shown.
    pub fn recall(&self) -> f64 {
        self.shown() as f64 / self.cases.len().max(1) as f64
    }

    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        let cases = self.cases.iter().map(|(_, verdict)| verdict);
        cases.chain(self.ordinary.iter().map(|(_, verdict)| verdict))
    }

    /// Twins that show their own finding, and findings of severity high that are not true.
    pub fn false_high(&self) -> usize {
        self.verdicts().map(|verdict| verdict.untrue.len()).sum()
    }

    /// What went wrong beside the findings.
    pub fn wrong(&self) -> usize {
        self.verdicts().map(|verdict| verdict.wrong.len()).sum()
    }

    /// The line that a reader looks for.
    pub fn line(&self) -> String {
        let (shown, all) = (self.shown(), self.cases.len());
        let percent = 100.0 * self.recall();
        format!("diagnosis: recall {shown} of {all} ({percent:.1} %), false high: {}", self.false_high())
    }

    /// Everything, the line last.
    pub fn report(&self) -> String {
        self.table() + &self.gains() + &self.ordinary_line() + &self.line() + "\n"
    }

    fn table(&self) -> String {
        let mut text = format!("\n  {:28}{:>8}{:>14}\n", "finding", "shown", "twins clean");
        for rule in rules() {
            let own = self.cases.iter().filter(|(case, _)| case.finding == rule.id);
            let verdicts: Vec<_> = own.map(|(_, verdict)| verdict).collect();
            if verdicts.is_empty() {
                continue;
            }
            let of_all = |count: usize| format!("{count}/{}", verdicts.len());
            let shown = of_all(verdicts.iter().filter(|verdict| verdict.shown).count());
            let clean = of_all(verdicts.iter().filter(|verdict| verdict.untrue.is_empty()).count());
            let _ = writeln!(text, "  {:28}{shown:>8}{clean:>14}", rule.id);
        }
        text
    }

    fn gains(&self) -> String {
        let pairs: Vec<_> =
            self.cases.iter().filter_map(|(case, verdict)| Some((case, verdict.gain.as_ref()?))).collect();
        if pairs.is_empty() {
            return String::new();
        }
        let mut text = format!("\n  {:44}{:>11}{:>11}\n", "gain", "predicted", "measured");
        for (case, gain) in &pairs {
            let of = if gain.processor { "processor" } else { "elapsed" };
            let far = match () {
                () if !gain.counts() => ", too small to be judged",
                () if !gain.agrees() => ", more than 1.5 times apart",
                () => "",
            };
            let (predicted, measured) = (gain.predicted, gain.measured);
            let _ = writeln!(text, "  {:44}{predicted:>9.3} s{measured:>9.3} s  {of}{far}", case.name());
        }
        let judged: Vec<_> = pairs.iter().filter(|(_, gain)| gain.counts()).collect();
        let near = judged.iter().filter(|(_, gain)| gain.agrees()).count();
        let _ = writeln!(text, "gain: {near} of {} predicted within a factor of 1.5\n", judged.len());
        text
    }

    fn ordinary_line(&self) -> String {
        let clean = self.ordinary.iter().filter(|(_, verdict)| verdict.untrue.is_empty()).count();
        format!("ordinary runs: {clean} of {} show no untrue high finding\n", self.ordinary.len())
    }
}
