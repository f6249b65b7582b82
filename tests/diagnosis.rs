//! `weir trace` against the labelled set in tests/diagnosis: what it finds, misses, and claims wrongly.
//!
//! WEIR_DIAGNOSIS=PART[,PART…] runs the cases and ordinary runs whose name holds one of these;
//! WEIR_DIAGNOSIS_ENGINE=ptrace traces with that engine; WEIR_DIAGNOSIS_EXACT=1 looks at every call;
//! WEIR_DIAGNOSIS_USER=65534 runs weir and the programs as that user (root can).

mod common;
#[path = "diagnosis/runner/mod.rs"]
mod runner;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{campaign, is_root, skip};
use runner::judge::{self, Verdict};
use runner::place::{give, missing, user};
use runner::score::Score;
use runner::set::{Case, Ordinary, cases, ordinary};
use tempfile::TempDir;
use weir_diagnose::rules;

/// The aim is 0.95; a machine with other work loses a few, so only what is clearly worse fails.
const LEAST_RECALL: f64 = 0.92;

/// Runs `judge` on every item, two at a time; the verdicts keep the order.
fn two_at_a_time<T: Sync>(items: &[T], judge: impl Fn(&T) -> Verdict + Sync) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    let verdict = judge(item);
                    done.lock().expect("no judge panics").push((at, verdict));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no judge panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, verdict)| verdict).collect()
}

/// Past cargo test, which keeps what println! says to itself when all is well.
fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
}

/// Judges one case, and says at once what is not as it should be: a run that is cut short has told something.
fn judge_case(case: &Case, prices: Option<&TempDir>) -> Verdict {
    let verdict = judge::case(case, prices);
    let missed = if verdict.shown { String::new() } else { format!("  missed  {}\n", case.name()) };
    say(&(missed + &verdict.lines(&case.name())));
    verdict
}

fn judge_ordinary(run: &Ordinary) -> Verdict {
    let verdict = judge::ordinary(run);
    say(&verdict.lines(&format!("ordinary: {}", run.name)));
    verdict
}

/// Is it asked for, and can it run here? If not, that is said.
fn runs_here(name: &str, needs: &[String], root: bool) -> bool {
    if std::env::var("WEIR_DIAGNOSIS").is_ok_and(|parts| !parts.split(',').any(|part| name.contains(part))) {
        return false;
    }
    if let Some(tool) = missing(needs) {
        skip(&format!("diagnosis {name}"), &format!("{tool} is not here"));
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
        }
    }
    let ordinary = ordinary();
    assert!(ordinary.len() >= 40, "{}", ordinary.len());
    for run in ordinary {
        assert_eq!(run.truths.is_empty(), run.why.is_none(), "{}: each truth has its reason", run.name);
    }
}

/// Returns the properties of a case of which a quick campaign needs each at least once.
fn case_properties(case: &Case) -> Vec<String> {
    let finding = case.finding.to_string();
    let gain = case.gain.then(|| format!("gain of {finding}"));
    [finding, case.language(), format!("{:?}", case.stdout)].into_iter().chain(gain).collect()
}

/// Returns the program that an ordinary run is about, the first word of its name.
fn program_of(run: &Ordinary) -> Vec<String> {
    run.name.split([' ', ':', ',']).take(1).map(String::from).collect()
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
        campaign::choose("ordinary runs", &mut runs, |run| program_of(run));
    }
    // A time is measured on a machine that does nothing else.
    let (timed, quick): (Vec<_>, Vec<_>) = asked.into_iter().partition(|case| case.gain);
    let judged = two_at_a_time(&quick, |case| judge_case(case, None));
    let mut judged: Vec<_> = quick.into_iter().zip(judged).collect();
    let mut ordinary = two_at_a_time(&runs, |run| judge_ordinary(run));
    // What calls cost while the pairs are timed, not what they cost on some other day.
    let prices = tempfile::tempdir().expect("a directory");
    user().into_iter().for_each(|user| give(prices.path(), user).expect("chown"));
    judged.extend(timed.into_iter().map(|case| (case, judge_case(case, Some(&prices)))));
    // Once more, alone: what a busy machine did to a program of a tenth of a second is no fault of either.
    for (case, verdict) in judged.iter_mut().filter(|(_, verdict)| !verdict.is_well()) {
        *verdict = judge_case(case, case.gain.then_some(&prices));
    }
    for (run, verdict) in runs.iter().zip(&mut ordinary).filter(|(_, verdict)| !verdict.is_clean()) {
        *verdict = judge_ordinary(run);
    }
    let score = Score { cases: judged, ordinary: runs.into_iter().zip(ordinary).collect() };

    say(&score.report());
    assert_eq!(score.wrong(), 0, "runs that went wrong, see above");
    assert_eq!(score.false_high(), 0, "untrue findings, see above");
    assert!(score.recall() >= LEAST_RECALL || score.cases.is_empty(), "{}", score.line());
}
