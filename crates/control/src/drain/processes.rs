//! Drains several processes, once or at regular intervals.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_inspect::fork_copies::fork_copies;
use weir_model::flush::FlushedProcess;
use weir_model::fork_copy::ForkCopy;
use weir_sys::clock::now_ns;
use weir_sys::expendable::{Limits, NoAnswer, Rights, answer_of, failure_text};
use weir_sys::proc;
use weir_sys::process_access::{check_answers, check_same};
use weir_sys::process_identity::ProcessIdentity;

use super::timed_waits::{self, TimedWait};
use super::{DrainError, DrainResult, ProcessDrain};

/// The limits of a drain. The drain itself polls at intervals of less than a second.
const LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: None };

/// The limits of ending waits, which takes milliseconds: a thread that does not stop at once runs, and its wait has ended.
const END_LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: Some(Duration::from_secs(2)) };

/// The answer of the child that drains a process: the result, whether the process has ended, whether its streams are unknown, and the
/// waits that the stops have interrupted.
type DrainAnswer = (FlushedProcess, bool, bool, Vec<TimedWait>);

/// The delay after its timeout with which weir ends a wait, so that it never ends early: the usual delay of a timer.
const END_MARGIN: Duration = Duration::from_micros(100);

/// Results of earlier drains that later ones need.
#[derive(Debug, Default)]
struct EarlierDrains {
    copies: Vec<ForkCopy>,
    /// The interrupted waits of each process.
    waits: HashMap<ProcessIdentity, Vec<TimedWait>>,
}

/// The longest sleep between two checks of the stop flag: a user does not notice it.
const STOP_POLL: Duration = Duration::from_millis(50);

/// The processes to drain.
#[derive(Debug, Clone)]
pub struct DrainTargets {
    /// The processes that the user named.
    pub named: Vec<ProcessIdentity>,
    /// Whether their descendants at the time of each drain are included.
    pub descendants: bool,
    /// The number of pending bytes of each process that are read at once.
    pub most: u64,
}

/// A process and the result of one drain.
#[derive(Debug)]
pub struct DrainedProcess {
    /// The process is one of [`DrainTargets::named`], not a descendant.
    pub named: bool,
    /// The result for the user.
    pub flushed: FlushedProcess,
    /// Why the process could not be drained at all; `flushed` has the sentence.
    pub failure: Option<DrainFailure>,
    process: ProcessIdentity,
    waits: Vec<TimedWait>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainFailure {
    /// The process is gone, or a zombie.
    Ended,
    /// No walker knows its streams.
    Unknown,
    /// The process may not be traced or read, does not answer, or a system call failed.
    Other,
}

impl DrainedProcess {
    fn drain(
        (process, named): (ProcessIdentity, bool),
        (most, earlier): (u64, (Vec<ForkCopy>, Vec<TimedWait>)),
        wait: Duration,
        stop: &AtomicBool,
    ) -> DrainedProcess {
        let pid = process.pid();
        if let Err(problem) = check_answers(pid) {
            return DrainedProcess::failed((process, named), problem.to_string());
        }
        let work = |stop: &AtomicBool| {
            serde_json::to_vec(&drain_directly(process, (most, earlier), wait, stop)).unwrap_or_default()
        };
        let answer = answer_of(Rights::All, work, LIMITS, Some(stop));
        let answer =
            answer.and_then(|answer| serde_json::from_slice::<DrainAnswer>(&answer).or(Err(NoAnswer::Ended)));
        match answer {
            Ok((flushed, has_ended, is_unknown, waits)) => {
                let failure = flushed.error.as_ref().map(|_| match (has_ended, is_unknown) {
                    (true, _) => DrainFailure::Ended,
                    (_, true) => DrainFailure::Unknown,
                    _ => DrainFailure::Other,
                });
                DrainedProcess { named, flushed, failure, process, waits }
            }
            Err(NoAnswer::Outlives) => DrainedProcess::failed((process, named), late_write_text(pid)),
            Err(failure) => DrainedProcess::failed((process, named), failure_text(pid, failure)),
        }
    }

    fn failed((process, named): (ProcessIdentity, bool), why: String) -> DrainedProcess {
        let pid = process.pid();
        let (streams, unseen, error) = (Vec::new(), Vec::new(), Some(why));
        let flushed = FlushedProcess { pid, comm: proc::comm(pid), streams, unseen, error };
        DrainedProcess { named, flushed, failure: Some(DrainFailure::Other), process, waits: Vec::new() }
    }

    /// Returns whether bytes are still pending.
    pub fn is_partial(&self) -> bool {
        self.flushed.streams.iter().any(|stream| stream.left_bytes > 0)
    }

    /// Returns the error if it is one to report. A descendant that has ended or has no known buffers is none.
    pub fn reportable_error(&self) -> Option<&str> {
        let is_expected = matches!(self.failure, Some(DrainFailure::Ended | DrainFailure::Unknown));
        self.flushed.error.as_deref().filter(|_| self.named || !is_expected)
    }
}

fn late_write_text(pid: u32) -> String {
    format!(
        "{} does not return from a write of its pending bytes that it makes for weir: its file does not answer; it is not \
         known whether they are written, and they are not written again",
        proc::label(pid)
    )
}

/// Drains a process in this process.
fn drain_directly(
    process: ProcessIdentity,
    (most, (copies, mut waits)): (u64, (Vec<ForkCopy>, Vec<TimedWait>)),
    wait: Duration,
    stop: &AtomicBool,
) -> DrainAnswer {
    let (pid, comm) = (process.pid(), proc::comm(process.pid()));
    let drain = ProcessDrain::new(process, most, copies);
    let drained = drain.and_then(|mut drain| {
        drain.waits = std::mem::take(&mut waits);
        let result = drain.flush(wait, stop);
        waits = drain.waits;
        result
    });
    let drained = drained.and_then(|result| {
        // The last attempt may have met the process alive. The bytes of one that has ended are gone.
        let has_left = result.streams.iter().any(|stream| stream.left_bytes > 0);
        if has_left && result.streams.iter().all(|stream| stream.written_bytes == 0) {
            check_same(process)?;
        }
        Ok(result)
    });
    let (result, error) = match drained {
        Ok(result) => (result, None),
        Err(error) => (DrainResult::default(), Some(error)),
    };
    let DrainResult { streams, mut unseen } = result;
    if let Some(DrainError::Unknown { missing, .. }) = &error {
        unseen.clone_from(missing);
    }
    let has_ended = error.as_ref().is_some_and(has_ended);
    let is_unknown = matches!(error, Some(DrainError::Unknown { .. }));
    let error = error.map(|error| error.to_string());
    (FlushedProcess { pid, comm, streams, unseen, error }, has_ended, is_unknown, waits)
}

fn has_ended(error: &DrainError) -> bool {
    matches!(error, DrainError::AccessProblem(problem) if problem.has_ended())
}

impl DrainTargets {
    /// Drains each process once. Retries for up to `wait` per process, until `stop` is set. Bytes that fork(2) copied are written
    /// once, also if the process that has them first is not to be drained.
    pub fn drain<'a>(
        &'a self,
        wait: Duration,
        stop: &'a AtomicBool,
    ) -> impl Iterator<Item = DrainedProcess> + 'a {
        self.drain_again(&mut EarlierDrains::default(), wait, stop)
    }

    /// As [`DrainTargets::drain`]. `earlier` has the copies that were found before, and gets those that exist now.
    fn drain_again<'a>(
        &'a self,
        earlier: &mut EarlierDrains,
        wait: Duration,
        stop: &'a AtomicBool,
    ) -> impl Iterator<Item = DrainedProcess> + use<'a> {
        let processes = self.processes();
        let identities: Vec<ProcessIdentity> = processes.iter().map(|(process, _)| *process).collect();
        // Before the first write, which removes the originals.
        earlier.copies = fork_copies(&identities, &earlier.copies);
        let (copies, mut waits) = (earlier.copies.clone(), std::mem::take(&mut earlier.waits));
        processes.into_iter().map(move |process| {
            let own = copies.iter().filter(|copy| copy.pid == process.0.pid()).cloned().collect();
            let interrupted = waits.remove(&process.0).unwrap_or_default();
            DrainedProcess::drain(process, (self.most, (own, interrupted)), wait, stop)
        })
    }

    /// Drains the processes every `interval` until the named ones have ended or `stop` is set.
    ///
    /// Calls `report` if bytes were written, if other bytes are pending than before, or if the first drain met buffers that
    /// cannot be read. An obstacle may be gone at the next interval, so errors are ignored. Only the first drain of a named
    /// process fails.
    pub fn drain_every(
        &self,
        interval: Duration,
        wait: Duration,
        stop: &AtomicBool,
        mut report: impl FnMut(&FlushedProcess),
    ) -> Result<(), String> {
        let exists = |pid| self.named.iter().any(|one| one.pid() == pid && one.is_current());
        let mut pending_before = HashMap::new();
        let (mut is_first, mut earlier) = (true, EarlierDrains::default());
        while !stop.load(Ordering::Relaxed) {
            let next = Instant::now() + interval;
            let mut has_live_process = false;
            for process in self.drain_again(&mut earlier, wait.min(interval), stop) {
                let DrainedProcess { named, flushed, failure, process, waits } = process;
                if !waits.is_empty() {
                    earlier.waits.insert(process, waits);
                }
                match failure {
                    Some(_) if named && is_first => return Err(flushed.error.unwrap_or_default()),
                    Some(failure) => {
                        has_live_process |= named && failure != DrainFailure::Ended && exists(flushed.pid)
                    }
                    None => {
                        has_live_process |= named;
                        let has_written = flushed.streams.iter().any(|stream| stream.written_bytes > 0);
                        let pending = pending_streams(&flushed);
                        let names_unseen = is_first && !flushed.unseen.is_empty();
                        if has_written
                            || names_unseen
                            || pending_before.get(&flushed.pid).unwrap_or(&Vec::new()) != &pending
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
            earlier.end_waits_until(next, stop);
            sleep_until(next, stop);
        }
        Ok(())
    }

    /// Returns the processes that exist now, each with [`DrainedProcess::named`].
    fn processes(&self) -> Vec<(ProcessIdentity, bool)> {
        let mut processes: Vec<(ProcessIdentity, bool)> = self.named.iter().map(|one| (*one, true)).collect();
        if self.descendants {
            for descendant in self.named.iter().flat_map(|one| one.descendants()) {
                if !processes.iter().any(|(one, _)| one.pid() == descendant.pid()) {
                    processes.push((descendant, false));
                }
            }
        }
        processes
    }
}

impl EarlierDrains {
    /// Ends each interrupted wait whose timeout passes before `end`, at that time.
    fn end_waits_until(&mut self, end: Instant, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let times = self
                .waits
                .iter()
                .flat_map(|(process, waits)| waits.iter().map(|wait| (wait.ends_ns, *process)));
            let Some((ends_ns, process)) = times.min_by_key(|(ends_ns, _)| *ends_ns) else { break };
            let due = Instant::now() + Duration::from_nanos(ends_ns.saturating_sub(now_ns())) + END_MARGIN;
            if due >= end {
                break;
            }
            sleep_until(due, stop);
            let waits = self.waits.remove(&process).unwrap_or_default();
            let work = |_: &AtomicBool| {
                timed_waits::end_due(process, &waits);
                Vec::new()
            };
            // A wait that is not ended ends at its whole timeout.
            let _ended = answer_of(Rights::All, work, END_LIMITS, Some(stop));
            let later: Vec<TimedWait> = waits.into_iter().filter(|wait| wait.ends_ns > ends_ns).collect();
            if !later.is_empty() {
                self.waits.insert(process, later);
            }
        }
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
