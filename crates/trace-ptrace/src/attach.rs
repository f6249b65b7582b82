//! Becoming the tracer: of a command at its gate, of a process that runs.

use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::{Error, proc, ptrace};
use weir_trace_api::RawEventKind;

use super::tracer::{TracedProcess, TracedThread, Tracer};
use super::unusable;

/// Rounds of looking for threads that were born while others were taken.
const ROUNDS: usize = 50;

impl Tracer<'_, '_> {
    /// Takes the child at its gate, and opens it. Its execve(2) is its first stop.
    pub(super) fn take_command(&mut self, mut gated: GatedCommand) -> Result<(), Error> {
        let pid = gated.pid;
        self.filtered = gated.filtered;
        let seize = if self.filtered { ptrace::seize_filtered } else { ptrace::seize };
        seize(pid).map_err(|error| refused(pid, error))?;
        let mut process = TracedProcess::new(None, now_ns());
        process.hidden = true;
        self.processes.insert(pid, process);
        self.add_thread(pid, pid);
        gated.open_gate()?;
        self.gated = Some(gated);
        Ok(())
    }

    /// Takes all threads of a process. None is stopped by that; they are caught as after a gap.
    pub(super) fn take_process(&mut self, pid: u32) -> Result<(), Error> {
        self.attached = true;
        let thread_of = proc::status(pid).map(|status| status.tgid as u32);
        if thread_of.is_some_and(|leader| leader != pid) {
            return Err(unusable(&format!(
                "{pid} is a thread: give the process, {}",
                thread_of.unwrap_or(0)
            )));
        }
        let now = now_ns();
        self.processes.insert(pid, TracedProcess::new(None, now));
        self.seize_threads(pid)?;
        let comm = proc::label(pid);
        if proc::is_foreign(pid) {
            self.make_foreign(pid, &comm);
        }
        let totals = self.process(pid).and_then(|process| process.account.read(pid)).unwrap_or_default();
        if !proc::children(pid).is_empty() {
            self.blind.insert(format!("children that {comm} had before are not followed"));
        }
        self.tell(now, pid, pid, RawEventKind::Begin);
        self.tell(now, pid, pid, RawEventKind::Totals(totals));
        if let Some(process) = self.process(pid) {
            process.told = totals;
            process.gap = Some(now);
        }
        Ok(())
    }

    fn seize_threads(&mut self, pid: u32) -> Result<(), Error> {
        for _round in 0..ROUNDS {
            let new: Vec<u32> =
                proc::threads(pid).into_iter().filter(|tid| !self.threads.contains_key(tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                match ptrace::seize(tid) {
                    Ok(()) => {
                        self.add_thread(pid, tid);
                        // It has written long since: a look would only keep it waiting.
                        if let Some(thread) = self.threads.get_mut(&tid) {
                            thread.looked_before = super::stops::FIRST_WRITES;
                        }
                    }
                    // A thread that has ended, or one that was born to a thread taken before: it will stop.
                    Err(error) if not_worth_telling(&error) && (tid != pid || proc::is_dead(pid)) => {}
                    Err(error) => return Err(refused(pid, error)),
                }
            }
        }
        // Of one that ends just now the kernel says EPERM.
        let any = self.threads.values().any(|thread| thread.pid == pid);
        if any { Ok(()) } else { Err(refused(pid, std::io::Error::from_raw_os_error(libc::ESRCH))) }
    }

    pub(super) fn add_thread(&mut self, pid: u32, tid: u32) {
        self.threads.insert(tid, TracedThread { pid, ..TracedThread::default() });
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.insert(tid);
            process.threaded |= process.threads.len() > 1;
        }
    }
}

fn not_worth_telling(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EPERM))
}

fn refused(pid: u32, error: std::io::Error) -> Error {
    match proc::status(pid) {
        Some(status) if status.tracerpid > 0 => {
            unusable(&format!("{} already traces {}", proc::label(status.tracerpid as u32), proc::label(pid)))
        }
        _ => Error::Process { call: "ptrace(PTRACE_SEIZE)", pid, source: error },
    }
}
