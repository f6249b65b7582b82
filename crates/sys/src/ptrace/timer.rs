//! A timer that interrupts waitpid(2) of the tracer.
//!
//! A POSIX timer (timer_create(2)) sends a signal to the tracer's thread. The handler does nothing, but waitpid(2) fails
//! with EINTR. A signal that arrives just before waitpid(2) would be lost, so the timer repeats until it is set again.

use std::io;
use std::sync::Once;

/// The interval of repetition: the longest delay after a lost signal.
const REPEAT_NS: i64 = 2_000_000;

/// The timer of one thread, which created it.
#[derive(Debug)]
pub struct WaitTimer {
    timer: libc::timer_t,
    due_ns: u64,
}

extern "C" fn nothing(_signal: libc::c_int) {}

/// Returns a real-time signal that neither C libraries nor debuggers use.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 11
}

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler does nothing, so it may run anywhere; without SA_RESTART, waitpid(2) fails with EINTR.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal(), &action, std::ptr::null_mut());
        }
    });
}

impl WaitTimer {
    /// Creates a timer for the calling thread, not set yet.
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
                0 => Ok(Self { timer, due_ns: 0 }),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Sets the time of the next wake-up (CLOCK_MONOTONIC, nanoseconds; 0: never). Wake-ups repeat until the next call with
    /// another time.
    pub fn set(&mut self, due_ns: u64) {
        if due_ns == self.due_ns {
            return;
        }
        self.due_ns = due_ns;
        let time = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: REPEAT_NS },
            it_value: libc::timespec {
                tv_sec: (due_ns / 1_000_000_000) as libc::time_t,
                tv_nsec: (due_ns % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: `self` owns the timer; `time` is a valid local.
        unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
    }
}

impl Drop for WaitTimer {
    fn drop(&mut self) {
        // SAFETY: `self` owns the timer, and deletes it once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
