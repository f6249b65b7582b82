//! Finds musl's streams without symbols, by their shape in the memory of the library or the executable.

use weir_sys::memory::Memory;

use super::{
    BUF, BUF_SIZE, CLOSE, FD, FILE_BYTES, MuslStreams, NEXT, NO_WRITING, OpenFileList, PREV, READ, SEEK,
    WRITE, list,
};
use crate::copied_memory::{MAX_BUFFER, MAX_STREAMS, int, structure, word};
use crate::image_memory::ImageMemory;

const PERMANENT: i32 = 1;
const NO_READING: i32 = 4;
const ALL_FLAGS: i32 = 0xff;

/// The memory of the image to search. The function pointers of a stream lead to its code.
#[derive(Debug, Clone)]
pub(crate) struct MuslListSearch {
    pub area: ImageMemory,
}

impl MuslListSearch {
    /// Returns the longest list whose head is a word of the memory; empty if there is none.
    pub fn longest_list(&self, memory: &dyn Memory, standard: &[u64]) -> Vec<(u64, [u8; FILE_BYTES])> {
        let memory = &self.area.copy(memory);
        let (mut best, mut left) = (Vec::new(), MAX_STREAMS);
        for (_, first) in memory.pointers(16) {
            if standard.contains(&first) || !self.is_first(memory, first) {
                continue;
            }
            let found = list(memory, first, &mut left);
            if found.len() > best.len() {
                best = found;
            }
        }
        best
    }

    fn is_first(&self, memory: &dyn Memory, at: u64) -> bool {
        structure::<FILE_BYTES>(memory, at)
            .is_some_and(|file| word(&file, PREV) == 0 && self.has_functions(&file))
    }

    fn has_functions(&self, file: &[u8; FILE_BYTES]) -> bool {
        let code = |at| self.area.is_code(word(file, at));
        let sound = word(file, BUF) != 0 && word(file, BUF_SIZE) <= MAX_BUFFER && int(file, FD) >= -1;
        sound && int(file, 0) & !ALL_FLAGS == 0 && code(CLOSE) && code(SEEK) && (code(READ) || code(WRITE))
    }

    /// Returns the descriptor if the structure is a standard stream.
    fn standard(&self, file: &[u8; FILE_BYTES]) -> Option<i32> {
        let (flags, fd) = (int(file, 0), int(file, FD));
        let alone = word(file, PREV) == 0 && word(file, NEXT) == 0 && flags & PERMANENT != 0;
        let direction = if fd == 0 { NO_WRITING } else { NO_READING };
        let fits = (0..3).contains(&fd) && flags & (NO_READING | NO_WRITING) == direction;
        (alone && fits && self.has_functions(file)).then_some(fd)
    }
}

/// Returns the walker of a stripped static executable. A standard stream counts only if it exists once.
pub(crate) fn search(memory: &dyn Memory, area: ImageMemory) -> Option<MuslStreams> {
    let search = MuslListSearch { area };
    let mut found: Vec<(i32, u64)> = Vec::new();
    for (at, bytes) in
        search.area.copy(memory).structures::<FILE_BYTES>(|head| head & !0xff == 0 && head & 1 != 0)
    {
        found.extend(search.standard(&bytes).map(|fd| (fd, at)));
    }
    let once = |fd: i32| found.iter().filter(|(other, _)| *other == fd).count() == 1;
    let standard: Vec<u64> = found.iter().filter(|(fd, _)| once(*fd)).map(|(_, at)| *at).collect();
    (!standard.is_empty()).then_some(MuslStreams { standard, others: OpenFileList::Search(search) })
}
