//! Attaches the tracer to a gated command or to a running process.

use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{Error, executable, held_signals, proc, process_status, ptrace};
use weir_trace_api::RawEventKind;

use super::tracer::{PtracedProcess, PtracedThread, Tracer};
use super::unusable;

/// Attempts to find threads that were created while others were seized.
const MAX_ROUNDS: usize = 50;

impl Tracer<'_, '_> {
    /// Seizes the child of a gated command, then opens the gate. The first stop is that at its execve(2).
    pub(super) fn attach_command(&mut self, mut gated: GatedCommand) -> Result<(), Error> {
        let pid = gated.pid;
        self.filtered = gated.filtered;
        let seize = if self.filtered { ptrace::seize_filtered } else { ptrace::seize };
        seize(pid).map_err(|error| seize_error(pid, error))?;
        let mut process = PtracedProcess::new(None, now_ns());
        process.hidden = true;
        self.processes.insert(pid, process);
        self.add_thread(pid, pid);
        held_signals::begin();
        gated.open_gate()?;
        self.gated = Some(gated);
        Ok(())
    }

    /// Seizes all threads of a process without stopping them. They are interrupted later, as after a gap.
    pub(super) fn attach_process(&mut self, process: ProcessIdentity) -> Result<(), Error> {
        self.attached = true;
        let pid = process.pid();
        let thread_of = proc::status(pid).map(|status| status.tgid as u32);
        if thread_of.is_some_and(|leader| leader != pid) {
            return Err(unusable(&format!(
                "{pid} is a thread: give the process, {}",
                thread_of.unwrap_or(0)
            )));
        }
        let now = now_ns();
        self.processes.insert(pid, PtracedProcess::new(None, now));
        self.seize_threads(pid)?;
        // From now on the process keeps its number until the tracer waits for its end.
        if !process.is_current() {
            return Err(seize_error(pid, std::io::Error::from_raw_os_error(libc::ESRCH)));
        }
        let comm = proc::label(pid);
        if executable::is_foreign(pid) {
            self.make_foreign(pid, &comm);
        }
        let totals = self.process(pid).and_then(|process| process.account.read(pid)).unwrap_or_default();
        if !proc::children(pid).is_empty() {
            self.blind_spots.insert(format!("children that {comm} had before are not followed"));
        }
        self.emit(now, pid, pid, RawEventKind::Begin);
        self.emit(now, pid, pid, RawEventKind::Totals(totals));
        if let Some(process) = self.process(pid) {
            process.reported = totals;
            process.gap = Some(now);
        }
        Ok(())
    }

    /// Seizes all threads of a process. Fails if none could be seized, or one for another reason than its end.
    fn seize_threads(&mut self, pid: u32) -> Result<(), Error> {
        for _round in 0..MAX_ROUNDS {
            let new: Vec<u32> =
                proc::threads(pid).into_iter().filter(|tid| !self.threads.contains_key(tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                match ptrace::seize(tid) {
                    // The number of a thread that has ended can be another process's: the tracer's end detaches from it.
                    Ok(()) if proc::process_of(tid) != Some(pid) => {}
                    Ok(()) => {
                        self.add_thread(pid, tid);
                        // Its first writes are long past, so a buffer snapshot would only delay it.
                        if let Some(thread) = self.threads.get_mut(&tid) {
                            thread.first_writes = super::stops::FIRST_WRITES;
                        }
                    }
                    // The thread has ended, or a seized thread created it: then it is traced already and will stop.
                    Err(error) if is_ended_or_traced(&error) && (tid != pid || proc::is_dead(pid)) => {}
                    Err(error) => return Err(seize_error(pid, error)),
                }
            }
        }
        // For an exiting process the kernel returns EPERM, but ESRCH is the reason.
        let has_threads = self.threads.values().any(|thread| thread.pid == pid);
        if has_threads {
            Ok(())
        } else {
            Err(seize_error(pid, std::io::Error::from_raw_os_error(libc::ESRCH)))
        }
    }

    /// Notes that the calls of a process that runs on were not recorded, if weir could not stop it since it attached.
    pub(super) fn note_never_stopped(&mut self, pid: u32) {
        let is_in_first_gap = |process: &PtracedProcess| process.gap == Some(process.began_ns);
        // A process that a signal has stopped makes no calls.
        let is_stopped =
            || process_status::read(pid).is_some_and(|status| matches!(status.state, b'T' | b't'));
        let is_expected = |process: &PtracedProcess| process.foreign || process.hidden || is_stopped();
        if self.processes.get(&pid).is_some_and(|process| is_in_first_gap(process) && !is_expected(process)) {
            self.blind_spots.insert(format!(
                "the calls of {}: at each attempt to stop it, it was in a call that a stop would change",
                proc::label(pid)
            ));
        }
    }

    /// Adds a thread to its process. Its first stop follows.
    pub(super) fn add_thread(&mut self, pid: u32, tid: u32) {
        self.threads.insert(tid, PtracedThread { pid, ..PtracedThread::default() });
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.insert(tid);
            process.threaded |= process.threads.len() > 1;
        }
    }
}

/// Returns whether PTRACE_SEIZE fails with this error for a thread that has ended or is already traced.
fn is_ended_or_traced(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EPERM))
}

/// Returns the error of a refused PTRACE_SEIZE. It names the other tracer if there is one.
fn seize_error(pid: u32, error: std::io::Error) -> Error {
    match proc::status(pid) {
        Some(status) if status.tracerpid > 0 => {
            unusable(&format!("{} already traces {}", proc::label(status.tracerpid as u32), proc::label(pid)))
        }
        _ => Error::Process { call: "ptrace(PTRACE_SEIZE)", pid, source: error },
    }
}
