//! The channels between the backend and its tracer thread ([`crate::tracer`]).

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use weir_trace_api::RawEvent;

use super::load::ProcessMap;
use crate::tracer_wakeup::TracerWakeup;

/// A request to the tracer thread.
pub(super) enum TracerRequest {
    /// A process has executed this file: trace it if its buffers need stops.
    CheckImage { pid: u32, exe: PathBuf },
    /// A process ran before the trace: trace it and its threads if its buffers need stops.
    CheckRunning { pid: u32 },
    /// A thread other than the first of its process has called fork(2) at `ns`: find out whether it had a stop there.
    CheckFork { pid: u32, tid: u32, ns: u64 },
    /// Stop a command at its start. The answer is whether the process is traced.
    FirstStop { pid: u32, stop: FirstStop, answer: SyncSender<bool> },
    /// Answer when the requests before this one are handled.
    Settle(SyncSender<()>),
}

/// The first stop of a command.
pub(super) enum FirstStop {
    /// The execve(2) call of the command.
    Exec,
    /// The signal that the BPF program sends when the C library is relocated, for a command that needs no other stop. The map
    /// then contains the address of the list of streams.
    Library(Box<ProcessMap>),
}

/// Sends requests to the tracer thread and receives its events. ptrace(2) allows only the thread that attached to wait for
/// a tracee and to change it.
pub(super) struct TracerHandle<'a> {
    requests: Option<Sender<TracerRequest>>,
    wakeup: &'a TracerWakeup,
    events: Receiver<RawEvent>,
    /// The last request may not be handled yet.
    is_busy: Cell<bool>,
}

/// The longest wait for the tracer. A request takes it less than a millisecond.
const MAX_SETTLE: Duration = Duration::from_millis(200);

impl<'a> TracerHandle<'a> {
    pub fn new(
        requests: Sender<TracerRequest>,
        wakeup: &'a TracerWakeup,
        events: Receiver<RawEvent>,
    ) -> Self {
        Self { requests: Some(requests), wakeup, events, is_busy: Cell::new(false) }
    }

    /// Makes the thread trace a process that has executed `exe`, if its buffers need stops. Does not wait.
    pub fn check_image(&self, pid: u32, exe: &Path) {
        self.send(TracerRequest::CheckImage { pid, exe: exe.to_path_buf() });
        self.is_busy.set(true);
    }

    /// Makes the thread trace a process that ran before the trace, if its buffers need stops. Does not wait.
    pub fn check_running(&self, pid: u32) {
        self.send(TracerRequest::CheckRunning { pid });
        self.is_busy.set(true);
    }

    /// Requests to find out whether thread `tid` had a stop at its fork(2).
    pub fn check_fork(&self, pid: u32, tid: u32, ns: u64) {
        self.send(TracerRequest::CheckFork { pid, tid, ns });
        self.is_busy.set(true);
    }

    /// Waits until the tracer has handled all requests, so that its events about a process that has ended are there. Returns after
    /// [`MAX_SETTLE`] if it has not; the next call waits for them again.
    pub fn settle(&self) {
        if self.is_busy.take() {
            let (answer, answered) = sync_channel(1);
            self.send(TracerRequest::Settle(answer));
            self.is_busy.set(answered.recv_timeout(MAX_SETTLE) == Err(RecvTimeoutError::Timeout));
        }
    }

    /// Requests the first stop of a command at its gate, and waits until the command is traced. Returns false if it cannot be
    /// traced.
    pub fn request_first_stop(&self, pid: u32, stop: FirstStop) -> bool {
        let (answer, answered) = sync_channel(1);
        self.send(TracerRequest::FirstStop { pid, stop, answer });
        answered.recv().unwrap_or(false)
    }

    /// Sending fails only if the thread has panicked, which is reported when it is joined.
    fn send(&self, request: TracerRequest) {
        let _ = self.requests.as_ref().map(|requests| requests.send(request));
        self.wakeup.wake();
    }

    /// Returns the events since the last call.
    pub fn events(&self) -> impl Iterator<Item = RawEvent> {
        self.events.try_iter()
    }
}

impl Drop for TracerHandle<'_> {
    fn drop(&mut self) {
        self.requests = None;
        self.wakeup.wake(); // the thread ends when the channel is closed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn requests_that_are_open_after_a_wait_are_awaited_again() {
        let wakeup = TracerWakeup::new();
        let ((requests, received), (_events, events)) = (channel(), channel());
        let tracer = TracerHandle::new(requests, &wakeup, events);
        let is_settle = |one: &TracerRequest| matches!(one, TracerRequest::Settle(_));
        tracer.check_running(1);
        tracer.settle();
        assert_eq!(received.try_iter().filter(is_settle).count(), 1, "no answer comes");
        let answering = std::thread::spawn(move || {
            match received.recv_timeout(Duration::from_secs(60)) {
                Ok(TracerRequest::Settle(answer)) => answer.send(()).expect("settle waits"),
                _ => panic!("the open requests are not awaited"),
            }
            received
        });
        tracer.settle();
        let received = answering.join().expect("the answer");
        tracer.settle();
        assert_eq!(received.try_iter().filter(is_settle).count(), 0, "all is handled");
    }
}
