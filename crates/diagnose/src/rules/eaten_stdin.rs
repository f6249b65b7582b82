//! eaten-stdin: a program started in a loop consumed the input that the loop itself reads.
//!
//! Evidence: an ancestor reads an open file before the child starts and comes back for more after the child has
//! read it to the end: nothing is left. An ancestor that does not come back handed its input over on purpose.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity};

use crate::context::Context;
use crate::language::Language;
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::count;

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

fn judge(context: &Context) -> Vec<Finding> {
    let eaters = context.toward(Direction::In).filter(|flow| {
        flow.bytes > 0
            && flow.zeros > 0
            && context.is_shared_input(flow.file)
            && context.flows_on(flow.file).len() > 1
    });
    eaters.filter_map(|eater| owner(context, eater).map(|owner| found(context, eater, owner))).collect()
}

/// The ancestor's flow that this one starved.
fn owner<'a>(context: &Context<'a>, eater: &StreamCounts) -> Option<&'a StreamCounts> {
    let flows = context.flows_on(eater.file).iter().copied();
    let mut owners = flows.filter(|owner| {
        let loops = owner.direction == Direction::In && owner.pid != eater.pid && owner.bytes > 0;
        let around = owner.first_s < context.forked_at(eater.pid) && owner.last_s > eater.last_s;
        loops && around && context.descends(eater.pid, owner.pid) && starved(context, owner, eater)
    });
    owners.next()
}

/// Whether the ancestor got nothing any more once the child had read.
fn starved(context: &Context, owner: &StreamCounts, eater: &StreamCounts) -> bool {
    let calls =
        context.calls_on(eater.file).iter().filter(|seen| seen.pid == owner.pid && seen.call.op.reads());
    let after: Vec<i64> =
        calls.filter(|seen| seen.at_s > eater.first_s).map(|seen| seen.call.result).collect();
    if after.is_empty() {
        // Single calls were not kept. It came back after the end had been read, and it found an end.
        return owner.zeros > 0 && owner.seeks == 0 && owner.jumps == 0;
    }
    after.iter().all(|&result| result <= 0) && after.contains(&0)
}

fn found(context: &Context, eater: &StreamCounts, owner: &StreamCounts) -> Finding {
    let why = format!(
        "{} read {} from the input of {}, which reads it in a loop and then found its end: the loop stops \
            early.",
        context.name(eater.pid),
        count(eater.bytes, "byte"),
        context.name(owner.pid)
    );
    let fix = match context.language(owner.pid, owner.first_s) {
        Language::Python => "subprocess.run(…, stdin=subprocess.DEVNULL)",
        Language::Perl => "system(\"COMMAND < /dev/null\"), or give the child a file",
        Language::C => "open /dev/null as the child's descriptor 0 before exec",
        _ => {
            "COMMAND < /dev/null in the loop (ssh -n), or let the loop read another descriptor: while \
            read -r x <&3; do …; done 3< FILE"
        }
    };
    let run = context.weir_run("--private-stdin", owner.pid);
    let draft = context.draft(&RULE, Severity::High, eater.pid, eater.fd, Some(eater.file));
    let draft = draft.count("eaten_bytes", eater.bytes).count("loop_bytes", owner.bytes);
    draft.count("loop_pid", owner.pid.into()).say(why, format!("{run}   or in code: {fix}."))
}
