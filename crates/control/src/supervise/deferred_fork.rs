//! Forks that a handler has deferred: the child and the thread that made the call stay stopped until the handler is done.

use weir_sys::ptrace::PtraceStop;

use super::event_loop::Supervisor;
use super::handler::Fork;
use super::tracees::Tracees;

/// A fork(2) whose processes are not resumed yet.
#[derive(Debug)]
pub(crate) struct DeferredFork {
    pub fork: Fork,
    /// The thread of the parent that made the call.
    pub tid: u32,
    /// The first stop of the child, once it has come.
    pub child_stop: Option<PtraceStop>,
    /// The index of the handler.
    pub handler: usize,
}

impl Supervisor {
    /// Calls the handlers for a fork, from `fork.handler` on. Returns false if one defers it.
    pub(super) fn report_fork(&mut self, fork: &mut DeferredFork) -> bool {
        let about = fork.fork;
        let deferring =
            self.first_deferring(fork.handler, |handler, tracees| handler.on_fork(tracees, &about));
        fork.handler = deferring.unwrap_or(fork.handler);
        deferring.is_none()
    }

    /// Keeps a fork until the handler is done.
    pub(super) fn defer_fork(&mut self, fork: DeferredFork) {
        let child_stop = self.tracees.early_stops.remove(&fork.fork.child).map(|(stop, _)| stop);
        self.tracees.deferred_forks.push(DeferredFork { child_stop, ..fork });
    }

    pub(super) fn retry_deferred_forks(&mut self) {
        for mut fork in std::mem::take(&mut self.tracees.deferred_forks) {
            match self.report_fork(&mut fork) {
                true => self.end_fork(fork, None),
                false => self.tracees.deferred_forks.push(fork),
            }
        }
    }

    /// Keeps the first stop of the child of a deferred fork, and returns true. Another stop of the child or of the parent's thread means
    /// that it was killed: the other one is then resumed.
    pub(super) fn is_kept_for_fork(&mut self, stop: PtraceStop) -> bool {
        let forks = &mut self.tracees.deferred_forks;
        let concerns = |one: &DeferredFork| one.fork.child == stop.tid || one.tid == stop.tid;
        let Some(index) = forks.iter().position(concerns) else { return false };
        let fork = &mut forks[index];
        if fork.fork.child == stop.tid && fork.child_stop.is_none() && libc::WIFSTOPPED(stop.status) {
            fork.child_stop = Some(stop);
            return true;
        }
        let fork = forks.swap_remove(index);
        self.end_fork(fork, Some(stop.tid));
        false
    }

    /// Resumes the child and the thread that made the call, except `killed`.
    fn end_fork(&mut self, fork: DeferredFork, killed: Option<u32>) {
        if let Some(first) = fork.child_stop.filter(|stop| Some(stop.tid) != killed) {
            self.on_stop(first);
        }
        if Some(fork.tid) != killed {
            self.tracees.resume(fork.tid, 0);
        }
    }
}

impl Tracees {
    /// Returns whether a thread of a process is stopped in a deferred fork.
    pub(crate) fn is_in_fork(&self, pid: u32) -> bool {
        self.deferred_forks.iter().any(|one| one.fork.parent == pid)
    }
}
