//! Work in a child process that its parent can abandon.
//!
//! A read of another process's memory, or of a file of /proc, can block for ever: a page belongs to userfaultfd(2) or to
//! a FUSE file that no program serves, or the lock of the memory map is held. The thread then ignores every signal but
//! SIGKILL, and with some FUSE servers that one too. So a forked child does the work, and the parent waits for it with a
//! limit. Only the child can hang.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::descriptors::close_all_but;
use crate::messages::{receive, receive_part, send};
use crate::shared_memory::Shared;
use crate::silence_watch::SilenceWatch;
use crate::{errno_text, limits, proc, reading_only};

/// The interval at which a silent child is examined: short for a user.
pub(crate) const CHECK: Duration = Duration::from_millis(10);
/// The limit of [`Limits::blocked`] after a stop request: a user has asked to end.
const BLOCKED_AFTER_STOP: Duration = Duration::from_millis(200);
/// The time for which critical work may block: several times the limits of the calls that it makes.
const MAX_CRITICAL: Duration = Duration::from_secs(10);

/// A child process that answers requests. Dropping it kills the child.
#[derive(Debug)]
pub struct ExpendableChild {
    pid: u32,
    socket: UnixStream,
    flags: Shared<SharedFlags>,
}

/// The time that a child may take for one answer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time for which all threads of the child may sleep in the kernel and use no CPU time. A child that gets no
    /// processor does not count as sleeping.
    pub blocked: Duration,
    /// The whole time; None for no limit.
    pub total: Option<Duration>,
}

/// The rights of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// All that its parent may do.
    All,
    /// Read files and processes, and nothing else: see `reading_only`.
    ReadingOnly,
    /// As `ReadingOnly`, and write to the memory of processes.
    WritingMemory,
}

/// The reason why a child gave no answer. The child must be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// A call has blocked for [`Limits::blocked`].
    Blocked,
    /// The work has taken [`Limits::total`].
    Late,
    /// The child has ended.
    Ended,
    /// No child could be started. Holds the errno.
    NotStarted(i32),
    /// As `Blocked`, but the child is not killed, because a process needs it: see [`outlive_parent`].
    Outlives,
}

/// Values of [`SharedFlags::work`]: nothing that must not be interrupted; such work; or the child ends, and begins no such work.
const IDLE: u8 = 0;
const CRITICAL: u8 = 1;
const ENDING: u8 = 2;

/// Flags in memory that parent and child share.
#[derive(Debug, Default)]
struct SharedFlags {
    /// The parent asks the child to end its work early.
    stop: AtomicBool,
    /// [`IDLE`], [`CRITICAL`] or [`ENDING`].
    work: AtomicU8,
    /// The PID of the parent.
    parent: AtomicU32,
    /// The child must not be killed.
    outlives: AtomicBool,
}

/// The flags of the child that this process is; null in other processes.
static OWN_FLAGS: AtomicPtr<SharedFlags> = AtomicPtr::new(null_mut());

/// Does work during which the parent of an expendable child does not kill it, nor the parent's own death. The work must
/// not touch what can block: after [`MAX_CRITICAL`] the child is killed all the same.
pub fn critical<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the mapping exists until the process ends.
    let Some(flags) = (unsafe { OWN_FLAGS.load(Relaxed).as_ref() }) else { return work() };
    while flags.work.compare_exchange(IDLE, CRITICAL, AcqRel, Relaxed).is_err() {
        std::thread::sleep(CHECK); // the child ends
    }
    let mut before: libc::c_int = 0;
    // SAFETY: the call writes the signal of the calling thread, 0 for none.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut before) };
    // SAFETY: the call takes numbers.
    let die_with_parent = |signal: libc::c_int| unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
    die_with_parent(0);
    let result = work();
    die_with_parent(before);
    flags.work.store(IDLE, Release);
    result
}

/// Calls `start` in the main thread of an expendable child, which starts another thread, and then `wait` with a limit of time
/// until it returns a value. Meanwhile the death of the parent ends the child only while no thread is in [`critical`] work:
/// the signal of the parent's death belongs to the main thread, and another thread cannot turn it off.
pub fn watch_parent<S, T>(start: impl FnOnce() -> S, mut wait: impl FnMut(Duration) -> Option<T>) -> (S, T) {
    // SAFETY: the mapping exists until the process ends.
    let flags = unsafe { OWN_FLAGS.load(Relaxed).as_ref() };
    // SAFETY: the call takes numbers.
    let die_with_parent = |signal: libc::c_int| unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
    let end_if_orphaned = |since: Option<Instant>| -> Option<Instant> {
        // SAFETY: the call takes nothing.
        let parent = unsafe { libc::getppid() } as u32;
        let flags = flags.filter(|flags| flags.parent.load(Relaxed) != parent)?;
        let since = since.unwrap_or_else(Instant::now);
        let is_idle = flags.work.compare_exchange(IDLE, ENDING, AcqRel, Relaxed).is_ok();
        if is_idle || since.elapsed() > MAX_CRITICAL {
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        Some(since)
    };
    if flags.is_some() {
        die_with_parent(0);
    }
    let started = start();
    let mut orphaned = None;
    let value = loop {
        orphaned = end_if_orphaned(orphaned);
        if let Some(value) = wait(CHECK) {
            break value;
        }
    };
    if flags.is_some_and(|flags| !flags.outlives.load(Relaxed)) {
        die_with_parent(libc::SIGKILL);
        end_if_orphaned(None);
    }
    (started, value)
}

/// Lets an expendable child go on when its parent gives up or ends: without it a process would run on with wrong registers.
/// The main thread must call it.
pub fn outlive_parent() {
    // SAFETY: the mapping exists until the process ends.
    if let Some(flags) = unsafe { OWN_FLAGS.load(Relaxed).as_ref() } {
        flags.outlives.store(true, Relaxed);
        // SAFETY: the call takes numbers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    }
}

/// Returns whether this process is such a child: its parent waits for it with a limit.
pub fn is_child() -> bool {
    !OWN_FLAGS.load(Relaxed).is_null()
}

/// Returns a sentence about a process whose memory gave no answer.
pub fn no_answer_text(pid: u32) -> String {
    format!(
        "{} does not answer: a read of its memory or of its files in /proc blocks (userfaultfd, FUSE, or a thread that \
         holds the lock of its memory map)",
        proc::label(pid)
    )
}

/// Returns a sentence about a process for which a child was to do work, and did not.
pub fn failure_text(pid: u32, failure: NoAnswer) -> String {
    match failure {
        NoAnswer::NotStarted(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            let (errno, advice) = (errno_text(&error), limits::advice(&error));
            format!("no process can be started that reads {}: {errno}{advice}", proc::label(pid))
        }
        _ => no_answer_text(pid),
    }
}

/// Does one piece of work in a child and returns its answer.
///
/// `work` gets a flag that is set when the caller's `stop` is set. See [`ExpendableChild::start`] for what it may do.
pub fn answer_of(
    rights: Rights,
    work: impl FnOnce(&AtomicBool) -> Vec<u8>,
    limits: Limits,
    stop: Option<&AtomicBool>,
) -> Result<Vec<u8>, NoAnswer> {
    let mut work = Some(work);
    let serve = |_: &[u8], stop: &AtomicBool| work.take().map(|work| work(stop)).unwrap_or_default();
    let mut child = ExpendableChild::start(rights, serve)
        .map_err(|error| NoAnswer::NotStarted(error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
    child.ask(&[], limits, stop)
}

impl ExpendableChild {
    /// Forks a child that answers each request by `serve`. Fails if a mapping, a socket or a process cannot be created.
    ///
    /// In the child only the calling thread exists, and all descriptors are closed: `serve` must open what it needs, and
    /// must not need another thread of the parent. The child dies with the calling thread.
    pub fn start(
        rights: Rights,
        serve: impl FnMut(&[u8], &AtomicBool) -> Vec<u8>,
    ) -> io::Result<ExpendableChild> {
        ExpendableChild::fork(rights, |socket, flags| serve_requests(socket, flags, serve))
    }

    /// As [`ExpendableChild::start`], but `serve` gets the child's socket and never returns: it has its own way to get
    /// requests.
    pub(crate) fn start_with(
        rights: Rights,
        serve: impl FnOnce(BorrowedFd<'_>) -> Infallible,
    ) -> io::Result<ExpendableChild> {
        ExpendableChild::fork(rights, |socket, _| match serve(socket.as_fd()) {})
    }

    fn fork(rights: Rights, serve: impl FnOnce(UnixStream, &SharedFlags)) -> io::Result<ExpendableChild> {
        let (socket, child_socket) = UnixStream::pair()?;
        // SAFETY: zero bytes are valid atomics.
        let flags = unsafe { Shared::<SharedFlags>::zeroed() }?;
        let parent = std::process::id();
        // SAFETY: the child calls `run`, which never returns.
        match unsafe { libc::fork() } {
            0 => run((parent, rights), child_socket, &flags, serve),
            pid if pid > 0 => Ok(ExpendableChild { pid: pid as u32, socket, flags }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the child's PID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the parent's side of the socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a request and waits for the answer. A `stop` that is set is passed on to the child, which may then end its
    /// work early.
    pub fn ask(
        &mut self,
        request: &[u8],
        limits: Limits,
        stop: Option<&AtomicBool>,
    ) -> Result<Vec<u8>, NoAnswer> {
        let is_stopped = || stop.is_some_and(|stop| stop.load(Relaxed));
        let mut watch = SilenceWatch::new(self.pid);
        send(&mut self.socket, request).map_err(|_| NoAnswer::Ended)?;
        let (mut answer, mut wanted) = (Vec::new(), None);
        while wanted.is_none_or(|wanted| answer.len() < wanted) {
            self.flags.stop.store(is_stopped(), Relaxed);
            if self.is_readable() {
                receive_part(&mut self.socket, &mut answer, &mut wanted)?;
                continue;
            }
            let blocked = if is_stopped() { limits.blocked.min(BLOCKED_AFTER_STOP) } else { limits.blocked };
            let problem = watch.check(Limits { blocked, ..limits });
            let is_critical = self.flags.work.load(Relaxed) == CRITICAL && watch.blocked < MAX_CRITICAL;
            if let Some(problem) = problem.filter(|_| !is_critical) {
                return Err(if self.outlives() { NoAnswer::Outlives } else { problem });
            }
        }
        Ok(answer)
    }

    fn outlives(&self) -> bool {
        self.flags.outlives.load(Relaxed)
    }

    /// Waits for bytes of an answer, for one interval.
    fn is_readable(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        let interval = Timespec { tv_sec: 0, tv_nsec: i64::from(CHECK.subsec_nanos()) };
        poll(&mut polled, Some(&interval)).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for ExpendableChild {
    /// Kills the child unless it outlives its parent, and reaps it unless it blocks even then.
    fn drop(&mut self) {
        const ATTEMPTS: u32 = 40;
        if self.outlives() {
            return;
        }
        let pid = self.pid as libc::pid_t;
        // SAFETY: the child is not reaped, so the number is its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        for _ in 0..ATTEMPTS {
            // SAFETY: the call takes numbers and a null pointer.
            if unsafe { libc::waitpid(pid, null_mut(), libc::WNOHANG | libc::__WALL) } != 0 {
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// Serves in the child, and ends it.
fn run(
    (parent, rights): (u32, Rights),
    socket: UnixStream,
    flags: &Shared<SharedFlags>,
    serve: impl FnOnce(UnixStream, &SharedFlags),
) -> ! {
    isolate(parent, &socket);
    match rights {
        Rights::All => {}
        Rights::ReadingOnly => reading_only::restrict(None),
        Rights::WritingMemory => reading_only::restrict(Some(libc::SYS_process_vm_writev)),
    }
    flags.parent.store(parent, Relaxed);
    OWN_FLAGS.store(flags.address(), Relaxed);
    // A panic must not unwind into the parent's frames.
    let _ended = catch_unwind(AssertUnwindSafe(|| serve(socket, flags)));
    // SAFETY: ends the child without the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Answers requests until the parent has gone.
fn serve_requests(
    mut socket: UnixStream,
    flags: &SharedFlags,
    mut serve: impl FnMut(&[u8], &AtomicBool) -> Vec<u8>,
) {
    while let Some(request) = receive(&mut socket) {
        if send(&mut socket, &serve(&request, &flags.stop)).is_err() {
            break;
        }
    }
}

/// Makes the child die with its parent, and closes all descriptors: a child that cannot be killed must keep no pipe or
/// terminal open.
fn isolate(parent: u32, socket: &UnixStream) {
    // SAFETY: all calls take numbers or a static string. No other thread uses the descriptors: there is none.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            libc::_exit(0);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        close_all_but(&[0, 1, 2, socket.as_raw_fd()]);
    }
}
