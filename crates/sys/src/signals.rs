//! Signals that weir gets are the command's: what a terminal sends comes to both by itself, the rest is passed on.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The command.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// What asks a program to end, or is between it and whoever sends it.
pub const ASKING: [i32; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// What was done with these signals before; done again when dropped.
#[derive(Debug)]
pub struct PassedOn(Vec<(i32, libc::sigaction)>);

extern "C" fn pass(signal: libc::c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid siginfo_t; kill(2) and errno may be used in a handler.
    unsafe {
        let errno = *libc::__errno_location();
        let command = COMMAND.load(Relaxed);
        // Above 0: the kernel's own, as of a terminal, whose whole process group gets it.
        if (*about).si_code <= 0 && command > 0 {
            libc::kill(command, signal);
        }
        *libc::__errno_location() = errno;
    }
}

/// Passes these signals on to this process, the command, and does not die of them, until what is returned is dropped. For one
/// command at a time.
pub fn pass_on(pid: u32, signals: &[i32]) -> PassedOn {
    COMMAND.store(pid as i32, Relaxed);
    let mut before = Vec::new();
    for &signal in signals {
        // SAFETY: zeroed is a valid sigaction; the handler is async-signal-safe and is there for good.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = pass as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            if libc::sigaction(signal, &action, &mut old) == 0 {
                before.push((signal, old));
            }
        }
    }
    PassedOn(before)
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        COMMAND.store(0, Relaxed);
        for (signal, old) in &self.0 {
            // SAFETY: puts back what was there.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}
