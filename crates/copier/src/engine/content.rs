//! Copies the content of a regular file: chooses methods, keeps or makes holes, continues after a refusal.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{fstat, ftruncate};
use rustix::io::{Errno, retry_on_intr};

use super::share::{FICLONE, not_shared, pair_refuses, share_blocks};
use super::trial::{self, MethodTrial, TrialResult};
use super::{CacheWindow, RangeEnd, Transfer, holes, is_refusal, range_method};
use crate::buffer::AlignedBuffer;
use crate::control::CopyControl;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::options::{CopyMethod, CopyOptions, HoleSearch, Tristate};
use crate::quote::quote;
use crate::tally::CopyTally;

/// The buffer of read and write: the kernel makes pages of the size of a write. With 256 KiB they cost 10 % more CPU time on ext4;
/// with 1 MiB 5 % less, but to get such large pages the kernel sometimes moves other pages (compaction: 5 times the CPU time).
const BUFFER_BYTES: usize = 512 << 10;
/// The buffer of direct I/O and the chunk of io_uring: each call waits for the device.
const DEVICE_CHUNK_BYTES: usize = 1 << 20;

/// The files of a copy. The target is empty.
pub struct ContentJob<'a> {
    /// The source, open for reading, and its state before the copy.
    pub source: BorrowedFd<'a>,
    /// Its name for messages.
    pub source_path: &'a Path,
    /// Its state before the copy.
    pub stat: FileStat,
    /// The target, open for writing.
    pub target: BorrowedFd<'a>,
    /// Its name for messages.
    pub target_path: &'a Path,
    /// Whether the file systems of both may share blocks; false if they have refused before.
    pub may_share: bool,
    /// Both files are on one file system.
    pub same_device: bool,
}

/// A change of the method.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Fallback {
    pub from: CopyMethod,
    pub to: CopyMethod,
    pub offset: u64,
    pub call: &'static str,
    /// None if the call ended early without an error.
    pub errno: Option<Errno>,
}

/// The number of bytes that were copied, and the method.
#[derive(Debug, Clone)]
pub struct ContentResult {
    /// The method that moved the last bytes.
    pub method: CopyMethod,
    /// The length of the target.
    pub bytes: u64,
    /// Bytes that are holes in the target.
    pub hole_bytes: u64,
    /// The changes of the method.
    pub fallbacks: Vec<Fallback>,
    /// The source has grown since it was opened.
    pub has_grown: bool,
    /// The file systems cannot share blocks.
    pub cannot_share: bool,
    /// The measurement of `auto`.
    pub trial: Option<TrialResult>,
    /// The result of `--verify`.
    pub verified: Option<crate::verify::Verified>,
}

impl ContentResult {
    /// Returns the result of a copy that one method made, without a refusal.
    pub(crate) fn complete(method: CopyMethod, bytes: u64, hole_bytes: u64) -> Self {
        Self {
            method,
            bytes,
            hole_bytes,
            fallbacks: Vec::new(),
            has_grown: false,
            cannot_share: false,
            trial: None,
            verified: None,
        }
    }
}

/// Copies the content of a regular file.
pub(crate) fn copy_content(
    job: &ContentJob,
    options: &CopyOptions,
    control: &CopyControl,
    buffer: &mut AlignedBuffer,
    tally: &mut CopyTally,
) -> CopyResult<ContentResult> {
    let mut copy = ContentCopy::new(job, options);
    if copy.try_reflink(job, options, tally)? {
        control.note_shared(job.stat.size)?;
        return Ok(copy.result);
    }
    let chunk = options.buffer_bytes.unwrap_or(match copy.result.method {
        CopyMethod::Direct | CopyMethod::IoUring => DEVICE_CHUNK_BYTES,
        _ => BUFFER_BYTES,
    });
    buffer.grow(chunk);
    let skip_zeros = options.sparse == Tristate::Always
        || (options.holes == HoleSearch::Scan && options.sparse != Tristate::Never);
    let mut transfer = Transfer {
        source: job.source,
        target: job.target,
        control,
        tally,
        buffer,
        chunk,
        chunk_is_chosen: options.buffer_bytes.is_some(),
        skip_zeros,
        zero_bytes: 0,
        window: options.drop_cache.then(|| CacheWindow::new(chunk)),
    };
    let end = copy.copy_data(job, options, &mut transfer)?;
    let holes = transfer.zero_bytes;
    if let Some(mut window) = transfer.window.take() {
        let cached = window.finish(job.source, job.target, tally);
        if let Some(cached) = cached.on(job.target_path, "sync_file_range")? {
            *tally.cached_bytes.get_or_insert(0) += cached;
        }
    }
    copy.finish(job, end, holes)?;
    Ok(copy.result)
}

/// The state of a copy of one file's content.
struct ContentCopy {
    result: ContentResult,
    /// Bytes behind the last data that was written: a hole that the length must cover.
    written_end: u64,
    /// The first method of the comparison that `auto` makes in the first range that is large enough.
    trial: Option<CopyMethod>,
}

impl ContentCopy {
    fn new(job: &ContentJob, options: &CopyOptions) -> Self {
        // Blocks of NUL bytes are found in the buffer only.
        let scans = options.sparse == Tristate::Always || options.holes == HoleSearch::Scan;
        let method = match options.method {
            CopyMethod::Auto => trial::first_method(job, options),
            CopyMethod::Reflink => CopyMethod::ReadWrite,
            _ if scans => CopyMethod::ReadWrite,
            method => method,
        };
        let result = ContentResult::complete(method, 0, 0);
        let has_choice = options.method == CopyMethod::Auto && method != CopyMethod::ReadWrite;
        let is_large = job.stat.size >= trial::MIN_BYTES;
        let trial = (has_choice && is_large).then_some(method);
        Self { result, written_end: 0, trial }
    }

    /// Shares the blocks of the source, if the options and the file systems permit it. Returns whether it did.
    fn try_reflink(
        &mut self,
        job: &ContentJob,
        options: &CopyOptions,
        tally: &mut CopyTally,
    ) -> CopyResult<bool> {
        let always = options.reflink == Tristate::Always;
        let wanted = always || options.method == CopyMethod::Reflink;
        let is_possible = options.permits_sharing() && (job.may_share || wanted);
        if !is_possible || (job.stat.size == 0 && !always) {
            return Ok(false);
        }
        match share_blocks(job.source, job.target, tally) {
            Ok(()) => {
                self.result.method = CopyMethod::Reflink;
                self.result.bytes = job.stat.size;
                self.result.hole_bytes = holes::hole_bytes(job.source, &job.stat, tally);
                Ok(true)
            }
            Err(errno) if is_refusal(errno) && !always => {
                self.result.cannot_share = pair_refuses(errno);
                if wanted {
                    self.fall_back(CopyMethod::Reflink, CopyMethod::ReadWrite, 0, FICLONE, Some(errno));
                }
                Ok(false)
            }
            Err(errno) => Err(not_shared(job.target_path, errno)),
        }
    }

    fn fall_back(
        &mut self,
        from: CopyMethod,
        to: CopyMethod,
        offset: u64,
        call: &'static str,
        errno: Option<Errno>,
    ) {
        self.result.fallbacks.push(Fallback { from, to, offset, call, errno });
        self.result.method = to;
    }

    /// Copies all data. Returns the length that the target must have.
    fn copy_data(
        &mut self,
        job: &ContentJob,
        options: &CopyOptions,
        transfer: &mut Transfer,
    ) -> CopyResult<u64> {
        let size = job.stat.size;
        let keeps_holes = options.sparse != Tristate::Never && options.holes == HoleSearch::Seek;
        let mut at = 0;
        if keeps_holes && job.stat.may_have_holes() {
            at = self.copy_segments(job, transfer, at)?;
        }
        while at < size {
            if !self.copy_range(job, transfer, &mut at, size)? {
                return self.early_end(job, at);
            }
        }
        self.copy_growth(job, transfer, at)
    }

    /// Copies the parts that have data. Returns the offset from which the caller must copy all bytes: the end of the file, or
    /// the offset at which the file system reports no data segments any longer.
    fn copy_segments(&mut self, job: &ContentJob, transfer: &mut Transfer, start: u64) -> CopyResult<u64> {
        let size = job.stat.size;
        let mut at = start;
        loop {
            let (from, to) = match holes::next_data(job.source, at, size, transfer.tally) {
                Ok(Some(segment)) => segment,
                Ok(None) => {
                    self.result.hole_bytes += size.saturating_sub(at);
                    return Ok(size.max(at));
                }
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(at),
                Err(errno) => return Err(CopyError::call(job.source_path, "lseek", errno)),
            };
            self.result.hole_bytes += from - at;
            transfer.control.check()?;
            at = from;
            if !self.copy_range(job, transfer, &mut at, to)? {
                return self.early_end(job, at);
            }
        }
    }

    /// Copies the beginning of a large range by the two methods of a trial in turns, and chooses one. Returns false if the
    /// source ended.
    fn try_methods(
        &mut self,
        job: &ContentJob,
        transfer: &mut Transfer,
        at: &mut u64,
        end: u64,
    ) -> CopyResult<bool> {
        let Some(first) = self.trial.take_if(|_| end - *at >= trial::MIN_BYTES) else {
            return Ok(true);
        };
        let mut trial = MethodTrial::new(job, first);
        while let Some(method) = trial.next() {
            self.result.method = method;
            let started_ns = trial.clock_ns();
            if !self.move_range(job, transfer, at, *at + trial::PART_BYTES)? {
                return Ok(false);
            }
            if self.result.method != method {
                return Ok(true); // the kernel refuses it
            }
            trial.note_part(started_ns);
        }
        let (method, result) = trial.decide();
        self.result.method = method;
        self.result.trial = Some(result);
        Ok(true)
    }

    /// Copies a range; `auto` compares methods at its beginning. Returns false if the source ended.
    fn copy_range(
        &mut self,
        job: &ContentJob,
        transfer: &mut Transfer,
        at: &mut u64,
        end: u64,
    ) -> CopyResult<bool> {
        Ok(self.try_methods(job, transfer, at, end)? && self.move_range(job, transfer, at, end)?)
    }

    /// Copies a range; when the kernel refuses, continues with read and write. Returns false if the source ended.
    fn move_range(
        &mut self,
        job: &ContentJob,
        transfer: &mut Transfer,
        at: &mut u64,
        end: u64,
    ) -> CopyResult<bool> {
        let mut early_end = None;
        transfer.enter(*at);
        loop {
            let method = self.result.method;
            let ended = range_method(method)(transfer, at, end).map_err(|error| error.on_files(job));
            self.written_end = self.written_end.max(*at);
            match ended? {
                RangeEnd::Complete => return Ok(true),
                RangeEnd::SourceEnded => {
                    // A file of sysfs is shorter than its size: the method before had reached the end.
                    if let Some((method, _)) = early_end.filter(|(_, offset)| offset == at) {
                        self.result.fallbacks.pop();
                        self.result.method = method;
                    }
                    return Ok(false);
                }
                RangeEnd::Refused { call, errno } if method == CopyMethod::ReadWrite => {
                    let errno = errno.unwrap_or(Errno::IO);
                    return Err(CopyError::call(job.target_path, call, errno));
                }
                RangeEnd::Refused { call, errno } => {
                    early_end = errno.is_none().then_some((method, *at));
                    self.fall_back(method, CopyMethod::ReadWrite, *at, call, errno);
                    transfer.buffer.grow(transfer.chunk);
                }
            }
        }
    }

    /// Decides whether a source that ended at `at`, before its size, is complete. A file of sysfs is shorter than its size says;
    /// another file was truncated while it was copied, which is an error.
    fn early_end(&mut self, job: &ContentJob, at: u64) -> CopyResult<u64> {
        state_now(job)?;
        Ok(at)
    }

    /// Copies the bytes that were appended since the file was opened, up to its present size. A file without a size (procfs) is
    /// copied up to its end.
    fn copy_growth(&mut self, job: &ContentJob, transfer: &mut Transfer, mut at: u64) -> CopyResult<u64> {
        let now = state_now(job)?;
        let end = match (job.stat.size, now.size) {
            (0, 0) => u64::MAX,
            (_, size) => size,
        };
        if end == u64::MAX {
            self.result.method = CopyMethod::ReadWrite;
        } else {
            self.result.has_grown = end > job.stat.size;
        }
        if at < end {
            self.copy_range(job, transfer, &mut at, end)?;
        }
        Ok(at)
    }

    /// Gives the target its length, if it ends with a hole.
    fn finish(&mut self, job: &ContentJob, end: u64, zero_bytes: u64) -> CopyResult<()> {
        self.result.bytes = end;
        self.result.hole_bytes += zero_bytes;
        if self.written_end < end || zero_bytes > 0 {
            retry_on_intr(|| ftruncate(job.target, end)).on(job.target_path, "ftruncate")?;
        }
        Ok(())
    }
}

/// Returns the state of the source now. Fails if it has become shorter: the bytes that were copied are then of two states, and
/// its end could be taken for a hole.
fn state_now(job: &ContentJob) -> CopyResult<FileStat> {
    let now: FileStat = fstat(job.source).on(job.source_path, "fstat")?.into();
    if now.size < job.stat.size {
        return Err(CopyError::Refused(format!(
            "{}: the file became shorter while it was copied: {} bytes, then {} – copy it again when no program \
             writes to it",
            quote(job.source_path.as_os_str().as_encoded_bytes()),
            job.stat.size,
            now.size
        )));
    }
    Ok(now)
}
