//! short-write-unhandled: write(2) took a part, and the rest was never written.
//!
//! Evidence: the short call was the last one on its descriptor, or the next one (where every call was seen)
//! neither begins behind what was taken nor asks for the rest; then exit status 0 and nothing on standard
//! error. A program that was ended by a signal, or complains, knows.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity};

use crate::context::{Context, Seen};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::count;

pub(crate) const RULE: Rule = Rule {
    id: "short-write-unhandled",
    title: "End of a write missing",
    meaning: "write(2) takes only a part and the rest is never written",
    position: 200,
    severity: SeverityRule::Effect { least: Severity::High, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::Out).filter(|flow| flow.short > 0);
    flows.filter_map(|flow| of_flow(context, flow)).collect()
}

fn of_flow(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let here = |seen: &&Seen| {
        let call = seen.call;
        call.fd == flow.fd && call.file.is_none_or(|file| file == flow.file) && call.op.writes()
    };
    let writes: Vec<Seen> = context.calls(flow.pid).iter().filter(here).copied().collect();
    let all_seen = writes.len() as u64 >= flow.calls;
    let short = |seen: &Seen| seen.call.result > 0 && (seen.call.result as u64) < seen.call.asked;
    let dropped = writes.iter().enumerate().find(|(index, seen)| {
        let next = writes.get(index + 1);
        // Without every call between, only the last one of all is known to have no successor.
        let last = next.is_none() && (all_seen || flow.last_s <= seen.at_s);
        short(seen) && (last || all_seen && next.is_some_and(|next| !continues(seen, next)))
    });
    let (_, seen) = dropped?;
    context.said_nothing(flow.pid, seen.at_s).then(|| found(context, flow, seen))
}

/// Whether the next call writes what the short one left.
fn continues(short: &Seen, next: &Seen) -> bool {
    let taken = short.call.result as u64;
    let rest = short.call.asked - taken;
    let behind = next.call.args[1] == short.call.args[1].wrapping_add(taken);
    // writev(2) takes a list, and some programs move the rest to the front of their buffer.
    behind || next.call.asked == rest || next.call.op != short.call.op || next.call.result < 0
}

fn found(context: &Context, flow: &StreamCounts, seen: &Seen) -> Finding {
    let taken = seen.call.result as u64;
    let rest = seen.call.asked - taken;
    let why = format!(
        "{}(2) took {} of {} from {}, which never wrote the other {} and ended with status 0.",
        seen.call.op.name(),
        count(taken, "byte"),
        count(seen.call.asked, "byte"),
        context.name(flow.pid),
        count(rest, "byte")
    );
    let fix = "write the rest in a loop until all is taken or an error comes (EAGAIN: poll(2) first): \
               for (done = 0; done < n; done += got) { got = write(fd, buffer + done, n - done); \
               if (got < 0) … }; fwrite, Python's buffered files and print, not syswrite, do it \
               themselves.";
    let draft = context.draft(&RULE, Severity::High, flow.pid, flow.fd, Some(flow.file));
    let draft =
        draft.count("asked_bytes", seen.call.asked).count("written_bytes", taken).count("lost_bytes", rest);
    draft.figure("at_s", seen.at_s).say(why, fix)
}
