//! unaligned-writes: writes over an existing file that begin or end within a block of the page cache.
//!
//! Evidence: a tenth of at least 100 writes do, and what is around them must be kept: the file was there before
//! and is not appended to, or each write waits for the device (O_SYNC, O_DSYNC), which then takes two blocks.
//! A new file has nothing to read. Info; Warn where the process waited longer in that time than it had the
//! processor.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity};

use crate::call_patterns::straddles_blocks;
use crate::context::Context;
use crate::flags::O_DSYNC;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{part, total};

pub(crate) const RULE: Rule = Rule {
    id: "unaligned-writes",
    title: "Writes across block boundaries",
    meaning: "writes that begin or end within a block make the kernel read the rest first",
    position: 280,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

const BLOCK: u64 = 4096;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::Out).filter(|flow| straddles_blocks(context, flow));
    flows.filter_map(|flow| found(context, flow)).collect()
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let file = context.file(flow.file)?;
    let span_s = context.span_s(flow);
    context.severity(span_s)?;
    let waited_s = context.waited_s(flow.pid, span_s).unwrap_or(0.0);
    let worked_s = context.cpu_s(flow.pid).unwrap_or(span_s);
    let waits = waited_s * 2.0 >= worked_s && context.severity(waited_s) >= Some(Severity::Warn);
    let severity = if waits { RULE.most() } else { Severity::Info };
    let right = (flow.mean_bytes() as u64).next_multiple_of(BLOCK);
    let why = format!(
        "{} of {} writes of {}, {:.0} bytes each, begin or end within a block of {BLOCK}: the kernel must \
            read the rest of the block first{}.",
        part(flow, flow.unaligned),
        total(flow, flow.calls),
        context.name(flow.pid),
        flow.mean_bytes(),
        if file.flags & O_DSYNC != 0 { ", and wait for two blocks" } else { "" }
    );
    let fix = format!(
        "slots of {right} bytes that begin at multiples of {BLOCK}, or gather records and \
        write whole blocks (dd bs=64K)."
    );
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file));
    let draft =
        draft.count("unaligned", flow.unaligned).count("calls", flow.calls).count("bytes", flow.bytes);
    Some(draft.figure("mean_bytes", flow.mean_bytes()).figure("waited_s", waited_s).say(why, fix))
}
