//! Finds glibc's list of streams in a static executable without symbols.
//!
//! Every list ends with `_IO_2_1_stderr_` → `_IO_2_1_stdout_` → `_IO_2_1_stdin_`. The search accepts this end only if
//! flags, descriptors, links and vtables agree, and if it exists once.

use weir_sys::memory::Memory;

use super::{CHAIN, FILE_BYTES, FILENO, GlibcStreams, VTABLE, is_file, list};
use crate::copied_memory::{MAX_STREAMS, int, structure, word};
use crate::image_memory::ImageMemory;

/// The most candidates for the head of the list, to bound the time of the search.
const MAX_CANDIDATES: usize = 4096;

/// Returns the walker of a stripped static executable; None if the list is not found.
pub(crate) fn search(memory: &dyn Memory, area: &ImageMemory) -> Option<GlibcStreams> {
    let memory = &area.copy(memory);
    let files = memory.structures::<FILE_BYTES>(|flags| flags & 0xffff_0000 == 0xfbad_0000);
    let mut ends = files.iter().filter(|(_, file)| is_stderr(memory, area, file));
    let (stderr, None) = (ends.next()?.0, ends.next()) else { return None };
    let (mut heads, mut left) = (Vec::new(), MAX_STREAMS);
    for (at, first) in memory.pointers(8).iter().take(MAX_CANDIDATES) {
        let likely = structure::<FILE_BYTES>(memory, *first).is_some_and(|file| is_file(&file));
        let before = files.partition_point(|(file, _)| file <= at).checked_sub(1);
        let inside = before.is_some_and(|last| at - files[last].0 < FILE_BYTES as u64);
        if likely && !inside && list(memory, *first, &mut left).iter().any(|one| one.0 == stderr) {
            heads.push(*at);
        }
    }
    (!heads.is_empty()).then(|| GlibcStreams::one_of(heads, stderr))
}

fn is_stderr(memory: &dyn Memory, area: &ImageMemory, file: &[u8; FILE_BYTES]) -> bool {
    let mut file = *file;
    for fd in [2, 1, 0] {
        if !is_file(&file) || int(&file, FILENO) != fd || !area.is_own(word(&file, VTABLE)) {
            return false;
        }
        let next = word(&file, CHAIN);
        match (fd, structure(memory, next)) {
            (0, _) => return next == 0,
            (_, Some(next)) => file = next,
            (_, None) => return false,
        }
    }
    false
}
