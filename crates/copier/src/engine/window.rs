//! `--cache drop`: a copy that leaves the page cache as it was.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, fadvise};
use weir_sys::page_cache::{cached_pages, finish_writeback, start_writeback};

use crate::tally::CopyTally;

/// The part that is written back at a time. At most two parts are dirty.
const PART_BYTES: u64 = 8 << 20;
/// The least parts ahead of the position whose pages are counted: a method maps 64 MiB at a time, and the kernel reads ahead.
const MIN_PARTS_AHEAD: u64 = 10;
/// The most chunks that a method reads at a time: `SLOTS` of io_uring.
const MAX_CHUNKS_AHEAD: u64 = 4;

/// Writes back and drops the pages behind the position of a copy.
#[derive(Debug)]
pub(crate) struct CacheWindow {
    /// The numbers of those parts of the source that were in the page cache before the copy read them: others use them, so they
    /// stay.
    cached_parts: BTreeSet<u64>,
    /// The number of the first part whose pages were not counted.
    next_part: u64,
    parts_ahead: u64,
    /// The copy has reached this offset.
    position: u64,
    /// Writeback of the target has begun up to here.
    started: u64,
    /// Pages up to here are dropped.
    dropped: u64,
    /// The first error of writeback. It is kept, because sync_file_range(2) reports it once and fsync(2) not again.
    failure: Option<io::Error>,
}

impl CacheWindow {
    /// Makes the window of a copy that reads `chunk` bytes by one call.
    pub fn new(chunk: usize) -> Self {
        Self {
            cached_parts: BTreeSet::new(),
            next_part: 0,
            parts_ahead: (chunk as u64).saturating_mul(MAX_CHUNKS_AHEAD) / PART_BYTES + MIN_PARTS_AHEAD,
            position: 0,
            started: 0,
            dropped: 0,
            failure: None,
        }
    }

    /// Notes that the copy continues at `position`. A hole before it has no pages, so that its parts are left out: a sparse file can
    /// claim 8 EiB.
    pub fn enter(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        position: u64,
        tally: &mut CopyTally,
    ) {
        let part_begin = position / PART_BYTES * PART_BYTES;
        if part_begin > self.position {
            self.drop_to(source, target, self.position, tally);
            self.started = part_begin;
            self.dropped = part_begin;
        }
        self.reach(source, position);
    }

    /// Moves the position, and notes which of the parts that are read next are in the page cache.
    fn reach(&mut self, source: BorrowedFd<'_>, position: u64) {
        self.position = self.position.max(position);
        let part = position / PART_BYTES;
        let end = part + self.parts_ahead;
        for part in self.next_part.max(part)..end {
            // Without cachestat(2) the source's pages are dropped: other readers then lose time, but no data.
            if cached_pages(source, part * PART_BYTES, PART_BYTES).is_ok_and(|pages| pages.cached > 0) {
                self.cached_parts.insert(part);
            }
        }
        self.next_part = self.next_part.max(end);
    }

    /// Notes that the copy has reached `position`.
    pub fn passed(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        position: u64,
        tally: &mut CopyTally,
    ) {
        while self.started + PART_BYTES <= position {
            tally.call("sync_file_range");
            self.note(start_writeback(target, self.started, PART_BYTES));
            self.drop_to(source, target, self.started, tally);
            self.started += PART_BYTES;
        }
        self.reach(source, position);
    }

    /// Drops all pages. Returns how many bytes of the target are still in the page cache, if the kernel can say it. Fails if
    /// the device has not taken the bytes.
    pub fn finish(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        tally: &mut CopyTally,
    ) -> io::Result<Option<u64>> {
        self.drop_to(source, target, self.position, tally);
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let page = rustix::param::page_size() as u64;
        Ok(cached_pages(target, 0, 0).ok().map(|pages| pages.cached * page))
    }

    /// Keeps the first error of writeback. Some file systems (FUSE, pipes) have no such call: their pages stay.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && ![Some(libc::EINVAL), Some(libc::ESPIPE), Some(libc::ENOSYS)].contains(&error.raw_os_error())
        {
            self.failure.get_or_insert(error);
        }
    }

    /// Waits for the writeback up to `end` and drops the pages.
    fn drop_to(&mut self, source: BorrowedFd<'_>, target: BorrowedFd<'_>, end: u64, tally: &mut CopyTally) {
        while self.dropped < end {
            let bytes = PART_BYTES.min(end - self.dropped);
            tally.call("sync_file_range");
            self.note(finish_writeback(target, self.dropped, bytes));
            // A large folio is dropped only whole, so the range begins at the start.
            drop_pages(target, 0, self.dropped + bytes, tally);
            if !self.cached_parts.remove(&(self.dropped / PART_BYTES)) {
                drop_pages(source, self.dropped, bytes, tally);
            }
            self.dropped += bytes;
        }
    }
}

fn drop_pages(file: BorrowedFd<'_>, offset: u64, bytes: u64, tally: &mut CopyTally) {
    tally.call("posix_fadvise");
    // Pages that stay are found by cachestat.
    let _advised = fadvise(file, offset, std::num::NonZeroU64::new(bytes), Advice::DontNeed);
}
