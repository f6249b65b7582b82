//! Calls that move no bytes, and operations submitted to the kernel.

use std::collections::BTreeMap;

use weir_model::errno;
use weir_model::trace::{Op, OtherCalls, Recording};

use super::labels::{counted, thousands};
use crate::block::Block;

/// Kinds that are named if not all are requested: they fit on two lines.
const MAX_KINDS: usize = 6;

/// Counts of one kind of call over all processes.
#[derive(Default)]
struct Kind {
    calls: u64,
    errors: BTreeMap<i32, u64>,
    submitted: u64,
}

/// Returns a line of calls without bytes and a line of submissions; `all` names every kind.
pub(super) fn blocks(recording: &Recording, all: bool) -> Vec<Block> {
    let (submit, plain): (Vec<_>, Vec<_>) = recording.other_calls.iter().partition(|one| one.op.submits());
    let mut blocks = without_bytes(&plain, all);
    blocks.extend(submissions(&submit));
    blocks
}

/// Returns "at least " if some calls were not counted.
fn least(calls: &[&OtherCalls]) -> &'static str {
    if calls.iter().all(|one| one.exact) { "" } else { "at least " }
}

fn by_kind(calls: &[&OtherCalls]) -> BTreeMap<Op, Kind> {
    let mut kinds: BTreeMap<Op, Kind> = BTreeMap::new();
    for one in calls {
        let kind = kinds.entry(one.op).or_default();
        kind.calls += one.calls;
        kind.submitted += one.submitted;
        for (&number, &times) in &one.errors {
            *kind.errors.entry(number).or_default() += times;
        }
    }
    kinds
}

fn submissions(calls: &[&OtherCalls]) -> Vec<Block> {
    let kinds = by_kind(calls);
    if kinds.is_empty() {
        return Vec::new();
    }
    let submitted = kinds.values().map(|kind| kind.submitted).sum();
    let head = format!(
        "{}{} submitted to the kernel; their bytes are in no row",
        least(calls),
        counted(submitted, "operation")
    );
    let parts = kinds
        .iter()
        .map(|(op, kind)| format!("{} submitted {}", words(*op, kind), thousands(kind.submitted)));
    vec![Block::Text(head), Block::Facts(parts.collect())]
}

fn without_bytes(calls: &[&OtherCalls], all: bool) -> Vec<Block> {
    let kinds = by_kind(calls);
    if kinds.is_empty() {
        return Vec::new();
    }
    let sum: u64 = kinds.values().map(|kind| kind.calls).sum();
    let mut kinds: Vec<(Op, Kind)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(op, kind)| (std::cmp::Reverse(kind.calls), *op));
    // A sum of one kind would say less than its name.
    let named = if all || kinds.len() <= MAX_KINDS + 1 { kinds.len() } else { MAX_KINDS };
    let rest = kinds.split_off(named);
    let mut parts: Vec<String> = kinds.iter().map(|(op, kind)| words(*op, kind)).collect();
    if !rest.is_empty() {
        let calls = rest.iter().map(|(_, kind)| kind.calls).sum();
        parts.push(format!("{} of {} other kinds", counted(calls, "call"), rest.len()));
    }
    let least = least(calls);
    let calls = counted(sum, "call");
    let head = format!("{least}{calls} that move no bytes (stat, ioctl, poll … are not traced)");
    vec![Block::Text(head), Block::Facts(parts)]
}

/// Returns the counts of a kind: `openat 412 (290 failed: ENOENT 288, EACCES 2)`.
fn words(op: Op, kind: &Kind) -> String {
    let calls = format!("{} {}", op.name(), thousands(kind.calls));
    let failed: u64 = kind.errors.values().sum();
    let mut errors: Vec<(i32, u64)> = kind.errors.iter().map(|(&number, &times)| (number, times)).collect();
    errors.sort_by_key(|&(number, times)| (std::cmp::Reverse(times), number));
    match errors.as_slice() {
        [] => calls,
        [(number, _)] => {
            format!("{calls} ({} failed: {})", thousands(failed), errno::name_or_number(*number))
        }
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|(number, times)| format!("{} {}", errno::name_or_number(*number), thousands(*times)))
                .collect();
            format!("{calls} ({} failed: {})", thousands(failed), each.join(", "))
        }
    }
}
