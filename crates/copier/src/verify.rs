//! `--verify`: reads the copy back from the device and compares it with the source.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags, fadvise, fdatasync, fstat, openat};
use sha2::{Digest, Sha256};
use weir_sys::page_cache::cached_pages;

use crate::buffer::AlignedBuffer;
use crate::control::{CopyControl, CopyPhase};
use crate::engine::pread_full;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::tally::CopyTally;
use crate::target::quoted;

/// The bytes that are compared at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// The result of a comparison that found no difference.
#[derive(Debug, Clone, Copy)]
pub struct Verified {
    /// The SHA-256 of the copy, as sha256sum(1) prints it.
    pub sha256: [u8; 32],
    /// The copy was read from the device. False if its file system keeps it in memory only, or the kernel cannot say it.
    pub past_cache: bool,
    /// Seconds that syncing, rereading and comparing took.
    pub seconds: f64,
}

/// The files of a comparison.
pub(crate) struct VerifyJob<'a> {
    pub source: BorrowedFd<'a>,
    pub source_path: &'a Path,
    pub stat: &'a FileStat,
    pub target: BorrowedFd<'a>,
    pub target_path: &'a Path,
    /// The bytes of the copy on a block device, which has others behind them. None for a file.
    pub device_bytes: Option<u64>,
}

/// Writes the copy to the device, drops it from the page cache, and compares every byte with the source.
pub(crate) fn verify(job: &VerifyJob, control: &CopyControl, tally: &mut CopyTally) -> CopyResult<Verified> {
    let started = std::time::Instant::now();
    control.set_phase(CopyPhase::Verifying);
    fdatasync(job.target).on(job.target_path, "fdatasync")?;
    fadvise(job.target, 0, None, Advice::DontNeed).on(job.target_path, "fadvise")?;
    let (target, past_cache) = reopen(job)?;
    let sha256 = compare(job, target.as_fd(), control, tally)?;
    control.set_phase(CopyPhase::Copying);
    Ok(Verified { sha256, past_cache, seconds: started.elapsed().as_secs_f64() })
}

/// Opens the copy for reading. Returns whether its bytes then come from the device.
fn reopen(job: &VerifyJob) -> CopyResult<(OwnedFd, bool)> {
    // The copy is open for writing only. This opens the same file, also if its name is another file by now.
    let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&job.target));
    let open = |flags| openat(rustix::fs::CWD, &own, OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty());
    // Other programs (udev, a mounted file system) read pages of a device again at any time; O_DIRECT passes by them.
    if job.device_bytes.is_some()
        && let Ok(target) = open(OFlags::DIRECT)
    {
        return Ok((target, true));
    }
    let pages = cached_pages(job.target, 0, job.device_bytes.unwrap_or(0));
    let target = open(OFlags::empty()).on(job.target_path, "open")?;
    Ok((target, pages.is_ok_and(|pages| pages.cached == 0)))
}

fn compare(
    job: &VerifyJob,
    target: BorrowedFd<'_>,
    control: &CopyControl,
    tally: &mut CopyTally,
) -> CopyResult<[u8; 32]> {
    let mut buffers = [AlignedBuffer::new(BLOCK_BYTES), AlignedBuffer::new(BLOCK_BYTES)];
    let [left, right] = &mut buffers;
    let mut hash = Sha256::new();
    let mut at = 0;
    loop {
        control.check()?;
        let left_over = job.device_bytes.map_or(u64::MAX, |bytes| bytes - at);
        let wanted = usize::try_from(left_over).map_or(BLOCK_BYTES, |bytes| bytes.min(BLOCK_BYTES));
        let of_source = pread_full(job.source, &mut left[..wanted], at).on(job.source_path, "read")?;
        // O_DIRECT reads whole blocks of the device.
        let of_target = pread_full(target, right, at).on(job.target_path, "read")?.min(wanted);
        if left[..of_source] != right[..of_target] {
            return Err(difference(job, at, &left[..of_source], &right[..of_target])?);
        }
        hash.update(&right[..of_target]);
        at += of_target as u64;
        tally.verified_bytes += of_target as u64;
        if of_target < BLOCK_BYTES {
            return Ok(hash.finalize().into());
        }
    }
}

/// Returns the error for a copy that differs. A source that was changed meanwhile is the usual reason.
fn difference(job: &VerifyJob, block: u64, source: &[u8], target: &[u8]) -> CopyResult<CopyError> {
    let equal = source.iter().zip(target).take_while(|(source, target)| source == target).count();
    let now: FileStat = fstat(job.source).on(job.source_path, "fstat")?.into();
    let reason = match (now.size, now.modified, now.changed)
        == (job.stat.size, job.stat.modified, job.stat.changed)
    {
        true => {
            "the source was not changed: memory or a device is faulty, do not trust them (dmesg, smartctl)"
        }
        false => "the source was changed while it was copied: copy it again when no program writes to it",
    };
    Ok(CopyError::Refused(format!(
        "{} differs from {} at byte {}: {reason}",
        quoted(job.target_path),
        quoted(job.source_path),
        block + equal as u64
    )))
}
