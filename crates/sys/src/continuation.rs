//! Continues weir when the command with which it stopped is continued or killed.
//!
//! A stopped weir cannot see its command. If only the command gets SIGCONT or SIGKILL, as cpulimit(1) and supervisors send them, both
//! would stay stopped, because a tracee needs its tracer. So a helper process watches the command.

use std::ffi::{CStr, CString};
use std::time::Duration;

/// Bounds of the interval between two checks of the command. An interval is a fraction of the time since the stop.
const FIRST_INTERVAL: Duration = Duration::from_millis(2);
const LAST_INTERVAL: Duration = Duration::from_millis(100);
/// The time since the stop is divided by this number.
const INTERVAL_DIVISOR: u32 = 16;
/// Flags of a task (proc_pid_stat(5), linux/sched.h): PF_EXITING and PF_SIGNALED, which a fatal signal sets.
const ENDING_FLAGS: u64 = 0x4 | 0x400;

/// A process that sends SIGCONT to this one while the command is not stopped. Dropping it ends it.
#[derive(Debug)]
pub struct ContinuationWatch(libc::pid_t);

impl ContinuationWatch {
    /// Starts the process for the command `pid`, a stopped child of this process. Returns none if fork(2) fails.
    pub fn start(pid: u32) -> Option<Self> {
        let file = |name: &str| CString::new(format!("/proc/{pid}/{name}")).ok();
        let (stat, status) = (file("stat")?, file("status")?);
        // SAFETY: zeroed is a valid set, which the call fills; both sets live in this frame. The child only makes
        // system calls, allocates nothing, takes no lock, as a fork(2) of a process with threads requires, and never returns.
        unsafe {
            let weir = libc::getpid();
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            // Weir's handlers would forward each signal of a process group to the command twice.
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let child = libc::fork();
            if child == 0 {
                watch(weir, &stat, &status);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            (child > 0).then_some(Self(child))
        }
    }
}

impl Drop for ContinuationWatch {
    fn drop(&mut self) {
        // SAFETY: a child that has not been waited for; the status is not wanted.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            while libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL) < 0
                && *libc::__errno_location() == libc::EINTR
            {}
        }
    }
}

/// Sends SIGCONT to weir whenever the command is continued or ends. Ends with weir.
///
/// # Safety
/// Runs in a child after fork(2): it only makes system calls, allocates nothing and takes no lock.
unsafe fn watch(weir: libc::pid_t, stat: &CStr, status: &CStr) -> ! {
    // SAFETY: calls with numbers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut waited = Duration::ZERO;
        while libc::getppid() == weir {
            let interval = (waited / INTERVAL_DIVISOR).clamp(FIRST_INTERVAL, LAST_INTERVAL);
            libc::usleep(interval.as_micros() as u32);
            waited += interval;
            let (mut first, mut second) = ([0; 1024], [0; 2048]);
            if !remains_stopped(read(stat, &mut first), read(status, &mut second)) {
                // Again at each check: weir may not have stopped yet.
                libc::kill(weir, libc::SIGCONT);
            }
        }
        libc::_exit(0)
    }
}

/// Reads the beginning of a file; nothing if that fails.
fn read<'b>(path: &CStr, buffer: &'b mut [u8]) -> &'b [u8] {
    // SAFETY: the path ends with a NUL, and the buffer has the length that is passed.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(fd);
        buffer.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default()
    }
}

/// Returns whether a process is stopped, by its `stat` and `status` in /proc, and no signal is about to continue or end it. A traced
/// process keeps the state of a stop until its tracer resumes it.
fn remains_stopped(stat: &[u8], status: &[u8]) -> bool {
    let Some(end_of_name) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let mut words = stat[end_of_name + 1..].split(|byte| *byte == b' ').skip(1);
    let is_stopped = matches!(words.next(), Some(b"T" | b"t"));
    let flags = words.nth(5).map_or(0, |word| number(word, 10));
    let pending = |name: &[u8]| {
        let lines = status.split(|byte| *byte == b'\n');
        let masks = lines.filter_map(|line| line.strip_prefix(name));
        masks.fold(0, |sum, mask| sum | number(mask, 16))
    };
    let continues = (pending(b"ShdPnd:\t") | pending(b"SigPnd:\t")) & (1 << (libc::SIGCONT - 1)) != 0;
    is_stopped && flags & ENDING_FLAGS == 0 && !continues
}

fn number(word: &[u8], radix: u32) -> u64 {
    std::str::from_utf8(word).ok().and_then(|word| u64::from_str_radix(word.trim(), radix).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(state: char, flags: u32) -> String {
        format!("7 (a) b) {state} 1 7 7 0 -1 {flags} 90 0 0 0 0 0 0 0 20 0 1 0 5 2600960 200\n")
    }

    fn status(shared: u64) -> String {
        format!("Name:\ta\nState:\tt (tracing stop)\nSigPnd:\t0000000000000000\nShdPnd:\t{shared:016x}\n")
    }

    #[test]
    fn a_signal_that_continues_or_ends_a_stopped_process_is_seen() {
        let stopped =
            |state, flags, shared| remains_stopped(stat(state, flags).as_bytes(), status(shared).as_bytes());
        assert!(stopped('T', 0x40_0000, 0) && stopped('t', 0x40_0000, 1 << (libc::SIGUSR1 - 1)));
        assert!(!stopped('S', 0x40_0000, 0), "it runs");
        assert!(!stopped('t', 0x40_0000, 1 << 17), "SIGCONT is pending");
        assert!(!stopped('t', 0x40_0400, 0), "a signal has killed it");
        assert!(!stopped('Z', 0x40_000c, 0));
        assert!(!remains_stopped(b"", b""), "it is gone");
    }
}
