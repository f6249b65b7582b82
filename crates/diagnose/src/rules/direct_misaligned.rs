//! direct-misaligned: O_DIRECT with an address, offset or length that the device cannot take.
//!
//! Evidence: EINVAL on a file opened with O_DIRECT, and at least one of the three does not fit what the file
//! system asks for (512 where it does not say). Other reasons for EINVAL are not this.

use std::collections::BTreeMap;

use weir_model::trace::{Call, Op, OpenFile};
use weir_model::{Finding, Severity};

use crate::context::{Context, Seen};
use crate::flags::{EINVAL, O_DIRECT};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::thousands;

pub(crate) const RULE: Rule = Rule {
    id: "direct-misaligned",
    title: "O_DIRECT fails with EINVAL",
    meaning: "O_DIRECT with an address, offset or length that the device cannot take",
    position: 210,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let mut streams: BTreeMap<(u32, i32, u32), Vec<Seen>> = BTreeMap::new();
    for file in &context.recording.files {
        for seen in context.calls_on(file.id).iter().filter(|seen| refused(seen, file)) {
            streams.entry((seen.pid, seen.call.fd, file.id)).or_default().push(*seen);
        }
    }
    streams.iter().filter_map(|(&(_, _, file), calls)| found(context, context.file(file)?, calls)).collect()
}

fn refused(seen: &Seen, file: &OpenFile) -> bool {
    let moves = seen.call.op.reads() || seen.call.op.writes();
    // The flags may have been looked at when the program had already taken O_DIRECT away again.
    let direct = file.flags & O_DIRECT != 0 || file.direct_align.is_some();
    moves && direct && seen.call.result == -EINVAL && seen.call.asked > 0
}

/// What does not fit, each as a sentence's part with the nearest value that would.
fn misfits(call: &Call, file: &OpenFile) -> Vec<(&'static str, String)> {
    let (memory, blocks) = file.direct_align.unwrap_or((512, 512));
    let (memory, blocks) = (u64::from(memory).max(1), u64::from(blocks).max(1));
    let mut found = Vec::new();
    if !call.asked.is_multiple_of(blocks) {
        let right = call.asked.next_multiple_of(blocks);
        found.push((
            "length",
            format!(
                "the length {} is no multiple of {blocks} (take \
            {right})",
                call.asked
            ),
        ));
    }
    // Not every engine tells the place of a call that failed; these say it themselves.
    let own = || matches!(call.op, Op::Pread | Op::Pwrite).then_some(call.args[3]);
    if let Some(position) = call.position.or_else(own).filter(|position| !position.is_multiple_of(blocks)) {
        let right = position - position % blocks;
        found.push(("offset", format!("the offset {position} is no multiple of {blocks} (take {right})")));
    }
    // readv(2) and its like pass a list there, whose addresses are not known.
    if !call.op.name().contains('v') && !call.args[1].is_multiple_of(memory) {
        found.push((
            "address",
            format!(
                "the address {:#x} is no multiple of {memory} \
            (posix_memalign)",
                call.args[1]
            ),
        ));
    }
    found
}

fn found(context: &Context, file: &OpenFile, calls: &[Seen]) -> Option<Finding> {
    let (first, wrong) =
        calls.iter().map(|seen| (seen, misfits(seen.call, file))).find(|(_, wrong)| !wrong.is_empty())?;
    let parts: Vec<&str> = wrong.iter().map(|(_, part)| part.as_str()).collect();
    let why = format!(
        "{} of {} with O_DIRECT failed with EINVAL {} times: {}.",
        first.call.op.name(),
        context.name(first.pid),
        thousands(calls.len() as u64),
        parts.join(", ")
    );
    let (memory, blocks) = file.direct_align.unwrap_or((512, 512));
    let fix = format!(
        "posix_memalign(&buffer, {0}, size), with sizes and offsets in multiples of {1}; the file's last \
            part through a \
         descriptor without O_DIRECT, then ftruncate(2). In Python mmap.mmap(-1, size) is aligned.",
        memory.max(4096),
        blocks.max(4096)
    );
    let mut draft = context.draft(&RULE, Severity::Warn, first.pid, first.call.fd, Some(file.id));
    for (name, _) in &wrong {
        draft = draft.count(&format!("misaligned_{name}"), 1);
    }
    let draft = draft.count("failures", calls.len() as u64).count("length", first.call.asked);
    Some(draft.count("memory_align", memory.into()).count("block_align", blocks.into()).say(why, fix))
}
