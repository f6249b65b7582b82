//! Writing another process's bytes to its own open file, without ever waiting longer than asked.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::process::PidfdGetfdFlags;

use super::layout::ArenaRegion;

/// The same open file as the process's descriptor: same offset, same flags.
pub fn of(process: &OwnedFd, fd: i32) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?)
}

/// How many bytes the process itself could still have written: its limit of file sizes is not ours.
pub fn allowance(pid: u32, sink: &OwnedFd) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: no new limit is given, the old one is stored in this frame.
    if unsafe { libc::prlimit(pid as i32, libc::RLIMIT_FSIZE, std::ptr::null(), &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let about = rustix::fs::fstat(sink)?;
    if limit.rlim_cur == libc::RLIM_INFINITY || !FileType::from_raw_mode(about.st_mode).is_file() {
        return Ok(u64::MAX);
    }
    let appends = rustix::fs::fcntl_getfl(sink)?.contains(OFlags::APPEND);
    let place = if appends { about.st_size as u64 } else { rustix::fs::tell(sink)? };
    Ok(limit.rlim_cur.saturating_sub(place))
}

/// Writes what is pending in the region, `most` bytes of it, and notes each piece at once. Returns what went out, and
/// why not all did.
pub fn write(
    sink: &OwnedFd,
    region: &ArenaRegion,
    mut most: u64,
    patience: Duration,
) -> (u64, Option<io::Error>) {
    let _quiet = SigpipeBlock::new();
    let until = Instant::now() + patience;
    let mut written = 0;
    loop {
        let mut bytes = region.rest();
        if bytes.is_empty() {
            return (written, None);
        }
        if most == 0 {
            return (written, Some(Errno::FBIG.into()));
        }
        bytes.truncate(u64::from(region.out_limit.load(Relaxed).max(1)).min(most) as usize);
        let done = if has_room(sink, until) { rustix::io::write(sink, &bytes) } else { Err(Errno::AGAIN) };
        match done {
            Ok(n) => {
                region.drained.fetch_add(n as u64, Release);
                written += n as u64;
                most -= n as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if Instant::now() < until => {}
            Err(why) => return (written, Some(why.into())),
        }
    }
}

/// Regular files always have; a pipe has it if a piece of PIPE_BUF goes in at once.
fn has_room(sink: &OwnedFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let mut wait = [PollFd::new(sink, PollFlags::OUT)];
    matches!(poll(&mut wait, Some(&timeout)), Ok(1))
}

/// A pipe that nobody reads must not end weir: SIGPIPE is blocked meanwhile, and taken away if it came.
struct SigpipeBlock {
    before: libc::sigset_t,
    had: bool,
}

impl SigpipeBlock {
    fn new() -> SigpipeBlock {
        // SAFETY: signal sets of this frame, written by the calls before they are read.
        unsafe {
            let (mut pipe, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut pipe);
            libc::sigaddset(&mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, &mut before);
            SigpipeBlock { before, had: pending() }
        }
    }
}

fn pending() -> bool {
    // SAFETY: a set of this frame.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, libc::SIGPIPE) == 1
    }
}

impl Drop for SigpipeBlock {
    fn drop(&mut self) {
        // SAFETY: sets of this frame and of self; no signal handler is involved.
        unsafe {
            if pending() && !self.had {
                let mut pipe: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut pipe);
                libc::sigaddset(&mut pipe, libc::SIGPIPE);
                let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                libc::sigtimedwait(&pipe, std::ptr::null_mut(), &now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
