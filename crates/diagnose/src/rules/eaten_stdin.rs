//! eaten-stdin: a program started in a loop reads the input that the loop itself reads.
//!
//! Evidence: an ancestor reads an open file before it starts the child, the child reads the file to its end, and the ancestor
//! then reads again and gets end of file. An ancestor that does not read again has passed its input on intentionally.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity, SourceLanguage};

use crate::context::RuleContext;
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::count;

pub(crate) const RULE: Rule = Rule {
    id: "eaten-stdin",
    title: "A loop ends too early",
    meaning: "a child reads the standard input that its parent's loop reads",
    position: 100,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnPath("over-read"), OnPath("shared-offset")],
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let eaters = context.streams(Direction::In).filter(|stream| {
        stream.bytes > 0
            && stream.zeros > 0
            && context.is_shareable_input(stream.file)
            && context.streams_on(stream.file).len() > 1
    });
    eaters.filter_map(|eater| owner(context, eater).map(|owner| finding(context, eater, owner))).collect()
}

/// Returns the ancestor's stream that lacks the bytes that this stream read.
fn owner<'a>(context: &RuleContext<'a>, eater: &StreamCounts) -> Option<&'a StreamCounts> {
    let mut owners = context.streams_on(eater.file).iter().copied().filter(|owner| {
        let reads = owner.direction == Direction::In && owner.pid != eater.pid && owner.bytes > 0;
        let around = owner.first_s < context.forked_at(eater.pid) && owner.last_s > eater.last_s;
        reads && around && context.is_descendant(eater.pid, owner.pid) && starved(context, owner, eater)
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

fn finding(context: &RuleContext, eater: &StreamCounts, owner: &StreamCounts) -> Finding {
    let why = format!(
        "{} read {} from the input that {} reads in a loop, so the loop hit end of file early.",
        context.name(eater.pid),
        count(eater.bytes, "byte"),
        context.name(owner.pid)
    );
    let code = match context.language(owner.pid, owner.first_s) {
        SourceLanguage::Python => "subprocess.run(…, stdin=subprocess.DEVNULL)",
        SourceLanguage::Perl => "system(\"COMMAND < /dev/null\"), or give the child a file",
        SourceLanguage::Ruby => "system(command, in: '/dev/null')",
        SourceLanguage::Node => "child_process.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] })",
        SourceLanguage::Lua => "os.execute(command .. ' < /dev/null')",
        SourceLanguage::Tcl => "exec command < /dev/null",
        SourceLanguage::Java => "processBuilder.redirectInput(new File(\"/dev/null\"))",
        SourceLanguage::Awk => "system(command \" < /dev/null\")",
        SourceLanguage::Shell => {
            "COMMAND < /dev/null in the loop (ssh -n), or let the loop read another descriptor: while \
            read -r x <&3; do …; done 3< FILE"
        }
        _ => "open /dev/null as the child's descriptor 0 before exec",
    };
    let command = context.weir_run(RunOption::PrivateStdin, owner.pid, owner.first_s);
    let finding = context.finding(&RULE, Severity::High, eater.pid, eater.fd, Some(eater.file));
    let finding = finding.count("eaten_bytes", eater.bytes).count("loop_bytes", owner.bytes);
    finding.count("loop_pid", owner.pid.into()).build_with_command(why, command, code)
}
