//! Stops for what a program in the kernel cannot walk: processes whose buffers are not glibc's FILE in plain
//! sight (CPython, musl, stripped static programs) are stopped for an instant when they fork or end, and their
//! memory is read from here. It costs nothing in between: they are not traced at their calls.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use weir_model::trace::Moment;

use crate::engine::{Look, now_ns};
use crate::ptrace::os;
use crate::raw::{Raw, RawWhat};
use crate::walk::needs_stops;

/// How long an end may have to wait for its look.
const PATIENCE: Duration = Duration::from_millis(1);
/// The same while nobody is traced.
const IDLE: Duration = Duration::from_millis(200);

/// Orders for the thread that traces: only the thread that attached may wait and look.
pub(super) struct Stops {
    orders: Sender<(u32, PathBuf)>,
    reports: Receiver<Raw>,
}

impl Stops {
    /// Runs `body` beside the tracing thread, which ends, and so lets everybody go, when `body` has.
    pub fn beside<T>(look: &mut Look<'_>, body: impl FnOnce(&Stops) -> T) -> T {
        thread::scope(|scope| {
            let (orders, todo) = channel();
            let (done, reports) = channel();
            scope.spawn(move || Tracer { reports: done, look }.run(&todo));
            body(&Stops { orders, reports })
        })
    }

    /// A process runs something else: it is traced if its buffers need it.
    pub fn consider(&self, pid: u32, exe: &Path) {
        // The thread is there as long as this is; that it has died with a panic is told when it is joined.
        let _ = self.orders.send((pid, exe.to_path_buf()));
    }

    /// What was seen since the last call.
    pub fn reports(&self) -> impl Iterator<Item = Raw> {
        self.reports.try_iter()
    }
}

struct Tracer<'a, 'b> {
    reports: Sender<Raw>,
    look: &'a mut Look<'b>,
}

impl Tracer<'_, '_> {
    fn run(mut self, todo: &Receiver<(u32, PathBuf)>) {
        let mut anybody = false;
        loop {
            while let Some(stop) = os::wait_no_longer() {
                self.pass(stop);
            }
            let patience = if anybody { PATIENCE } else { IDLE };
            match todo.recv_timeout(patience) {
                Ok((pid, exe)) => anybody |= attach(pid, &exe),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks where it is worth it, and lets the process go on in any case.
    fn pass(&mut self, stop: os::Stop) {
        let (pid, status) = (stop.tid, stop.status);
        if !libc::WIFSTOPPED(status) {
            return;
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_FORK => self.report(pid, Moment::Fork),
            libc::PTRACE_EVENT_EXIT => {
                let ended = os::message(pid).unwrap_or(0);
                self.report(pid, if ended & 0x7f == 0 { Moment::Exit } else { Moment::Signal });
            }
            os::EVENT_STOP if is_job_control(signal) => return os::listen(pid),
            0 => return os::resume(pid, false, signal),
            _ => {}
        }
        os::resume(pid, false, 0);
    }

    fn report(&mut self, pid: u32, moment: Moment) {
        let buffers = (self.look)(pid, moment);
        if !buffers.is_empty() {
            let what = RawWhat::Buffers { moment, buffers, waits_in: String::new() };
            // Nobody wants reports any more when the recording has ended.
            let _ = self.reports.send(Raw { ns: now_ns(), pid, tid: pid, what });
        }
    }
}

fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// That it cannot be traced (somebody else does, or it has ended) leaves it unseen at its end, and no more.
fn attach(pid: u32, exe: &Path) -> bool {
    let running = PathBuf::from(format!("/proc/{pid}/exe"));
    let wanted = needs_stops(&running) || (!running.exists() && needs_stops(exe));
    wanted && os::seize_for_ends(pid).is_ok()
}
