//! `--verify`: reads the copy back from the device and compares it with the source.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, fstat, openat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use weir_sys::page_cache::cached_pages;

use crate::buffer::AlignedBuffer;
use crate::control::{CopyControl, CopyPhase};
use crate::durability::sync_file;
use crate::engine::pread_full;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::options::CopySync;
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
    sync_file(job.target, job.target_path, CopySync::Data, control, tally)?;
    control.set_phase(CopyPhase::Verifying);
    fadvise(job.target, 0, None, Advice::DontNeed).on(job.target_path, "fadvise")?;
    let (target, past_cache) = reopen(job)?;
    let sha256 = compare(job, target.as_fd(), control, tally)?;
    control.set_phase(CopyPhase::Copying);
    Ok(Verified { sha256, past_cache, seconds: started.elapsed().as_secs_f64() })
}

/// Opens the copy for reading. Returns whether its bytes then come from the device.
fn reopen(job: &VerifyJob) -> CopyResult<(OwnedFd, bool)> {
    let open = |flags| open_again(job, OFlags::RDONLY | OFlags::CLOEXEC | flags);
    // Other programs (udev, a mounted file system) read pages of a device again at any time; O_DIRECT passes by them.
    if job.device_bytes.is_some()
        && let Ok(target) = open(OFlags::DIRECT)
    {
        return Ok((target, true));
    }
    let pages = cached_pages(job.target, 0, job.device_bytes.unwrap_or(0));
    let target = open(OFlags::empty())?;
    Ok((target, pages.is_ok_and(|pages| pages.cached == 0)))
}

/// Opens the copy, which is open for writing only, once more.
fn open_again(job: &VerifyJob, flags: OFlags) -> CopyResult<OwnedFd> {
    // This opens the same file, also if its name is another file by now.
    let own = format!("/proc/self/fd/{}", job.target.as_raw_fd());
    match openat(CWD, &own, flags, Mode::empty()) {
        Err(Errno::NOENT) => open_by_name(job, flags),
        opened => opened.on(job.target_path, "open"),
    }
}

/// Opens the copy by its name, where /proc is not mounted. Fails if the name is not that of the copy.
fn open_by_name(job: &VerifyJob, flags: OFlags) -> CopyResult<OwnedFd> {
    let inode = |file: BorrowedFd<'_>| fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    // Without O_NONBLOCK the open of a FIFO that has taken the name would wait for a writer.
    let opened = openat(CWD, job.target_path, flags | OFlags::NONBLOCK, Mode::empty());
    match opened {
        Ok(file) if inode(file.as_fd()) == inode(job.target) => Ok(file),
        Err(error) if error != Errno::NOENT => Err(error).on(job.target_path, "open"),
        _ => Err(CopyError::Refused(format!(
            "{} cannot be verified: /proc is not mounted, and weir rereads a file without a name by /proc/self/fd: \
             mount -t proc proc /proc, or copy without --atomic and --resume",
            quoted(job.target_path)
        ))),
    }
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
