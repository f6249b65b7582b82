//! unaligned-writes: writes over an existing file that begin or end within a block of the page cache.
//!
//! Evidence: a tenth of at least 100 writes do, and what is around them must be kept: the file was there before
//! and is not appended to, or each write waits for the device (O_SYNC, O_DSYNC), which then takes two blocks.
//! A new file has nothing to read. Info; Warn where the process waited longer in that time than it had the
//! processor.

use weir_model::trace::{StreamCounts, OpenFile};
use weir_model::{Direction, Finding, FindingId, Severity, StreamKind};

use super::Rule;
use super::tiny_writes::{TINY, moving};
use crate::context::Context;
use crate::flags::{O_APPEND, O_CREAT, O_DSYNC, O_TRUNC};
use crate::words::{part, total};

pub(crate) const RULE: Rule = Rule { id: FindingId::UnalignedWrites, judge };

const BLOCK: u64 = 4096;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::Out).filter(|flow| applies(context, flow));
    flows.filter_map(|flow| found(context, flow)).collect()
}

/// Whether most of what the writes cost may be that they lie badly.
pub(super) fn applies(context: &Context, flow: &StreamCounts) -> bool {
    let Some(file) = context.file(flow.file).filter(|file| file.kind == StreamKind::File) else {
        return false;
    };
    let many = moving(flow) >= 100 && flow.unaligned * 10 >= flow.calls;
    many && flow.mean_bytes() >= TINY as f64 && (overwrites(file, flow) || file.flags & O_DSYNC != 0)
}

/// Whether the blocks around the writes had something in them. Of a file that was open before the run nobody knows
/// how it was opened: only its size tells.
fn overwrites(file: &OpenFile, flow: &StreamCounts) -> bool {
    let not_new = file.opened_by.is_some() && file.flags & O_CREAT == 0;
    let larger = file.size_bytes.is_some_and(|size| size > flow.bytes + flow.bytes / 20);
    (not_new || larger) && file.flags & (O_TRUNC | O_APPEND) == 0
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let file = context.file(flow.file)?;
    let span_s = context.span_s(flow);
    context.severity(span_s)?;
    let waited_s = context.waited_s(flow.pid, span_s).unwrap_or(0.0);
    let worked_s = context.cpu_s(flow.pid).unwrap_or(span_s);
    let waits = waited_s * 2.0 >= worked_s && context.severity(waited_s) >= Some(Severity::Warn);
    let severity = if waits { Severity::Warn } else { Severity::Info };
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
    let draft = context.draft(RULE.id, severity, flow.pid, flow.fd, Some(flow.file));
    let draft =
        draft.count("unaligned", flow.unaligned).count("calls", flow.calls).count("bytes", flow.bytes);
    Some(draft.figure("mean_bytes", flow.mean_bytes()).figure("waited_s", waited_s).say(why, fix))
}
