//! Selects the cases of the labelled set that run, judges them, and checks the score: what its two tests share.

use std::io::Write;

use tempfile::TempDir;

use super::judge::{self, CaseResult};
use super::score::Score;
use super::set::{LabelledCase, OrdinaryRun};
use super::workspace::{missing, user};
use crate::common::{campaign, is_root, skip};

/// The least recall. The aim is 0.98; other load on the machine hides a few findings, and no case runs twice, so the limit
/// is lower.
const MIN_RECALL: f64 = 0.92;

/// The least share of advice that works. The aim is 0.95; other load delays a few runs, so the limit is lower.
const MIN_ADVICE: f64 = 0.9;

/// Prints to standard output directly, because cargo test hides the output of println! in tests that pass.
pub fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
}

/// Judges one case and prints problems at once, so that an interrupted run has printed something.
pub fn judge_case(case: &LabelledCase, prices: Option<&TempDir>) -> CaseResult {
    let result = judge::case(case, prices);
    let missed = if result.shown { String::new() } else { format!("  missed  {}\n", case.name()) };
    say(&(missed + &result.lines(&case.name())));
    result
}

pub fn judge_ordinary(run: &OrdinaryRun) -> CaseResult {
    let result = judge::ordinary(run);
    say(&result.lines(&format!("ordinary: {}", run.name)));
    result
}

/// More cases with problems are not judged again: then it is not the machine.
const MAX_UNSTABLE: usize = 3;

/// With $WEIR_AGAIN, judges each case with a problem so often again, alone, as scripts/test-binaries does with tests. If it has none
/// then, its last result counts. The summary of scripts/test shows a line for each such case.
pub fn judge_again(results: Vec<(String, &mut CaseResult)>, judge: impl Fn(usize) -> CaseResult) {
    let times: usize = std::env::var("WEIR_AGAIN").ok().and_then(|times| times.parse().ok()).unwrap_or(0);
    let with_problems: Vec<_> =
        results.into_iter().enumerate().filter(|(_, (_, result))| !result.is_clean()).collect();
    if times == 0 || with_problems.len() > MAX_UNSTABLE {
        return;
    }
    for (at, (name, result)) in with_problems {
        let again: Vec<_> = (0..times).map(|_| judge(at)).take_while(CaseResult::is_clean).collect();
        let before = result.lines(&name);
        let is_unstable = again.len() == times;
        say(&format!("diagnosis: {name}: {} of {times} runs alone without a problem\n{before}", again.len()));
        if let Some(last) = again.into_iter().last().filter(|_| is_unstable) {
            *result = last;
        }
    }
}

/// Returns whether a case or run is selected and can run here. Reports it as skipped if it cannot.
pub fn runs_here(name: &str, needs: &[String], root: bool) -> bool {
    if std::env::var("WEIR_DIAGNOSIS").is_ok_and(|parts| !parts.split(',').any(|part| name.contains(part))) {
        return false;
    }
    if let Some(tool) = missing(needs) {
        skip(&format!("diagnosis {name}"), &format!("{tool} is not installed"));
        return false;
    }
    if root && (!is_root() || user().is_some()) {
        skip(&format!("diagnosis {name}"), "needs root");
        return false;
    }
    true
}

/// Returns the cases that are selected, can run here, and are timed (`gain`) or not. A quick campaign has a subset in which each
/// property occurs.
pub fn asked(
    cases: &[LabelledCase],
    gain: bool,
    properties: impl Fn(&LabelledCase) -> Vec<String>,
) -> Vec<&LabelledCase> {
    let wanted = cases.iter().filter(|case| case.gain == gain);
    let mut asked: Vec<_> = wanted.filter(|case| runs_here(&case.name(), &case.needs, case.root)).collect();
    if !has_selection() {
        let name = if gain { "diagnosis with times" } else { "diagnosis" };
        campaign::choose(name, &mut asked, |case| properties(case));
    }
    asked
}

/// Returns whether $WEIR_DIAGNOSIS selects cases.
pub fn has_selection() -> bool {
    std::env::var_os("WEIR_DIAGNOSIS").is_some()
}

/// Prints a score. Panics if it is not good enough.
pub fn assert_good(score: &Score) {
    say(&score.report());
    let wrong = score.wrong();
    assert!(wrong.is_empty(), "runs that went wrong:\n{}", wrong.join("\n"));
    assert_eq!(score.false_high(), 0, "false findings, see above");
    assert!(score.advice_share() >= MIN_ADVICE || score.advice().0 == 0, "{}", score.report());
    assert!(score.recall() >= MIN_RECALL || score.cases.is_empty(), "{}", score.line());
}
