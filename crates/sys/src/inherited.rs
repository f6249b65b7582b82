//! The signal state and descriptors that weir inherited.
//!
//! Rust's runtime ignores SIGPIPE and opens /dev/null on closed standard descriptors before `main`, and weir catches
//! SIGINT later. A command that weir starts must inherit what weir inherited, so this module records it before the
//! runtime starts: in a function of `.init_array`, which the dynamic loader (or a static program's start code) calls
//! before `main`. That function makes only async-signal-safe calls and does not use Rust's runtime.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::{file_system, foreign_descriptors};

/// The highest signal number (SIGRTMAX, signal(7)).
const LAST_SIGNAL: i32 = 64;

static RECORDED: AtomicBool = AtomicBool::new(false);
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = record;

extern "C" fn record() {
    let (mut ignored, mut blocked, mut closed) = (0u64, 0u64, 0u64);
    // SAFETY: these structures are plain data for which zero is valid; the calls only fill them and change nothing.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
        for signal in signals() {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
            {
                ignored |= bit(signal);
            }
            if libc::sigismember(&mask, signal) == 1 {
                blocked |= bit(signal);
            }
        }
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) == -1 {
                closed |= 1 << fd;
            }
        }
    }
    IGNORED.store(ignored, Relaxed);
    BLOCKED.store(blocked, Relaxed);
    CLOSED.store(closed, Relaxed);
    RECORDED.store(true, Relaxed);
}

/// Restores the inherited signal state and closed descriptors in this process, which is about to call execve(2).
/// Async-signal-safe.
pub fn restore() {
    if !RECORDED.load(Relaxed) {
        return;
    }
    let (ignored, blocked, closed) = (IGNORED.load(Relaxed), BLOCKED.load(Relaxed), CLOSED.load(Relaxed));
    // SAFETY: SIG_IGN and SIG_DFL call no code; sigemptyset initializes the mask; no Rust code of this process uses
    // descriptors 0 to 2 before execve(2).
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        for signal in signals() {
            let to = if ignored & bit(signal) != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
            libc::signal(signal, to);
            if blocked & bit(signal) != 0 {
                libc::sigaddset(&mut mask, signal);
            }
        }
        for fd in (0..3).filter(|fd| closed & (1 << fd) != 0) {
            libc::close(fd);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
    }
}

/// Returns whether weir inherited this standard descriptor (0 to 2) closed.
pub fn was_closed(fd: RawFd) -> bool {
    CLOSED.load(Relaxed) & (1 << fd) != 0
}

/// Lets reads of a closed standard input and writes to a closed standard output fail with EBADF.
///
/// Rust's runtime has opened /dev/null there, for both directions: a copy to it would succeed and lose everything. This function
/// opens it for the other direction only, so that the numbers stay occupied and the calls fail as on a closed descriptor.
pub fn let_closed_fail() {
    for (fd, flags) in
        [(0, OFlags::WRONLY), (1, OFlags::RDONLY)].into_iter().filter(|(fd, _)| was_closed(*fd))
    {
        if let Ok(null) = open("/dev/null", flags | OFlags::CLOEXEC, Mode::empty()) {
            let _ = if fd == 0 { dup2_stdin(&null) } else { dup2_stdout(&null) };
        }
    }
}

/// Returns whether a command starts with this signal blocked.
pub fn starts_blocked(signal: i32) -> bool {
    BLOCKED.load(Relaxed) & bit(signal) != 0
}

/// The inherited descriptors that weir keeps open once a command has them too. Standard error always stays open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InheritedFds {
    /// All of them, for a process that does more than run the command.
    #[default]
    All,
    /// Standard output, and no other descriptor.
    Stdout,
    /// None of the inherited descriptors.
    Nothing,
}

/// Closes the inherited descriptors in weir after the command has been forked. Standard input and output become
/// /dev/null.
///
/// The command is then their only owner, as without weir: its peer sees end of file when the command closes a pipe, and
/// the kernel need not lock the offset of a file that is not shared (30 ns a call).
///
/// Every descriptor without FD_CLOEXEC counts as inherited, because weir itself opens none without it.
pub fn close_inherited(keep: InheritedFds) {
    if keep == InheritedFds::All {
        return;
    }
    // Without /dev/null the descriptors stay open: the next file that weir opens must not get one of these numbers.
    if let Ok(null) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = dup2_stdin(&null);
        if keep == InheritedFds::Nothing {
            keep_stdout();
            let _ = dup2_stdout(&null);
        }
    }
    for fd in open_descriptors().into_iter().filter(|&fd| fd > 2 && is_inherited(fd)) {
        // SAFETY: the descriptor was inherited through execve(2), so no object of this program owns it.
        unsafe { libc::close(fd) };
    }
}

/// Standard output before [`close_inherited`], if weir may need it.
static KEPT_STDOUT: OnceLock<OwnedFd> = OnceLock::new();

/// Keeps standard output where weir can neither get it from the command nor open it anew. Its peer sees its end when weir ends.
fn keep_stdout() {
    if foreign_descriptors::forbidden().is_none() {
        return;
    }
    let stdout = rustix::stdio::stdout();
    let has_offset = || file_system::status_of(stdout).is_ok_and(|status| status.is_file());
    // O_NONBLOCK: without a reader, the open of a pipe would wait.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if (has_offset() || open("/proc/self/fd/1", flags, Mode::empty()).is_err())
        && let Ok(copy) = stdout.try_clone_to_owned()
    {
        let _first = KEPT_STDOUT.set(copy);
    }
}

/// Returns the standard output that [`close_inherited`] has closed, if it was kept.
pub fn kept_stdout() -> Option<BorrowedFd<'static>> {
    KEPT_STDOUT.get().map(AsFd::as_fd)
}

/// Returns the open descriptors of this process; none without /proc.
fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_inherited(fd: RawFd) -> bool {
    // SAFETY: F_GETFD changes nothing; it fails with EBADF for a closed descriptor.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Returns all signals whose disposition can be changed.
fn signals() -> impl Iterator<Item = i32> {
    (1..=LAST_SIGNAL).filter(|&signal| signal != libc::SIGKILL && signal != libc::SIGSTOP)
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}
