//! Syncs files in a thread of its own, so that records are received meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::error::{Error, io_error};

/// The end of a sync.
#[derive(Debug)]
pub(crate) struct SyncDone {
    /// The records of the log, from its start, that the sync covers.
    pub(crate) records: u64,
    pub(crate) result: io::Result<()>,
}

/// A thread that syncs. There is at most one request at a time.
#[derive(Debug)]
pub(super) struct Syncer {
    requests: Sender<(Vec<Arc<OwnedFd>>, u64)>,
    done: Receiver<SyncDone>,
    event: Arc<OwnedFd>,
    busy: bool,
}

impl Syncer {
    pub(super) fn start() -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            Error::call("eventfd", "a sync thread", error, "raise the limits (ulimit -n, -u)")
        };
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed(&io_error(errno)))?;
        let event = Arc::new(event);
        let (requests, incoming) = channel::<(Vec<Arc<OwnedFd>>, u64)>();
        let (outgoing, done) = channel();
        let waker = Arc::clone(&event);
        let work = move || {
            for (files, records) in incoming {
                let result = files.iter().try_for_each(rustix::fs::fdatasync).map_err(io_error);
                if outgoing.send(SyncDone { records, result }).is_err() {
                    return;
                }
                let _ = rustix::io::write(&waker, &1u64.to_ne_bytes());
            }
        };
        std::thread::Builder::new()
            .name("weir-log-sync".into())
            .spawn(work)
            .map_err(|error| failed(&error))?;
        Ok(Self { requests, done, event, busy: false })
    }

    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Syncs the data of these files. The result covers the first `records` records of the log.
    pub(super) fn request(&mut self, files: Vec<Arc<OwnedFd>>, records: u64) {
        self.busy = self.requests.send((files, records)).is_ok();
    }

    pub(super) fn take_done(&mut self) -> Option<SyncDone> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
        let done = self.done.try_recv().ok()?;
        self.busy = false;
        Some(done)
    }

    /// Returns the result of the request in progress, when it has ended.
    pub(super) fn wait(&mut self) -> Option<SyncDone> {
        let done = self.busy.then(|| self.done.recv().ok()).flatten();
        self.busy = false;
        done
    }
}
