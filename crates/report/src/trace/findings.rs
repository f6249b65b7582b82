//! The findings, the most severe first.

use std::collections::HashMap;

use weir_model::duration::format_seconds;
use weir_model::number::Certainty;
use weir_model::trace::{FindingGroup, Process, TraceResult, TraceStream};
use weir_model::{Finding, Gain};

use super::labels::{bytes, counted, evidence, stream_label};
use super::listed_stream::{ListedStream, time_of_program};
use crate::block::{self, Block};

/// Returns the findings by severity, then in their order, in which the most expensive is first. Findings that differ in the file
/// only are one; `all` names each file.
pub(super) fn blocks(trace: &TraceResult, streams: &[TraceStream], all: bool) -> Vec<Block> {
    let groups = sorted(trace.findings, &trace.recording.processes, trace.recording.elapsed_s);
    let mut by_fd: HashMap<(u32, i32), Vec<&TraceStream>> = HashMap::new();
    for stream in streams {
        by_fd.entry((stream.counts.pid, stream.counts.fd)).or_default().push(stream);
    }
    let block = |group: &FindingGroup| {
        let streams = by_fd.get(&(group.first.pid, group.first.fd)).map_or(&[][..], Vec::as_slice);
        Block::Finding(shown(trace, streams, group, all))
    };
    groups.iter().map(block).collect()
}

/// Returns the findings in groups, the most severe first.
pub(super) fn sorted<'a>(
    findings: &'a [Finding],
    processes: &[Process],
    elapsed_s: f64,
) -> Vec<FindingGroup<'a>> {
    let mut groups = FindingGroup::of(findings, processes, elapsed_s);
    groups.sort_by_key(|group| std::cmp::Reverse(group.first.severity));
    groups
}

/// Other files that are named if not all are requested.
pub(super) const FILES_NAMED: usize = 3;

/// Returns the number and the first `most` names of the other files of a finding.
pub(super) fn other_files(group: &FindingGroup, most: usize) -> Option<(&'static str, String)> {
    let in_all = group.bytes.map_or(String::new(), |sum| format!(", {} in all", bytes(sum)));
    let names: Vec<String> = group.others.iter().take(most).map(|finding| finding.path.to_string()).collect();
    let more = if group.others.len() > most { " …" } else { "" };
    Some(("also", format!("{}{in_all}: {}{more}", group.more()?, names.join(", "))))
}

/// Returns the block of a group. `streams`: those of the process and the descriptor of its first finding.
fn shown(
    trace: &TraceResult,
    streams: &[&TraceStream],
    group: &FindingGroup,
    all: bool,
) -> block::FindingBlock {
    let finding = &group.first;
    let mut facts = Vec::new();
    let certainty = certainty(streams, finding);
    let figures = finding.evidence.iter().map(|(name, value)| evidence(name, *value, certainty));
    let figures: Vec<String> = figures.collect();
    if !finding.why.is_empty() {
        facts.push(("why", finding.why.clone()));
    }
    if !figures.is_empty() {
        facts.push(("seen", figures.join(" · ")));
    }
    let named = if all { usize::MAX } else { FILES_NAMED };
    let hint = if group.others.len() > named { " (--all names each)" } else { "" };
    facts.extend(other_files(group, named).map(|(name, text)| (name, text + hint)));
    let listed = streams.iter().map(|stream| ListedStream::from(*stream));
    let at_s = time_of_program(finding, trace.recording.process(finding.pid), listed);
    facts.extend(fix(&finding.fix, finding.command.as_deref()));
    facts.extend(gains(finding).map(|text| ("gain", text)));
    block::FindingBlock {
        severity: finding.severity,
        name: finding.id.to_string(),
        stream: stream_label(trace.recording, finding.pid, finding.fd, &finding.path, at_s),
        facts,
        files: Vec::new(),
    }
}

/// Returns how certain the numbers of calls and bytes of the finding's stream are, and those of some of its calls.
fn certainty(streams: &[&TraceStream], finding: &Finding) -> (Certainty, Certainty) {
    let own = streams.iter().filter(|stream| ListedStream::from(**stream).is_of(finding));
    let flags = own.map(|stream| {
        let counts = &stream.counts;
        (counts.exact, counts.estimated, counts.at_least)
    });
    flags
        .map(certainty_of_flags)
        .fold((Certainty::Exact, Certainty::Exact), |least, one| (least.0.max(one.0), least.1.max(one.1)))
}

/// Returns how certain totals and counts of some calls are, from `exact`, `estimated` and `at_least` of a stream.
pub(super) fn certainty_of_flags((exact, estimated, at_least): (bool, bool, bool)) -> (Certainty, Certainty) {
    (Certainty::of_flags(estimated, at_least), Certainty::of_flags(!exact, at_least))
}

/// Separator of a command and the equivalent change of the program in a one-line fix.
const OR_IN_CODE: &str = " or in code: ";

/// Splits a fix into labelled facts: the first line is a sentence or a command, the others are code.
pub(super) fn fix(text: &str, command: Option<&str>) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    let text = &text.replacen(OR_IN_CODE, "\n", 1);
    for (number, line) in text.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let name = match line.trim_start() {
            bare if bare.starts_with("weir ") || command == Some(bare.trim_end()) => "run",
            _ if number == 0 => "fix",
            _ => "code",
        };
        match facts.last_mut().filter(|(last, _)| *last == name) {
            Some((_, text)) => *text += &format!("\n{}", line.trim_end()),
            None => facts.push((name, line.trim_end().into())),
        }
    }
    facts
}

/// Returns the gain of a finding: that of the command first, if it is another one.
pub(super) fn gains(finding: &Finding) -> Option<String> {
    match (finding.command_gain.and_then(gain), finding.gain.and_then(gain)) {
        (Some(command), Some(code)) if command != code => Some(format!("{command}; in code {code}")),
        (command, code) => command.or(code),
    }
}

fn gain(gain: Gain) -> Option<String> {
    let seconds = (gain.elapsed_s > 0.0).then(|| format!("about {}", format_seconds(gain.elapsed_s)));
    let calls = (gain.calls > 0).then(|| counted(gain.calls, "call"));
    let parts: Vec<String> = seconds.into_iter().chain(calls).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_is_split_into_command_or_sentence_and_code() {
        let names = |text: &str| fix(text, None).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("weir run --coalesce -- ./a\nsetvbuf(f,\n    b);"), ["run", "code"]);
        assert_eq!(names("flush before fork"), ["fix"]);
        assert_eq!(fix("flush\nfflush(NULL);\nfork();", None)[1], ("code", "fflush(NULL);\nfork();".into()));
        let either = fix("weir run --coalesce -- ./a   or in code: fwrite, not write(2)", None);
        assert_eq!(
            either,
            [("run", "weir run --coalesce -- ./a".into()), ("code", "fwrite, not write(2)".into())]
        );
        assert!(names("").is_empty());
        let elsewhere = "cd /srv && weir run --rescue -- ./a";
        let facts = fix(&format!("{elsewhere}   or in code: fflush(f)."), Some(elsewhere));
        assert_eq!(facts, [("run", elsewhere.into()), ("code", "fflush(f).".into())]);
    }

    #[test]
    fn a_zero_gain_is_left_out() {
        assert_eq!(gain(Gain { elapsed_s: 0.0, calls: 0 }), None);
        let some = gain(Gain { elapsed_s: 2.84, calls: 4_998_000 });
        assert_eq!(some.as_deref(), Some("about 2.84 s and 4,998,000 calls"));
    }
}
