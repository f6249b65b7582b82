//! A verb's work in a child process, the worker, so that weir can end although a thread of the worker cannot.
//!
//! A thread that waits for a file system whose server or device does not answer can sleep so that no signal ends it (state D of
//! proc_pid_status(5)). Its process then stays, and a shell would wait for it. The first process of weir, the parent, waits for the
//! worker, touches no file, passes signals on, and ends as the worker does, or without it. When the work lasts, it starts the watcher,
//! which checks the worker and reports calls that do not return. The worker stops and continues with the first process.

mod file_calls;
mod job_control;
mod passed_signals;
mod waits;
mod watcher;

use std::time::{Duration, Instant};

use crate::proc;
use passed_signals::PassedSignals;
use rustix::process::Signal;
use watcher::Watcher;

/// The time after which the watcher starts. Short work needs none, and to start it takes about 0.5 ms.
const WATCHED_AFTER: Duration = Duration::from_millis(50);
/// The interval between checks of the watcher, and between attempts to start it. A check takes about 0.1 ms.
const LOOK: Duration = Duration::from_secs(1);
/// The worker and its descendants are killed this long after the second request to end.
const AFTER_SECOND: Duration = Duration::from_secs(1);
/// A killed process that can end has ended within this time.
const AFTER_KILL: Duration = Duration::from_millis(700);

/// How a worker ends after one SIGINT, SIGTERM or SIGHUP.
#[derive(Debug, Clone, Copy)]
pub struct WorkerLimits {
    /// The worker is killed this long after the first request, if it waits for a file then.
    pub after_first: Duration,
}

/// Continues in a worker and returns in it. The first process stays in this function, prints sentences by `report`, and ends with the
/// worker's status. Returns in the first process if no process can be made.
///
/// This process must have one thread.
pub fn start(limits: WorkerLimits, report: fn(&str)) {
    let signals = PassedSignals::block();
    match fork_bound_child() {
        -1 | 0 => signals.restore(),
        pid => Parent::new(pid as u32, limits, report).wait(&signals),
    }
}

/// Forks a child that is killed when this process ends. Returns its PID, 0 in the child, and -1 if there can be none. This process must
/// have one thread.
fn fork_bound_child() -> i32 {
    // SAFETY: the calls take and return numbers; this process has one thread, so no lock is held in the child. Without this process
    // the work of the child has no use.
    unsafe {
        let parent = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(1);
            }
        }
        pid
    }
}

/// The state of the first process.
struct Parent {
    worker: u32,
    limits: WorkerLimits,
    report: fn(&str),
    started: Instant,
    watcher: Option<Watcher>,
    /// The time since `started` at which the watcher is to start.
    watched_after: Duration,
    /// The last signal that asked weir to end, and the times of the first and of the second.
    signal: i32,
    asked: Vec<Instant>,
    killed: Option<Instant>,
}

impl Parent {
    fn new(worker: u32, limits: WorkerLimits, report: fn(&str)) -> Parent {
        Parent {
            worker,
            limits,
            report,
            started: Instant::now(),
            watcher: None,
            watched_after: WATCHED_AFTER,
            signal: 0,
            asked: Vec::new(),
            killed: None,
        }
    }

    fn wait(mut self, signals: &PassedSignals) -> ! {
        loop {
            // With a request to end, the limits are shorter than the interval of the checks.
            let interval = if self.asked.is_empty() { LOOK } else { Duration::from_millis(100) };
            let until_watched = self.watched_after.saturating_sub(self.started.elapsed());
            let interval = if self.watcher.is_none() { interval.min(until_watched) } else { interval };
            if let Some((signal, by_kernel)) = signals.next(interval) {
                self.on_signal(signal, by_kernel, signals);
            }
            if let Some(status) = crate::ptrace::try_reap_child(self.worker) {
                if let Some(watcher) = self.watcher.take() {
                    watcher.end(self.asked.is_empty());
                }
                // The shell is to see the signal that asked weir to end.
                signals.end_as(if self.killed.is_some() { self.signal } else { status });
            }
            if self.watcher.is_none() && self.started.elapsed() >= self.watched_after {
                // If there can be none, weir tries again.
                self.watched_after = self.started.elapsed() + LOOK;
                self.watcher = Watcher::start(self.worker, self.report);
                if !self.asked.is_empty() {
                    self.watcher.as_mut().into_iter().for_each(Watcher::hurry);
                }
            }
            if let Some(sentence) = self.watcher.as_mut().and_then(Watcher::sentence) {
                (self.report)(&sentence);
            }
            self.end_worker();
        }
    }

    /// Passes a signal on. The kernel sends those of the terminal to the whole process group.
    fn on_signal(&mut self, signal: i32, by_kernel: bool, signals: &PassedSignals) {
        match signal {
            libc::SIGCHLD => return,
            libc::SIGCONT => return self.continue_children(),
            _ => {}
        }
        if passed_signals::asks_to_end(signal) {
            self.signal = signal;
            self.asked.push(Instant::now());
            self.watcher.as_mut().into_iter().for_each(Watcher::hurry);
        }
        if !by_kernel {
            // SAFETY: the call takes numbers; the worker is a child that has not been reaped.
            unsafe { libc::kill(self.worker as i32, signal) };
        }
        if signal == libc::SIGTSTP {
            signals.stop();
        }
    }

    /// Continues the worker and the watcher, which have stopped with this process.
    fn continue_children(&self) {
        for pid in [Some(self.worker), self.watcher.as_ref().map(Watcher::pid)].into_iter().flatten() {
            job_control::send(pid, Signal::CONT);
        }
    }

    /// Kills the worker if it had its time, and ends this process if the worker sleeps on.
    fn end_worker(&mut self) {
        let is_over = |since: Option<&Instant>, limit| since.is_some_and(|since| since.elapsed() >= limit);
        let is_late = is_over(self.asked.get(1), AFTER_SECOND)
            || is_over(self.asked.first(), self.limits.after_first)
                && self.watcher.as_mut().is_some_and(Watcher::is_silent);
        match self.killed {
            None if is_late => {
                for pid in proc::with_descendants(self.worker) {
                    // SAFETY: the call takes numbers. A descendant cannot get a new number before the worker is reaped, or has
                    // ended itself at this moment.
                    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
                }
                self.killed = Some(Instant::now());
            }
            Some(killed) if killed.elapsed() >= AFTER_KILL => {
                let what = self.watcher.as_mut().and_then(Watcher::longest);
                let what = what.unwrap_or_else(|| "it waits in the kernel".to_string());
                (self.report)(&format!("process {} stays, because no signal ends it: {what}", self.worker));
                // SAFETY: ends this process, which has no other thread.
                unsafe { libc::_exit(128 + self.signal) };
            }
            _ => {}
        }
    }
}
