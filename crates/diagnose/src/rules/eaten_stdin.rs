//! eaten-stdin: a program started in a loop reads the input that the loop itself reads.
//!
//! Evidence: an ancestor reads an open file before it starts the child, the child takes the rest of the file, and the ancestor
//! then reads again and gets end of file. An ancestor that does not read again has passed its input on intentionally; so has one
//! whose child writes what it took and does not ask for more. Warn: several children that run other programs read descriptor 0
//! between the reads of the ancestor, at least one of them gets bytes, and their output does not begin with them.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, SourceLanguage, StreamKind};

use crate::context::{RuleContext, same_prefix};
use crate::finding_builder::FindingBuilder;
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::{count, thousands};

pub(crate) const RULE: Rule = Rule {
    id: "eaten-stdin",
    title: "A loop ends too early",
    meaning: "a child reads the standard input that its parent's loop reads",
    position: 100,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnPath("over-read"), OnPath("shared-offset")],
    judge,
    ..Rule::DEFAULT
};

/// A read that asks for at least this many bytes asks for a block, not for a record.
const BLOCK: u64 = 1024;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let shared = |stream: &&StreamCounts| {
        stream.bytes > 0
            && context.is_shareable_input(stream.file)
            && context.streams_on(stream.file).len() > 1
    };
    let inputs: Vec<&StreamCounts> = context.streams(Direction::In).filter(shared).collect();
    let rest = inputs.iter().filter(|eater| takes_the_rest(context, eater));
    let mut findings: Vec<Finding> = rest
        .filter_map(|eater| owner(context, eater).map(|owner| rest_finding(context, eater, owner)))
        .collect();
    if findings.is_empty() {
        findings.extend(inputs.iter().filter_map(|owner| parts_finding(context, owner)));
    }
    findings
}

/// Returns whether a child read to the end of a file, or takes all that a read gets and does not write it.
fn takes_the_rest(context: &RuleContext, eater: &StreamCounts) -> bool {
    let met_end = match context.kind(eater.file) {
        StreamKind::File => eater.short > 0,
        _ => eater.max_requested_bytes >= BLOCK,
    };
    eater.zeros > 0 || met_end && !hands_on(context, eater)
}

/// Returns whether an output of the program begins with what it read.
fn hands_on(context: &RuleContext, eater: &StreamCounts) -> bool {
    // A /dev/null that the whole run has as its output is the reader's choice, and not the loop's.
    let discards =
        |file: u32| context.is_null(file) && context.file(file).is_some_and(|null| null.opened_by.is_some());
    let outputs = context.streams_of(eater.pid).iter().filter(|output| {
        output.direction == Direction::Out && output.image == eater.image && !discards(output.file)
    });
    let read = context.call_heads(eater);
    let mut written = outputs.flat_map(|output| context.call_heads(output));
    written.any(|(_, written)| read.iter().any(|(_, read)| same_prefix(read, written)))
}

/// Returns whether a descendant of the process that reads `owner` reads the same file between reads of it.
fn is_between(context: &RuleContext, owner: &StreamCounts, eater: &StreamCounts) -> bool {
    owner.first_s < context.forked_at(eater.pid)
        && owner.last_s > eater.last_s
        && eater.pid != owner.pid
        && context.is_descendant(eater.pid, owner.pid)
}

/// Returns the ancestor's stream that lacks the bytes that this stream read.
fn owner<'a>(context: &RuleContext<'a>, eater: &StreamCounts) -> Option<&'a StreamCounts> {
    let mut owners = context.streams_on(eater.file).iter().copied().filter(|owner| {
        let reads = owner.direction == Direction::In && owner.bytes > 0;
        reads && is_between(context, owner, eater) && starved(context, owner, eater)
    });
    owners.next()
}

/// Returns whether the ancestor got end of file and no bytes after the child began to read.
fn starved(context: &RuleContext, owner: &StreamCounts, eater: &StreamCounts) -> bool {
    let reads =
        context.calls_on(eater.file).iter().filter(|timed| timed.pid == owner.pid && timed.call.op.reads());
    let results: Vec<i64> =
        reads.filter(|timed| timed.at_s > eater.first_s).map(|timed| timed.call.result).collect();
    if results.is_empty() {
        // No single calls were recorded. The counts show that the ancestor read again later and reached an end.
        return owner.zeros > 0 && owner.seeks == 0 && owner.jumps == 0;
    }
    results.iter().all(|&result| result <= 0) && results.contains(&0)
}

/// Returns the finding about the children that each take a part of the input of a loop.
fn parts_finding(context: &RuleContext, owner: &StreamCounts) -> Option<Finding> {
    if context.kind(owner.file) == StreamKind::Socket {
        return None;
    }
    let is_reader = |reader: &&StreamCounts| {
        let other_program = reader.direction == Direction::In && reader.image > 0 && reader.fd == 0;
        other_program && is_between(context, owner, reader) && !hands_on(context, reader)
    };
    // A child that got nothing shows the next turn of the loop.
    let mut readers: Vec<&StreamCounts> =
        context.streams_on(owner.file).iter().copied().filter(is_reader).collect();
    readers.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
    let in_turns =
        readers.windows(2).any(|pair| reads_between(context, owner, pair[0].last_s, pair[1].first_s));
    let eaters: Vec<&StreamCounts> = readers.into_iter().filter(|reader| reader.bytes > 0).collect();
    let (first, more) = eaters.split_first().filter(|_| in_turns)?;
    let bytes: u64 = eaters.iter().map(|eater| eater.bytes).sum();
    // A child that gives bytes back has taken fewer than it read.
    let taken = match eaters.iter().all(|eater| eater.seeks == 0) {
        true => format!("the {} that they took", count(bytes, "byte")),
        false => "what they took".into(),
    };
    let others = match more.len() {
        0 => String::new(),
        1 => " and another process".into(),
        more => format!(" and {} more processes", thousands(more as u64)),
    };
    let why = format!(
        "{}{others} read from the input that {} reads in a loop: the loop misses {}.",
        context.stream_name(first),
        context.stream_name(owner),
        if more.is_empty() { taken.replace("they", "it") } else { taken }
    );
    let finding = context.finding(&RULE, Severity::Warn, first.pid, first.fd, Some(first.file));
    let finding = finding.count("children", eaters.len() as u64).count("loop_bytes", owner.bytes);
    Some(build(context, owner, first, finding, why))
}

/// Returns whether a process got bytes between two times, as far as its calls were recorded.
fn reads_between(context: &RuleContext, owner: &StreamCounts, from_s: f64, to_s: f64) -> bool {
    let calls = context.calls_on(owner.file).iter().filter(|timed| timed.pid == owner.pid);
    let reads: Vec<f64> = calls
        .filter(|timed| timed.call.op.reads() && timed.call.result > 0)
        .map(|timed| timed.at_s)
        .collect();
    let all_recorded = reads.len() as u64 >= owner.moving_calls();
    reads.iter().any(|at| (from_s..to_s).contains(at)) || !all_recorded
}

fn rest_finding(context: &RuleContext, eater: &StreamCounts, owner: &StreamCounts) -> Finding {
    let why = format!(
        "{} read {} from the input that {} reads in a loop, so the loop hit end of file early.",
        context.stream_name(eater),
        count(eater.bytes, "byte"),
        context.stream_name(owner)
    );
    let finding = context.finding(&RULE, Severity::High, eater.pid, eater.fd, Some(eater.file));
    let finding = finding.count("eaten_bytes", eater.bytes).count("loop_bytes", owner.bytes);
    build(context, owner, eater, finding, why)
}

/// Returns whether the child was given the input on purpose (`cat <&3`): the loop's process has it as another descriptor than 0.
fn was_given(context: &RuleContext, owner: &StreamCounts, eater: &StreamCounts) -> bool {
    let standard_input = context.file_at(owner.pid, 0, context.forked_at(eater.pid));
    standard_input.is_some_and(|file| file != owner.file)
}

fn build(
    context: &RuleContext,
    owner: &StreamCounts,
    eater: &StreamCounts,
    finding: FindingBuilder,
    why: String,
) -> Finding {
    let was_given = was_given(context, owner, eater);
    let code = match context.language(owner.pid, owner.first_s) {
        SourceLanguage::Python => "subprocess.run(…, stdin=subprocess.DEVNULL)",
        SourceLanguage::Perl => "system(\"COMMAND < /dev/null\"), or give the child a file",
        SourceLanguage::Ruby => "system(command, in: '/dev/null')",
        SourceLanguage::Node => "child_process.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] })",
        SourceLanguage::Lua => "os.execute(command .. ' < /dev/null')",
        SourceLanguage::Tcl => "exec command < /dev/null",
        SourceLanguage::Java => "processBuilder.redirectInput(new File(\"/dev/null\"))",
        SourceLanguage::Awk => "system(command \" < /dev/null\")",
        SourceLanguage::Shell if was_given => "COMMAND < /dev/null in the loop, in place of <&3 or the like",
        SourceLanguage::Shell => {
            "COMMAND < /dev/null in the loop (ssh -n), or let the loop read another descriptor: while \
            read -r x <&3; do …; done 3< FILE"
        }
        _ => "open /dev/null as the child's descriptor 0 before exec",
    };
    let command = context.weir_run(RunOption::PrivateStdin, owner.pid, owner.first_s).filter(|_| !was_given);
    finding.count("loop_pid", owner.pid.into()).build_with_command(why, command, code)
}
