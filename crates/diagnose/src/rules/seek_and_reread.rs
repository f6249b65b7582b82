//! seek-and-reread: a stream's buffer is thrown away and filled again after each seek.
//!
//! Evidence: a regular file's bytes were read at least four times over on the average, half of all below a
//! place where it had been before, with jumps between, and it costs by the prices. Random reads of a
//! large file read each byte about once. A program that seeks back in an input that others gave it (a shell
//! that leaves the rest to its commands) may have to: at most Warn.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity};

use crate::call_patterns::rereads;
use crate::context::Context;
use crate::language::Language;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, part, total};

pub(crate) const RULE: Rule = Rule {
    id: "seek-and-reread",
    title: "The same bytes read again and again",
    meaning: "each seek throws the buffer away and the same bytes are read again",
    position: 260,
    severity: SeverityRule::Cost { most: Severity::High },
    gain: GainKind::CpuTime,
    supersedes: &[OnStream("tiny-reads"), OnStream("random-without-advice")],
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let flows = context.toward(Direction::In).filter(|flow| rereads(context, flow));
    flows.filter_map(|flow| found(context, flow)).collect()
}

/// What a program does itself to seek and to fill its buffer again is no more than this of what the kernel takes for it:
/// measured on five programs in four languages, 0.2 to 0.6. The rest of its time is spent on what it reads.
const OWN_MOST: f64 = 0.75;

fn found(context: &Context, flow: &StreamCounts) -> Option<Finding> {
    let prices = &context.recording.prices;
    let file = context.file(flow.file)?;
    let needed = file.size_bytes.unwrap_or(0);
    let calls_s = prices.again_s(flow.calls, flow.bytes) + flow.seeks as f64 * prices.call_ns / 1e9;
    let calls_s = context.at_most_cpu(flow.pid, calls_s * context.scale_of(flow, calls_s));
    let cost_s =
        context.at_most_cpu(flow.pid, calls_s + context.own_part_s(flow, calls_s).min(calls_s * OWN_MOST));
    let saved = cost_s * (1.0 - needed as f64 / flow.bytes as f64);
    let mut severity = RULE.severity_of(context, saved.min(calls_s))?;
    if file.opened_by != Some(flow.pid) {
        severity = severity.min(Severity::Warn);
    }
    let why = format!(
        "{} read {} bytes of a file of {} with {} calls and {} seeks: each seek throws the buffer away, and the \
            same bytes are read again.",
        context.name(flow.pid),
        total(flow, flow.bytes),
        count(needed, "byte"),
        total(flow, flow.calls),
        part(flow, flow.seeks)
    );
    let fix = match context.language(flow.pid, flow.first_s) {
        // read(1) takes what it needs of a block, and goes back for who comes next.
        Language::Shell => "one process for the whole loop: awk '…' FILE; in bash mapfile -t LINES < FILE.",
        _ => {
            "a stream of its own for each place that is read in turn; no seek to where the stream is already; \
                pread(2) of just the record, or mmap(2)."
        }
    };
    let calls = (flow.calls + flow.seeks).saturating_sub(needed / 4096 + 1);
    let draft = context.draft(&RULE, severity, flow.pid, flow.fd, Some(flow.file));
    let draft = draft.count("calls", flow.calls).count("seeks", flow.seeks).count("bytes", flow.bytes);
    let draft =
        draft.count("again_bytes", flow.again_bytes).count("file_bytes", needed).figure("cost_s", cost_s);
    Some(draft.gain(Gain { elapsed_s: saved, calls }).say(why, fix))
}
