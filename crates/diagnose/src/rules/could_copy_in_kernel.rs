//! could-copy-in-kernel: a file's bytes pass through the program unchanged.
//!
//! Evidence: what is read of a file is all that is written to another file or a socket, in turns, with equal
//! totals, and the beginnings that were seen are the same. What a program does with the bytes besides (a
//! checksum) cannot be seen: never High.
//!
//! On a file system that does not share blocks the kernel copies as well, in pieces of 64 KiB: only what the calls cost
//! beyond that is gained. Copies in such pieces are a hint, for the others.

use std::collections::BTreeMap;

use weir_model::trace::StreamCounts;
use weir_model::{Finding, Gain, Severity, StreamKind};

use crate::context::Context;
use crate::passing::Pass;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::said;

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

/// What copy_file_range(2) moves with one call, at the least.
const KERNEL_COPY: u64 = 1 << 20;

fn judge(context: &Context) -> Vec<Finding> {
    let mut by_process: BTreeMap<(u32, u32), Vec<Pass>> = BTreeMap::new();
    for to in [StreamKind::File, StreamKind::Socket] {
        for pass in context.passes(StreamKind::File, to) {
            by_process.entry((pass.input.pid, pass.input.image)).or_default().push(pass);
        }
    }
    by_process.values().filter_map(|passes| found(context, passes)).collect()
}

/// What it copies at a time where blocks are not shared.
const KERNEL_PIECE: u64 = 65_536;

/// The calls of a pass and what the program does around them, less what the kernel takes for the same.
fn saved_s(context: &Context, pass: &Pass) -> f64 {
    let prices = &context.recording.prices;
    let (input, output) = (pass.input, pass.output);
    let read_ns = prices.file_read_ns;
    if context.kind(output.file) == StreamKind::Socket {
        return hint_s(context, pass);
    }
    let calls_ns = input.calls as f64 * read_ns + output.calls as f64 * prices.append_ns(output.mean_bytes());
    let pieces = input.bytes as f64 / KERNEL_PIECE as f64;
    let kernel_ns = pieces * (read_ns + prices.append_ns(KERNEL_PIECE as f64));
    let calls_s = ((calls_ns - kernel_ns) / 1e9).max(0.0);
    // The calls that remain are none, and so is what surrounds them.
    let own_s = context.own_part_s(input, calls_s) + context.own_part_s(output, calls_s);
    calls_s + own_s.min(calls_s)
}

/// The calls, and one of the two copies, of a pass: what is worth a hint.
fn hint_s(context: &Context, pass: &Pass) -> f64 {
    let prices = &context.recording.prices;
    let entering = |flow: &StreamCounts, writes| {
        flow.calls as f64 * prices.small_call_ns(context.kind(flow.file), writes)
    };
    (entering(pass.input, false) + entering(pass.output, true) + pass.input.bytes as f64 * prices.byte_ns)
        / 1e9
}

fn found(context: &Context, passes: &[Pass]) -> Option<Finding> {
    let first = passes.first()?;
    let saved: f64 = passes.iter().map(|pass| saved_s(context, pass)).sum();
    let bytes: u64 = passes.iter().map(|pass| pass.input.bytes).sum();
    let calls: u64 = passes.iter().map(|pass| pass.input.calls + pass.output.calls).sum();
    let saved = context.at_most_cpu(first.input.pid, saved);
    let hint: f64 = passes.iter().map(|pass| hint_s(context, pass)).sum();
    let hint = context.severity(context.at_most_cpu(first.input.pid, hint)).map(|_| Severity::Info);
    let severity = RULE.severity_of(context, saved).max(hint)?;
    let socket = context.kind(first.output.file) == StreamKind::Socket;
    let exact = passes.iter().all(|pass| !pass.input.estimated && !pass.output.estimated);
    let why = format!(
        "{} read {} bytes and wrote them unchanged, with {} calls.",
        context.name(first.input.pid),
        said(exact, bytes),
        said(exact, calls)
    );
    let fix = if socket {
        "sendfile(2): the bytes do not come into the program (Python: socket.sendfile)."
    } else {
        "copy_file_range(2), or cp and Python's shutil.copyfile, which call it or sendfile(2); on xfs and \
            btrfs no byte is copied at all."
    };
    let gain = Gain { elapsed_s: saved, calls: calls.saturating_sub(bytes / KERNEL_COPY + 1) };
    let draft = context.draft(&RULE, severity, first.output.pid, first.output.fd, Some(first.output.file));
    let draft = draft.count("bytes", bytes).count("calls", calls).count("files", passes.len() as u64);
    Some(draft.figure("saved_s", saved).gain(gain).say(why, fix))
}
