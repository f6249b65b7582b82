//! read-after-eof-spin: a loop reads on at the end of the input without a pause.
//!
//! Evidence: most calls of a flow returned 0, hundreds of them, so many a second that nothing can have waited
//! between, and they cost by the prices. A follower that sleeps or waits for inotify makes few.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity};

use crate::context::Context;
use crate::language::Language;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::part;
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule {
    id: "read-after-eof-spin",
    title: "Busy loop at end of file",
    meaning: "a loop reads at the end of its input without a pause",
    position: 270,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::SpinTime,
    supersedes: &[OnStream("tiny-reads")],
    judge,
    ..Rule::DEFAULT
};

/// Calls a second that leave no room for a pause.
const RATE: f64 = 2_000.0;

fn judge(context: &Context) -> Vec<Finding> {
    let flows =
        context.toward(Direction::In).filter(|flow| flow.zeros >= 200 && flow.zeros * 2 >= flow.calls);
    flows.filter_map(|flow| found(context, flow)).collect()
}

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let span_s = context.span_s(flow);
    if (flow.zeros as f64) < span_s * RATE {
        return None;
    }
    let price = context.recording.prices.small_call_ns(context.kind(flow.file), false);
    let calls_s = context.at_most_cpu(flow.pid, flow.zeros as f64 * price / 1e9);
    // The loop around the calls burns as well.
    let burnt_s = context.cpu_s(flow.pid).map_or(calls_s, |cpu| cpu.min(span_s).max(calls_s));
    let severity =
        RULE.severity_of(context, calls_s)?.max(RULE.severity_of(context, burnt_s).unwrap_or(Severity::Info));
    let why = format!(
        "{} read {} times at the end of its input, {:.0} times a second: {} of a processor for nothing.",
        context.name(flow.pid),
        part(flow, flow.zeros),
        flow.zeros as f64 / span_s.max(1e-6),
        format_seconds(burnt_s)
    );
    let fix = match context.language(flow.pid, flow.first_s) {
        Language::Shell => "tail -f FILE | while read -r line; do …; done, or sleep in the loop",
        Language::Python => "time.sleep(0.1) when read gives nothing, or inotify",
        Language::Perl => "sleep 1 when nothing came, or select(undef, undef, undef, 0.1)",
        _ => {
            "wait before reading again: inotify(7) on the file, poll(2) on a pipe, or nanosleep(2); end \
            at the end of a pipe"
        }
    };
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file));
    let draft = draft.count("zero_reads", flow.zeros).count("calls", flow.calls).figure("cost_s", burnt_s);
    // Waiting for the input takes as long as before: no time is saved, calls are.
    Some(draft.gain(Gain { elapsed_s: 0.0, calls: flow.zeros }).say(why, format!("{fix}.")))
}
