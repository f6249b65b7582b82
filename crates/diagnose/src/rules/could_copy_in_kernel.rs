//! could-copy-in-kernel: a file's bytes pass through the program unchanged.
//!
//! Evidence: what is read of a file is all that is written to another file or a socket, in turns, with equal
//! totals, and the beginnings that were seen are the same. What a program does with the bytes besides (a
//! checksum) cannot be seen: never High.

use std::collections::BTreeMap;

use weir_model::trace::Flow;
use weir_model::{Finding, FindingId, Gain, Severity, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::passing::Pass;
use crate::words::said;

pub(crate) const RULE: Rule = Rule { id: FindingId::CouldCopyInKernel, judge };

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

/// The calls, and one of the two copies, of a pass.
fn saved_s(context: &Context, pass: &Pass) -> f64 {
    let prices = &context.recording.prices;
    let entering =
        |flow: &Flow, writes| flow.calls as f64 * prices.small_call_ns(context.kind(flow.file), writes);
    (entering(pass.input, false) + entering(pass.output, true) + pass.input.bytes as f64 * prices.byte_ns)
        / 1e9
}

fn found(context: &Context, passes: &[Pass]) -> Option<Finding> {
    let first = passes.first()?;
    let saved: f64 = passes.iter().map(|pass| saved_s(context, pass)).sum();
    let bytes: u64 = passes.iter().map(|pass| pass.input.bytes).sum();
    let calls: u64 = passes.iter().map(|pass| pass.input.calls + pass.output.calls).sum();
    let saved = context.at_most_cpu(first.input.pid, saved);
    let severity = context.severity(saved)?.min(Severity::Warn);
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
    let draft = context.draft(RULE.id, severity, first.output.pid, first.output.fd, Some(first.output.file));
    let draft = draft.count("bytes", bytes).count("calls", calls).count("files", passes.len() as u64);
    Some(draft.figure("saved_s", saved).gain(gain).say(why, fix))
}
