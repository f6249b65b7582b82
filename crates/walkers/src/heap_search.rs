//! Reads the memory in which a program has its objects, block by block.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir_sys::clock::thread_cpu_ns;
use weir_sys::living_thread;
use weir_sys::maps::{MappedRegion, MappingKind};
use weir_sys::memory::Memory;

const BLOCK: u64 = 256 << 10;

/// The overlap of two blocks: an object across the end of a block is complete in one of them.
const OVERLAP: u64 = 64;

/// Bounds one search, which covers only the first part of a larger process. The time limit is also for crafted memory, in which
/// every word looks like an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchBounds {
    bytes: u64,
    /// The most mapped bytes whose pages are looked up in `/proc/PID/pagemap`.
    mapped: u64,
    /// CPU time of this thread. The elapsed time may be [`WAITS`] times as long, for memory that is swapped out.
    time: Duration,
}

const WAITS: u32 = 4;

impl SearchBounds {
    const DEFAULT: SearchBounds =
        SearchBounds { bytes: 64 << 20, mapped: 4 << 30, time: Duration::from_millis(250) };

    /// Returns the bounds of one part of a search.
    fn of_part(bytes: u64) -> SearchBounds {
        SearchBounds { bytes, time: Duration::from_millis(50), ..SearchBounds::DEFAULT }
    }
}

thread_local! {
    /// The CPU time of the searches by this thread since [`take_search_ns`].
    static SEARCH_NS: Cell<u64> = const { Cell::new(0) };
    static WHOLE: Cell<SearchBounds> = const { Cell::new(SearchBounds::DEFAULT) };
    /// Since [`take_search_cut`], a search by this thread has not reached the end of the memory.
    static IS_CUT: Cell<bool> = const { Cell::new(false) };
    /// Set when the result of this thread's search is no longer wanted.
    static UNWANTED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The CPU time that a search may take while a user waits for its result.
pub const USER_SEARCH_TIME: Duration = Duration::from_secs(1);

/// Limits each search by this thread by its CPU time, instead of to 64 MiB. A search reads a gigabyte in about 0.3 s.
pub fn set_search_time(most: Duration) {
    WHOLE.set(SearchBounds { bytes: u64::MAX, mapped: u64::MAX, time: most });
}

/// Returns whether a search by this thread since the last call has left out a part of a process's memory.
pub fn take_search_cut() -> bool {
    IS_CUT.take()
}

/// Notes for [`take_search_cut`] that a search was cut.
pub(crate) fn note_search_cut() {
    IS_CUT.set(true);
}

/// Returns the bounds of searches by this thread.
pub(crate) fn bounds() -> SearchBounds {
    WHOLE.get()
}

/// Prepares this thread for a search on behalf of another thread, with the bounds of that thread. That thread sets `is_unwanted` to
/// end the search early.
pub(crate) fn begin_for_other(bounds: SearchBounds, is_unwanted: Arc<AtomicBool>) {
    WHOLE.set(bounds);
    UNWANTED.set(Some(is_unwanted));
}

/// Returns whether the result of this thread's search is no longer wanted.
pub(crate) fn is_unwanted() -> bool {
    UNWANTED.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Relaxed)))
}

/// The buffers that a search has left out, as the subject of a sentence; see [`take_search_cut`].
pub const UNSEARCHED: &str = "buffers in the part of the memory that was not searched";

/// As [`take_search_cut`], but returns a sentence about the process that was searched; None if nothing was left out.
pub fn take_search_cut_of(pid: u32) -> Option<String> {
    take_search_cut().then(|| format!("{UNSEARCHED} (pid {pid}) may be missing"))
}

/// Returns the results of a search. If it was cut, adds the former results, which may be in the part that was left out.
pub(crate) fn with_former<T: Ord>(former: BTreeSet<T>, search: impl FnOnce() -> BTreeSet<T>) -> BTreeSet<T> {
    let was_cut = IS_CUT.get();
    let (mut found, is_cut) = with_cut(search);
    if is_cut {
        found.extend(former);
    }
    IS_CUT.set(was_cut || is_cut);
    found
}

/// Returns the results of a search, and whether it was cut. [`take_search_cut`] does not report this search.
pub(crate) fn with_cut<T>(search: impl FnOnce() -> T) -> (T, bool) {
    let was_cut = IS_CUT.take();
    let found = search();
    (found, IS_CUT.replace(was_cut))
}

/// Pretends that a search by this thread was cut.
#[cfg(test)]
pub(crate) fn cut_for_test() {
    note_search_cut();
}

/// Returns the CPU time in nanoseconds of the searches of processes' memory by this thread since the last call.
pub fn take_search_ns() -> u64 {
    SEARCH_NS.take()
}

/// Calls `visit` with each block of heap memory and its address until `visit` breaks. Reads only pages that were ever
/// used: a runtime may map far more than it uses. Each block contains the first bytes of the next one.
pub(crate) fn blocks(pid: u32, memory: &dyn Memory, visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>) {
    let is_heap = |kind: &MappingKind| matches!(kind, MappingKind::Heap | MappingKind::Anonymous);
    let regions = memory.mappings(pid);
    search_whole(pid, memory, ranges_of(&regions, is_heap), visit);
}

/// As [`blocks`], but reads first the main thread's stack and the variables of executables and libraries, which are small, and then
/// the rest: the search of a large heap can be cut.
pub(crate) fn touched(pid: u32, memory: &dyn Memory, visit: impl FnMut(u64, &[u8])) {
    let regions = memory.mappings(pid);
    let is_small = |kind: &MappingKind| matches!(kind, MappingKind::Stack | MappingKind::File(_));
    let small = ranges_of(&regions, is_small);
    let others = ranges_of(&regions, |kind| is_touched(kind) && !is_small(kind));
    search_whole(pid, memory, small.chain(others), always(visit));
}

/// Searches ranges, as far as the bounds of this thread permit.
fn search_whole(
    pid: u32,
    memory: &dyn Memory,
    ranges: impl Iterator<Item = (u64, u64)>,
    visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) {
    let rest = used_blocks(pid, memory, ranges, WHOLE.get(), visit);
    IS_CUT.set(IS_CUT.get() || rest.is_some());
}

/// As [`touched`], for at most `most` bytes from an address on. Returns the address at which the next part begins;
/// None after the last one.
pub(crate) fn touched_part(
    pid: u32,
    memory: &dyn Memory,
    from: u64,
    most: u64,
    visit: impl FnMut(u64, &[u8]),
) -> Option<u64> {
    let regions = memory.mappings(pid);
    let rest = ranges_of(&regions, is_touched).filter(|(_, end)| *end > from);
    let ranges = rest.map(|(start, end)| (start.max(from), end));
    used_blocks(pid, memory, ranges, SearchBounds::of_part(most), always(visit))
}

/// As [`touched`], for at most `most` bytes of the mappings that contain none of the `addresses`. Returns the address at which the
/// next part would begin; None after the last one.
pub(crate) fn touched_outside(
    pid: u32,
    memory: &dyn Memory,
    addresses: &[u64],
    most: u64,
    visit: impl FnMut(u64, &[u8]),
) -> Option<u64> {
    let regions = memory.mappings(pid);
    let is_outside = |(start, end): &(u64, u64)| !addresses.iter().any(|at| (*start..*end).contains(at));
    let ranges = ranges_of(&regions, is_touched).filter(is_outside);
    used_blocks(pid, memory, ranges, SearchBounds::of_part(most), always(visit))
}

/// As [`touched`], for at most `most` bytes: the main thread's stack, variables, and memory at most `distance` bytes from some
/// addresses.
pub(crate) fn touched_near(
    pid: u32,
    memory: &dyn Memory,
    (addresses, distance): (&[u64], u64),
    most: u64,
    visit: impl FnMut(u64, &[u8]),
) {
    let page = rustix::param::page_size() as u64;
    let around = |start: u64, end: u64| {
        let start = start.saturating_sub(distance) / page * page;
        (start, end.saturating_add(distance) / page * page)
    };
    let regions = memory.mappings(pid);
    let is_file = |kind: &MappingKind| matches!(kind, MappingKind::File(_));
    // Variables without an initial value are in anonymous memory after those that have one.
    let variables = ranges_of(&regions, is_file).map(|(start, end)| around(start, end));
    let windows = united(addresses.iter().map(|at| around(*at, *at)).chain(variables));
    let within = |(start, end): (u64, u64)| {
        let parts = windows.iter().map(move |window| (window.0.max(start), window.1.min(end)));
        parts.filter(|(start, end)| start < end)
    };
    let stack = ranges_of(&regions, |kind| *kind == MappingKind::Stack);
    let others = ranges_of(&regions, |kind| is_touched(kind) && *kind != MappingKind::Stack);
    let ranges = stack.chain(others.flat_map(within));
    used_blocks(pid, memory, ranges, SearchBounds::of_part(most), always(visit));
}

/// Returns the ranges sorted by address. Ranges that overlap or touch are merged.
fn united(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut sorted: Vec<(u64, u64)> = ranges.collect();
    sorted.sort_unstable();
    sorted.dedup_by(|next, last| {
        let overlaps = next.0 <= last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    sorted
}

/// Returns the address ranges of the writable private mappings of some kinds.
fn ranges_of(
    regions: &[MappedRegion],
    has_objects: impl Fn(&MappingKind) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let searched = regions.iter().filter(move |one| one.writable && one.private && has_objects(&one.kind));
    searched.map(|one| (one.start, one.end))
}

/// Returns whether mappings of a kind can have objects. The variables of an executable or library are in private mappings of its
/// file.
fn is_touched(kind: &MappingKind) -> bool {
    kind.is_memory() || matches!(kind, MappingKind::File(_))
}

fn always(mut visit: impl FnMut(u64, &[u8])) -> impl FnMut(u64, &[u8]) -> ControlFlow<()> {
    move |start, data| {
        visit(start, data);
        ControlFlow::Continue(())
    }
}

/// Calls `visit` with blocks of the used pages of address ranges, within bounds. Returns the address at which the next part begins;
/// None after the last one, and if `visit` breaks.
fn used_blocks(
    pid: u32,
    memory: &dyn Memory,
    ranges: impl Iterator<Item = (u64, u64)>,
    bounds: SearchBounds,
    visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Option<u64> {
    let start_ns = thread_cpu_ns();
    let rest = search(pid, memory, ranges, bounds, visit);
    SEARCH_NS.set(SEARCH_NS.get() + (thread_cpu_ns() - start_ns));
    rest
}

fn search(
    pid: u32,
    memory: &dyn Memory,
    ranges: impl Iterator<Item = (u64, u64)>,
    bounds: SearchBounds,
    mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let used = File::open(format!("/proc/{}/pagemap", living_thread::of(pid))).ok();
    let (mut left, mut block) = (bounds.bytes, vec![0; (BLOCK + OVERLAP) as usize]);
    let (begun, start_ns, queued_before) = (Instant::now(), thread_cpu_ns(), time_in_queue());
    let is_late = || {
        let cpu = Duration::from_nanos(thread_cpu_ns() - start_ns);
        let waits = || {
            let elapsed = begun.elapsed();
            // On a busy machine the search waits for a processor, not for memory.
            let queued = || time_in_queue().saturating_sub(queued_before);
            elapsed >= WAITS * bounds.time && elapsed.saturating_sub(queued()) >= WAITS * bounds.time
        };
        cpu >= bounds.time || waits() || is_unwanted()
    };
    let mut mapped = bounds.mapped;
    for (range_start, range_end) in ranges {
        for at in (range_start..range_end).step_by(BLOCK as usize) {
            let bytes = BLOCK.min(range_end - at).min(mapped);
            if bytes == 0 || is_late() {
                return Some(at);
            }
            mapped -= bytes;
            for (start, end) in runs(used.as_ref(), at, bytes, page) {
                let bytes = (end - start).min(left);
                let got = memory.read(start, &mut block[..(bytes + OVERLAP) as usize]);
                if visit(start, &block[..got]).is_break() {
                    return None;
                }
                left -= bytes;
                if left == 0 {
                    return Some(start + bytes);
                }
            }
        }
    }
    None
}

/// Returns the time that this thread has been runnable without a processor; 0 if the kernel does not count it.
fn time_in_queue() -> Duration {
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    weir_sys::proc::time_in_queue(tid).unwrap_or_default()
}

/// Returns ranges of consecutive pages that are in memory or swapped out; all pages if that is not known.
fn runs(used: Option<&File>, at: u64, bytes: u64, page: u64) -> Vec<(u64, u64)> {
    const USED: u64 = 3 << 62;
    let mut entries = vec![0; (8 * bytes / page) as usize];
    let known = used.is_some_and(|file| file.read_exact_at(&mut entries, 8 * (at / page)).is_ok());
    if !known {
        return vec![(at, at + bytes)];
    }
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let is_used = |entry: &[u8; 8]| u64::from_le_bytes(*entry) & USED != 0;
    for (index, _) in entries.as_chunks().0.iter().enumerate().filter(|(_, entry)| is_used(entry)) {
        let start = at + page * index as u64;
        match runs.last_mut() {
            Some(last) if last.1 == start => last.1 += page,
            _ => runs.push((start, start + page)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use weir_sys::memory::ProcessMemory;

    use super::*;

    #[test]
    fn memory_that_was_only_mapped_hides_nothing() {
        let unused = || Vec::<u8>::with_capacity(2 * SearchBounds::DEFAULT.bytes as usize);
        // One of them is at lower addresses than the used bytes, whichever way the kernel maps.
        let (before, used, after) = (unused(), vec![7u8; 1 << 20], unused());
        let (pid, wanted) = (std::process::id(), used[1 << 19..].as_ptr() as u64);
        let mut is_visited = false;
        blocks(pid, &ProcessMemory { pid }, |start, data| {
            is_visited |= (start..start + data.len() as u64).contains(&wanted);
            ControlFlow::Continue(())
        });
        assert!(is_visited && before.is_empty() && after.is_empty());
    }
}
