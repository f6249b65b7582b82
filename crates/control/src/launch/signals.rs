//! Forwards weir's signals to the command, and stops weir when job control stops the command.

use weir_sys::continuation::ContinuationWatch;
use weir_sys::signals::{self, OF_GROUP, SignalForwarding};

/// Forwards signals to a process until the guard is dropped. The terminal sends its signals to both by itself.
pub(crate) fn forward(pid: u32) -> SignalForwarding {
    signals::forward(pid, &OF_GROUP)
}

/// Stops weir by the signal that stopped the command, so that the shell sees a stopped job. Returns when weir or the command is
/// continued, or the command is killed, and continues the command unless it was.
pub(crate) fn stop_with(pid: u32, signal: i32) {
    let _watch = ContinuationWatch::start(pid);
    // SAFETY: zeroed is a valid sigaction, the default one; signals to this thread and to its child.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let default: libc::sigaction = std::mem::zeroed();
        let changed = signal != libc::SIGSTOP && libc::sigaction(signal, &default, &mut before) == 0;
        libc::raise(signal);
        if changed {
            libc::sigaction(signal, &before, std::ptr::null_mut());
        }
        if is_stopped(pid) {
            libc::kill(pid as libc::pid_t, libc::SIGCONT);
        }
    }
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    weir_sys::proc::status(pid).is_some_and(|status| status.state.starts_with(['T', 't']))
}
