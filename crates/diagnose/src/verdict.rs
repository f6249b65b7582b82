//! The report's first lines: what matters most in one or two sentences, and the command that cures it.

use serde::{Deserialize, Serialize};
use weir_model::duration::format_seconds;
use weir_model::{Direction, Finding, Severity};

use crate::context::Context;
use crate::rule::VerdictForm;
use crate::rules::rule_of;
use crate::words::{said, thousands};

/// The judgement of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// One or two sentences.
    pub text: String,
    /// The command that cures it, where there is one.
    pub command: Option<String>,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            Some(command) => write!(f, "{}\n  {command}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What to say first of a run with these findings, which are sorted.
pub(crate) fn verdict(context: &Context, findings: &[Finding]) -> Verdict {
    let worst = findings.iter().find(|finding| finding.severity > Severity::Info);
    let Some(worst) = worst else { return nothing_wrong(context, findings) };
    match rule_of(worst).verdict {
        VerdictForm::SmallCalls { direction, by_line } => {
            small_calls(context, findings, worst, direction, by_line)
        }
        VerdictForm::Sentence => Verdict { text: with_gain(context, worst), command: command(worst) },
    }
}

fn nothing_wrong(context: &Context, findings: &[Finding]) -> Verdict {
    let seen = match context.known_streams() {
        0 if context.moved_unseen() => "Bytes were moved, but through which streams was not seen".to_string(),
        0 => "No stream was seen".to_string(),
        1 => "Nothing is wrong with the one stream of this run".into(),
        count => format!("Nothing is wrong with the {} streams of this run", thousands(count as u64)),
    };
    let hints = match findings.len() {
        0 => ".".to_string(),
        1 => "; one hint below.".into(),
        count => format!("; {count} hints below."),
    };
    Verdict { text: seen + &hints, command: None }
}

/// Many small calls: how many, of how many bytes, what they cost and what is left of it.
fn small_calls(
    context: &Context,
    findings: &[Finding],
    worst: &Finding,
    direction: Direction,
    by_line: bool,
) -> Verdict {
    let figure = |name: &str| worst.evidence.get(name).copied().unwrap_or(0.0);
    let kin = findings.iter().filter(|finding| {
        let small = rule_of(finding).verdict != VerdictForm::Sentence;
        small && finding.pid == worst.pid
    });
    let kin: Vec<&Finding> = kin.collect();
    let sum = |of: &dyn Fn(&Finding) -> f64| {
        kin.iter().map(|finding| of(finding)).sum::<f64>().min(context.run_s())
    };
    let cost_s = sum(&|finding| finding.evidence.get("cost_s").copied().unwrap_or(0.0));
    let saved = sum(&|finding| finding.gain.map_or(0.0, |gain| gain.elapsed_s));
    let verb = if direction == Direction::In { "read" } else { "written" };
    let exact = context
        .sums(direction, |flow| {
            let here = || context.file(flow.file).is_some_and(|file| file.path == worst.path);
            (flow.pid, flow.fd) == (worst.pid, worst.fd) && here()
        })
        .all(|sum| !sum.estimated);
    let (calls, bytes) = (said(exact, figure("calls") as u64), said(exact, figure("bytes") as u64));
    let how = match (by_line, figure("mean_bytes")) {
        (true, _) => {
            format!("{bytes} bytes were written in {calls} calls, line by line")
        }
        (_, mean) if mean < 1.005 => {
            let one = said(exact, figure("calls").min(figure("bytes")) as u64);
            format!("{one} of {bytes} bytes were {verb} one at a time")
        }
        (_, mean) => format!("{bytes} bytes were {verb} with {calls} calls of about {mean:.0} bytes"),
    };
    let (mut text, command) = (how + &time(context, worst.pid, cost_s, saved), command(worst));
    if command.is_none() {
        text.truncate(text.trim_end_matches(':').len());
        text.push('.');
    }
    Verdict { text, command }
}

/// The program had a processor for this much of the run: what it saves there, the run is shorter.
const BUSY: f64 = 0.8;

/// What calls cost and what is left without them. How long a run lasts that waits most of the time, for others
/// or for a processor, cannot be told from what its calls cost.
fn time(context: &Context, pid: u32, cost_s: f64, saved_s: f64) -> String {
    let (run_s, cost) = (context.run_s(), format_seconds(cost_s));
    match context.cpu_s(pid).filter(|&cpu_s| cpu_s < run_s * BUSY) {
        Some(cpu_s) => format!(
            ": {cost} of the {} that it had a processor, in a run of {}. Gathering them saves about {}:",
            format_seconds(cpu_s),
            format_seconds(run_s),
            format_seconds(saved_s)
        ),
        None => format!(
            ": {cost} of {}. Gathering them would take about {}:",
            format_seconds(run_s),
            format_seconds((run_s - saved_s).max(0.0))
        ),
    }
}

fn with_gain(context: &Context, finding: &Finding) -> String {
    match finding.gain.filter(|gain| gain.elapsed_s >= 0.001) {
        Some(gain) => format!(
            "{} The cure saves about {} of {}.",
            finding.why,
            format_seconds(gain.elapsed_s),
            format_seconds(context.run_s())
        ),
        None => finding.why.clone(),
    }
}

/// The `weir run` command in a fix.
fn command(finding: &Finding) -> Option<String> {
    let start = finding.fix.find("weir run ")?;
    let rest = &finding.fix[start..];
    let end = rest.find("   ").unwrap_or(rest.len());
    Some(rest[..end].into())
}
