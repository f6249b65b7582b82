//! Traces one case or one ordinary run and compares its findings with those that the set expects.

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use weir_model::{Finding, Severity};

use super::advice::{self, AdviceResult};
use super::gain::{self, GainPair};
use super::set::{LabelledCase, OrdinaryRun, StdoutKind};
use super::start::{CommandResult, StdStreams, finish, last_errors};
use super::workspace::{Workspace, command, run_as_user};
use crate::common::WEIR;

/// The result of one case or ordinary run.
#[derive(Default)]
pub struct CaseResult {
    /// The broken program's fault was found.
    pub shown: bool,
    /// Findings that are not true of the twin or the ordinary run.
    pub false_findings: Vec<String>,
    /// Problems other than findings: a wrong exit status, no document.
    pub wrong: Vec<String>,
    /// Other high findings of the broken program that the case does not list as true; printed only.
    pub beside: Vec<String>,
    pub gain: Option<GainPair>,
    pub advice: Vec<AdviceResult>,
}

impl CaseResult {
    /// Returns whether no finding is untrue and nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.false_findings.is_empty() && self.wrong.is_empty()
    }

    /// Returns one line for each problem.
    pub fn lines(&self, name: &str) -> String {
        let mut text = String::new();
        let mut add = |kind, what: &[String]| {
            text.extend(what.iter().map(|what| format!("  {kind}  {name}: {what}\n")));
        };
        add("untrue", &self.false_findings);
        add("wrong ", &self.wrong);
        add("beside", &self.beside);
        let vain =
            self.advice.iter().filter_map(|one| Some(format!("{}: {}", one.advice, one.failure.as_ref()?)));
        add("vain  ", &vain.collect::<Vec<_>>());
        text
    }
}

pub(super) fn streams(workspace: &Workspace, case: &LabelledCase) -> StdStreams {
    StdStreams {
        stdin: case.stdin.as_ref().map(|name| workspace.work().join(name)),
        stdout: case.stdout,
        out: workspace.work().join("out"),
        errors: workspace.beside("errors"),
    }
}

/// Runs `weir trace --json FILE --quiet -- ARGUMENTS…` and returns its exit and its findings. With `prices`, weir measures
/// prices when it needs them first and keeps them there; without, it uses those that it has of this machine.
pub(super) fn trace(
    workspace: &Workspace,
    arguments: &[String],
    streams: &StdStreams,
    prices: Option<&TempDir>,
) -> Result<(CommandResult, Vec<Finding>), String> {
    let json = workspace.beside("trace.json");
    let mut weir = run_as_user(command(Path::new(WEIR), &workspace.work()));
    weir.arg("trace").arg("--json").arg(&json).arg("--quiet");
    if let Some(prices) = prices {
        weir.env("XDG_CACHE_HOME", prices.path());
    }
    if let Some(engine) = std::env::var_os("WEIR_DIAGNOSIS_ENGINE") {
        weir.arg("--engine").arg(engine);
    }
    if std::env::var_os("WEIR_DIAGNOSIS_EXACT").is_some() {
        weir.arg("--exact");
    }
    weir.arg("--").args(arguments);
    let exit = finish(weir, streams)?;
    let failure = |what: String| format!("{what}; status {}; {}", exit.status, last_errors(streams));
    let file = File::open(&json).map_err(|error| failure(format!("no document: {error}")))?;
    let document: Value =
        serde_json::from_reader(file).map_err(|error| failure(format!("the document: {error}")))?;
    if document["schema"] != "weir-trace/1" {
        return Err(failure(format!("the document's schema is {}", document["schema"])));
    }
    let findings = serde_json::from_value(document["findings"].clone());
    findings.map(|findings| (exit, findings)).map_err(|error| format!("findings: {error}"))
}

fn describe(finding: &Finding) -> String {
    format!("{} ({:?}): {}", finding.id, finding.severity, finding.why)
}

pub(super) fn check_status(exit: &CommandResult, expected: i32, which: &str, result: &mut CaseResult) {
    if exit.status != expected {
        result.wrong.push(format!("{which}: status {} instead of {expected}", exit.status));
    }
}

/// Traces a case and its twin, each in its own workspace, and times them without weir if they differ by cost and `prices` is
/// given.
pub fn case(case: &LabelledCase, prices: Option<&TempDir>) -> CaseResult {
    let mut result = CaseResult::default();
    if let Err(why) = try_case(case, prices, &mut result) {
        result.wrong.push(why);
    }
    result
}

fn try_case(case: &LabelledCase, prices: Option<&TempDir>, result: &mut CaseResult) -> Result<(), String> {
    let (broken, fixed) = (Workspace::of_case(case)?, Workspace::of_case(case)?);
    let (exit, findings) = trace(&broken, &case.run, &streams(&broken, case), prices)?;
    check_status(&exit, case.exit, "broken", result);
    let own: Vec<_> = findings.iter().filter(|finding| finding.id == case.finding).collect();
    result.shown = own.iter().any(|finding| finding.severity >= case.severity);
    let beside = |finding: &&Finding| {
        finding.severity == Severity::High && finding.id != case.finding && !case.also.contains(&finding.id)
    };
    result.beside = findings.iter().filter(beside).map(describe).collect();

    let broken_findings = findings;
    let (exit, findings) = trace(&fixed, &case.fixed, &streams(&fixed, case), prices)?;
    check_status(&exit, case.fixed_exit, "fixed", result);
    let must_not = |finding: &&Finding| {
        finding.id == case.finding
            || finding.severity == Severity::High && !case.also_fixed.contains(&finding.id)
    };
    result.false_findings = findings.iter().filter(must_not).map(describe).collect();
    if result.shown {
        advice::follow(case, &broken_findings, [&broken, &fixed], result)?;
    }
    if let Some(prices) = prices.filter(|_| case.gain && result.shown) {
        result.gain = Some(gain::measure(case, [&broken, &fixed], prices, result)?);
    }
    Ok(())
}

/// Traces an ordinary run and returns its false high findings and other problems.
pub fn ordinary(run: &OrdinaryRun) -> CaseResult {
    let mut result = CaseResult::default();
    let traced = Workspace::of_ordinary(run).and_then(|workspace| {
        let streams = StdStreams {
            stdin: None,
            stdout: StdoutKind::File,
            out: workspace.beside("out"),
            errors: workspace.beside("errors"),
        };
        trace(&workspace, &["sh".into(), "-c".into(), run.run.clone()], &streams, None)
    });
    match traced {
        Ok((exit, findings)) => {
            check_status(&exit, 0, "run", &mut result);
            let must_not = |finding: &&Finding| {
                let high = finding.severity == Severity::High && !run.truths.contains(&finding.id);
                high || run.never.contains(&finding.id)
            };
            result.false_findings = findings.iter().filter(must_not).map(describe).collect();
        }
        Err(why) => result.wrong.push(why),
    }
    result
}
