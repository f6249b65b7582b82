//! Forwards signals that weir receives to its command. A terminal sends its signals to both, so these are not forwarded, and
//! [`held_signals`] finds out which others were.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

use crate::held_signals;

/// The PID of the command; 0: none.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// The number of signals that ask weir to end, of those that [`forward_signal`] has handled, and the last of them.
static END_REQUESTS: AtomicU32 = AtomicU32::new(0);
static LAST_END_REQUEST: AtomicI32 = AtomicI32::new(0);
/// The second signal that asks weir to end ends it at once.
static ENDS_AT_SECOND: AtomicBool = AtomicBool::new(false);
/// The signals that ask weir to end.
const END_SIGNALS: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The signals that users and supervisors send to a program, as opposed to faults and timers.
pub const FORWARDED: [i32; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// [`FORWARDED`], and the one by which a terminal stops a program: the signals that can reach weir's process group.
pub const OF_GROUP: [i32; 7] = {
    let [hang_up, interrupt, quit, terminate, user1, user2] = FORWARDED;
    [hang_up, interrupt, quit, terminate, user1, user2, libc::SIGTSTP]
};

/// Returns these signals as a set.
pub(crate) fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: zero bytes are a valid set, which the calls fill.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        signals.iter().for_each(|signal| _ = libc::sigaddset(&mut set, *signal));
        set
    }
}

/// The previous actions of forwarded signals. Dropping it restores them and ends the forwarding.
#[derive(Debug)]
#[must_use = "dropping it ends the forwarding"]
pub struct SignalForwarding(Vec<(i32, libc::sigaction)>);

extern "C" fn forward_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t; kill(2), _exit(2) and errno may be used in a handler (signal-safety(7)).
    unsafe {
        let errno = *libc::__errno_location();
        let mut requests = 0;
        if END_SIGNALS.contains(&signal) {
            LAST_END_REQUEST.store(signal, Relaxed);
            requests = END_REQUESTS.fetch_add(1, Relaxed) + 1;
        }
        // si_code > 0: sent by the kernel, for example for a terminal, to the whole process group.
        let is_sent = (*info).si_code <= 0;
        // Only kill(2), not sigqueue(3) or tgkill(2), can send a signal to a process group.
        let is_held = (*info).si_code == libc::SI_USER && held_signals::hold(signal, (*info).si_pid());
        if is_sent && !is_held {
            send_to_command(signal);
        }
        if requests >= 2 && ENDS_AT_SECOND.load(Relaxed) {
            libc::_exit(128 + signal);
        }
        *libc::__errno_location() = errno;
    }
}

/// Sends a signal to the command, if there is one. Async-signal-safe, but changes errno.
pub(crate) fn send_to_command(signal: i32) {
    let command = COMMAND.load(Relaxed);
    if command > 0 {
        // SAFETY: the call takes numbers.
        unsafe { libc::kill(command, signal) };
    }
}

/// Returns whether the command is in the process group of this process. Async-signal-safe, but changes errno.
pub(crate) fn command_is_in_group() -> bool {
    let command = COMMAND.load(Relaxed);
    // SAFETY: the calls take and return numbers.
    command > 0 && unsafe { libc::getpgid(command) == libc::getpgrp() }
}

/// Forwards these signals to process `pid`, the command, instead of letting them end weir, until the returned value is
/// dropped. There can be one command at a time.
pub fn forward(pid: u32, signals: &[i32]) -> SignalForwarding {
    COMMAND.store(pid as i32, Relaxed);
    let mut before = Vec::new();
    for &signal in signals {
        // SAFETY: zeroed is a valid sigaction; the handler is async-signal-safe and static.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = forward_signal as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            if libc::sigaction(signal, &action, &mut old) == 0 {
                before.push((signal, old));
            }
        }
    }
    SignalForwarding(before)
}

/// A signal with an empty handler, which a thread can send to itself to measure what that costs. Dropping it restores the
/// action before.
#[derive(Debug)]
pub struct HandledSignal {
    number: i32,
    before: libc::sigaction,
}

extern "C" fn do_nothing(_: libc::c_int) {}

impl HandledSignal {
    /// Sets the handler of the last real-time signal, which weir uses for nothing else.
    pub fn begin() -> io::Result<HandledSignal> {
        let number = libc::SIGRTMAX();
        // SAFETY: zeroed is a valid sigaction; the handler does nothing and is static.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = do_nothing as *const () as libc::sighandler_t;
            match libc::sigaction(number, &action, &mut before) {
                0 => Ok(HandledSignal { number, before }),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Sends the signal to the calling thread. Returns after its handler.
    pub fn raise(&self) -> io::Result<()> {
        // SAFETY: the call takes a number, and the signal has a handler.
        match unsafe { libc::raise(self.number) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for HandledSignal {
    fn drop(&mut self) {
        // SAFETY: restores what sigaction(2) returned.
        unsafe { libc::sigaction(self.number, &self.before, std::ptr::null_mut()) };
    }
}

/// Returns whether this process ignores a signal, as nohup(1) and background jobs of shells arrange it.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zero bytes are a valid sigaction, which the call fills; a null pointer changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Gives SIGCHLD its default action. With an inherited SIG_IGN the kernel would reap the children of weir, and their status would be
/// lost. A command that weir starts inherits what weir inherited where [`crate::inherited::restore`] is called.
pub fn keep_ended_children() {
    // SAFETY: SIG_DFL calls no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Makes writes of this process beyond RLIMIT_FSIZE fail with EFBIG: SIGXFSZ would end weir with the bytes that it holds. Programs
/// that are started later get the signal as without weir, because execve(2) removes handlers.
pub fn catch_file_size_limit() {
    if is_ignored(libc::SIGXFSZ) {
        return;
    }
    // SAFETY: zeroed is a valid sigaction; the handler does nothing and is static.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut());
    }
}

/// Does work during which a write of the calling thread beyond RLIMIT_FSIZE fails with EFBIG and sends no SIGXFSZ. A program that
/// another thread starts meanwhile does not inherit this.
pub fn without_file_size_signal<T>(work: impl FnOnce() -> T) -> T {
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: zero bytes are a valid set, which the calls fill; the others read it.
    let (signal, before) = unsafe {
        let (mut signal, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigaddset(&mut signal, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before);
        (signal, before)
    };
    let result = work();
    // SAFETY: the calls read the sets; a null pointer means that nothing is stored.
    unsafe {
        // The kernel sends the signal to the thread that writes, so a pending one comes from this work.
        while libc::sigtimedwait(&signal, std::ptr::null_mut(), &no_time) == libc::SIGXFSZ {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
    result
}

/// Blocks or unblocks the forwarded signals in the calling thread, so that none gets lost while it executes weir again.
pub(crate) fn block_forwarded(how: libc::c_int) {
    // SAFETY: the call reads a set; a null pointer means that nothing is stored.
    unsafe { libc::pthread_sigmask(how, &set_of(&FORWARDED), std::ptr::null_mut()) };
}

/// Blocks a signal in the calling thread.
pub fn block(signal: i32) {
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&[signal]), std::ptr::null_mut()) };
}

/// Blocks all signals in the calling thread.
pub fn block_all() {
    // SAFETY: zeroed is a valid set, which the calls fill and read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Forwards no further signal: the command has ended, and another process can get its PID once it is reaped. The signals that ask
/// weir to end are still counted.
pub fn forget_command() {
    COMMAND.store(0, Relaxed);
}

/// Counts the signals that ask weir to end, without a command to which they are forwarded; one that is ignored stays ignored. A
/// handler that is installed later must call this one, as those of the crate signal-hook do.
pub fn count_end_requests() {
    let counted: Vec<i32> = END_SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    std::mem::forget(forward(0, &counted));
}

/// Calls the handlers of pending signals that ask weir to end. The kernel gives a signal of the process to the main thread, which
/// does not handle it while it hangs in a system call.
pub(crate) fn handle_pending() {
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: zeroed is a valid set, siginfo and action, which the calls fill. A pending signal has a handler: the kernel discards one
    // that is ignored, and ends the process for one with the default action.
    unsafe {
        let set = set_of(&END_SIGNALS);
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&set, &mut info, &no_time);
            let mut action: libc::sigaction = std::mem::zeroed();
            if signal <= 0 || libc::sigaction(signal, std::ptr::null(), &mut action) != 0 {
                return;
            }
            let has_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
            if has_handler && action.sa_flags & libc::SA_SIGINFO != 0 {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(action.sa_sigaction);
                handler(signal, &mut info, std::ptr::null_mut());
            }
        }
    }
}

/// Returns the number of signals that asked weir to end while signals were forwarded or counted, and the last of them.
pub fn end_requests() -> (u32, i32) {
    (END_REQUESTS.load(Relaxed), LAST_END_REQUEST.load(Relaxed))
}

/// Lets the second signal that asks weir to end do so at once while signals are forwarded; `before` of them came already.
pub(crate) fn end_at_second_request(before: (u32, i32)) {
    END_REQUESTS.store(before.0, Relaxed);
    LAST_END_REQUEST.store(before.1, Relaxed);
    ENDS_AT_SECOND.store(true, Relaxed);
}

impl Drop for SignalForwarding {
    fn drop(&mut self) {
        held_signals::end();
        COMMAND.store(0, Relaxed);
        for (signal, old) in &self.0 {
            // SAFETY: restores an action that sigaction(2) returned.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}
