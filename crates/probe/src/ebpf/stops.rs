//! Stops for what a program in the kernel cannot walk: processes whose buffers are not glibc's FILE in plain
//! sight (CPython, musl, stripped static programs) are stopped for an instant when they fork, execute or end, and
//! at their first writes, and their memory is read from here. They are not traced at their other calls.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::trace::Moment;

use super::traps::{self, Trap, Traps};
use crate::engine::{Look, now_ns};
use crate::ptrace::os;
use crate::raw::{Raw, RawWhat};
use crate::walk::needs_stops;

/// How long an end may have to wait for its look.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a C library is awaited.
const LIBRARY: Duration = Duration::from_secs(1);
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
            let tracer = Tracer { reports: done, look, traced: HashMap::new(), awaited: Vec::new() };
            scope.spawn(move || tracer.run(&todo));
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
    /// Whom this thread traces.
    traced: HashMap<u32, Traps>,
    /// Whose C library is awaited, since when.
    awaited: Vec<(u32, Instant)>,
}

impl Tracer<'_, '_> {
    fn run(mut self, todo: &Receiver<(u32, PathBuf)>) {
        let mut anybody = false;
        loop {
            while let Some(stop) = os::wait_no_longer() {
                self.pass(stop);
            }
            self.set_traps();
            let patience = if anybody { PATIENCE } else { IDLE };
            match todo.recv_timeout(patience) {
                Ok((pid, exe)) => anybody |= self.attach(pid, &exe),
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
            libc::PTRACE_EVENT_FORK => self.forks(pid, Moment::Fork),
            // The child has this very memory, and what is in it is this one's.
            libc::PTRACE_EVENT_VFORK => self.forks(pid, Moment::Sample),
            libc::PTRACE_EVENT_EXIT => {
                let ended = os::message(pid).unwrap_or(0);
                let moment = if ended & 0x7f == 0 { Moment::Exit } else { Moment::Signal };
                self.report(pid, moment, moment);
                self.traced.remove(&pid);
            }
            os::EVENT_STOP if is_job_control(signal) => return os::listen(pid),
            0 => return self.signal(pid, signal),
            _ => {}
        }
        os::resume(pid, false, 0);
    }

    /// The child is traced from its beginning.
    fn forks(&mut self, pid: u32, moment: Moment) {
        let child = os::message(pid).and_then(|child| u32::try_from(child).ok());
        self.traced.extend(child.map(|child| (child, Traps::none())));
        self.report(pid, moment, moment);
    }

    /// A signal goes on to the process, but for that of a trap.
    fn signal(&mut self, pid: u32, signal: i32) {
        let by = if signal == traps::SIGNAL { os::signalled_by(pid) } else { None };
        match by.and_then(|fd| self.traced.get(&pid)?.of(fd)) {
            Some(trap) => {
                self.trapped(pid, trap);
                os::resume(pid, false, 0);
            }
            None => os::resume(pid, false, signal),
        }
    }

    fn trapped(&mut self, pid: u32, trap: Trap) {
        let anew = self.traced.get_mut(&pid).is_some_and(|traps| traps.sprung(trap));
        match trap {
            Trap::Exec if anew => self.report(pid, Moment::Exec, Moment::Exec),
            Trap::Exec => self.report(pid, Moment::Exec, Moment::Sample),
            Trap::Write => self.report(pid, Moment::Sample, Moment::Sample),
        }
    }

    /// That it cannot be traced (somebody else does, or it has ended) leaves it unseen at its end, and no more.
    fn attach(&mut self, pid: u32, exe: &Path) -> bool {
        let running = PathBuf::from(format!("/proc/{pid}/exe"));
        let wanted = needs_stops(&running) || (!running.exists() && needs_stops(exe));
        // Those of the image before are gone with it.
        let known = self.traced.get_mut(&pid).map(|traps| *traps = Traps::none()).is_some();
        if !wanted || !(known || os::seize_for_ends(pid).is_ok()) {
            return false;
        }
        self.traced.entry(pid).or_insert_with(Traps::none);
        self.awaited.retain(|(other, _)| *other != pid);
        self.awaited.push((pid, Instant::now()));
        true
    }

    /// Sets the traps of those that have their C library by now.
    fn set_traps(&mut self) {
        let traced = &mut self.traced;
        self.awaited.retain(|&(pid, since)| {
            let Some(known) = traced.get_mut(&pid) else { return false };
            match Traps::set(pid) {
                Some(traps) => *known = traps,
                None => return since.elapsed() < LIBRARY,
            }
            false
        });
    }

    /// A look, searched for as at the moment `like`.
    fn report(&mut self, pid: u32, moment: Moment, like: Moment) {
        let buffers = (self.look)(pid, like);
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
