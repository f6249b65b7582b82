//! A search of what a program allocated: its heap and its private memory without a file, block by block.

use std::ops::ControlFlow;

use super::maps::{Place, regions};
use crate::memory::Memory;

/// So much is searched in one look; in a larger process, what is found in this much of it.
const SEARCH_MOST: u64 = 64 << 20;
const BLOCK: u64 = 256 << 10;

/// Calls `visit` with each block and its address, both as aligned as a page, until it says that it has enough.
pub(super) fn blocks(pid: u32, memory: &dyn Memory, mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>) {
    let (mut left, mut block) = (SEARCH_MOST, vec![0; BLOCK as usize]);
    let regions = regions(pid);
    let likely = |place: &Place| matches!(place, Place::Heap | Place::Anonymous);
    for region in regions.iter().filter(|one| one.writable && one.private && likely(&one.place)) {
        let mut at = region.start;
        while at < region.end && left > 0 {
            let bytes = BLOCK.min(region.end - at).min(left);
            let got = memory.read(at, &mut block[..bytes as usize]);
            if visit(at, &block[..got]).is_break() {
                return;
            }
            at += bytes;
            left -= bytes;
        }
    }
}
