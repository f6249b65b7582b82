//! When and where to search the memory for file buffers.
//!
//! Each open file buffer has a FILE of the C library, which no byte passes with libstdc++. So the list of FILEs shows whether
//! an unknown file buffer can exist. Only then the memory is searched, in parts, and rarely again if the search finds
//! none. The buffers of the standard streams are in the library's own memory, which is small.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use weir_sys::clock::thread_cpu_ns;
use weir_sys::memory::Memory;

use super::types::FileBufferTypes;
use crate::copied_memory::{MAX_STREAMS, word};
use crate::heap_search;
use crate::runtimes::glibc;
use crate::stream_buffer::StreamBuffer;

/// The part of the memory that is searched in one snapshot: about 3 ms. A snapshot may be taken of a stopped process.
const PART_BYTES: u64 = 8 << 20;
/// The distance in bytes from the FILE of an unknown file buffer in which the memory is searched first, with the stack and the
/// variables: the object is often allocated just before its FILE. A search of 200 MB takes about 8 s, with a pause after each part.
const NEAR: u64 = 256 << 10;
/// A search costs at most 1 % of the time: the next part is due after 100 times the CPU time of the last one.
const PAUSE: u32 = 100;
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a search that has not found the file buffer of a FILE, which doubles up to the longest.
const RETRY: Duration = Duration::from_millis(40);
const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// The streams that the C library itself has: standard input, output and error, at the end of its list.
const STANDARD: usize = 3;

/// The FILEs of a process.
pub(super) type Files = [(u64, [u8; glibc::FILE_BYTES])];
/// The same by their addresses.
pub(super) type FilesByAddress = HashMap<u64, [u8; glibc::FILE_BYTES]>;

/// A file buffer that was read.
pub(super) struct FileBuffer {
    /// Address of the object.
    pub at: u64,
    /// Address of its FILE.
    pub file: u64,
    pub stream: StreamBuffer,
}

/// A FILE whose file buffer was searched: how often, and when to search again.
#[derive(Debug, Clone, Copy)]
struct Attempts {
    count: u32,
    next: Instant,
}

/// The addresses of file buffers, and the state of the search.
#[derive(Debug, Clone, Default)]
pub(super) struct FileBufferSearch {
    pub objects: BTreeSet<u64>,
    /// The address at which the search continues; None: no search has begun.
    from: Option<u64>,
    next: Option<Instant>,
    attempts: HashMap<u64, Attempts>,
    /// The next snapshot searches all memory.
    is_whole: bool,
    is_first_done: bool,
    /// The file buffers write through their FILEs.
    is_of_used_files: bool,
}

impl FileBufferSearch {
    /// Makes the search for file buffers that write through their FILEs.
    pub fn of_used_files() -> FileBufferSearch {
        FileBufferSearch { is_of_used_files: true, ..FileBufferSearch::default() }
    }

    pub fn search_whole(&mut self) {
        self.is_whole = true;
    }

    /// Adds objects that a former search has found, and searches in parts from now on.
    pub fn continue_with(&mut self, objects: Vec<u64>) {
        self.objects.extend(objects);
        self.is_first_done = true;
    }

    /// Reads the known file buffers of a process, and searches for others if a search is due. `read` returns the open file buffer
    /// at an address, with at most a number of its pending bytes.
    pub fn read_all(
        &mut self,
        (pid, memory): (u32, &dyn Memory),
        files: Option<&Files>,
        types: &FileBufferTypes,
        read: impl Fn(u64, u64) -> Option<FileBuffer>,
        kept: u64,
    ) -> Vec<StreamBuffer> {
        let all =
            |objects: &BTreeSet<u64>| objects.iter().filter_map(|at| read(*at, kept)).collect::<Vec<_>>();
        let mut found = all(&self.objects);
        let known: BTreeSet<u64> = found.iter().map(|one| one.file).collect();
        if let Some(unknown) = self.due(files, &known) {
            // An object that was destroyed or moved is found again at its new address.
            self.objects = found.iter().map(|one| one.at).collect();
            self.search((pid, memory), types, &unknown, |at| Some(read(at, 0)?.file));
            found = all(&self.objects);
        }
        without_copies(found.into_iter().map(|one| one.stream))
    }

    /// Returns the FILEs whose file buffers to search now; None if no search is due. `known` has the FILEs of the known file
    /// buffers; `files` is None if the process's FILEs are unknown, so that only the time counts, and the result is empty.
    fn due(&mut self, files: Option<&Files>, known: &BTreeSet<u64>) -> Option<Vec<u64>> {
        let now = Instant::now();
        let is_whole = self.is_whole || !self.is_first_done;
        if !is_whole && self.next.is_some_and(|next| now < next) {
            return None;
        }
        let Some(files) = files else { return Some(Vec::new()) };
        // The file buffer of a read-only file is searched for a user only: it has no bytes that could be written too late.
        let is_used = self.is_of_used_files;
        let unknown = |file: &[u8; glibc::FILE_BYTES]| {
            (is_used || glibc::is_unused(file)) && (is_whole || glibc::is_writable(file))
        };
        let own = files.iter().take(files.len().saturating_sub(STANDARD));
        let unknown: BTreeSet<u64> =
            own.filter(|(at, file)| !known.contains(at) && unknown(file)).map(|(at, _)| *at).collect();
        self.attempts.retain(|at, _| unknown.contains(at));
        let is_untried = |at: &u64| self.attempts.get(at).is_none_or(|attempts| attempts.next <= now);
        let is_due = self.from.is_some() && !unknown.is_empty()
            || unknown.iter().any(is_untried)
            || is_whole && !unknown.is_empty();
        if !is_due {
            self.from = None;
            (self.is_whole, self.is_first_done) = (false, true);
            return None;
        }
        for at in &unknown {
            let begun = Attempts { count: 0, next: now };
            let attempts = self.attempts.entry(*at).or_insert(begun);
            if attempts.next <= now {
                let pause = (RETRY * (1 << attempts.count.min(16))).min(RETRY_LONGEST);
                (attempts.count, attempts.next) = (attempts.count + 1, now + pause);
            }
        }
        Some(unknown.into_iter().collect())
    }

    /// Searches the next part of the memory for the virtual tables of some types, and adds the objects for which `file_of`
    /// returns their FILE. `unknown` has the FILEs of [`Self::due`].
    fn search(
        &mut self,
        (pid, memory): (u32, &dyn Memory),
        types: &FileBufferTypes,
        unknown: &[u64],
        file_of: impl Fn(u64) -> Option<u64>,
    ) {
        let begun_ns = thread_cpu_ns();
        let is_whole = std::mem::take(&mut self.is_whole) || !self.is_first_done;
        let (objects, missing) = (&mut self.objects, RefCell::new(unknown.to_vec()));
        let range = types.range();
        let mut visit = |start: u64, data: &[u8]| {
            let is_table = |index: &usize| {
                let value = word(data, 8 * index);
                range.contains(&value) && types.contains(value)
            };
            for index in (0..data.len() / 8).filter(is_table) {
                let at = start + 8 * index as u64;
                if objects.len() < MAX_STREAMS
                    && let Some(file) = file_of(at)
                {
                    objects.insert(at);
                    missing.borrow_mut().retain(|one| *one != file);
                }
            }
        };
        let near = (unknown, NEAR);
        self.from = match (is_whole, self.from) {
            (true, _) => {
                heap_search::touched_near(pid, memory, near, PART_BYTES, &mut visit);
                // With another C library the FILEs are not known.
                if unknown.is_empty() || !missing.borrow().is_empty() {
                    heap_search::touched(pid, memory, visit);
                }
                None
            }
            (false, None) => {
                heap_search::touched_near(pid, memory, near, PART_BYTES, visit);
                Some(0)
            }
            (false, Some(from)) => heap_search::touched_part(pid, memory, from, PART_BYTES, visit),
        };
        self.is_first_done = true;
        let took = Duration::from_nanos(thread_cpu_ns() - begun_ns);
        self.next = Some(Instant::now() + (took * PAUSE).max(MIN_PAUSE));
    }
}

/// Returns the file buffers, without those whose buffer another object claims too: one of the two is then being moved.
fn without_copies(found: impl Iterator<Item = StreamBuffer>) -> Vec<StreamBuffer> {
    let mut of_buffer: BTreeMap<u64, Vec<StreamBuffer>> = BTreeMap::new();
    for one in found {
        of_buffer.entry(one.buffer.address).or_default().push(one);
    }
    of_buffer.into_values().filter(|same| same.len() == 1).flatten().collect()
}
