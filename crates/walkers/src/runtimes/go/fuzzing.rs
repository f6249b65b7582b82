//! The entry point of fuzz/ into the objects of Go.

use weir_sys::memory::Memory;

use super::bufio::BufioValidator;
use super::{GoItabs, GoSections, ItabSection, candidate, search, stacks};
use crate::candidates;
use crate::copied_memory::PENDING_KEPT;
use crate::fuzzing::{BASE, NO_PROCESS};

/// Reads the itabs from the beginning of the memory, then the objects with these or with two known itabs, and the stacks.
pub(crate) fn walk(memory: &dyn Memory, itab: u64) {
    let found = [ItabSection::Links(BASE, 512), ItabSection::Types(BASE, 4096)].map(|itabs| {
        let sections = GoSections { functions: itab, itabs, data: vec![(BASE, 4096)], is_profiled: false };
        GoItabs::of(memory, &sections, 0)
    });
    let made_up =
        GoItabs { writers: vec![itab], readers: vec![itab.wrapping_add(256)], file_writer: Some(itab) };
    for tables in found.into_iter().flatten().chain([made_up]) {
        let validator =
            BufioValidator { memory, tables: &tables, open_for: &|_, _| true, kept: PENDING_KEPT };
        let (objects, _bytes) = search::objects(NO_PROCESS, memory, &tables, &validator);
        let found = objects.iter().filter_map(|&(at, kind)| candidate(memory, &validator, at, kind));
        let used = stacks::read(memory, Some(BASE + 8));
        let streams = candidates::resolve(found.collect(), |one, all| {
            stacks::is_stale(one.at, &candidates::addresses(all), &used)
        });
        assert!(streams.iter().all(|one| one.buffer.pending.len() as u64 <= PENDING_KEPT));
    }
}
