//! Runs `weir trace` on the labelled set in tests/diagnosis and counts the findings that it shows, misses and claims wrongly.
//! The pairs whose gain is timed are in diagnosis_gain.rs.
//!
//! WEIR_DIAGNOSIS=PART[,PART…] runs the cases and ordinary runs whose name contains one of these;
//! WEIR_DIAGNOSIS_ENGINE=ptrace traces with that backend; WEIR_DIAGNOSIS_EXACT=1 records every call;
//! WEIR_DIAGNOSIS_USER=65534 runs weir and the programs as that user (needs root).

mod common;
#[path = "diagnosis/runner/mod.rs"]
mod runner;

use std::collections::BTreeSet;

use common::{campaign, concurrent};
use runner::campaign::{
    asked, assert_good, has_selection, judge_again, judge_case, judge_ordinary, runs_here,
};
use runner::score::Score;
use runner::set::{LabelledCase, OrdinaryRun, cases, ordinary};
use weir_diagnose::rules;

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
    vec![case.finding.to_string(), case.language(), format!("{:?}", case.stdout)]
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
    let asked = asked(&cases, false, case_properties);
    let can_run = |run: &&OrdinaryRun| runs_here(&format!("ordinary: {}", run.name), &run.needs, false);
    let mut runs: Vec<_> = ordinary.iter().filter(can_run).collect();
    if !has_selection() {
        campaign::choose("ordinary runs", &mut runs, |run| run_properties(run));
    }
    let mut judged = concurrent::for_each(3, &asked, |case| judge_case(case, None));
    let mut ordinary = concurrent::for_each(3, &runs, |run| judge_ordinary(run));
    let results = asked.iter().map(|case| case.name()).zip(&mut judged).collect();
    judge_again(results, |at| judge_case(asked[at], None));
    let names = runs.iter().map(|run| format!("ordinary: {}", run.name));
    judge_again(names.zip(&mut ordinary).collect(), |at| judge_ordinary(runs[at]));
    let cases = asked.into_iter().zip(judged).collect();
    assert_good(&Score { cases, ordinary: runs.into_iter().zip(ordinary).collect() });
}
