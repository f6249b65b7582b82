//! sync-tiny-writes: every write of a few bytes waits for the device.
//!
//! Evidence: the file was opened with O_SYNC or O_DSYNC, or pwritev2(2) is called with RWF_DSYNC or RWF_SYNC;
//! the writes are below a large buffer; and the waits cost by the prices, never more than the time in which they
//! happened. On tmpfs, where nothing waits, that time is short and there is no finding. Whole blocks may be a database's
//! pages, which have to wait: at most Warn.

use weir_model::trace::{StreamCounts, Op};
use weir_model::{Direction, Finding, FindingId, Gain, Severity, StreamKind};

use super::Rule;
use super::tiny_writes::moving;
use super::unaligned_writes;
use crate::context::Context;
use crate::cost::BUFFER;
use crate::flags::{O_DSYNC, RWF_SYNCS};
use crate::words::{part, total};
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule { id: FindingId::SyncTinyWrites, judge };

/// Writes of this much may be somebody's pages.
const BLOCK: f64 = 4096.0;

/// A device that others use too is slower than its price by up to this much; the program may sleep besides.
const BUSY: f64 = 3.0;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::Out).filter(|flow| {
        let small = moving(flow) >= 10
            && match flow.mean_bytes() {
                tiny if tiny < BLOCK => true,
                blocks => blocks < BUFFER as f64 / 2.0 && !unaligned_writes::applies(context, flow),
            };
        small && context.kind(flow.file) == StreamKind::File && waits(context, flow)
    });
    flows.filter_map(|flow| found(context, flow)).collect()
}

/// Whether each write of a flow waits for the device.
pub(super) fn waits(context: &Context, flow: &StreamCounts) -> bool {
    let by_file = context.file(flow.file).is_some_and(|file| file.flags & O_DSYNC != 0);
    let mut calls = context.calls_on(flow.file).iter();
    let mut writes = calls.by_ref().filter(|seen| seen.pid == flow.pid && seen.call.op.writes()).peekable();
    let by_call = writes.peek().is_some()
        && writes.all(|seen| seen.call.op == Op::Pwritev2 && seen.call.args[5] & RWF_SYNCS != 0);
    by_file || by_call
}

/// What the waits took: the time that the program did not compute, as far as the price allows for it.
fn waited_s(context: &Context, flow: &StreamCounts, calls: u64) -> f64 {
    let priced = calls as f64 * context.recording.prices.sync_ns / 1e9;
    match context.process(flow.pid).filter(|process| process.user_s > 0.0) {
        Some(process) => (context.span_s(flow) - process.user_s).clamp(0.0, priced * BUSY),
        None => priced.min(context.span_s(flow)),
    }
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let calls = moving(flow);
    let needed = flow.bytes.div_ceil(BUFFER).max(1);
    let cost_s = waited_s(context, flow, calls);
    let gain = Gain {
        elapsed_s: cost_s * (1.0 - needed as f64 / calls as f64).max(0.0),
        calls: calls.saturating_sub(needed),
    };
    let mut severity = context.severity(gain.elapsed_s)?;
    if flow.mean_bytes() >= BLOCK {
        severity = severity.min(Severity::Warn);
    }
    let why = format!(
        "{} wrote {} bytes in {} calls that each wait for the device: about {} of {}.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        part(flow, calls),
        format_seconds(cost_s),
        format_seconds(context.run_s())
    );
    let fix = "open it without O_SYNC and O_DSYNC, gather records into large writes and call fdatasync(2) \
        once where the data must be safe.";
    let draft = context.draft(RULE.id, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft =
        draft.count("calls", calls).count("bytes", flow.bytes).figure("mean_bytes", flow.mean_bytes());
    Some(draft.figure("cost_s", cost_s).figure("share", context.share(cost_s)).say(why, fix))
}
