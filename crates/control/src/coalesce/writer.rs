//! Writes the bytes of a region to the process's own open file, with a time limit.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::process::PidfdGetfdFlags;

use super::layout::ArenaRegion;

/// Duplicates a descriptor of the process: the same open file, with its offset and flags.
pub fn open(process: &OwnedFd, fd: i32) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?)
}

/// Returns how many bytes the process's own RLIMIT_FSIZE lets it write.
pub fn size_limit(pid: u32, file: &OwnedFd) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a null pointer leaves the limit unchanged, and the present limit goes to this frame.
    if unsafe { libc::prlimit(pid as i32, libc::RLIMIT_FSIZE, std::ptr::null(), &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let stat = rustix::fs::fstat(file)?;
    if limit.rlim_cur == libc::RLIM_INFINITY || !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Ok(u64::MAX);
    }
    let appends = rustix::fs::fcntl_getfl(file)?.contains(OFlags::APPEND);
    let offset = if appends { stat.st_size as u64 } else { rustix::fs::tell(file)? };
    Ok(limit.rlim_cur.saturating_sub(offset))
}

/// Writes at most `most` pending bytes of a region, and notes each piece at once. Returns the number of bytes written,
/// and an error if bytes are left.
pub fn write(
    file: &OwnedFd,
    region: &ArenaRegion,
    mut most: u64,
    timeout: Duration,
) -> (u64, Option<io::Error>) {
    let _block = SigpipeBlock::new();
    let deadline = Instant::now() + timeout;
    let mut written = 0;
    loop {
        let mut bytes = region.pending_bytes();
        if bytes.is_empty() {
            return (written, None);
        }
        if most == 0 {
            return (written, Some(Errno::FBIG.into()));
        }
        bytes.truncate(u64::from(region.out_limit.load(Relaxed).max(1)).min(most) as usize);
        let result =
            if is_writable(file, deadline) { rustix::io::write(file, &bytes) } else { Err(Errno::AGAIN) };
        match result {
            Ok(n) => {
                region.drained.fetch_add(n as u64, Release);
                written += n as u64;
                most -= n as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if Instant::now() < deadline => {}
            Err(why) => return (written, Some(why.into())),
        }
    }
}

/// Waits until a write would not block. A regular file is always writable; a pipe if it takes PIPE_BUF bytes.
fn is_writable(file: &OwnedFd, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let mut polled = [PollFd::new(file, PollFlags::OUT)];
    matches!(poll(&mut polled, Some(&timeout)), Ok(1))
}

/// Blocks SIGPIPE in this thread, and discards one that came meanwhile: a pipe without readers must not end weir.
struct SigpipeBlock {
    before: libc::sigset_t,
    was_pending: bool,
}

impl SigpipeBlock {
    fn new() -> SigpipeBlock {
        // SAFETY: the signal sets are in this frame, and the calls fill them before they are read.
        unsafe {
            let (mut pipe, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut pipe);
            libc::sigaddset(&mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, &mut before);
            SigpipeBlock { before, was_pending: sigpipe_is_pending() }
        }
    }
}

fn sigpipe_is_pending() -> bool {
    // SAFETY: the signal set is in this frame.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, libc::SIGPIPE) == 1
    }
}

impl Drop for SigpipeBlock {
    fn drop(&mut self) {
        // SAFETY: the signal sets are in this frame and in self.
        unsafe {
            if sigpipe_is_pending() && !self.was_pending {
                let mut pipe: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut pipe);
                libc::sigaddset(&mut pipe, libc::SIGPIPE);
                let no_wait = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                libc::sigtimedwait(&pipe, std::ptr::null_mut(), &no_wait);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
