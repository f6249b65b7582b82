//! could-copy-in-kernel: a program copies a file's bytes unchanged through its own memory.
//!
//! Evidence: all bytes read from a file are written to another file or a socket, in turns, with equal totals and equal
//! recorded beginnings. System calls do not show whether the program also uses the bytes (for a checksum), so the severity is
//! at most warn.
//!
//! On a file system without shared blocks the kernel copies too, once and in pieces of 64 KiB. The cost of smaller calls and of
//! the second copy is the gain. The severity is that of the calls: a copy in large pieces is a hint, because other file systems
//! share the blocks.

use std::collections::BTreeMap;

use weir_model::trace::StreamCounts;
use weir_model::{Finding, Gain, Severity, StreamKind};

use crate::context::RuleContext;
use crate::pass_through::PassThrough;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::least_certain;

pub(crate) const RULE: Rule = Rule {
    id: "could-copy-in-kernel",
    title: "Copying that the kernel can do",
    meaning: "a program copies bytes unchanged through its own memory",
    position: 230,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::CpuTime,
    judge,
    ..Rule::DEFAULT
};

/// The least that copy_file_range(2) moves with one call.
const KERNEL_COPY: u64 = 1 << 20;

/// The size of the pieces in which the kernel copies on a file system without shared blocks.
const KERNEL_PIECE: u64 = 65_536;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let mut by_image: BTreeMap<(u32, u32), Vec<PassThrough>> = BTreeMap::new();
    for to in [StreamKind::File, StreamKind::Socket] {
        for copy in context.pass_throughs(StreamKind::File, to) {
            by_image.entry((copy.input.pid, copy.input.image)).or_default().push(copy);
        }
    }
    by_image.values().filter_map(|copies| finding(context, copies)).collect()
}

/// Returns the seconds of a copy's calls, and of the program around them, less those of a copy in the kernel.
fn saved_calls_s(context: &RuleContext, copy: &PassThrough) -> f64 {
    let prices = &context.recording.prices;
    let (input, output) = (copy.input, copy.output);
    if context.kind(output.file) == StreamKind::Socket {
        return hint_s(context, copy);
    }
    let read_ns = prices.file_read_ns;
    let calls_ns = input.calls as f64 * read_ns + output.calls as f64 * prices.append_ns(output.mean_bytes());
    let pieces = input.bytes as f64 / KERNEL_PIECE as f64;
    let kernel_ns = pieces * (read_ns + prices.append_ns(KERNEL_PIECE as f64));
    let calls_s = ((calls_ns - kernel_ns) / 1e9).max(0.0);
    let around_s = context.around_part_s(input, calls_s) + context.around_part_s(output, calls_s);
    calls_s + around_s.min(calls_s)
}

/// Returns the seconds of the copy into the program's memory. The kernel does without it: it writes from the pages of the page
/// cache (splice_copy_file_range in fs/splice.c).
fn read_copy_s(context: &RuleContext, copy: &PassThrough) -> f64 {
    match context.kind(copy.output.file) {
        StreamKind::Socket => 0.0,
        _ => copy_s(context, copy),
    }
}

/// Returns the seconds of copying all bytes once.
fn copy_s(context: &RuleContext, copy: &PassThrough) -> f64 {
    copy.input.bytes as f64 * context.recording.prices.byte_ns / 1e9
}

/// Returns the seconds that decide whether a copy is worth a hint: those of its calls and of one of its two copies.
fn hint_s(context: &RuleContext, copy: &PassThrough) -> f64 {
    let prices = &context.recording.prices;
    let calls_ns = |stream: &StreamCounts, writes| {
        stream.calls as f64 * prices.small_call_ns(context.kind(stream.file), writes)
    };
    (calls_ns(copy.input, false) + calls_ns(copy.output, true)) / 1e9 + copy_s(context, copy)
}

/// Returns the finding about all copies of one image.
fn finding(context: &RuleContext, copies: &[PassThrough]) -> Option<Finding> {
    let first = copies.first()?;
    let pid = first.input.pid;
    let bytes: u64 = copies.iter().map(|copy| copy.input.bytes).sum();
    let calls: u64 = copies.iter().map(|copy| copy.input.calls + copy.output.calls).sum();
    let calls_s: f64 = copies.iter().map(|copy| saved_calls_s(context, copy)).sum();
    let read_copy_s: f64 = copies.iter().map(|copy| read_copy_s(context, copy)).sum();
    let saved_s = context.cap_to_cpu(pid, calls_s + read_copy_s);
    let hint_s = context.cap_to_cpu(pid, copies.iter().map(|copy| hint_s(context, copy)).sum());
    let hint = context.severity(pid, hint_s).map(|_| Severity::Info);
    let severity = RULE.severity_of(context, pid, context.cap_to_cpu(pid, calls_s)).max(hint)?;
    let ends = copies.iter().flat_map(|copy| [copy.input.certainty(), copy.output.certainty()]);
    let certainty = least_certain(ends);
    let why = format!(
        "{} read {} bytes and wrote them unchanged, with {} calls.",
        context.stream_name(first.input),
        certainty.text(bytes),
        certainty.text(calls)
    );
    let fix = match context.kind(first.output.file) {
        StreamKind::Socket => {
            "sendfile(2): the bytes do not enter the program's memory (Python: socket.sendfile)."
        }
        _ => {
            "copy_file_range(2), or weir copy, which also shares blocks and keeps holes; cp and Python's shutil.copyfile \
            let the kernel copy, too. On xfs and btrfs no byte is copied at all."
        }
    };
    let gain = Gain { elapsed_s: saved_s, calls: calls.saturating_sub(bytes / KERNEL_COPY + 1) };
    let output = first.output;
    let finding = context.finding(&RULE, severity, output.pid, output.fd, Some(output.file));
    let finding = finding.count("bytes", bytes).count("calls", calls).count("files", copies.len() as u64);
    Some(finding.figure("saved_s", saved_s).gain(gain).build(why, fix))
}
