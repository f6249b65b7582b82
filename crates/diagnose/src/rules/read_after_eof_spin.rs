//! read-after-eof-spin: a loop reads at the end of its input without a pause.
//!
//! Evidence: most calls of a stream returned 0, there are hundreds of them, they come too fast for a pause between them, and
//! they cost time. A program that follows a file and sleeps, or waits for inotify, makes few such calls.

use weir_model::duration::format_seconds;
use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, SourceLanguage};

use crate::context::RuleContext;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::part;

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

/// Calls per second that leave no room for a pause.
const RATE: f64 = 2_000.0;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let spins = |stream: &&StreamCounts| stream.zeros >= 200 && stream.zeros * 2 >= stream.calls;
    let streams = context.streams(Direction::In).filter(spins);
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let span_s = context.span_s(stream);
    if (stream.zeros as f64) < span_s * RATE {
        return None;
    }
    let call_ns = context.recording.prices.small_call_ns(context.kind(stream.file), false);
    let calls_s = context.cap_to_cpu(stream.pid, stream.zeros as f64 * call_ns / 1e9);
    // The loop around the calls uses CPU time as well.
    let loop_s = context.cpu_s(stream.pid).map_or(calls_s, |cpu_s| cpu_s.min(span_s).max(calls_s));
    let of_loop = RULE.severity_of(context, stream.pid, loop_s).unwrap_or(Severity::Info);
    let severity = RULE.severity_of(context, stream.pid, calls_s)?.max(of_loop);
    let why = format!(
        "{} read {} times at the end of its input, {} times a second, and wasted {} of CPU time.",
        context.stream_name(stream),
        part(stream, stream.zeros),
        part(stream, (stream.zeros as f64 / span_s.max(1e-6)).round() as u64),
        format_seconds(loop_s)
    );
    let fix = match context.language(stream.pid, stream.first_s) {
        SourceLanguage::Shell => "tail -f FILE | while read -r line; do …; done, or sleep in the loop",
        SourceLanguage::Python => "time.sleep(0.1) when read returns nothing, or inotify",
        SourceLanguage::Ruby => "sleep 0.1 when read returns nil",
        SourceLanguage::Tcl => "after 100 when gets returns -1",
        SourceLanguage::Go => "time.Sleep(100 * time.Millisecond) when Read returns io.EOF",
        SourceLanguage::Rust => "std::thread::sleep when read returns 0, or the crate inotify",
        SourceLanguage::Perl => "sleep 1 when read returns nothing, or select(undef, undef, undef, 0.1)",
        _ => {
            "wait before reading again: inotify(7) on the file, poll(2) on a pipe, or nanosleep(2); stop \
            at the end of a pipe"
        }
    };
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.count("zero_reads", stream.zeros).count("calls", stream.calls);
    // The input comes no sooner, so only calls and CPU time are saved, no elapsed time.
    let finding = finding.figure("cost_s", loop_s).gain(Gain { elapsed_s: 0.0, calls: stream.zeros });
    Some(finding.build(why, format!("{fix}.")))
}
