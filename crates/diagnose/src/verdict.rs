//! The verdict: the first lines of the report, with the cost of the worst finding and the command that removes it.

use serde::{Deserialize, Serialize};
use weir_model::duration::format_seconds;
use weir_model::trace::{FindingGroup, gaps_hide_calls};
use weir_model::{Direction, Finding, Severity};

use crate::context::RuleContext;
use crate::pending_now::pending_now_sentence;
use crate::rule::VerdictForm;
use crate::rules::rule_of;
use crate::text::{least_certain, thousands};
use crate::unattributed_calls::unattributed_calls;

/// The share of the run that a process must have had a CPU for, so that CPU time saved makes the run shorter.
const BUSY: f64 = 0.8;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunVerdict {
    /// One or two sentences. They end with a colon if a command follows.
    pub text: String,
    /// The command that fixes the worst finding, if there is one.
    pub command: Option<String>,
}

impl std::fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            Some(command) => write!(f, "{}\n  {command}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns the verdict of a run with these findings, the worst of which is first.
pub(crate) fn verdict(context: &RuleContext, findings: &[Finding]) -> RunVerdict {
    let worst = findings.iter().find(|finding| finding.severity > Severity::Info);
    let Some(worst) = worst else { return nothing_wrong(context, findings) };
    match rule_of(worst).verdict {
        VerdictForm::SmallCalls { direction, by_line } => {
            small_calls(context, findings, worst, direction, by_line)
        }
        VerdictForm::Sentence => {
            let groups = FindingGroup::of(findings, &context.recording.processes, context.run_s());
            // The worst finding is the first, so it is in the first group.
            let text =
                groups.first().map_or_else(|| worst.why.clone(), |group| sentence_with_gain(context, group));
            RunVerdict { text, command: worst.command.clone() }
        }
    }
}

/// Returns a sentence about the calls that blocked for all the time, if there are any.
fn blocked_sentence(context: &RuleContext) -> Option<String> {
    let all = context.merged_streams_of_all().filter(|stream| stream.is_blocked_throughout());
    let blocked: Vec<_> = all.collect();
    let first = blocked.first()?;
    let call = if first.direction == Direction::In { "read(2)" } else { "write(2)" };
    let path = context.file(first.file).map_or("?".into(), |file| file.path.to_string());
    let more = match blocked.len() - 1 {
        0 => String::new(),
        1 => " One more stream has such a call.".into(),
        more => format!(" {more} more streams have such a call."),
    };
    Some(format!(
        "{} was blocked in {call} on fd {} ({path}) for all of the time, at least {}.{more}",
        context.name_at(first.pid, first.first_s),
        first.fd,
        format_seconds(first.wait_s.unwrap_or(0.0))
    ))
}

fn nothing_wrong(context: &RuleContext, findings: &[Finding]) -> RunVerdict {
    let blocked = blocked_sentence(context);
    let others = context.merged_streams_of_all().filter(|stream| !stream.is_blocked_throughout()).count();
    let text = match blocked {
        Some(blocked) if others == 0 && findings.is_empty() => blocked,
        Some(blocked) => format!("{} {blocked}", nothing_else_wrong(context, findings)),
        None => nothing_else_wrong(context, findings),
    };
    RunVerdict { text, command: None }
}

fn nothing_else_wrong(context: &RuleContext, findings: &[Finding]) -> String {
    let unattributed = unattributed_calls(context);
    let streams = match context.known_stream_count() {
        1.. if let Some(calls) = &unattributed => {
            format!("Nothing wrong in what could be seen; {calls}")
        }
        1.. if !context.recording.unreadable.is_empty() => {
            format!("Nothing wrong in what could be seen; {}", unreadable_clause(context))
        }
        1.. if context.recording.incomplete => {
            "Nothing wrong in what could be seen; \"not seen\" below says what is missing".to_string()
        }
        1.. if findings.iter().any(|finding| rule_of(finding).info_is_undecided) => {
            "Nothing wrong in what could be seen".to_string()
        }
        1.. if let Some(share) = sampled_share(context) => {
            format!("Nothing is wrong in the sampled {:.0} % of the run", share * 100.0)
        }
        0 if context.has_unattributed_calls() => {
            "Bytes were moved, but their streams were not recorded".to_string()
        }
        0 => match pending_now_sentence(context) {
            Some(pending) => format!("No stream was recorded; {pending}"),
            None => "No stream was recorded".to_string(),
        },
        1 => "Nothing is wrong with the one stream of this run".into(),
        count => format!("Nothing is wrong with the {} streams of this run", thousands(count as u64)),
    };
    let hints = match findings.len() {
        0 => ".".to_string(),
        1 => "; one hint below.".into(),
        count => format!("; {count} hints below."),
    };
    streams + &hints
}

/// The largest share of which the verdict says that it is not the whole.
const MAX_SHARE: f64 = 0.99;

/// Returns the share of the time in which calls were recorded, if the gaps hide more than a few.
fn sampled_share(context: &RuleContext) -> Option<f64> {
    let overhead = &context.recording.overhead;
    let all_s = overhead.observed_s + overhead.gap_s;
    let is_partial = all_s > 0.0 && gaps_hide_calls(overhead.gap_s, all_s);
    is_partial.then(|| (overhead.observed_s / all_s).min(MAX_SHARE))
}

/// Returns which buffers cannot be read, as a clause: bytes may be pending there.
fn unreadable_clause(context: &RuleContext) -> String {
    let names: Vec<&str> = context.recording.unreadable.iter().map(|one| one.buffers.as_str()).collect();
    match names.as_slice() {
        [one] => format!("{one} cannot be read"),
        [one, other] => format!("{one} and {other} cannot be read"),
        more => format!("{} and those of {} other runtimes cannot be read", more[0], more.len() - 1),
    }
}

/// Returns the verdict on many small calls: their number and size, and the cost of all such findings of the process.
fn small_calls(
    context: &RuleContext,
    findings: &[Finding],
    worst: &Finding,
    direction: Direction,
    by_line: bool,
) -> RunVerdict {
    let same_process = findings
        .iter()
        .filter(|finding| finding.pid == worst.pid && rule_of(finding).verdict != VerdictForm::Sentence);
    let same_process: Vec<&Finding> = same_process.collect();
    let sum = |seconds: &dyn Fn(&Finding) -> f64| {
        same_process.iter().map(|finding| seconds(finding)).sum::<f64>().min(context.run_s())
    };
    let cost_s = sum(&|finding| finding.evidence.get("cost_s").copied().unwrap_or(0.0));
    // The verdict ends with the command, if there is one.
    let gain = |finding: &Finding| match &worst.command {
        Some(_) => finding.command_gain.or(finding.gain),
        None => finding.gain,
    };
    // The gain includes an estimate of the program's own work around the calls.
    let saved_s = sum(&|finding| gain(finding).map_or(0.0, |gain| gain.elapsed_s)).min(cost_s);
    let calls = describe_calls(context, worst, direction, by_line);
    let others = match same_process.len() {
        0 | 1 => String::new(),
        2 => ", and another stream below is like it".to_string(),
        count => format!(", and {} other streams below are like it", thousands(count as u64 - 1)),
    };
    let mut text = calls + &others + &cost(context, worst.pid, cost_s, saved_s);
    let command = worst.command.clone();
    if command.is_none() {
        text.truncate(text.trim_end_matches(':').len());
        text.push('.');
    }
    RunVerdict { text, command }
}

fn describe_calls(context: &RuleContext, worst: &Finding, direction: Direction, by_line: bool) -> String {
    let figure = |name: &str| worst.evidence.get(name).copied().unwrap_or(0.0);
    let streams = context.merged_streams(direction, |stream| {
        let same_path = || context.file(stream.file).is_some_and(|file| file.path == worst.path);
        (stream.pid, stream.fd) == (worst.pid, worst.fd) && same_path()
    });
    let certainty = least_certain(streams.map(|stream| stream.certainty()));
    let number = |number: f64| certainty.text(number as u64);
    let (calls, bytes) = (number(figure("calls")), number(figure("bytes")));
    let verb = if direction == Direction::In { "read" } else { "written" };
    match (by_line, figure("mean_bytes")) {
        (true, _) => format!("{bytes} bytes were written in {calls} calls, line by line"),
        (_, mean) if mean < 1.005 => {
            let single = number(figure("calls").min(figure("bytes")));
            format!("{single} of {bytes} bytes were {verb} one at a time")
        }
        (_, mean) => format!("{bytes} bytes were {verb} with {calls} calls of about {mean:.0} bytes"),
    }
}

/// Returns what the calls cost and what gathering them saves. The length of the run is predicted only for a process that
/// was busy; otherwise it depends on what the process waits for.
fn cost(context: &RuleContext, pid: u32, cost_s: f64, saved_s: f64) -> String {
    let (run_s, cost) = (context.run_s(), format_seconds(cost_s));
    let run = format_seconds(run_s);
    match context.cpu_s(pid).filter(|&cpu_s| cpu_s < run_s * BUSY) {
        Some(cpu_s) => format!(
            ". This costs {cost} of its {} of CPU time; the run takes {run}. Gathering saves about {}:",
            format_seconds(cpu_s),
            format_seconds(saved_s)
        ),
        None => format!(
            ". This costs {cost} of {run}. With gathering the run takes about {} instead of {run}:",
            format_seconds((run_s - saved_s).max(0.0))
        ),
    }
}

/// Returns the sentence of a finding, with the number of other files and the gain of all.
fn sentence_with_gain(context: &RuleContext, group: &FindingGroup) -> String {
    let mut text = group.first.why.clone();
    if let Some(more) = group.more() {
        let in_all =
            group.bytes.map_or(String::new(), |bytes| format!(", {} bytes in all", thousands(bytes)));
        text += &format!(" The same happened with {more}{in_all}.");
    }
    match group.first.gain.filter(|gain| gain.elapsed_s >= 0.001) {
        Some(gain) => format!(
            "{text} Fixing this saves about {} of {}.",
            format_seconds(gain.elapsed_s),
            format_seconds(context.run_s())
        ),
        None => text,
    }
}
