//! `--cache drop`: a copy that leaves the page cache as it was.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, fadvise};
use weir_sys::page_cache::{cached_pages, finish_writeback, start_writeback};

use crate::tally::CopyTally;

/// The part that is written back at a time. At most two parts are dirty.
const PART_BYTES: u64 = 8 << 20;

/// Writes back and drops the pages behind the position of a copy.
#[derive(Debug)]
pub(crate) struct CacheWindow {
    /// Parts of the source that were in the page cache before the copy: others use them, so they stay.
    source_was_cached: Vec<bool>,
    /// Writeback of the target has begun up to here.
    started: u64,
    /// Pages up to here are dropped.
    dropped: u64,
    /// The first error of writeback. It is kept, because sync_file_range(2) reports it once and fsync(2) not again.
    failure: Option<io::Error>,
}

impl CacheWindow {
    /// Notes which parts of the source are in the page cache.
    pub fn new(source: BorrowedFd<'_>, size: u64) -> Self {
        let was_cached = |part: u64| {
            let pages = cached_pages(source, part * PART_BYTES, PART_BYTES);
            // Without cachestat(2) the source's pages are dropped: other readers then lose time, but no data.
            pages.is_ok_and(|pages| pages.cached > 0)
        };
        Self {
            source_was_cached: (0..size.div_ceil(PART_BYTES)).map(was_cached).collect(),
            started: 0,
            dropped: 0,
            failure: None,
        }
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
    }

    /// Drops all pages. Returns how many bytes of the target are still in the page cache, if the kernel can say it. Fails if
    /// the device has not taken the bytes.
    pub fn finish(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        end: u64,
        tally: &mut CopyTally,
    ) -> io::Result<Option<u64>> {
        self.drop_to(source, target, end, tally);
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
            let part = (self.dropped / PART_BYTES) as usize;
            if !self.source_was_cached.get(part).copied().unwrap_or(false) {
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
