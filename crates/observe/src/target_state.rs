//! Whether weir can attach to a process: it refuses a zombie or kernel thread, and names a stopped process.

use std::time::{Duration, Instant};

use weir_model::trace::Process;
use weir_sys::process_access::{self, AccessProblem, check_answers};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{Error, proc, process_status};

/// The most stopped processes that are named.
const MAX_NAMED: usize = 3;

/// How long all processes together have to stop again: one that a signal has stopped runs for a moment after a detach (ptrace(2)).
const STOPS_AGAIN: Duration = Duration::from_millis(50);

/// Returns the process. Fails if it is gone, replaced, a zombie or a kernel thread, which not every backend reports.
pub(crate) fn attachable(process: ProcessIdentity) -> Result<ProcessIdentity, Error> {
    let pid = process.pid();
    check_answers(pid).map_err(|problem| Error::Hidden(problem.to_string()))?;
    if !proc::exists(pid) || proc::is_hidden(pid) {
        return Err(Error::Hidden(process_access::absent(pid).to_string()));
    }
    if !process.is_current() {
        return Err(Error::Hidden(AccessProblem::Replaced(pid).to_string()));
    }
    // The check of its memory could block, and only a process without memory needs it.
    if proc::status(pid).is_some_and(|status| status.vmsize.is_some()) {
        return Ok(process);
    }
    match process_access::check(pid) {
        Err(problem @ (AccessProblem::Zombie { .. } | AccessProblem::Kernel(_))) => {
            Err(Error::Hidden(problem.to_string()))
        }
        _ if proc::has_ended(pid) => Err(Error::Hidden(process_access::absent(pid).to_string())),
        _ => Ok(process),
    }
}

/// Returns a sentence for each of the first [`MAX_NAMED`] recorded processes that is stopped by a signal.
pub(crate) fn stopped_sentences(processes: &[Process]) -> impl Iterator<Item = String> {
    let until = Instant::now() + STOPS_AGAIN;
    let is_stopped = move |pid: u32| {
        loop {
            match process_status::read(pid).map(|status| status.state) {
                Some(b'T') => return true,
                Some(b'R' | b't') if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                _ => return false,
            }
        }
    };
    let stopped =
        processes.iter().filter(move |process| process.ended_s.is_none() && is_stopped(process.pid));
    stopped.take(MAX_NAMED).map(|process| {
        let (label, pid) = (proc::label(process.pid), process.pid);
        format!("the calls of {label}, which a signal has stopped: kill -CONT {pid} continues it")
    })
}
