//! sync-tiny-writes: small writes, each of which waits for the device.
//!
//! Evidence: the file was opened with O_SYNC or O_DSYNC, or pwritev2(2) is called with RWF_DSYNC or RWF_SYNC; the writes are
//! smaller than a large buffer; and the waits cost time: as measured, else by the price of a sync, never more than the time in
//! which they happened. On tmpfs, where nothing waits, there is no finding. Whole blocks may be a database's pages, which have
//! to be synced: at most warn.

use weir_model::duration::format_seconds;
use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::call_patterns::{is_synchronous, straddles_blocks};
use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::cost::BUFFER;
use crate::flags::O_DSYNC;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{part, total};
use crate::tool_options::tool_option;

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

/// Writes of this size may be pages of a database.
const BLOCK: f64 = 4096.0;

/// The most by which a device that other processes use is slower than its price. An estimate; the program may sleep besides.
const BUSY: f64 = 3.0;

/// The share of the time in the calls for which a write on a device blocks at least. The rest is the kernel's work: that of a
/// journal can be half of it.
const MIN_BLOCKED: f64 = 0.25;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context
        .streams(Direction::Out)
        .filter(|stream| applies(context, stream) && !is_known_not_to_wait(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn applies(context: &RuleContext, stream: &StreamCounts) -> bool {
    let small = match stream.mean_bytes() {
        mean if mean < BLOCK => true,
        mean => mean < BUFFER as f64 / 2.0 && !straddles_blocks(context, stream),
    };
    let is_file = context.kind(stream.file) == StreamKind::File;
    stream.moving_calls() >= 10 && small && is_file && is_synchronous(context, stream)
}

/// Returns whether the time for which the calls blocked was measured, and is too short for waits for a device.
fn is_known_not_to_wait(context: &RuleContext, stream: &StreamCounts) -> bool {
    let blocked = stream.wait_s.zip(context.in_calls_s(stream));
    blocked.is_some_and(|(blocked_s, in_calls_s)| blocked_s < in_calls_s * MIN_BLOCKED)
}

/// Returns the seconds of the waits: the measured ones, else the time in which the program did not compute, as far as the price
/// allows.
fn waited_s(context: &RuleContext, stream: &StreamCounts, calls: u64) -> f64 {
    if let Some(in_calls_s) = context.in_calls_s(stream) {
        return in_calls_s;
    }
    let priced_s = calls as f64 * context.recording.prices.sync_ns / 1e9;
    match context.user_s(stream.pid) {
        Some(user_s) => (context.span_s(stream) - user_s).clamp(0.0, priced_s * BUSY),
        None => priced_s.min(context.span_s(stream)),
    }
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let calls = stream.moving_calls();
    let needed = stream.bytes.div_ceil(BUFFER).max(1);
    let cost_s = waited_s(context, stream, calls);
    let gain = Gain {
        elapsed_s: cost_s * (1.0 - needed as f64 / calls as f64).max(0.0),
        calls: calls.saturating_sub(needed),
    };
    let mut severity = RULE.severity_of(context, stream.pid, gain.elapsed_s)?;
    if stream.mean_bytes() >= BLOCK {
        severity = severity.min(Severity::Warn);
    }
    let why = format!(
        "{} wrote {} bytes in {} calls that each wait for the device: about {} of {}.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        part(stream, calls),
        format_seconds(cost_s),
        format_seconds(context.run_s())
    );
    let image = context.image_at(stream.pid, stream.first_s).map(|(_, image)| image);
    let fix = match image.and_then(|image| tool_option(image, CodeFix::BufferOutput)) {
        Some(option) => format!("{option}."),
        None => {
            let flags = match context.file(stream.file).is_some_and(|file| file.flags & O_DSYNC != 0) {
                true => "open it without O_SYNC and O_DSYNC",
                false => "call pwritev2(2) without RWF_SYNC and RWF_DSYNC",
            };
            format!(
                "{flags}, gather records into large writes and call fdatasync(2) once where the data must be safe."
            )
        }
    };
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file)).gain(gain);
    let finding = finding.count("calls", calls).count("bytes", stream.bytes);
    let finding = finding.sampled(context.sampled_site(stream));
    let finding = finding.figure("mean_bytes", stream.mean_bytes()).figure("cost_s", cost_s);
    Some(finding.figure("share", context.share(cost_s)).build(why, fix))
}
