//! sync-tiny-writes: every write of a few bytes waits for the device.
//!
//! Evidence: the file was opened with O_SYNC or O_DSYNC, or pwritev2(2) is called with RWF_DSYNC or RWF_SYNC;
//! the writes are below a large buffer; and the waits cost by the prices, never more than the time in which they
//! happened. On tmpfs, where nothing waits, that time is short and there is no finding. Whole blocks may be a database's
//! pages, which have to wait: at most Warn.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::call_patterns::{is_synchronous, moving_calls, straddles_blocks};
use crate::context::Context;
use crate::cost::BUFFER;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{part, total};
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule {
    id: "sync-tiny-writes",
    title: "Every write waits for the device",
    meaning: "small writes, each of which waits for the device",
    position: 140,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::WaitTime,
    supersedes: &[
        OnStream("sync-every-write"),
        OnStream("tiny-writes"),
        OnStream("line-buffered-bulk"),
        OnStream("unaligned-writes"),
    ],
    judge,
    ..Rule::DEFAULT
};

/// Writes of this much may be somebody's pages.
const BLOCK: f64 = 4096.0;

/// A device that others use too is slower than its price by up to this much; the program may sleep besides.
const BUSY: f64 = 3.0;

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::Out).filter(|flow| {
        let small = moving_calls(flow) >= 10
            && match flow.mean_bytes() {
                tiny if tiny < BLOCK => true,
                blocks => blocks < BUFFER as f64 / 2.0 && !straddles_blocks(context, flow),
            };
        small && context.kind(flow.file) == StreamKind::File && is_synchronous(context, flow)
    });
    flows.filter_map(|flow| found(context, flow)).collect()
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
    let calls = moving_calls(flow);
    let needed = flow.bytes.div_ceil(BUFFER).max(1);
    let cost_s = waited_s(context, flow, calls);
    let gain = Gain {
        elapsed_s: cost_s * (1.0 - needed as f64 / calls as f64).max(0.0),
        calls: calls.saturating_sub(needed),
    };
    let mut severity = RULE.severity_of(context, gain.elapsed_s)?;
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
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file)).gain(gain);
    let draft =
        draft.count("calls", calls).count("bytes", flow.bytes).figure("mean_bytes", flow.mean_bytes());
    Some(draft.figure("cost_s", cost_s).figure("share", context.share(cost_s)).say(why, fix))
}
