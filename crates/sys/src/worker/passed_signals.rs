//! The signals that the first process of weir receives for its worker.

use std::time::Duration;

use crate::signals::{self, FORWARDED};

/// The set of blocked signals, and the former one.
pub(super) struct PassedSignals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

/// Returns whether a signal asks a program to end.
pub(super) fn asks_to_end(signal: i32) -> bool {
    matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGTERM)
}

impl PassedSignals {
    /// Blocks the signals that users and shells send, unless they are ignored (nohup(1)), and SIGCHLD.
    pub fn block() -> PassedSignals {
        signals::keep_ended_children();
        // SAFETY: zero bytes are a valid set, which the calls fill and read.
        unsafe {
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            let passed = FORWARDED.into_iter().chain([libc::SIGTSTP, libc::SIGCONT]);
            for signal in passed.filter(|signal| !signals::is_ignored(*signal)) {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
            PassedSignals { set, before }
        }
    }

    /// Restores the signals that were blocked before.
    pub fn restore(&self) {
        // SAFETY: the call reads a set that sigprocmask(2) has filled.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }

    /// Waits for a signal. Returns it, and whether the kernel has sent it, as for a terminal; None at the timeout.
    pub fn next(&self, timeout: Duration) -> Option<(i32, bool)> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: i64::from(timeout.subsec_nanos()) as _,
        };
        // SAFETY: zero bytes are a valid siginfo_t, which the call fills; it reads the set and the time.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::sigtimedwait(&self.set, &mut info, &timeout), info)
        };
        (signal > 0).then_some((signal, info.si_code > 0))
    }

    /// Stops this process by SIGTSTP, until a SIGCONT. Returns at once where the kernel stops no process: in an orphaned process group.
    pub fn stop(&self) {
        // SAFETY: the call takes a number. The signal is blocked.
        unsafe { libc::raise(libc::SIGTSTP) };
        set_blocked(libc::SIGTSTP, libc::SIG_UNBLOCK);
        set_blocked(libc::SIGTSTP, libc::SIG_BLOCK);
    }

    /// Ends this process with the wait status of its worker.
    pub fn end_as(&self, status: i32) -> ! {
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the calls take numbers and read the limit. The worker has written a core file, if any.
            unsafe {
                libc::setrlimit(libc::RLIMIT_CORE, &no_core);
                libc::signal(signal, libc::SIG_DFL);
                self.restore();
                libc::raise(signal);
                libc::_exit(128 + signal);
            }
        }
        // SAFETY: ends this process, which has no other thread and holds no output.
        unsafe { libc::_exit(libc::WEXITSTATUS(status)) };
    }
}

/// Lets stop signals of the terminal stop this process, a child of the one that blocks them.
pub(super) fn unblock_stop() {
    set_blocked(libc::SIGTSTP, libc::SIG_UNBLOCK);
}

fn set_blocked(signal: i32, how: i32) {
    // SAFETY: zero bytes are a valid set, which the calls fill and read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(how, &set, std::ptr::null_mut());
    }
}
