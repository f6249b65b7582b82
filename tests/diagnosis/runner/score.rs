//! The score of the whole set: a table by finding, the gains, and a summary line.

use std::fmt::Write;

use weir_diagnose::rules;

use super::judge::CaseResult;
use super::set::{LabelledCase, OrdinaryRun};

/// The results of all cases and ordinary runs.
pub struct Score<'a> {
    pub cases: Vec<(&'a LabelledCase, CaseResult)>,
    pub ordinary: Vec<(&'a OrdinaryRun, CaseResult)>,
}

impl Score<'_> {
    fn shown(&self) -> usize {
        self.cases.iter().filter(|(_, result)| result.shown).count()
    }

    /// Returns the share of cases whose finding was shown.
    pub fn recall(&self) -> f64 {
        self.shown() as f64 / self.cases.len().max(1) as f64
    }

    fn results(&self) -> impl Iterator<Item = &CaseResult> {
        let cases = self.cases.iter().map(|(_, result)| result);
        cases.chain(self.ordinary.iter().map(|(_, result)| result))
    }

    /// Returns the number of false findings: twins that show their own finding, and high findings that are not true.
    pub fn false_high(&self) -> usize {
        self.results().map(|result| result.false_findings.len()).sum()
    }

    /// Returns the problems other than findings, a line each.
    pub fn wrong(&self) -> Vec<String> {
        let cases = self.cases.iter().map(|(case, result)| (case.name(), result));
        let ordinary = self.ordinary.iter().map(|(run, result)| (format!("ordinary: {}", run.name), result));
        let lines = |(name, result): (String, &CaseResult)| -> Vec<String> {
            result.wrong.iter().map(|what| format!("{name}: {what}")).collect()
        };
        cases.chain(ordinary).flat_map(lines).collect()
    }

    /// Returns the summary line.
    pub fn line(&self) -> String {
        let (shown, all) = (self.shown(), self.cases.len());
        let percent = 100.0 * self.recall();
        format!("diagnosis: recall {shown} of {all} ({percent:.1} %), false high: {}", self.false_high())
    }

    /// Returns the numbers of pieces of advice, and of those that work.
    pub fn advice(&self) -> (usize, usize) {
        let all = || self.cases.iter().flat_map(|(_, result)| &result.advice);
        (all().count(), all().filter(|one| one.failure.is_none()).count())
    }

    /// Returns the share of the advice that works.
    pub fn advice_share(&self) -> f64 {
        let (printed, worked) = self.advice();
        worked as f64 / printed.max(1) as f64
    }

    fn advice_line(&self) -> String {
        let (printed, worked) = self.advice();
        format!("advice: {printed} printed, {worked} worked ({:.1} %)\n", 100.0 * self.advice_share())
    }

    /// Returns the whole report, with the summary line last.
    pub fn report(&self) -> String {
        self.table() + &self.gains() + &self.ordinary_line() + &self.advice_line() + &self.line() + "\n"
    }

    fn table(&self) -> String {
        let mut text = format!("\n  {:28}{:>8}{:>14}\n", "finding", "shown", "twins clean");
        for rule in rules() {
            let own = self.cases.iter().filter(|(case, _)| case.finding == rule.id);
            let results: Vec<_> = own.map(|(_, result)| result).collect();
            if results.is_empty() {
                continue;
            }
            let of_all = |count: usize| format!("{count}/{}", results.len());
            let shown = of_all(results.iter().filter(|result| result.shown).count());
            let clean = of_all(results.iter().filter(|result| result.false_findings.is_empty()).count());
            let _ = writeln!(text, "  {:28}{shown:>8}{clean:>14}", rule.id);
        }
        text
    }

    fn gains(&self) -> String {
        let pairs: Vec<_> =
            self.cases.iter().filter_map(|(case, result)| Some((case, result.gain.as_ref()?))).collect();
        if pairs.is_empty() {
            return String::new();
        }
        let mut text = format!("\n  {:44}{:>11}{:>11}\n", "gain", "predicted", "measured");
        for (case, gain) in &pairs {
            let of = if gain.cpu { "processor" } else { "elapsed" };
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
        let clean = self.ordinary.iter().filter(|(_, result)| result.false_findings.is_empty()).count();
        format!("ordinary runs: {clean} of {} show no untrue high finding\n", self.ordinary.len())
    }
}
