//! One case or one ordinary run: traced, its findings held against what the set says.

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use weir_model::{Finding, Severity};

use super::gain::{self, GainPair};
use super::place::{Place, as_user, command};
use super::set::{Case, Ordinary, Out};
use super::start::{Ended, Streams, finish, last_words};
use crate::common::WEIR;

/// What became of one case.
#[derive(Default)]
pub struct Verdict {
    /// The broken program's fault was found.
    pub shown: bool,
    /// What the twin showed and must not.
    pub untrue: Vec<String>,
    /// Something went wrong beside the findings: a wrong status, no document.
    pub wrong: Vec<String>,
    /// What else the broken program showed at high, and the case does not list as true: for the reader.
    pub beside: Vec<String>,
    pub gain: Option<GainPair>,
}

impl Verdict {
    /// Nothing untrue, nothing wrong.
    pub fn is_clean(&self) -> bool {
        self.untrue.is_empty() && self.wrong.is_empty()
    }

    /// And the fault was found.
    pub fn is_well(&self) -> bool {
        self.shown && self.is_clean()
    }

    /// What a reader must know about it, a line each; nothing if all is well.
    pub fn lines(&self, name: &str) -> String {
        let mut text = String::new();
        let mut add = |kind, what: &[String]| {
            text.extend(what.iter().map(|what| format!("  {kind}  {name}: {what}\n")));
        };
        add("untrue", &self.untrue);
        add("wrong ", &self.wrong);
        add("beside", &self.beside);
        text
    }
}

pub(super) fn streams(place: &Place, case: &Case) -> Streams {
    Streams {
        stdin: case.stdin.as_ref().map(|name| place.work().join(name)),
        stdout: case.stdout,
        out: place.work().join("out"),
        errors: place.beside("errors"),
    }
}

/// `weir trace --json FILE --quiet -- ARGUMENTS…`: how it ended and what it found. With `prices`, what calls cost is
/// measured when it is asked for first, and kept there; else it is what weir knows of this machine.
pub(super) fn trace(
    place: &Place,
    arguments: &[String],
    streams: &Streams,
    prices: Option<&TempDir>,
) -> Result<(Ended, Vec<Finding>), String> {
    let json = place.beside("trace.json");
    let mut weir = as_user(command(Path::new(WEIR), &place.work()));
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
    let ended = finish(weir, streams)?;
    let said = |what: String| format!("{what}; status {}; {}", ended.status, last_words(streams));
    let file = File::open(&json).map_err(|error| said(format!("no document: {error}")))?;
    let document: Value =
        serde_json::from_reader(file).map_err(|error| said(format!("the document: {error}")))?;
    if document["schema"] != "weir-trace/1" {
        return Err(said(format!("the document's schema is {}", document["schema"])));
    }
    let findings = serde_json::from_value(document["findings"].clone());
    findings.map(|findings| (ended, findings)).map_err(|error| format!("findings: {error}"))
}

fn in_words(finding: &Finding) -> String {
    format!("{} ({:?}): {}", finding.id, finding.severity, finding.why)
}

pub(super) fn check_status(ended: &Ended, expected: i32, which: &str, verdict: &mut Verdict) {
    if ended.status != expected {
        verdict.wrong.push(format!("{which}: status {} instead of {expected}", ended.status));
    }
}

/// Traces a case and its twin, each in a place of its own, and times them without weir if they differ by cost and it
/// is known where to keep prices.
pub fn case(case: &Case, prices: Option<&TempDir>) -> Verdict {
    let mut verdict = Verdict::default();
    if let Err(why) = try_case(case, prices, &mut verdict) {
        verdict.wrong.push(why);
    }
    verdict
}

fn try_case(case: &Case, prices: Option<&TempDir>, verdict: &mut Verdict) -> Result<(), String> {
    let (broken, fixed) = (Place::of_case(case)?, Place::of_case(case)?);
    let (ended, findings) = trace(&broken, &case.run, &streams(&broken, case), prices)?;
    check_status(&ended, case.exit, "broken", verdict);
    let own: Vec<_> = findings.iter().filter(|finding| finding.id == case.finding).collect();
    verdict.shown = own.iter().any(|finding| finding.severity >= case.severity);
    let beside = |finding: &&Finding| {
        finding.severity == Severity::High && finding.id != case.finding && !case.also.contains(&finding.id)
    };
    verdict.beside = findings.iter().filter(beside).map(in_words).collect();

    let (ended, findings) = trace(&fixed, &case.fixed, &streams(&fixed, case), prices)?;
    check_status(&ended, case.fixed_exit, "fixed", verdict);
    let must_not = |finding: &&Finding| {
        finding.id == case.finding
            || finding.severity == Severity::High && !case.also_fixed.contains(&finding.id)
    };
    verdict.untrue = findings.iter().filter(must_not).map(in_words).collect();
    if let Some(prices) = prices.filter(|_| case.gain && verdict.shown) {
        verdict.gain = Some(gain::measure(case, [&broken, &fixed], prices, verdict)?);
    }
    Ok(())
}

/// Traces an ordinary run: what it shows at high and is not true of it, or what went wrong.
pub fn ordinary(run: &Ordinary) -> Verdict {
    let mut verdict = Verdict::default();
    let traced = Place::of_ordinary(run).and_then(|place| {
        let streams = Streams {
            stdin: None,
            stdout: Out::File,
            out: place.beside("out"),
            errors: place.beside("errors"),
        };
        trace(&place, &["sh".into(), "-c".into(), run.run.clone()], &streams, None)
    });
    match traced {
        Ok((ended, findings)) => {
            check_status(&ended, 0, "run", &mut verdict);
            let must_not =
                |finding: &&Finding| finding.severity == Severity::High && !run.truths.contains(&finding.id);
            verdict.untrue = findings.iter().filter(must_not).map(in_words).collect();
        }
        Err(why) => verdict.wrong.push(why),
    }
    verdict
}
