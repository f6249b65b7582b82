//! What weir itself was started with: signals, which of descriptors 0 to 2 were closed, and what else was open.
//!
//! Rust's runtime ignores SIGPIPE and opens /dev/null on closed standard descriptors before `main`, and weir
//! catches SIGINT later. A command started by weir must get what weir got, so this is written down before the
//! runtime begins: by a function in `.init_array`, which the loader (or a static program's start code) calls
//! before `main`. It makes only async-signal-safe calls and touches nothing of Rust's runtime.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// The highest signal number.
const LAST_SIGNAL: i32 = 64;

static KNOWN: AtomicBool = AtomicBool::new(false);
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = write_down;

extern "C" fn write_down() {
    let (mut ignored, mut blocked, mut closed) = (0u64, 0u64, 0u64);
    // SAFETY: all of these structures are plain data for which zero is a valid value; the calls only fill
    // them, and only query.
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
    KNOWN.store(true, Relaxed);
}

/// Gives them to this process, which is about to call execve(2). Async-signal-safe.
pub fn restore() {
    if !KNOWN.load(Relaxed) {
        return;
    }
    let (ignored, blocked, closed) = (IGNORED.load(Relaxed), BLOCKED.load(Relaxed), CLOSED.load(Relaxed));
    // SAFETY: SIG_IGN and SIG_DFL are dispositions that call no code; the mask is initialised by
    // sigemptyset; closing 0 to 2 takes nothing from Rust, since this process runs no Rust code any more.
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

/// Whether a command will begin with this signal blocked.
pub fn blocks(signal: i32) -> bool {
    BLOCKED.load(Relaxed) & bit(signal) != 0
}

/// What a process keeps of the descriptors it was started with, when a command has them too. Standard error always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InheritedFds {
    /// All: for a process that is not only there for the command.
    #[default]
    All,
    /// Standard output.
    Stdout,
    /// None.
    Nothing,
}

/// To be called when the command has been forked: lets go of what this process was given for it. Standard input and output
/// become /dev/null, all others that were inherited are closed. Only the command has them then, as without weir: who closes
/// its end of a pipe ends it for the other side, and the kernel need not lock the position of a file that nobody shares
/// (30 ns a call).
///
/// Every descriptor without FD_CLOEXEC counts as inherited: weir opens none.
pub fn close_inherited(keep: InheritedFds) {
    if keep == InheritedFds::All {
        return;
    }
    // Without /dev/null they stay: a file that is opened next must not become one of them.
    if let Ok(null) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = dup2_stdin(&null);
        if keep == InheritedFds::Nothing {
            let _ = dup2_stdout(&null);
        }
    }
    for fd in open_descriptors().into_iter().filter(|&fd| fd > 2 && is_inherited(fd)) {
        // SAFETY: it came with execve(2), so that no object of this program owns it.
        unsafe { libc::close(fd) };
    }
}

/// None, where there is no /proc.
fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_inherited(fd: RawFd) -> bool {
    // SAFETY: F_GETFD only asks; of a number that is no descriptor (any more) it says EBADF.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// All signals whose disposition can be changed.
fn signals() -> impl Iterator<Item = i32> {
    (1..=LAST_SIGNAL).filter(|&signal| signal != libc::SIGKILL && signal != libc::SIGSTOP)
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}
