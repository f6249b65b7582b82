//! Gives back the pages of the program that only its start needed, so that an idle collector is small.

use rustix::mm::{Advice, madvise};
use weir_sys::maps::{MappingKind, parse_regions};

/// Unmaps the pages of code of this program. They stay in the page cache, and those that run again are mapped again.
pub(crate) fn release_code() {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return };
    let program = MappingKind::File(program);
    let is_code = |region: &&weir_sys::maps::MappedRegion| {
        region.executable && !region.writable && region.private && region.kind == program
    };
    for region in parse_regions(&maps).iter().filter(is_code) {
        let (Ok(start), Ok(length)) =
            (usize::try_from(region.start), usize::try_from(region.end - region.start))
        else {
            continue;
        };
        // SAFETY: the region is code of this program's file, mapped privately and never written, so each page that is
        // dropped is read again from the file with the same bytes.
        let _ = unsafe { madvise(start as *mut _, length, Advice::LinuxDontNeed) };
    }
}
