//! random-without-advice: random reads of a large file with read-ahead left on.
//!
//! Evidence: a fifth of at least 500 reads of a regular file jump, they take a share of the run's time, the
//! file is large, and nobody said POSIX_FADV_RANDOM. Info, as files in the cache lose nothing; Warn where much more was
//! fetched from devices than the program read, and the process waited long for that, not for a processor. Not meant: the
//! same few blocks over and over (seek-and-reread) and O_DIRECT, which has no read-ahead.

use weir_model::trace::{Op, StreamCounts};
use weir_model::{Direction, Finding, Severity, Size, StreamKind};

use crate::call_patterns::{moving_calls, rereads};
use crate::context::Context;
use crate::flags::{FADV_RANDOM, O_DIRECT};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{part, total};
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule {
    id: "random-without-advice",
    title: "Read-ahead of no use",
    meaning: "random reads with read-ahead left on",
    position: 240,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// A smaller file is read in whole by a few read-aheads.
const LARGE: u64 = 4 << 20;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::In).filter(|flow| applies(context, flow));
    flows.filter_map(|flow| found(context, flow)).collect()
}

fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let Some(file) = context.file(flow.file) else { return false };
    let large = file.size_bytes.is_some_and(|size| size >= LARGE);
    let random = moving_calls(flow) >= 500 && flow.jumps * 5 >= flow.calls && flow.mean_bytes() < 131_072.0;
    let rereads = rereads(context, flow);
    file.kind == StreamKind::File
        && file.flags & O_DIRECT == 0
        && large
        && random
        && !rereads
        && !advised(context, flow)
}

fn advised(context: &Context, flow: &StreamCounts) -> bool {
    let advice = |call: &weir_model::trace::Call| call.op == Op::Fadvise && call.args[3] == FADV_RANDOM;
    context.calls_on(flow.file).iter().any(|seen| advice(seen.call))
        || context
            .calls(flow.pid)
            .iter()
            .any(|seen| seen.call.file.is_none() && seen.call.fd == flow.fd && advice(seen.call))
}

/// What came from devices for the process, and which part of that its calls did not ask for.
fn fetched(context: &Context, flow: &StreamCounts) -> (u64, f64) {
    let fetched = context.process(flow.pid).and_then(|process| process.fetched_bytes).unwrap_or(0);
    let read = context.flows(flow.pid).iter().filter(|other| other.direction == Direction::In);
    let asked: u64 =
        read.filter(|other| context.kind(other.file) == StreamKind::File).map(|other| other.bytes).sum();
    (fetched, fetched.saturating_sub(asked) as f64 / fetched.max(1) as f64)
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let span_s = context.span_s(flow);
    context.severity(span_s)?;
    let (fetched, wasted) = fetched(context, flow);
    // With what it waited for and did not need.
    let waited_s = context.waited_s(flow.pid, span_s).unwrap_or(0.0);
    let wasted_s = waited_s * wasted;
    let severity = RULE.severity_of(context, wasted_s).unwrap_or(Severity::Info);
    let why = format!(
        "{} read {} bytes with {} calls, {} of them at another place than the last one ended; they took {}, and \
            the kernel was not told{}.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        total(flow, flow.calls),
        part(flow, flow.jumps),
        format_seconds(span_s),
        match wasted > 0.1 {
            true => format!(": it read ahead and fetched {} from the device", Size(fetched)),
            false => String::new(),
        }
    );
    let fix = "posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) after open (Python: os.posix_fadvise), or sort \
        the places and \
               read in their order; POSIX_FADV_WILLNEED for those that are known beforehand.";
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file));
    let draft = draft.count("calls", flow.calls).count("jumps", flow.jumps).count("bytes", flow.bytes);
    let draft = draft.count("fetched_bytes", fetched).figure("wasted_s", wasted_s);
    Some(draft.figure("span_s", span_s).figure("waited_s", waited_s).say(why, fix))
}
