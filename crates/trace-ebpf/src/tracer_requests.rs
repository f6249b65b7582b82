//! What the engine tells the thread that traces ([`crate::tracer`]), and what that reports.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

use weir_trace_api::RawEvent;

use super::load::Processes;
use crate::tracer_wakeup::TracerWakeup;

/// What the thread that traces is to do.
pub(super) enum TracerRequest {
    /// A process runs something else.
    Consider(u32, PathBuf),
    /// A process is about to execute its first program; whether it is traced is awaited.
    FirstStop(u32, FirstStop, SyncSender<bool>),
}

/// Where a command is stopped first.
pub(super) enum FirstStop {
    /// At its execve(2).
    Exec,
    /// Where its C library stands, by the kernel's signal: there is nothing else to be done for it. Where the list of its streams
    /// is the kernel knows then.
    Library(Box<Processes>),
}

/// Orders for the thread that traces: only the thread that attached may wait and look.
pub(super) struct TracerHandle<'a> {
    orders: Option<Sender<TracerRequest>>,
    bell: &'a TracerWakeup,
    reports: Receiver<RawEvent>,
}

impl<'a> TracerHandle<'a> {
    /// Orders go through one channel, with a ring each, and reports come through another.
    pub fn new(orders: Sender<TracerRequest>, bell: &'a TracerWakeup, reports: Receiver<RawEvent>) -> Self {
        Self { orders: Some(orders), bell, reports }
    }

    /// A process runs something else: it is traced if its buffers need it.
    pub fn consider(&self, pid: u32, exe: &Path) {
        self.order(TracerRequest::Consider(pid, exe.to_path_buf()));
    }

    /// A process at its gate will stop on its way, and be let go there if its buffers need no stops. Whether that can be done.
    pub fn hold(&self, pid: u32, hold: FirstStop) -> bool {
        let (done, answer) = sync_channel(1);
        self.order(TracerRequest::FirstStop(pid, hold, done));
        answer.recv().unwrap_or(false)
    }

    /// The thread is there as long as this is; that it has died with a panic is told when it is joined.
    fn order(&self, order: TracerRequest) {
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        self.bell.ring();
    }

    /// What was seen since the last call.
    pub fn reports(&self) -> impl Iterator<Item = RawEvent> {
        self.reports.try_iter()
    }
}

impl Drop for TracerHandle<'_> {
    fn drop(&mut self) {
        self.orders = None;
        self.bell.ring(); // for the thread to see that there will be no more
    }
}
