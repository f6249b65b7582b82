//! Signals that weir gets are the command's: what a terminal sends comes to both by itself, the rest is passed on. Weir
//! stops with it, too.

use weir_sys::signals::{self, ASKING, PassedOn};

/// Passes signals on to this process, and does not die of them.
pub(crate) fn pass_on(pid: u32) -> PassedOn {
    let mut passed = ASKING.to_vec();
    passed.push(libc::SIGTSTP);
    signals::pass_on(pid, &passed)
}

/// The command was stopped by job control: weir stops as well, by the same signal, so that its shell sees a stopped
/// job, until the shell continues both – or somebody weir alone, which then continues the command.
pub(crate) fn stop_with(pid: u32, signal: i32) {
    // SAFETY: zeroed is a valid sigaction, the default one; signals to this thread and to its child.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let default: libc::sigaction = std::mem::zeroed();
        let changed = signal != libc::SIGSTOP && libc::sigaction(signal, &default, &mut before) == 0;
        libc::raise(signal);
        if changed {
            libc::sigaction(signal, &before, std::ptr::null_mut());
        }
        if still_stopped(pid) {
            libc::kill(pid as libc::pid_t, libc::SIGCONT);
        }
    }
}

pub(crate) fn still_stopped(pid: u32) -> bool {
    weir_sys::proc::status(pid).is_some_and(|status| status.state.starts_with(['T', 't']))
}
