//! Takes the events out of the kernel's room for them.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use weir_sys::ptrace;

use super::Run;

/// So much is taken out at a time. Where more has come meanwhile, weir goes before others from then on: what it does not take
/// out in time is lost. Before that it would only stand in the way of the programs.
const BATCH_BYTES: usize = 1 << 18;

impl Run<'_> {
    /// Until there are events or the root has ended, which is answered, but not longer than this.
    pub(super) fn wait(&self, ns: u64) -> bool {
        let timeout = Duration::from_nanos(ns).try_into().ok();
        let mut fds = vec![PollFd::new(&self.backend.loaded.events, PollFlags::IN)];
        fds.extend(
            self.root_end.iter().filter(|_| self.exit.is_none()).map(|end| PollFd::new(end, PollFlags::IN)),
        );
        // An interruption by a signal is a reason to look around as well.
        let _ = poll(&mut fds, timeout.as_ref());
        fds.get(1).is_some_and(|end| !end.revents().is_empty())
    }

    pub(super) fn drain(&mut self) {
        while self.drain_some() {}
    }

    /// Takes what there is, up to a part of the room. False: there was nothing.
    pub(super) fn drain_some(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.batch);
        events.clear();
        self.seen.extend(self.stops.reports());
        self.backend.loaded.events.take(&mut events, BATCH_BYTES);
        if events.len() > BATCH_BYTES && !self.hurries {
            ptrace::raise_priority();
            self.hurries = true;
        }
        if events.is_empty() {
            // What came before it was in the ring when it was reported: all that has been taken.
            self.seen.drain(..).for_each(&mut *self.sink);
        } else {
            // The process went on behind its report, so what it did then may be among the events already.
            self.seen.extend(self.stops.reports());
            self.take_all(&events);
        }
        self.batch = events;
        !self.batch.is_empty()
    }

    /// Events are copied out first: the kernel gets its room back while they are looked at.
    fn take_all(&mut self, mut events: &[u8]) {
        while let Some((length, rest)) = events.split_at_checked(4) {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let (event, rest) = rest.split_at(length);
            self.take(event);
            events = rest;
        }
    }
}
