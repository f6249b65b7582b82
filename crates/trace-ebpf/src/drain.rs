//! Waits for events, takes them out of the ring buffer and handles them.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use weir_sys::clock::now_ns;
use weir_sys::{held_signals, ptrace};
use weir_trace_api::{EventSink, RawEvent, RawEventKind};

use super::Run;
use super::decode::{self, ProcessChange};
use super::shared_types::{self, EventHead, LifecycleEvent};

/// Bytes taken at a time: a sixteenth of the ring buffer. If more has accumulated, weir raises its scheduling priority for
/// the rest of the run, because events would be dropped next. It does not do so earlier, to not delay the traced programs.
const BATCH_BYTES: usize = 1 << 18;

/// Sends the tracer's events up to the time `ns`, CLOCK_MONOTONIC.
fn send_until(ns: u64, tracer_events: &mut VecDeque<RawEvent>, sink: &mut EventSink<'_>) {
    while let Some(earlier) = tracer_events.pop_front_if(|earlier| earlier.ns <= ns) {
        sink(earlier);
    }
}

/// Returns the process, the thread and the time of a fork(2) by a thread other than the first. Returns None for vfork(2): the child
/// shares the memory, so no byte is in two buffers.
fn fork_by_other_thread(event: &[u8]) -> Option<(u32, u32, u64)> {
    const CLONE_VM: u32 = 2; // bpf/events.h
    let LifecycleEvent { head, flags, .. } = shared_types::read(event)?;
    (head.tid != head.pid && flags & CLONE_VM == 0).then_some((head.pid, head.tid, head.ns))
}

impl Run<'_> {
    /// Waits at most `ns` for events or the end of the root process. Returns whether the root process has ended.
    pub(super) fn wait(&self, ns: u64) -> bool {
        let timeout = Duration::from_nanos(ns).try_into().ok();
        let mut fds = vec![PollFd::new(&self.backend.loaded.events, PollFlags::IN)];
        fds.extend(
            self.root_end.iter().filter(|_| self.exit.is_none()).map(|end| PollFd::new(end, PollFlags::IN)),
        );
        // EINTR ends the wait early, which is harmless.
        let _ = poll(&mut fds, timeout.as_ref());
        fds.get(1).is_some_and(|end| !end.revents().is_empty())
    }

    /// Takes and handles all events, but no more than the ring holds: those from before the call. A process that remains may emit
    /// events as fast as weir takes them.
    pub(super) fn drain(&mut self) {
        let mut left = self.backend.loaded.events.bytes();
        while left > 0 && self.drain_batch() {
            left = left.saturating_sub(self.batch.len());
        }
    }

    /// Takes and handles one batch. Returns false if there were no events.
    pub(super) fn drain_batch(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.batch);
        events.clear();
        self.tracer_events.extend(self.tracer.events());
        self.backend.loaded.events.take(&mut events, BATCH_BYTES);
        if events.len() > BATCH_BYTES && !self.has_priority {
            ptrace::raise_priority();
            self.has_priority = true;
        }
        if events.is_empty() {
            // The kernel emitted all earlier events before the tracer sent these, and they have been taken.
            self.tracer_events.drain(..).for_each(&mut *self.sink);
        } else {
            // A process continues after the tracer has sent its event, so the batch may contain later events of it.
            self.tracer_events.extend(self.tracer.events());
            self.handle_batch(&events);
        }
        self.batch = events;
        !self.batch.is_empty()
    }

    /// The events are copies, so the kernel can reuse the ring buffer meanwhile.
    fn handle_batch(&mut self, mut events: &[u8]) {
        while let Some((length, rest)) = events.split_at_checked(4) {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let (event, rest) = rest.split_at(length);
            self.handle(event);
            events = rest;
        }
    }

    /// Handles the sending of a signal. Returns false if the event is another one.
    fn note_signal(&self, event: &[u8]) -> bool {
        let head = shared_types::read::<EventHead>(event);
        let Some(head) = head.filter(|head| head.kind == shared_types::KIND_SIGNAL) else { return false };
        if head.tid == self.root {
            held_signals::note_delivery(head.fd, head.pid as i32);
        }
        true
    }

    /// Handles one event of the ring buffer.
    fn handle(&mut self, event: &[u8]) {
        if self.note_signal(event) {
            return;
        }
        let (root, before_exec) = (self.root, self.before_exec);
        let (sink, tracer_events) = (&mut *self.sink, &mut self.tracer_events);
        let change = self.decoder.decode(event, &mut |raw: RawEvent| {
            send_until(raw.ns, tracer_events, sink);
            let of_weir = before_exec && raw.pid == root;
            // The command keeps weir's working directory.
            if !of_weir || matches!(raw.kind, RawEventKind::Exec { .. } | RawEventKind::Directory(_)) {
                sink(raw);
            }
        });
        match change {
            ProcessChange::Unchanged => {}
            ProcessChange::StreamClosed(pid) => self.gap.stream_closed(pid),
            ProcessChange::Forked(child) => {
                self.gap.process_created(child);
                if let Some((pid, tid, ns)) = fork_by_other_thread(event) {
                    self.tracer.check_fork(pid, tid, ns);
                }
            }
            ProcessChange::Executed { pid, exe, plain } => self.handle_exec(pid, &exe, plain),
            ProcessChange::Exited { pid, exit, high_fds } => {
                if high_fds {
                    self.sweep(Some(pid));
                }
                if let Some(mut raw) = decode::exit_event(event, self.image_reads.take(pid)) {
                    self.backend.first_totals.complete_exit(&mut raw);
                    // The tracer has taken the snapshot of the process's last buffers before.
                    send_until(raw.ns, &mut self.tracer_events, self.sink);
                    (self.sink)(raw);
                }
                self.gap.process_exited(pid);
                if pid == self.root {
                    self.tracer.settle();
                    self.exit = Some(exit);
                }
            }
        }
    }

    fn handle_exec(&mut self, pid: u32, exe: &Path, plain: bool) {
        let is_first = self.before_exec && pid == self.root;
        self.before_exec &= !is_first;
        self.budget.shorten_gap(now_ns());
        if !plain {
            // The tracer first, because the program is already running.
            self.tracer.check_image(pid, exe);
            self.backend.libraries.add_executable(exe);
        }
        // The BPF program on_exec subtracts the reads of the command's first execve(2).
        if !is_first {
            self.image_reads.exec(pid, exe);
        }
    }
}
