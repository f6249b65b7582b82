//! sync-every-write: a sync call after every write.
//!
//! Evidence: at least ten sync calls, one for every two writes or more, and they cost by the prices, or as long
//! as the first ones were seen to take, never more than the time in which they happened. A program that syncs whole blocks may have to (a database's
//! transactions): at most Warn.

use weir_model::trace::Flow;
use weir_model::{Direction, Finding, FindingId, Gain, Severity, StreamKind};

use super::Rule;
use super::tiny_writes::moving;
use crate::context::Context;
use crate::words::thousands;
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule { id: FindingId::SyncEveryWrite, judge };

/// Writes of this much may be somebody's transactions.
const BLOCK: f64 = 4096.0;

fn judge(context: &Context) -> Vec<Finding> {
    let files = context.toward(Direction::Out).filter(|flow| context.kind(flow.file) == StreamKind::File);
    files.filter_map(|flow| found(context, flow)).collect()
}

/// Syncs of this descriptor, whichever direction they were counted with.
fn syncs(context: &Context, flow: &Flow) -> u64 {
    let same = |other: &&&Flow| other.fd == flow.fd && other.file == flow.file && other.image == flow.image;
    context.flows(flow.pid).iter().filter(same).map(|other| other.syncs).sum()
}

/// Seconds that one sync took here: the usual time from a write's end to its sync's end, where several were seen, else
/// its price.
fn sync_s(context: &Context, flow: &Flow) -> f64 {
    let pairs = context.calls(flow.pid).windows(2).filter(|pair| {
        let [write, sync] = [pair[0].call, pair[1].call];
        write.fd == flow.fd && sync.fd == flow.fd && write.op.writes() && sync.op.syncs()
    });
    let mut gaps: Vec<f64> = pairs.map(|pair| pair[1].at_s - pair[0].at_s).collect();
    gaps.sort_by(f64::total_cmp);
    match gaps.len() {
        0..3 => context.recording.prices.sync_ns / 1e9,
        several => gaps.iter().sum::<f64>() / several as f64,
    }
}

fn found(context: &Context, flow: &Flow) -> Option<Finding> {
    let (writes, syncs) = (moving(flow), syncs(context, flow));
    if syncs < 10 || syncs * 2 < writes || flow.bytes == 0 {
        return None;
    }
    let cost_s = (syncs as f64 * sync_s(context, flow)).min(context.span_s(flow));
    let gain = Gain { elapsed_s: cost_s * (1.0 - 1.0 / syncs as f64), calls: syncs - 1 };
    let mut severity = context.severity(gain.elapsed_s)?;
    if flow.mean_bytes() >= BLOCK {
        severity = severity.min(Severity::Warn);
    }
    let why = format!(
        "{} called sync {} times for {} writes of {:.0} bytes: about {} of {} is waiting for the device.",
        context.name(flow.pid),
        thousands(syncs),
        thousands(writes),
        flow.mean_bytes(),
        format_seconds(cost_s),
        format_seconds(context.run_s())
    );
    let fix = "sync once for a batch: after every so many records, every 100 ms, or at the end (one \
        transaction in a \
               database); threads can share one fdatasync(2) (group commit; weir_sync of libweir does it).";
    let draft = context.draft(RULE.id, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft = draft.count("syncs", syncs).count("writes", writes).figure("mean_bytes", flow.mean_bytes());
    Some(draft.figure("cost_s", cost_s).figure("share", context.share(cost_s)).say(why, fix))
}
