//! Frees weir from a read of another process that never returns.
//!
//! A tracer reads the memory of its tracees itself, and hangs if a page is unserved (userfaultfd(2), FUSE). Its tracees
//! would then stay stopped for ever. A guard notices the hang and executes weir again, as a program that only waits for
//! the command. That ends the tracer thread, which detaches from all tracees: they run on.
//!
//! It also ends weir if a user asks for that and no signal ends the command.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use crate::companion::{self, Companion};
use crate::expendable::no_answer_text;
use crate::unkillable::{Unkillable, UnkillableSearch};
use crate::{held_signals, launch, proc, signals};

/// The first argument of a weir that only waits: [`waiter_main`].
const WAITER_ARGUMENT: &str = "--weir-wait-for";
/// The interval between two checks of the guarded threads.
const INTERVAL: Duration = Duration::from_millis(500);
/// The checks in an interval for signals that the main thread cannot handle because it hangs: a user waits longer between two Ctrl-C.
const SIGNAL_LOOKS: u32 = 5;
/// The number of intervals after which a read of memory hangs. It takes microseconds.
const MEMORY_INTERVALS: u32 = 5;
/// The number of intervals after which another call on a foreign file hangs. A slow disk needs less.
const FILE_INTERVALS: u32 = 20;

/// The call that glibc makes for readlink(3); other architectures have only readlinkat(2).
#[cfg(target_arch = "x86_64")]
const SYS_READLINK: i64 = libc::SYS_readlink;
#[cfg(not(target_arch = "x86_64"))]
const SYS_READLINK: i64 = i64::MIN;

/// The number of intervals after which each of these calls hangs, once two signals have asked weir to end.
const LEAVING_INTERVALS: u32 = 2;
/// The interval between two checks of a tracer that [`GuardedWork::Trace`] asks to end.
const LEAVING_LOOK: Duration = Duration::from_millis(100);
/// The number of checks within which it must end: several times the limits of its own waits, and no more than a user waits.
const LEAVING_LOOKS: u32 = 15;
/// The number of checks in succession that must find a thread of it in the same call before the tracer counts as hung.
const BLOCKED_LOOKS: u32 = 3;

/// The work of a guarded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardedWork {
    /// It polls [`unkillable::leaving`](crate::unkillable::leaving) and then ends, with its results.
    Trace,
    /// Its work has no results without the end of the command.
    Run,
}

/// The name of threads whose owner does not wait for them for ever: the replay of `weir run --rescue`.
pub const ABANDONED_THREAD: &str = "weir-replay";
/// As [`ABANDONED_THREAD`]: the threads of `weir top` that read counters.
pub const SURVEY_THREAD: &str = "weir-survey";

static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Allows guards in this program, whose `main` must call [`waiter_main`] first. `report` prints a sentence for the user.
pub fn allow(report: fn(&str)) {
    let _allowed_before = REPORT.set(report);
}

/// Prints a sentence for the user at once, if this program allows guards.
pub fn report(sentence: &str) {
    if let Some(report) = REPORT.get() {
        report(sentence);
    }
}

/// Watches the threads of this process until it is dropped.
pub struct HangGuard {
    has_ended: Arc<AtomicBool>,
    thread: Thread,
}

impl HangGuard {
    /// Starts a guard of all threads, which trace `command`, a child of this process, or a process that is none. A weir
    /// that only waits for the command also waits for `companion`, which must live as long as the guard. Returns None if
    /// this program does not allow guards or cannot start a thread.
    pub fn start(
        work: GuardedWork,
        command: Option<u32>,
        companion: Option<&Companion>,
    ) -> Option<HangGuard> {
        let report = *REPORT.get()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&has_ended);
        let companion = companion.map(Companion::socket);
        let watch = move || {
            let mut search = UnkillableSearch::default();
            let unkillable = || search.check(command?);
            match wait_for_hang(&seen, unkillable) {
                Some(Hang::Call(call)) => abandon(&call, command, companion, report),
                Some(Hang::Command(thread)) => leave(thread, work, &seen, report),
                None => {}
            }
        };
        let thread = std::thread::Builder::new().name("weir-guard".into()).spawn(watch).ok()?;
        Some(HangGuard { has_ended, thread: thread.thread().clone() })
    }
}

impl Drop for HangGuard {
    fn drop(&mut self) {
        self.has_ended.store(true, Relaxed);
        self.thread.unpark();
    }
}

/// A call in which a thread blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlockingCall {
    /// The line of /proc/PID/task/TID/syscall, with arguments and stack pointer.
    line: String,
    cpu_ns: String,
}

impl BlockingCall {
    /// Returns the call of a thread of this process; None if the thread runs, or its caller abandons it by itself.
    fn of(tid: u32) -> Option<BlockingCall> {
        let read = |name| fs::read_to_string(format!("/proc/self/task/{tid}/{name}")).ok();
        let line = read("syscall").filter(|line| !line.starts_with("running"))?;
        if read("comm").is_some_and(|name| [ABANDONED_THREAD, SURVEY_THREAD].contains(&name.trim_end())) {
            return None;
        }
        let cpu_ns = read("schedstat")?.split(' ').next()?.to_string();
        Some(BlockingCall { line, cpu_ns })
    }

    /// Returns the number of the call; -1 for a page fault.
    fn number(&self) -> i64 {
        self.line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn first_argument(&self) -> Option<u32> {
        let argument = self.line.split_whitespace().nth(1)?.strip_prefix("0x")?;
        u32::from_str_radix(argument, 16).ok()
    }

    /// Returns the number of intervals after which the call hangs; None if it may block for ever.
    fn intervals(&self) -> Option<u32> {
        let is_file =
            |fd: u32| fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|link| link.is_absolute());
        match self.number() {
            -1 | libc::SYS_process_vm_readv | libc::SYS_process_vm_writev | libc::SYS_ptrace => {
                Some(MEMORY_INTERVALS)
            }
            libc::SYS_openat
            | libc::SYS_newfstatat
            | libc::SYS_fstat
            | libc::SYS_statx
            | libc::SYS_statfs
            | libc::SYS_fstatfs
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_getdents64
            | libc::SYS_readlinkat
            | SYS_READLINK
            | libc::SYS_kcmp
            | libc::SYS_pidfd_getfd
            | libc::SYS_perf_event_open => Some(FILE_INTERVALS),
            libc::SYS_read | libc::SYS_pread64 => {
                self.first_argument().filter(|fd| is_file(*fd)).map(|_| FILE_INTERVALS)
            }
            _ => None,
        }
    }

    fn sentence(&self) -> String {
        let is_read = matches!(self.number(), libc::SYS_process_vm_readv | libc::SYS_process_vm_writev);
        match self.first_argument().filter(|_| is_read) {
            Some(pid) => no_answer_text(pid),
            None => "a read of a file of another process does not return".into(),
        }
    }
}

/// The calls in which the threads of this process block, each with the number of checks since the one that found it first.
#[derive(Default)]
struct BlockedThreads(HashMap<u32, (BlockingCall, u32)>);

impl BlockedThreads {
    /// Checks all threads again. Returns a call for which `hangs` is true; `hangs` also gets the number of checks since the first
    /// that found a thread in it.
    fn look(&mut self, hangs: impl Fn(&BlockingCall, u32) -> bool) -> Option<BlockingCall> {
        let mut now = HashMap::new();
        for tid in proc::threads(std::process::id()) {
            let Some(call) = BlockingCall::of(tid) else { continue };
            let same = self.0.get(&tid).filter(|(before, _)| *before == call);
            let looks = same.map_or(0, |(_, looks)| looks + 1);
            if hangs(&call, looks) {
                return Some(call);
            }
            now.insert(tid, (call, looks));
        }
        self.0 = now;
        None
    }
}

/// A thread that does not come back.
enum Hang {
    Call(BlockingCall),
    Command(Unkillable),
}

/// Returns the call in which a thread of weir hangs, or the thread of the command that keeps weir from its end; None if the
/// guard has ended.
fn wait_for_hang(has_ended: &AtomicBool, mut unkillable: impl FnMut() -> Option<Unkillable>) -> Option<Hang> {
    let mut blocked = BlockedThreads::default();
    loop {
        for _ in 0..SIGNAL_LOOKS {
            std::thread::park_timeout(INTERVAL / SIGNAL_LOOKS);
            if has_ended.load(Relaxed) {
                return None;
            }
            signals::handle_pending();
        }
        let most = if signals::end_requests().0 >= 2 { LEAVING_INTERVALS } else { u32::MAX };
        let hangs =
            |call: &BlockingCall, looks: u32| call.intervals().is_some_and(|own| looks >= own.min(most));
        if let Some(call) = blocked.look(hangs) {
            return Some(Hang::Call(call));
        }
        if let Some(thread) = unkillable() {
            return Some(Hang::Command(thread));
        }
    }
}

/// Reports the thread, and ends this process. A trace ends by itself before that.
fn leave(thread: Unkillable, work: GuardedWork, has_ended: &AtomicBool, report: fn(&str)) {
    let label = proc::label(thread.pid);
    let call = proc::current_syscall(thread.tid);
    let call = if call.is_empty() { "the kernel" } else { &call };
    report(&format!(
        "{label} sleeps in {call}, and no signal ends that; weir detaches from all processes and ends"
    ));
    let mut blocked = BlockedThreads::default();
    let looks = if work == GuardedWork::Trace { LEAVING_LOOKS } else { 0 };
    for _ in 0..looks {
        std::thread::park_timeout(LEAVING_LOOK);
        if has_ended.load(Relaxed) {
            return;
        }
        let hangs = |call: &BlockingCall, looks: u32| call.intervals().is_some() && looks >= BLOCKED_LOOKS;
        if blocked.look(hangs).is_some() {
            break;
        }
    }
    held_signals::end();
    // SAFETY: ends all threads. Exit handlers could wait for the command.
    unsafe { libc::_exit(128 + thread.signal) };
}

/// Reports the hang, and executes the waiter or ends this process.
fn abandon(call: &BlockingCall, command: Option<u32>, companion: Option<RawFd>, report: fn(&str)) {
    /// The status for a failure of weir, as that of env(1).
    const WEIR_FAILED: i32 = 125;
    let detaches = "weir detaches from all processes and gives no further result";
    report(&format!("{}; {detaches}", call.sentence()));
    signals::block_forwarded(libc::SIG_BLOCK);
    held_signals::end();
    let (requests, last) = signals::end_requests();
    let Some(command) = command.filter(|_| requests < 2) else {
        let status = if requests < 2 { WEIR_FAILED } else { 128 + last };
        // SAFETY: ends all threads. Exit handlers could wait for the thread that hangs.
        unsafe { libc::_exit(status) };
    };
    let numbers = [command.to_string(), requests.to_string(), last.to_string()];
    let socket = companion.map(|fd| fd.to_string());
    let words = ["weir", WAITER_ARGUMENT].into_iter().chain(numbers.iter().map(String::as_str));
    let words: Vec<_> =
        words.chain(socket.as_deref()).map(|word| CString::new(word).unwrap_or_default()).collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: the descriptor is open as long as the guard. `pointers` ends with a null pointer, and its strings live as
    // long as `words`.
    unsafe {
        if let Some(fd) = companion {
            libc::fcntl(fd, libc::F_SETFD, 0);
        }
        libc::execv(c"/proc/self/exe".as_ptr(), pointers.as_ptr());
        libc::_exit(WEIR_FAILED);
    }
}

/// Waits for the command if this process is a waiter. Returns the command's status, and None in other processes. The
/// second signal that asks weir to end ends the waiter: the command may ignore it.
pub fn waiter_main() -> Option<u8> {
    // The arguments of a user may be no UTF-8.
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let is_waiter = arguments.next().is_some_and(|argument| argument == WAITER_ARGUMENT);
    let mut number = || arguments.next().filter(|_| is_waiter)?.parse::<RawFd>().ok();
    let command = u32::try_from(number()?).ok()?;
    signals::end_at_second_request((u32::try_from(number()?).ok()?, number()?));
    // SAFETY: `abandon` passes the number of a descriptor that no other object of this program owns.
    let companion = number().map(|fd| unsafe { UnixStream::from_raw_fd(fd) });
    let forwarding = signals::forward(command, &signals::FORWARDED);
    signals::block_forwarded(libc::SIG_UNBLOCK);
    let guard = HangGuard::start(GuardedWork::Run, Some(command), None);
    launch::await_end(command, false);
    signals::forget_command();
    let status = launch::reap(command) as i32;
    drop(guard);
    drop(forwarding);
    if let Some(companion) = companion {
        companion::finish(companion).lines().for_each(report);
    }
    Some(match libc::WIFSIGNALED(status) {
        true => (128 + libc::WTERMSIG(status)) as u8,
        false => libc::WEXITSTATUS(status) as u8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> BlockingCall {
        BlockingCall { line: line.into(), cpu_ns: String::new() }
    }

    #[test]
    fn only_calls_on_other_processes_hang() {
        let readv = format!("{} 0x2a 0x1 0x1 0x7f 0x1 0x0 0x7ffe 0x7f1\n", libc::SYS_process_vm_readv);
        assert_eq!(
            (call(&readv).intervals(), call(&readv).first_argument()),
            (Some(MEMORY_INTERVALS), Some(42))
        );
        assert_eq!(call("-1 0x7ffe 0x7f1\n").intervals(), Some(MEMORY_INTERVALS));
        let wait = format!("{} 0xffffffff 0x7f 0x40000000 0x0 0x0 0x0 0x7ffe 0x7f1\n", libc::SYS_wait4);
        assert_eq!(call(&wait).intervals(), None);
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let pipe = format!("{} {:#x} 0x7f", libc::SYS_read, std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(call(&pipe).intervals(), None, "a pipe may block");
        let null = fs::File::open("/dev/null").expect("a file");
        let file = format!("{} {:#x} 0x7f", libc::SYS_read, std::os::fd::AsRawFd::as_raw_fd(&null));
        assert_eq!(call(&file).intervals(), Some(FILE_INTERVALS));
    }
}
