//! Forks that a handler has deferred: the child and the thread that made the call stay stopped until the handler is done.

use weir_sys::ptrace::PtraceStop;

use super::event_loop::Supervisor;

/// A fork(2) whose processes have not gone on.
#[derive(Debug)]
pub(crate) struct DeferredFork {
    pub parent: u32,
    /// The thread of the parent that made the call.
    pub tid: u32,
    pub child: u32,
    pub shares_memory: bool,
    /// The first stop of the child, once it has come.
    pub child_stop: Option<PtraceStop>,
    /// The index of the handler.
    pub handler: usize,
}

impl Supervisor {
    /// Calls the handlers for a fork, from `fork.handler` on. Returns the fork if one defers it.
    pub(super) fn report_fork(&mut self, fork: DeferredFork) -> Option<DeferredFork> {
        let DeferredFork { parent, child, shares_memory, handler: first, .. } = fork;
        let mut handlers = std::mem::take(&mut self.handlers);
        let deferring = handlers.iter_mut().enumerate().skip(first).find_map(|(index, handler)| {
            (!handler.on_fork(&mut self.tracees, parent, child, shares_memory)).then_some(index)
        });
        self.handlers = handlers;
        deferring.map(|handler| DeferredFork { handler, ..fork })
    }

    /// Keeps a fork until the handler is done.
    pub(super) fn defer_fork(&mut self, fork: DeferredFork) {
        let early = self.tracees.early_stops.remove(&fork.child).map(|(stop, _)| stop);
        self.set_in_fork(fork.parent, true);
        self.deferred_forks.push(DeferredFork { child_stop: fork.child_stop.or(early), ..fork });
    }

    pub(super) fn retry_deferred_forks(&mut self) {
        for fork in std::mem::take(&mut self.deferred_forks) {
            let (tid, parent, child_stop) = (fork.tid, fork.parent, fork.child_stop);
            match self.report_fork(fork) {
                Some(fork) => self.deferred_forks.push(fork),
                None => {
                    self.set_in_fork(parent, false);
                    child_stop.into_iter().for_each(|stop| self.on_stop(stop));
                    self.tracees.resume(tid, 0);
                }
            }
        }
    }

    /// Keeps the first stop of the child of a deferred fork, and returns true. Another stop of the child or the parent's thread means
    /// that it was killed: the other one goes on.
    pub(super) fn is_kept_for_fork(&mut self, stop: PtraceStop) -> bool {
        let concerns = |fork: &DeferredFork| fork.child == stop.tid || fork.tid == stop.tid;
        let Some(index) = self.deferred_forks.iter().position(concerns) else { return false };
        let fork = &mut self.deferred_forks[index];
        if fork.child == stop.tid && fork.child_stop.is_none() && libc::WIFSTOPPED(stop.status) {
            fork.child_stop = Some(stop);
            return true;
        }
        let fork = self.deferred_forks.swap_remove(index);
        self.set_in_fork(fork.parent, false);
        if fork.child == stop.tid {
            self.tracees.resume(fork.tid, 0);
        } else if let Some(first) = fork.child_stop {
            self.on_stop(first);
        }
        false
    }

    fn set_in_fork(&mut self, pid: u32, in_fork: bool) {
        if let Some(process) = self.tracees.processes.get_mut(&pid) {
            process.in_fork = in_fork;
        }
    }
}
