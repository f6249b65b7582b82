//! What the engine tells the thread that traces ([`super::stops`]), and what that reports.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};

use super::bell::Bell;
use super::load::Processes;
use crate::raw::RawEvent;

/// What the thread that traces is to do.
pub(super) enum Order {
    /// A process runs something else.
    Consider(u32, PathBuf),
    /// A process is about to execute its first program; whether it is traced is awaited.
    Hold(u32, Hold, SyncSender<bool>),
}

/// Where a command is stopped first.
pub(super) enum Hold {
    /// At its execve(2).
    Exec,
    /// Where its C library stands, by the kernel's signal: there is nothing else to be done for it. Where the list of its streams
    /// is the kernel knows then.
    Library(Box<Processes>),
}

/// Orders for the thread that traces: only the thread that attached may wait and look.
pub(super) struct Stops<'a> {
    orders: Option<Sender<Order>>,
    bell: &'a Bell,
    reports: Receiver<RawEvent>,
}

impl<'a> Stops<'a> {
    /// Orders go through one channel, with a ring each, and reports come through another.
    pub fn new(orders: Sender<Order>, bell: &'a Bell, reports: Receiver<RawEvent>) -> Self {
        Self { orders: Some(orders), bell, reports }
    }

    /// A process runs something else: it is traced if its buffers need it.
    pub fn consider(&self, pid: u32, exe: &Path) {
        self.order(Order::Consider(pid, exe.to_path_buf()));
    }

    /// A process at its gate will stop on its way, and be let go there if its buffers need no stops. Whether that can be done.
    pub fn hold(&self, pid: u32, hold: Hold) -> bool {
        let (done, answer) = sync_channel(1);
        self.order(Order::Hold(pid, hold, done));
        answer.recv().unwrap_or(false)
    }

    /// The thread is there as long as this is; that it has died with a panic is told when it is joined.
    fn order(&self, order: Order) {
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        self.bell.ring();
    }

    /// What was seen since the last call.
    pub fn reports(&self) -> impl Iterator<Item = RawEvent> {
        self.reports.try_iter()
    }
}

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.orders = None;
        self.bell.ring(); // for the thread to see that there will be no more
    }
}
