//! Searches the heap for the objects of the io types.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weir_sys::memory::Memory;

use super::layout::PythonLayout;
use super::objects::TYPE;
use super::streams::IoTypes;
use crate::copied_memory::{MAX_STREAMS, word};
use crate::heap_search::blocks;

/// The alignment of Python's allocators.
const ALIGN: usize = 16;

/// Returns the addresses of the objects.
pub(super) fn objects(
    pid: u32,
    memory: &dyn Memory,
    layout: &PythonLayout,
    types: &IoTypes,
) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let wanted = types.of_streams();
    blocks(pid, memory, |start, data| {
        found.extend(counts(start, data, &wanted).filter_map(|at| at.checked_sub(layout.before_counts)));
        // Crafted memory can look like millions of objects.
        if found.len() < MAX_STREAMS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

/// Returns the addresses of the counts that have one of the types behind them. `wanted` is in order.
fn counts(start: u64, data: &[u8], wanted: &[u64]) -> impl Iterator<Item = u64> {
    let range = wanted.first().copied().unwrap_or(u64::MAX)..=wanted.last().copied().unwrap_or(0);
    let is_wanted = move |object: &[u8; ALIGN]| {
        let kind = word(object, TYPE as usize);
        range.contains(&kind) && wanted.binary_search(&kind).is_ok()
    };
    let all = data.as_chunks::<ALIGN>().0.iter().enumerate();
    all.filter(move |(_, object)| is_wanted(object)).map(move |(index, _)| start + (index * ALIGN) as u64)
}
