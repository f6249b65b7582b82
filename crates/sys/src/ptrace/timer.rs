//! Wakes the tracer out of waitpid(2) at a time.
//!
//! A POSIX timer sends a signal to the tracer's thread alone, whose handler does nothing: waitpid ends with
//! EINTR. A signal that comes just before waitpid would be missed, so the timer repeats until it is set anew.

use std::io;
use std::sync::Once;

/// Between repetitions.
const AGAIN_NS: i64 = 2_000_000;

/// Of one thread, which made it.
#[derive(Debug)]
pub struct WaitTimer {
    timer: libc::timer_t,
    due: u64,
}

extern "C" fn nothing(_signal: libc::c_int) {}

/// A real-time signal that neither C libraries nor debuggers use for themselves.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 11
}

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler does nothing, so it may run anywhere; without SA_RESTART, waitpid ends.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal(), &action, std::ptr::null_mut());
        }
    });
}

impl WaitTimer {
    /// A timer for the calling thread, not set yet.
    pub fn new() -> io::Result<Self> {
        install_handler();
        // SAFETY: zeroed is a valid sigevent and sigset_t; the calls fill or read locals that outlive them.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut mask);
            libc::sigaddset(&mut mask, signal());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &mask, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::ptr::null_mut();
            match libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) {
                0 => Ok(Self { timer, due: 0 }),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Wakes at `due` (CLOCK_MONOTONIC, nanoseconds), and again until it is set to another time; 0: never.
    pub fn set(&mut self, due: u64) {
        if due == self.due {
            return;
        }
        self.due = due;
        let time = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: AGAIN_NS },
            it_value: libc::timespec {
                tv_sec: (due / 1_000_000_000) as libc::time_t,
                tv_nsec: (due % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: the timer is this one's; the time is a valid local.
        unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
    }
}

impl Drop for WaitTimer {
    fn drop(&mut self) {
        // SAFETY: deleted once, by its owner.
        unsafe { libc::timer_delete(self.timer) };
    }
}
