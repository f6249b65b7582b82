//! direct-misaligned: O_DIRECT with an address, offset or length that the device cannot take.
//!
//! Evidence: EINVAL on a file opened with O_DIRECT, and at least one of the three is not a multiple of what the file system
//! requires (512 if that is unknown). EINVAL for other reasons is not reported.

use std::collections::BTreeMap;

use weir_model::trace::{Call, Op, OpenFile};
use weir_model::{Finding, Severity};

use crate::context::{RuleContext, TimedCall};
use crate::flags::{EINVAL, O_DIRECT};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::thousands;

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

/// The alignment of memory and of offsets if the file system does not report one.
const DEFAULT_ALIGN: (u32, u32) = (512, 512);

fn judge(context: &RuleContext) -> Vec<Finding> {
    let mut streams: BTreeMap<(u32, i32, u32), Vec<TimedCall>> = BTreeMap::new();
    for file in &context.recording.files {
        for timed in context.calls_on(file.id).iter().filter(|timed| is_refused(timed, file)) {
            streams.entry((timed.pid, timed.call.fd, file.id)).or_default().push(*timed);
        }
    }
    streams.iter().filter_map(|(&(_, _, file), calls)| finding(context, context.file(file)?, calls)).collect()
}

fn is_refused(timed: &TimedCall, file: &OpenFile) -> bool {
    let moves = timed.call.op.reads() || timed.call.op.writes();
    // The program may have cleared O_DIRECT before the flags were read.
    let direct = file.flags & O_DIRECT != 0 || file.direct_align.is_some();
    moves && direct && timed.call.result == -EINVAL && timed.call.requested_bytes > 0
}

/// Returns what is misaligned in a call: its name in the evidence, and a clause with the nearest aligned value.
fn misalignments(call: &Call, file: &OpenFile) -> Vec<(&'static str, String)> {
    let (memory, blocks) = file.direct_align.unwrap_or(DEFAULT_ALIGN);
    let (memory, blocks) = (u64::from(memory).max(1), u64::from(blocks).max(1));
    let mut found = Vec::new();
    if !call.requested_bytes.is_multiple_of(blocks) {
        let (length, aligned) = (call.requested_bytes, call.requested_bytes.next_multiple_of(blocks));
        let clause = format!("the length {length} is no multiple of {blocks} (take {aligned})");
        found.push(("length", clause));
    }
    // Some backends do not record the position of a failed call; these calls have it as an argument.
    let argument = || matches!(call.op, Op::Pread | Op::Pwrite).then_some(call.args[3]);
    let position = call.position.or_else(argument);
    if let Some(position) = position.filter(|position| !position.is_multiple_of(blocks)) {
        let aligned = position - position % blocks;
        found.push(("offset", format!("the offset {position} is no multiple of {blocks} (take {aligned})")));
    }
    // The vector calls, such as readv(2), take a list, and the addresses in it are not recorded.
    let address = call.args[1];
    if !call.op.name().contains('v') && !address.is_multiple_of(memory) {
        let clause = format!("the address {address:#x} is no multiple of {memory} (posix_memalign)");
        found.push(("address", clause));
    }
    found
}

fn finding(context: &RuleContext, file: &OpenFile, calls: &[TimedCall]) -> Option<Finding> {
    let misaligned = calls.iter().map(|timed| (timed, misalignments(timed.call, file)));
    let (first, wrong) = misaligned.into_iter().find(|(_, wrong)| !wrong.is_empty())?;
    let clauses: Vec<&str> = wrong.iter().map(|(_, clause)| clause.as_str()).collect();
    let why = format!(
        "{} of {} with O_DIRECT failed with EINVAL {} times: {}.",
        first.call.op.name(),
        context.name_at(first.pid, first.at_s),
        thousands(calls.len() as u64),
        clauses.join(", ")
    );
    let (memory, blocks) = file.direct_align.unwrap_or(DEFAULT_ALIGN);
    let fix = format!(
        "aligned_alloc({0}, size) or posix_memalign(3), with sizes and offsets in multiples of {1}; write the file's last \
         part through a descriptor without O_DIRECT, then call ftruncate(2). In Python mmap.mmap(-1, size) is aligned.",
        memory.max(4096),
        blocks.max(4096)
    );
    let mut finding = context.finding(&RULE, Severity::Warn, first.pid, first.call.fd, Some(file.id));
    for (name, _) in &wrong {
        finding = finding.count(&format!("misaligned_{name}"), 1);
    }
    let finding = finding.count("failures", calls.len() as u64).count("length", first.call.requested_bytes);
    Some(finding.count("memory_align", memory.into()).count("block_align", blocks.into()).build(why, fix))
}
