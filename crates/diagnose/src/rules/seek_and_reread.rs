//! seek-and-reread: each seek throws a stream's buffer away, and the same bytes are read again.
//!
//! Evidence: the bytes of a regular file were read at least four times on average, at least half of them at positions that had
//! been read before, with jumps between, and this costs time. Random reads of a large file read each byte about once. A program
//! that seeks back in an input that another process opened (a shell that leaves the rest to its commands) may have to: at most
//! warn.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Gain, Severity, SourceLanguage};

use crate::call_patterns::rereads;
use crate::context::RuleContext;
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{count, part, total};

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

/// The most user time for seeking and refilling the buffer, as a share of the kernel's time for it. Measured as 0.2 to 0.6 on
/// five programs in four languages; the rest of a program's time is its own work.
const MAX_AROUND: f64 = 0.75;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.streams(Direction::In).filter(|stream| rereads(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let prices = &context.recording.prices;
    let (pid, file) = (stream.pid, context.file(stream.file)?);
    let file_bytes = file.size_bytes.unwrap_or(0);
    let priced_s = prices.again_s(stream.calls, stream.bytes) + stream.seeks as f64 * prices.call_ns / 1e9;
    let calls_s = context.cap_to_cpu(pid, priced_s * context.stream_price_scale(stream, priced_s));
    let around_s = context.around_part_s(stream, calls_s).min(calls_s * MAX_AROUND);
    let cost_s = context.cap_to_cpu(pid, calls_s + around_s);
    let saved_s = cost_s * (1.0 - file_bytes as f64 / stream.bytes as f64);
    let mut severity = RULE.severity_of(context, pid, saved_s.min(calls_s))?;
    if file.opened_by != Some(pid) {
        severity = severity.min(Severity::Warn);
    }
    let why = format!(
        "{} read {} bytes of a file of {} with {} calls and {} seeks: each seek throws the buffer away, and the \
            same bytes are read again.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        count(file_bytes, "byte"),
        total(stream, stream.calls),
        part(stream, stream.seeks)
    );
    let fix = match context.language(pid, stream.first_s) {
        // The shell's read takes what it needs of a block and seeks back for the next command.
        SourceLanguage::Shell => {
            "one process for the whole loop: awk '…' FILE; in bash mapfile -t LINES < FILE."
        }
        _ => {
            "a stream of its own for each position that is read in turn; no seek to the current position; \
                pread(2) of just the record, or mmap(2)."
        }
    };
    let calls = (stream.calls + stream.seeks).saturating_sub(file_bytes / 4096 + 1);
    let finding = context.finding(&RULE, severity, pid, stream.fd, Some(stream.file));
    let finding = finding.count("calls", stream.calls).count("seeks", stream.seeks);
    let finding = finding.count("bytes", stream.bytes).count("again_bytes", stream.again_bytes);
    let finding = finding.count("file_bytes", file_bytes).figure("cost_s", cost_s);
    Some(finding.gain(Gain { elapsed_s: saved_s, calls }).build(why, fix))
}
