//! Handles clone, exec and exit stops, and reaped threads.

use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::ptrace::held_exit::{HeldExit, ends_alone};
use weir_sys::{executable, proc, ptrace, signals};

use super::deferred_fork::DeferredFork;
use super::event_loop::{DeferredExit, Supervisor};
use super::final_state::FinalState;
use super::handler::{Fork, LifecycleHandler};
use super::tracee::{TracedProcess, TracedThread, TraceeState};
use super::tracees::Tracees;

/// How long an exit stop is held for the other threads of a killed process. One of them may wait for a device for ever.
const SIBLINGS_NS: u64 = 2_000_000_000;

impl Supervisor {
    /// Handles fork(2), vfork(2) or clone(2): the caller is stopped, and the child has not run.
    pub(super) fn on_clone(&mut self, tid: u32, event: i32) {
        let Some(pid) = self.tracees.threads.get(&tid).map(|thread| thread.pid) else { return };
        // A child of a killed parent becomes known by its own first stop.
        let child = ptrace::new_tid(tid).filter(|child| !self.tracees.threads.contains_key(child));
        if let Some(child) = child {
            let same_process = event == libc::PTRACE_EVENT_CLONE
                && proc::status(child).is_none_or(|status| status.tgid as u32 == pid);
            if same_process {
                self.add_thread(pid, child);
            } else if let Some(fork) = self.add_process(pid, tid, child, event == libc::PTRACE_EVENT_VFORK) {
                return self.defer_fork(fork);
            }
            self.handle_early_stop(child);
        }
        self.tracees.resume(tid, 0);
    }

    /// Adds a child and reports it to the handlers. Returns the fork if one of them defers it.
    fn add_process(&mut self, parent: u32, tid: u32, child: u32, vforked: bool) -> Option<DeferredFork> {
        let shares_memory = vforked || ptrace::share_memory(tid, child);
        if let Some(process) = self.tracees.processes.get_mut(&parent).filter(|process| !process.before_exec)
        {
            process.may_trace |= !process.knows_libraries && executable::libraries_trace_others(tid);
            process.knows_libraries = true;
        }
        let parent_process = self.tracees.processes.get(&parent);
        let memory_owner = parent_process.map_or(parent, |process| process.memory_owner);
        let before_exec = parent_process.is_some_and(|process| process.before_exec);
        let may_trace = parent_process.is_some_and(|process| process.may_trace);
        let mut process = TracedProcess::new(if shares_memory { memory_owner } else { child });
        (process.before_exec, process.may_trace) = (before_exec, may_trace);
        process.knows_libraries = true;
        process.vfork_parent = vforked.then_some(parent);
        self.tracees.processes.insert(child, process);
        self.add_thread(child, child);
        if !shares_memory {
            self.tracees.inherit_streams(memory_owner, child);
        }
        let fork = Fork { parent, child, shares_memory, begun_ns: now_ns() };
        let mut fork = DeferredFork { fork, tid, child_stop: None, handler: 0 };
        let is_done = before_exec || self.report_fork(&mut fork);
        (!is_done).then_some(fork)
    }

    pub(super) fn add_thread(&mut self, pid: u32, tid: u32) {
        self.tracees.threads.insert(tid, TracedThread { pid, ..TracedThread::default() });
        if let Some(process) = self.tracees.processes.get_mut(&pid) {
            process.threads.insert(tid);
        }
    }

    /// Handles a child's first stop if it came before the parent's clone stop.
    fn handle_early_stop(&mut self, child: u32) {
        if let Some((stop, _)) = self.tracees.early_stops.remove(&child) {
            self.on_stop(stop);
        }
    }

    /// Adds a child whose parent died before its clone stop.
    fn adopt(&mut self, child: u32) {
        let status = proc::status(child);
        let pid = status.as_ref().map_or(child, |status| status.tgid as u32);
        let parent = status.map_or(0, |status| status.ppid as u32);
        if self.tracees.processes.contains_key(&pid) {
            self.add_thread(pid, child);
        } else if self.tracees.processes.contains_key(&parent) {
            // The parent is not stopped, so that the handlers get no second attempt.
            let _deferred = self.add_process(parent, parent, pid, false);
        } else {
            self.tracees.processes.insert(pid, TracedProcess::new(pid));
            self.add_thread(pid, child);
        }
        self.handle_early_stop(child);
    }

    /// Returns whether the process that a new thread belongs to, or the parent of a new process, is traced and not killed.
    fn has_living_parent(&self, child: u32) -> bool {
        let Some(status) = proc::status(child) else { return false };
        let parent = if status.tgid as u32 == child { status.ppid } else { status.tgid } as u32;
        self.tracees.live_threads(parent).any(|tid| !proc::is_killed(tid))
    }

    /// Adopts children whose parent has died, and those whose parent does not stop: 20 ms and 2 s after the child's first stop. The
    /// kernel needs some microseconds, but the parent can have to wait for a processor.
    pub(super) fn adopt_orphans(&mut self) {
        const CLONE_STOP_NS: u64 = 20_000_000;
        const MAX_CLONE_STOP_NS: u64 = 2_000_000_000;
        let now = now_ns();
        let is_orphan = |child: u32, since: u64| {
            now >= since + MAX_CLONE_STOP_NS || now >= since + CLONE_STOP_NS && !self.has_living_parent(child)
        };
        let early = self.tracees.early_stops.iter();
        let orphans: Vec<u32> =
            early.filter(|(tid, (_, since))| is_orphan(**tid, *since)).map(|(tid, _)| *tid).collect();
        for child in orphans {
            self.adopt(child);
        }
    }

    /// Handles execve(2): other threads are gone, and the calling thread has the process's number.
    pub(super) fn on_exec(&mut self, tid: u32) {
        let former = ptrace::event_message(tid).map_or(tid, |former| former as u32);
        self.tracees.threads.remove(&former);
        self.tracees.give_up_written_copies(tid);
        let Some(process) = self.tracees.processes.get_mut(&tid) else {
            return ptrace::resume(tid, false, 0);
        };
        for ended in std::mem::take(&mut process.threads) {
            self.tracees.threads.remove(&ended);
        }
        process.reset_image();
        (process.memory_owner, process.vfork_parent, process.before_exec) = (tid, None, false);
        process.may_trace = executable::traces_others(tid);
        self.add_thread(tid, tid);
        if let Some(thread) = self.tracees.threads.get_mut(&tid) {
            thread.state = TraceeState::Stopped;
        }
        self.tracees.written_ahead.forget(tid);
        if tid == self.tracees.root {
            self.gated = None;
        }
        self.each_handler(|handler, tracees| handler.on_exec(tracees, tid));
        self.note_image_limitations(tid);
        self.tracees.resume(tid, 0);
    }

    fn note_image_limitations(&mut self, pid: u32) {
        let label = || proc::label(pid);
        if executable::is_foreign(pid) {
            let sentence = format!("{} is a 32-bit program: its streams cannot be read", label());
            self.tracees.add_limitation(sentence);
        }
        if executable::loses_privilege(pid) {
            self.tracees.add_limitation(format!(
                "{} is set-user-ID or set-group-ID and ran without that privilege, because its tracer has none: run \
                 weir as root, or this program outside of weir",
                label()
            ));
        }
    }

    /// Handles an exit stop: the thread's memory and descriptors still exist.
    pub(super) fn on_exit(&mut self, tid: u32) {
        let status = ptrace::event_message(tid).unwrap_or(0) as i32;
        let Some(thread) = self.tracees.threads.get_mut(&tid) else { return };
        thread.exiting = true;
        thread.ended_with_process = !ends_alone(tid);
        let pid = thread.pid;
        let state = FinalState::in_exit_stop(tid, thread.skipped_call.as_ref());
        let Some(process) = self.tracees.processes.get_mut(&pid) else { return self.tracees.resume(tid, 0) };
        state.add_to(process);
        let reports_exit = process.memory_owner == pid && !process.before_exec && !process.exit_reported;
        if reports_exit && !self.has_living_thread(pid) {
            self.report_exit(pid, tid, status);
        } else if reports_exit && self.all_others_are_killed(pid) {
            self.held_exits.push(HeldExit { pid, tid, status, until_ns: now_ns() + SIBLINGS_NS });
        } else {
            self.tracees.resume(tid, 0);
        }
    }

    fn report_exit(&mut self, pid: u32, tid: u32, status: i32) {
        self.tracees.processes.entry(pid).and_modify(|process| process.exit_reported = true);
        if pid == self.tracees.root {
            // The process gets no further signal, and the next wait can reap it.
            signals::forget_command();
        }
        self.finish_exit(DeferredExit { pid, tid, status, handler: 0 });
    }

    /// Returns whether each thread that has not reached its exit stop has been killed. Such a thread may have begun to end by
    /// itself: the kernel then leaves out its exit stop, and this one is the last at which the memory can be read. If one
    /// executes a program, which kills all others, it is not killed itself.
    pub(super) fn all_others_are_killed(&self, pid: u32) -> bool {
        self.tracees.live_threads(pid).all(proc::is_killed)
    }

    /// Reports the exits whose other threads have ended meanwhile. Resumes a thread if another one has reported the exit, or if it
    /// was held too long.
    pub(super) fn retry_held_exits(&mut self) {
        for held in std::mem::take(&mut self.held_exits) {
            let HeldExit { pid, tid, status, until_ns } = held;
            let is_reported = self.tracees.processes.get(&pid).is_none_or(|process| process.exit_reported);
            if !is_reported && !self.has_living_thread(pid) {
                self.report_exit(pid, tid, status);
            } else if is_reported || now_ns() >= until_ns {
                self.tracees.resume(tid, 0);
            } else {
                self.held_exits.push(held);
            }
        }
    }

    /// Returns whether a thread of the process has not reached its exit stop. A kill can come between the check and the request of a
    /// resume; the thread then leaves its exit stop at once, and only /proc shows that it has ended.
    fn has_living_thread(&mut self, pid: u32) -> bool {
        while let Some(tid) = self.tracees.live_thread(pid) {
            if !proc::is_dead(tid) {
                return true;
            }
            let exiting =
                TracedThread { pid, exiting: true, ended_with_process: true, ..TracedThread::default() };
            if let Some(ended) = self.tracees.threads.insert(tid, exiting) {
                self.add_unseen_state(tid, ended);
            }
        }
        false
    }

    /// Adds the state of a thread that has ended without an exit stop.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
    fn add_unseen_state(&mut self, tid: u32, ended: TracedThread) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(resumed), Some(process)) = (ended.resumed, self.tracees.processes.get_mut(&ended.pid))
            && let Some(other) = process.threads.iter().copied().find(|other| *other != tid)
            && let Some(state) = FinalState::at_resume(resumed, other, ended.skipped_call.as_ref())
        {
            state.add_to(process);
        }
    }

    /// Calls the handlers for a process's exit, from `exit.handler` on, until one defers it.
    fn finish_exit(&mut self, exit: DeferredExit) {
        let DeferredExit { pid, tid, status, handler: first } = exit;
        let on_exit = |handler: &mut dyn LifecycleHandler, tracees: &mut Tracees| {
            handler.on_exit(tracees, pid, tid, status)
        };
        match self.first_deferring(first, on_exit) {
            Some(handler) => self.deferred_exits.push(DeferredExit { handler, ..exit }),
            None => self.tracees.resume(tid, 0),
        }
    }

    pub(super) fn retry_deferred_exits(&mut self) {
        for exit in std::mem::take(&mut self.deferred_exits) {
            self.finish_exit(exit);
        }
    }

    /// Removes a reaped thread, and with the leader its process.
    pub(super) fn on_reaped(&mut self, tid: u32, status: i32) {
        self.tracees.early_stops.remove(&tid);
        self.deferred_exits.retain(|exit| exit.tid != tid);
        self.held_exits.retain(|exit| exit.tid != tid);
        let Some(thread) = self.tracees.threads.remove(&tid) else { return };
        let pid = thread.pid;
        if let Some(process) = self.tracees.processes.get_mut(&pid) {
            process.threads.remove(&tid);
        }
        if !thread.exiting {
            self.add_unseen_state(tid, thread);
        }
        if tid != pid {
            return;
        }
        if self.tracees.processes.get(&tid).is_some_and(|process| !process.exit_reported) {
            self.tracees.give_up_fork_copies(tid);
        }
        self.each_handler(|handler, tracees| handler.on_reaped(tracees, tid));
        self.tracees.written_ahead.forget(tid);
        self.tracees.processes.remove(&tid);
        if tid == self.tracees.root {
            signals::forget_command();
            self.exit = Some(Exit::of_status(status));
        }
    }
}

/// Returns a sentence if the command's file shows that supervision limits it.
pub(super) fn limitation(gated: &GatedCommand) -> Option<String> {
    let path = gated.executable()?;
    if executable::file_loses_privilege(&path) {
        return Some(format!(
            "{} is set-user-ID or set-group-ID and loses that privilege under a tracer: run weir as root",
            path.display()
        ));
    }
    executable::file_is_foreign(&path)
        .then(|| format!("{} is a 32-bit program: its streams cannot be read", path.display()))
}
