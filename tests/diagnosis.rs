//! Runs `weir trace` on the labelled set in tests/diagnosis and counts the findings that it shows, misses and claims wrongly.
//!
//! WEIR_DIAGNOSIS=PART[,PART…] runs the cases and ordinary runs whose name contains one of these;
//! WEIR_DIAGNOSIS_ENGINE=ptrace traces with that backend; WEIR_DIAGNOSIS_EXACT=1 records every call;
//! WEIR_DIAGNOSIS_USER=65534 runs weir and the programs as that user (needs root).

mod common;
#[path = "diagnosis/runner/mod.rs"]
mod runner;

use std::collections::BTreeSet;
use std::io::Write;

use common::{campaign, concurrent, is_root, skip};
use runner::judge::{self, CaseResult};
use runner::score::Score;
use runner::set::{LabelledCase, OrdinaryRun, cases, ordinary};
use runner::workspace::{chown_all, missing, user};
use tempfile::TempDir;
use weir_diagnose::rules;

/// The least recall. The aim is 0.98; other load on the machine hides a few findings, and no case runs twice, so the limit
/// is lower.
const LEAST_RECALL: f64 = 0.92;

/// The least share of advice that works. The aim is 0.95; other load delays a few runs, so the limit is lower.
const LEAST_ADVICE: f64 = 0.9;

/// Prints to standard output directly, because cargo test hides the output of println! in tests that pass.
fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
}

/// Judges one case and prints problems at once, so that an interrupted run has printed something.
fn judge_case(case: &LabelledCase, prices: Option<&TempDir>) -> CaseResult {
    let result = judge::case(case, prices);
    let missed = if result.shown { String::new() } else { format!("  missed  {}\n", case.name()) };
    say(&(missed + &result.lines(&case.name())));
    result
}

fn judge_ordinary(run: &OrdinaryRun) -> CaseResult {
    let result = judge::ordinary(run);
    say(&result.lines(&format!("ordinary: {}", run.name)));
    result
}

/// More cases with problems are not judged again: then it is not the machine.
const MOST_UNSTABLE: usize = 3;

/// With $WEIR_AGAIN, judges each case with a problem so often again, alone, as scripts/test-binaries does with tests. If it has none
/// then, its last result counts. The summary of scripts/test shows a line for each such case.
fn judge_again(results: Vec<(String, &mut CaseResult)>, judge: impl Fn(usize) -> CaseResult) {
    let times: usize = std::env::var("WEIR_AGAIN").ok().and_then(|times| times.parse().ok()).unwrap_or(0);
    let with_problems: Vec<_> =
        results.into_iter().enumerate().filter(|(_, (_, result))| !result.is_clean()).collect();
    if times == 0 || with_problems.len() > MOST_UNSTABLE {
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
fn runs_here(name: &str, needs: &[String], root: bool) -> bool {
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

#[test]
fn the_set_has_every_finding_in_two_languages_and_forty_ordinary_runs() {
    let cases = cases();
    for rule in rules() {
        let own: Vec<_> = cases.iter().filter(|case| case.finding == rule.id).collect();
        assert!(own.len() >= 3, "{}: {} programs", rule.id, own.len());
        let languages: BTreeSet<_> = own.iter().map(|case| case.language()).collect();
        assert!(languages.len() >= 2, "{}: only in {languages:?}", rule.id);
        for case in own {
            assert!(case.about.len() > 20 && case.about.ends_with(['.']), "{}: about", case.name());
            assert_ne!(case.run, case.fixed, "{}", case.name());
            assert!(case.code.is_some(), "{}: code", case.name());
        }
    }
    let ordinary = ordinary();
    assert!(ordinary.len() >= 40, "{}", ordinary.len());
    // It needs no buffer walker, so it must hold for any language, and leave alone what answers at the end of its input.
    let held: Vec<_> = cases.iter().filter(|case| case.finding == "held-output").collect();
    let languages: BTreeSet<_> = held.iter().map(|case| case.language()).collect();
    let silent = ordinary.iter().filter(|run| run.never.iter().any(|id| *id == "held-output")).count();
    assert!(held.len() >= 6 && languages.len() >= 4 && silent >= 10, "{} {languages:?} {silent}", held.len());
    for run in ordinary {
        assert_eq!(run.truths.is_empty(), run.why.is_none(), "{}: each truth has its reason", run.name);
    }
}

/// Returns the properties of a case of which a quick campaign needs each at least once.
fn case_properties(case: &LabelledCase) -> Vec<String> {
    let finding = case.finding.to_string();
    let gain = case.gain.then(|| format!("gain of {finding}"));
    [finding, case.language(), format!("{:?}", case.stdout)].into_iter().chain(gain).collect()
}

/// Returns the properties of an ordinary run of which a quick campaign needs each at least once: what it needs beside C
/// programs, each finding that it has or must not have, and whether it is a pipeline.
fn run_properties(run: &OrdinaryRun) -> Vec<String> {
    const LANGUAGES: &[&str] = &[
        "gcc", "git", "go", "java", "lua5.4", "mksh", "node", "perl", "php", "python3", "ruby", "rustc",
        "sh", "sqlite3", "tclsh",
    ];
    let languages = run.needs.iter().filter(|tool| LANGUAGES.contains(&tool.as_str())).cloned();
    let findings = run.truths.iter().map(|id| format!("has {id}"));
    let absent = run.never.iter().map(|id| format!("has no {id}"));
    let pipeline = std::iter::once(format!("pipeline: {}", run.run.contains(" | ")));
    languages.chain(findings).chain(absent).chain(pipeline).collect()
}

#[test]
fn trace_finds_what_is_there_and_nothing_else() {
    let (cases, ordinary) = (cases(), ordinary());
    let mut asked: Vec<_> =
        cases.iter().filter(|case| runs_here(&case.name(), &case.needs, case.root)).collect();
    let mut runs: Vec<_> = ordinary
        .iter()
        .filter(|run| runs_here(&format!("ordinary: {}", run.name), &run.needs, false))
        .collect();
    if std::env::var_os("WEIR_DIAGNOSIS").is_none() {
        campaign::choose("diagnosis", &mut asked, |case| case_properties(case));
        campaign::choose("ordinary runs", &mut runs, |run| run_properties(run));
    }
    // Times are measured one case at a time.
    let (timed, quick): (Vec<_>, Vec<_>) = asked.into_iter().partition(|case| case.gain);
    let judged = concurrent::for_each(3, &quick, |case| judge_case(case, None));
    let mut judged: Vec<_> = quick.into_iter().zip(judged).collect();
    let mut ordinary = concurrent::for_each(3, &runs, |run| judge_ordinary(run));
    // Fresh prices: what calls cost while the pairs are timed.
    let prices = tempfile::tempdir().expect("a directory");
    user().into_iter().for_each(|user| chown_all(prices.path(), user).expect("chown"));
    let with_prices = |case: &LabelledCase| judge_case(case, case.gain.then_some(&prices));
    judged.extend(timed.into_iter().map(|case| (case, with_prices(case))));
    let cases: Vec<_> = judged.iter().map(|(case, _)| *case).collect();
    let results = judged.iter_mut().map(|(case, result)| (case.name(), result)).collect();
    judge_again(results, |at| with_prices(cases[at]));
    let names = runs.iter().map(|run| format!("ordinary: {}", run.name));
    judge_again(names.zip(&mut ordinary).collect(), |at| judge_ordinary(runs[at]));
    let score = Score { cases: judged, ordinary: runs.into_iter().zip(ordinary).collect() };

    say(&score.report());
    let wrong = score.wrong();
    assert!(wrong.is_empty(), "runs that went wrong:\n{}", wrong.join("\n"));
    assert_eq!(score.false_high(), 0, "false findings, see above");
    assert!(score.advice_share() >= LEAST_ADVICE || score.advice().0 == 0, "{}", score.report());
    assert!(score.recall() >= LEAST_RECALL || score.cases.is_empty(), "{}", score.line());
}
