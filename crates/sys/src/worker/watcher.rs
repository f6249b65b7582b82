//! The watcher: a child of the first process that checks in which calls the worker waits.
//!
//! A check can itself wait for ever. While the execve(2) of a process waits for the last close of a file, each reader of its memory and of
//! most of its files in /proc waits too (`exec_update_lock`; fs/exec.c of the kernel, `begin_new_exec`), as does one of memory in which a
//! page fault waits. So the first process, which must answer signals, only reads what the watcher has written to shared memory.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::job_control::{self, StopFollower, is_stopped};
use super::waits::{FileWaits, REPORTED};
use super::{LOOK, passed_signals};
use crate::proc;
use crate::shared_memory::Shared;

/// The interval between two checks when weir was asked to end. The limits are then shorter than [`LOOK`].
const HURRY: Duration = Duration::from_millis(100);
/// A check that lasts longer, in the kernel, waits for the files of the process that it reads.
const STUCK: Duration = Duration::from_secs(3);
/// The time within which the watcher must print its last sentences; it needs less.
const AFTER_END: Duration = Duration::from_secs(1);
/// A longer description is cut.
const TEXT_BYTES: usize = 1024;

/// The results of the last check of the watcher.
#[repr(C)]
struct Seen {
    looks: AtomicU64,
    /// The process that is being checked.
    current: AtomicU32,
    is_silent: AtomicBool,
    has_reported: AtomicBool,
    text: [AtomicU8; TEXT_BYTES],
    text_bytes: AtomicUsize,
}

impl Seen {
    fn set_text(&self, text: &str) {
        self.text_bytes.store(0, SeqCst);
        let bytes = text.bytes().take(TEXT_BYTES);
        let count = self.text.iter().zip(bytes).map(|(to, byte)| to.store(byte, SeqCst)).count();
        self.text_bytes.store(count, SeqCst);
    }

    fn text(&self) -> Option<String> {
        let count = self.text_bytes.load(SeqCst);
        let bytes: Vec<u8> = self.text.iter().take(count).map(|byte| byte.load(SeqCst)).collect();
        (count > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The side of the first process.
pub(super) struct Watcher {
    pid: u32,
    /// A byte asks for frequent checks; the end of file asks the watcher to end.
    requests: PipeWriter,
    /// Kept so that a request to a watcher that has ended raises no SIGPIPE.
    _reader: PipeReader,
    seen: Shared<Seen>,
    /// The number of the last check that has ended, and the time at which the first process noticed its end.
    looks: u64,
    since: Instant,
    /// The duration of the present check at which it is reported next.
    report_at: Duration,
}

impl Watcher {
    /// Forks a watcher of the worker. Returns None if there can be none. This process must have one thread.
    pub fn start(worker: u32, report: fn(&str)) -> Option<Watcher> {
        // SAFETY: zero bytes are valid, and all fields are atomics.
        let seen: Shared<Seen> = unsafe { Shared::zeroed() }.ok()?;
        let (reader, requests) = pipe().ok()?;
        match super::fork_bound_child() {
            -1 => None,
            0 => {
                drop(requests);
                watch(worker, reader, &seen, report);
                // SAFETY: ends this process, which has no other thread, and never returns to the code of the first one.
                unsafe { libc::_exit(0) }
            }
            pid => Some(Watcher {
                pid: pid as u32,
                requests,
                _reader: reader,
                seen,
                looks: 0,
                since: Instant::now(),
                report_at: REPORTED,
            }),
        }
    }

    /// Asks for frequent checks.
    pub fn hurry(&mut self) {
        let _gone = self.requests.write(&[1]);
    }

    /// Returns whether a thread of the worker has waited in a call on a file for a second, or a check of the watcher hangs.
    pub fn is_silent(&mut self) -> bool {
        self.seen.is_silent.load(SeqCst) || self.stuck().is_some()
    }

    /// Describes the longest of the worker's calls that go on.
    pub fn longest(&mut self) -> Option<String> {
        let stuck = self.stuck().map(|_| format!("{} does not answer", self.current()));
        stuck.or_else(|| self.seen.text())
    }

    /// Returns a sentence if a check of the watcher has hung for long.
    pub fn sentence(&mut self) -> Option<String> {
        let stuck = self.stuck().filter(|stuck| *stuck >= self.report_at)?;
        self.report_at *= 2;
        let (current, seconds) = (self.current(), stuck.as_secs());
        Some(format!("still waiting for {current}: its /proc files have not answered for {seconds} s"))
    }

    /// Ends the watcher. If it has reported calls and `says_returned`, it first reports which of them have returned.
    pub fn end(self, says_returned: bool) {
        let says_returned = says_returned && self.seen.has_reported.load(SeqCst);
        if !says_returned {
            // SAFETY: the call takes numbers; the watcher is a child that has not been reaped.
            unsafe { libc::kill(self.pid as i32, libc::SIGKILL) };
        }
        drop(self.requests);
        let end = Instant::now() + AFTER_END;
        while crate::ptrace::try_reap_child(self.pid).is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns the process ID of the watcher.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how long the present check has lasted, if the watcher waits in the kernel.
    fn stuck(&mut self) -> Option<Duration> {
        let looks = self.seen.looks.load(SeqCst);
        if looks != self.looks {
            (self.looks, self.since, self.report_at) = (looks, Instant::now(), REPORTED);
        }
        let lasted = self.since.elapsed();
        let waits = || proc::status(self.pid).is_some_and(|status| status.state.starts_with('D'));
        (lasted >= STUCK && waits()).then_some(lasted)
    }

    /// Names the process that the watcher checks. /proc/PID/comm answers even if its other files do not.
    fn current(&self) -> String {
        let pid = self.seen.current.load(SeqCst);
        format!("process {pid} ({})", proc::comm(pid))
    }
}

/// Checks the worker until the first process closes its side of the pipe.
fn watch(worker: u32, mut requests: PipeReader, seen: &Seen, report: fn(&str)) {
    passed_signals::unblock_stop();
    let mut follower = StopFollower::new(worker);
    let mut waits = FileWaits::default();
    let (mut interval, mut looked) = (LOOK, None::<Instant>);
    loop {
        follower.follow();
        if is_stopped(worker) {
            waits.forget();
        } else if looked.is_none_or(|looked| looked.elapsed() >= interval) {
            look(worker, &mut waits, seen, report);
            looked = Some(Instant::now());
        }
        let (began, pause) = (Instant::now(), interval.min(job_control::INTERVAL));
        let mut ready = libc::pollfd { fd: requests.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the call fills one pollfd.
        let is_ready = unsafe { libc::poll(&mut ready, 1, pause.as_millis() as i32) } > 0;
        if began.elapsed() >= pause + LOOK {
            // The job was stopped, and no call has waited for a file meanwhile.
            waits.forget();
        }
        if is_ready {
            interval = HURRY;
            if !matches!(requests.read(&mut [0]), Ok(1)) {
                return waits.end().iter().for_each(|sentence| report(sentence));
            }
        }
    }
}

/// Checks once, prints the sentences, and stores the results for the first process.
fn look(worker: u32, waits: &mut FileWaits, seen: &Seen, report: fn(&str)) {
    for sentence in waits.look(worker, &|pid| seen.current.store(pid, SeqCst)) {
        report(&sentence);
        seen.has_reported.store(true, SeqCst);
    }
    seen.is_silent.store(waits.is_silent(worker), SeqCst);
    seen.set_text(&waits.longest().unwrap_or_default());
    seen.looks.fetch_add(1, SeqCst);
}
