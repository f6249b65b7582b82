//! torn-records: nothing keeps the records of several writers apart: they can mix, or they overwrite each other.
//!
//! Evidence for records that can mix: two processes write text to one target at the same time; one of them ends its calls within a line
//! because its buffer was full, and the other writes meanwhile. Or a process writes each line in several calls, and recorded
//! writes of the other are between two of them; or each of two processes did so in its first lines, the counts of its later calls
//! fit to such lines, and both made hundreds of calls in the same time. Evidence for overwritten records: one file was opened twice
//! without O_APPEND, by two processes or by one (`> log 2> log`), both write from its beginning, and they overlap in time. Not
//! reported: a prompt whose answer a child prints, whole lines of several processes, writes with an offset argument, writers whose
//! writes are estimated for a sampling gap, and bytes that are no text, as those of a database or an encrypted connection.

use std::collections::HashMap;

use weir_model::number::about;
use weir_model::trace::StreamCounts;
use weir_model::{DIRECT_WRITERS, Direction, Finding, Severity, StreamKind};

use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::pieced_lines::{PiecedLines, pieced_lines};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::split_lines::{SplitLine, split_lines};
use crate::text::{count, is_plain, part, preview};

pub(crate) const RULE: Rule = Rule {
    id: "torn-records",
    title: "Records of several writers not kept apart",
    meaning: "nothing keeps the records of several writers apart: they can mix, or they overwrite each other",
    position: 120,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// The most writers of one target that are compared with each other; more of them add no evidence.
const COMPARED: usize = 32;

/// Programs that write blocks whatever the mode of their stream, beside [`DIRECT_WRITERS`]: seq hands its stream whole blocks, and
/// mawk keeps its buffer.
const BLOCK_WRITERS: [&str; 2] = ["mawk", "seq"];

/// The least number of split lines: one or two can be chance, as those of two programs that start.
const SPLIT_LINES: usize = 3;

/// The smallest buffer: a shorter call that ends within a line does so on purpose.
const BUFFER: f64 = 512.0;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let mut targets: HashMap<String, Vec<&StreamCounts>> = HashMap::new();
    for stream in context.streams(Direction::Out).filter(|stream| stream.bytes > 0) {
        let kind = context.kind(stream.file);
        let shareable = matches!(kind, StreamKind::File | StreamKind::Pipe | StreamKind::Socket);
        if shareable && (stream.exact || has_recorded_write(context, stream)) {
            targets.entry(context.target_key(stream.file)).or_default().push(stream);
        }
    }
    let mut shared: Vec<_> = targets.into_values().filter(|writers| writers.len() > 1).collect();
    shared.sort_by_key(|writers| (writers[0].file, writers[0].pid));
    let compared = shared.iter().map(|writers| &writers[..writers.len().min(COMPARED)]);
    compared.filter_map(|writers| judge_target(context, writers)).collect()
}

fn judge_target(context: &RuleContext, writers: &[&StreamCounts]) -> Option<Finding> {
    let sequential: Vec<&StreamCounts> = writers.iter().copied().filter(|stream| stream.jumps == 0).collect();
    let pairs = || sequential.iter().flat_map(|a| sequential.iter().map(move |b| (*a, *b)));
    if let Some((a, b)) = pairs().find(|(a, b)| overwrites(context, a, b)) {
        return Some(overwritten(context, a, b, sequential.len()));
    }
    let of_two = pairs().filter(|(a, b)| a.pid != b.pid);
    let most_cut = of_two.filter(|(a, b)| tears(context, a, b)).max_by_key(|(a, _)| cut_calls(a));
    if let Some((torn, other)) = most_cut {
        return Some(mixed(context, torn, other, &sequential));
    }
    // A process that shares an open file jumps to where the others have written.
    let lines = split_lines(context, writers);
    if lines.len() >= SPLIT_LINES {
        return Some(split(context, writers, &lines));
    }
    pieced_lines(context, writers).map(|lines| pieced(context, writers, &lines))
}

fn has_recorded_write(context: &RuleContext, stream: &StreamCounts) -> bool {
    context.calls_on(stream.file).iter().any(|timed| timed.pid == stream.pid && timed.call.op.writes())
}

/// Returns the number of calls that end within a line.
fn cut_calls(stream: &StreamCounts) -> u64 {
    stream.moving_calls().saturating_sub(stream.newline_ends)
}

/// Returns whether `a` writes text in full buffers that end within lines, while `b` writes.
fn tears(context: &RuleContext, a: &StreamCounts, b: &StreamCounts) -> bool {
    let writes =
        || context.calls_on(a.file).iter().filter(|timed| timed.pid == a.pid && timed.call.op.writes());
    let lines = a.newline_ends > 0 || writes().any(|timed| timed.call.head.contains(&b'\n'));
    let ends_known = writes().any(|timed| timed.call.tail.is_some());
    let buffered = a.mean_bytes() >= BUFFER && cut_calls(a) >= 2;
    let text = is_text(context, a) && (context.kind(a.file) != StreamKind::Socket || is_text(context, b));
    let placed = [a, b].iter().any(|one| is_placed(context, one));
    lines && text && !placed && ends_known && buffered && writes_during(context, a, b)
}

/// Returns whether a stream has recorded writes, whose first bytes are text in each.
fn is_text(context: &RuleContext, stream: &StreamCounts) -> bool {
    let writes = context
        .calls_on(stream.file)
        .iter()
        .filter(|timed| timed.pid == stream.pid && timed.call.op.writes());
    let heads: Vec<&[u8]> =
        writes.map(|timed| timed.call.head.as_slice()).filter(|head| !head.is_empty()).collect();
    !heads.is_empty() && heads.into_iter().flatten().all(|byte| is_plain(*byte))
}

/// Returns whether a recorded call has an offset argument: other writers do not change where its bytes go.
fn is_placed(context: &RuleContext, stream: &StreamCounts) -> bool {
    let mut calls = context.calls_on(stream.file).iter().filter(|timed| timed.pid == stream.pid);
    calls.any(|timed| timed.call.op.offset_argument(&timed.call.args).is_some())
}

/// Returns whether a call of `b` falls between the first and the last call of `a`.
fn writes_during(context: &RuleContext, a: &StreamCounts, b: &StreamCounts) -> bool {
    let writes = context.calls_on(b.file).iter().filter(|timed| timed.pid == b.pid && timed.call.op.writes());
    let mut times = writes.map(|timed| timed.at_s).chain([b.first_s, b.last_s]);
    times.any(|at_s| at_s > a.first_s && at_s < a.last_s)
}

fn overwrites(context: &RuleContext, a: &StreamCounts, b: &StreamCounts) -> bool {
    let (Some(one), Some(other)) = (context.file(a.file), context.file(b.file)) else { return false };
    // Within one process, equal paths can be a file and its successor; equal inodes of two files that are open at once cannot.
    let is_one_file = a.pid != b.pid || (one.ino != 0 && a.fd != b.fd);
    let separate = one.id != other.id && one.kind == StreamKind::File && is_one_file;
    let appending = one.appends() && other.appends();
    let is_positioned = |stream: &StreamCounts| stream.seeks > 0 || is_placed(context, stream);
    let began_s = |stream: &StreamCounts| {
        let first = context.calls_on(stream.file).first();
        first.map_or(stream.first_s, |timed| timed.at_s.min(stream.first_s))
    };
    let overlap = began_s(a).max(began_s(b)) < a.last_s.min(b.last_s);
    separate && !appending && overlap && !is_positioned(a) && !is_positioned(b)
}

/// Returns the command that makes all writers write lines. Returns None if `weir run` cannot change the mode of one of them.
fn line_mode_command(context: &RuleContext, writers: &[&StreamCounts]) -> Option<String> {
    let keeps_blocks = |stream: &&StreamCounts| {
        let image = context.image_at(stream.pid, stream.first_s);
        let exe = image.map_or("", |(_, image)| image.exe.exact());
        let name = exe.rsplit('/').next().unwrap_or_default();
        BLOCK_WRITERS.contains(&name) || DIRECT_WRITERS.contains(&name)
    };
    if context.recording.command.is_empty() || writers.iter().any(keeps_blocks) {
        return None;
    }
    let programs: Vec<(u32, f64)> = writers.iter().map(|stream| (stream.pid, stream.first_s)).collect();
    let fds: Vec<i32> = writers.iter().map(|stream| stream.fd).collect();
    context.weir_run_all(context.line_option(&fds, writers.first()?.file)?, &programs)
}

fn kind_name(context: &RuleContext, file: u32) -> &'static str {
    match context.kind(file) {
        StreamKind::File => "file",
        StreamKind::Socket => "socket",
        _ => "pipe",
    }
}

/// Builds the finding of lines that are written in several calls each.
fn split(context: &RuleContext, writers: &[&StreamCounts], lines: &[SplitLine]) -> Finding {
    let first = &lines[0];
    let (torn, other) = (writers[first.writer], writers[first.other]);
    let why = format!(
        "{} and {} write to one {} at once, and the first writes a line in several calls: {} of the second came between \
            {} and {}. {} of the recorded lines are split so.",
        context.stream_name(torn),
        context.stream_name(other),
        kind_name(context, torn.file),
        preview(first.between),
        preview(first.piece),
        preview(first.rest),
        lines.len()
    );
    let code = whole_records(context, torn);
    let finding = context.finding(&RULE, Severity::High, torn.pid, torn.fd, Some(torn.file));
    let finding = finding.count("split_lines", lines.len() as u64);
    finding.count("writers", writers.len() as u64).figure("mean_bytes", torn.mean_bytes()).build(why, code)
}

/// Returns the code that writes each record with one call.
fn whole_records(context: &RuleContext, torn: &StreamCounts) -> String {
    let fix = context.code_fix(torn.pid, torn.first_s, (torn.fd, Some(torn.file)), CodeFix::WholeLines);
    let append = if context.kind(torn.file) == StreamKind::File { ", with O_APPEND" } else { "" };
    format!("each record in one write(2){append}, in every writer: {fix}")
}

/// Builds the finding of lines that two processes write in several calls each, most of which were only counted.
fn pieced(context: &RuleContext, writers: &[&StreamCounts], lines: &PiecedLines) -> Finding {
    let (torn, other) = (lines.torn, lines.other);
    let [of_torn, of_other] = lines.together.map(|calls| about(calls as u64));
    let why = format!(
        "{} and {} write to one {} at once, {of_torn} and {of_other} calls, and both write a line in several calls, the \
            first in {:.0}: what one writes between two of them splits a line of the other, unless a lock \
            keeps them apart, which weir does not see. Calls do not show how often that happened.",
        context.stream_name(torn),
        context.stream_name(other),
        kind_name(context, torn.file),
        lines.calls_per_line,
    );
    let finding = context.finding(&RULE, Severity::Warn, torn.pid, torn.fd, Some(torn.file));
    let finding =
        finding.figure("calls_per_line", lines.calls_per_line).count("writers", writers.len() as u64);
    finding.figure("mean_bytes", torn.mean_bytes()).build(why, whole_records(context, torn) + ".")
}

fn mixed(
    context: &RuleContext,
    torn: &StreamCounts,
    other: &StreamCounts,
    writers: &[&StreamCounts],
) -> Finding {
    let why = format!(
        "{} and {} write to one {} at once, and {} of the {} writes of the first end in the middle of a \
            line: what the other writes between two of them splits that line. Calls do not show whether it happened.",
        context.stream_name(torn),
        context.stream_name(other),
        kind_name(context, torn.file),
        part(torn, cut_calls(torn)),
        part(torn, torn.moving_calls())
    );
    let lines = context.code_fix(torn.pid, torn.first_s, (torn.fd, Some(torn.file)), CodeFix::WholeLines);
    let code = format!("whole records in one write(2) each, with O_APPEND, in every writer: {lines}");
    let finding = context.finding(&RULE, Severity::High, torn.pid, torn.fd, Some(torn.file));
    let finding = finding.count("cut_calls", cut_calls(torn)).count("calls", torn.moving_calls());
    let finding = finding.count("writers", writers.len() as u64);
    let finding = finding.figure("mean_bytes", torn.mean_bytes());
    finding.build_with_command(why, line_mode_command(context, writers), code)
}

fn overwritten(context: &RuleContext, a: &StreamCounts, b: &StreamCounts, writers: usize) -> Finding {
    let bytes = a.bytes.min(b.bytes);
    let together =
        format!("both write from its beginning: up to {} overwrite each other.", count(bytes, "byte"));
    let (first, second) = (a.fd.min(b.fd), a.fd.max(b.fd));
    let by_one_process = a.pid == b.pid;
    let name = context.stream_name(a);
    let why = if by_one_process {
        format!(
            "{name} has one file open twice without O_APPEND, as descriptors {first} and {second}, and {together}"
        )
    } else {
        let other = context.stream_name(b);
        format!("{name} and {other} opened one file separately without O_APPEND, and {together}")
    };
    let fix = match (by_one_process, first, second) {
        (true, 1, 2) => {
            "redirect both to one open file (> file 2>&1 in a shell, stderr=subprocess.STDOUT in Python), or open \
                it with O_APPEND (>> file 2>> file)."
        }
        (true, ..) => {
            "open it once and write by that descriptor, or open it with O_APPEND (fopen(path, \"a\"), open(path, \
                'a'), >> in a shell) and write whole records."
        }
        (false, ..) => {
            "open it with O_APPEND (fopen(path, \"a\"), open(path, 'a'), >> in a shell) and write whole \
                records, or open it once before the fork."
        }
    };
    let finding = context.finding(&RULE, Severity::High, a.pid, a.fd, Some(a.file));
    finding.count("overwritten_bytes", bytes).count("writers", writers as u64).build(why, fix)
}
