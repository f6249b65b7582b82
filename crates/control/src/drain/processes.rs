//! Drains several processes, once or at regular intervals.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_model::flush::FlushedProcess;
use weir_sys::proc;
use weir_sys::process_access::AccessProblem;

use super::{DrainError, DrainResult, ProcessDrain};

/// The longest sleep between two checks of the stop flag: a user does not notice it.
const STOP_POLL: Duration = Duration::from_millis(50);

/// The processes to drain.
#[derive(Debug, Clone)]
pub struct DrainTargets {
    /// The processes that the user named.
    pub pids: Vec<u32>,
    /// Whether their descendants at the time of each drain are included.
    pub descendants: bool,
}

/// A process and the result of one drain.
#[derive(Debug)]
pub struct DrainedProcess {
    /// The process is one of [`DrainTargets::pids`], not a descendant.
    pub named: bool,
    /// The result for the user.
    pub flushed: FlushedProcess,
    /// Why the process could not be drained at all.
    pub error: Option<DrainError>,
}

impl DrainedProcess {
    fn drain(pid: u32, named: bool, wait: Duration, stop: &AtomicBool) -> DrainedProcess {
        let comm = proc::names(pid).1;
        let (result, error) = match ProcessDrain::new(pid).and_then(|mut drain| drain.flush(wait, stop)) {
            Ok(result) => (result, None),
            Err(error) => (DrainResult::default(), Some(error)),
        };
        let DrainResult { streams, unseen } = result;
        let error_text = error.as_ref().map(DrainError::to_string);
        DrainedProcess {
            named,
            flushed: FlushedProcess { pid, comm, streams, unseen, error: error_text },
            error,
        }
    }

    /// Returns whether bytes are still pending.
    pub fn is_partial(&self) -> bool {
        self.flushed.streams.iter().any(|stream| stream.left_bytes > 0)
    }

    /// Returns the error if it is one to report. A descendant that has ended or has no known buffers is none.
    pub fn reportable_error(&self) -> Option<&DrainError> {
        let is_expected =
            |error: &DrainError| has_ended(error) || matches!(error, DrainError::Unknown { .. });
        self.error.as_ref().filter(|error| self.named || !is_expected(error))
    }
}

fn has_ended(error: &DrainError) -> bool {
    matches!(error, DrainError::AccessProblem(AccessProblem::Gone(_) | AccessProblem::Zombie { .. }))
}

impl DrainTargets {
    /// Drains each process once. Retries for up to `wait` per process, until `stop` is set.
    pub fn drain<'a>(
        &'a self,
        wait: Duration,
        stop: &'a AtomicBool,
    ) -> impl Iterator<Item = DrainedProcess> + 'a {
        self.processes().into_iter().map(move |(pid, named)| DrainedProcess::drain(pid, named, wait, stop))
    }

    /// Drains the processes every `interval` until the named ones have ended or `stop` is set.
    ///
    /// Calls `report` if bytes were written, or if other bytes are pending than before. An obstacle may be gone at the
    /// next interval, so errors are ignored. Only the first drain of a named process fails.
    pub fn drain_every(
        &self,
        interval: Duration,
        wait: Duration,
        stop: &AtomicBool,
        mut report: impl FnMut(&FlushedProcess),
    ) -> Result<(), DrainError> {
        let mut pending_before = HashMap::new();
        let mut is_first = true;
        while !stop.load(Ordering::Relaxed) {
            let next = Instant::now() + interval;
            let mut has_live_process = false;
            for process in self.drain(wait.min(interval), stop) {
                let DrainedProcess { named, flushed, error } = process;
                match error {
                    Some(error) if named && is_first => return Err(error),
                    Some(error) => {
                        has_live_process |= named && !has_ended(&error) && proc::exists(flushed.pid)
                    }
                    None => {
                        has_live_process |= named;
                        let has_written = flushed.streams.iter().any(|stream| stream.written_bytes > 0);
                        let pending = pending_streams(&flushed);
                        if has_written || pending_before.get(&flushed.pid).unwrap_or(&Vec::new()) != &pending
                        {
                            report(&flushed);
                            pending_before.insert(flushed.pid, pending);
                        }
                    }
                }
            }
            is_first = false;
            if !has_live_process {
                break;
            }
            sleep_until(next, stop);
        }
        Ok(())
    }

    /// Returns the processes that exist now, each with [`DrainedProcess::named`].
    fn processes(&self) -> Vec<(u32, bool)> {
        let mut processes: Vec<(u32, bool)> = self.pids.iter().map(|pid| (*pid, true)).collect();
        if self.descendants {
            for descendant in self.pids.iter().flat_map(|pid| proc::descendants(*pid)) {
                if !processes.iter().any(|(pid, _)| *pid == descendant) {
                    processes.push((descendant, false));
                }
            }
        }
        processes
    }
}

/// A stream with pending bytes: descriptor, bytes, and why they are pending.
type PendingState = (i32, u64, Option<String>);

fn pending_streams(process: &FlushedProcess) -> Vec<PendingState> {
    let pending = process.streams.iter().filter(|stream| stream.left_bytes > 0);
    pending.map(|stream| (stream.fd, stream.left_bytes, stream.why.clone())).collect()
}

fn sleep_until(end: Instant, stop: &AtomicBool) {
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(end.saturating_duration_since(Instant::now()).min(STOP_POLL));
    }
}
