//! Programs that trace others, such as debuggers and strace. A process can have only one tracer (ptrace(2)), so weir
//! detaches from the processes that such a program traces.

use weir_model::trace::Exit;
use weir_sys::{proc, ptrace};

use super::tracer::Tracer;

impl Tracer<'_, '_> {
    /// Reaps a command that was detached for another tracer, if it has ended.
    pub(super) fn reap_detached_root(&mut self) {
        if self.root_detached && !self.root_gone {
            self.exit = ptrace::try_reap_child(self.root).map(Exit::of_status);
            self.root_gone = self.exit.is_some();
        }
    }

    /// Handles the entry of ptrace(2). Returns true if the thread must not be resumed: it is detached, or it stays stopped
    /// until its target is detached.
    pub(super) fn on_ptrace(&mut self, tid: u32, args: [u64; 6]) -> bool {
        let wanted = ptrace::other_tracers::target(tid, &args);
        let Some(wanted) = wanted.filter(|wanted| self.threads.contains_key(wanted)) else { return false };
        if self.filtered {
            self.note_refused(wanted);
            return false;
        }
        self.note_detached(wanted);
        if wanted == tid {
            ptrace::detach(tid, 0);
            self.forget_thread(tid);
            return true;
        }
        let Some(thread) = self.threads.get_mut(&wanted) else { return false };
        // The caller stays stopped at the entry of its call until `detach_for_tracer` has detached the target.
        thread.detach_for = ptrace::interrupt(wanted).is_ok().then_some(tid);
        thread.detach_for.is_some()
    }

    /// Handles SIGSTOP of a child. Its parent may be a debugger that waits for this stop before it calls ptrace(2), which
    /// weir must see. If the parent is in a gap, it is interrupted; this request reaches it before the child stops.
    pub(super) fn catch_parent(&mut self, child: u32, now: u64) {
        let Some(parent) = self.processes.get(&child).and_then(|process| process.parent) else { return };
        if let Some(process) =
            self.process(parent).filter(|process| process.gap.is_some() && !process.foreign)
        {
            process.budget = crate::overhead_budget::ProcessBudget::new(now);
            self.catch(parent, now);
        }
    }

    /// Detaches a stopped thread that another program wants to trace, and resumes that program.
    pub(super) fn detach_for_tracer(&mut self, tid: u32, tracer: u32, status: i32) {
        let event = status >> 16;
        let signal =
            if event == 0 && libc::WSTOPSIG(status) & 0x80 == 0 { libc::WSTOPSIG(status) } else { 0 };
        ptrace::detach(tid, signal);
        self.forget_thread(tid);
        self.resume(tracer, 0, weir_sys::clock::now_ns());
    }

    /// Resumes a program that waits for the detach of a thread that has ended.
    pub(super) fn resume_waiting_tracer(&mut self, tid: u32) {
        if let Some(tracer) = self.threads.get(&tid).and_then(|thread| thread.detach_for) {
            self.resume(tracer, 0, weir_sys::clock::now_ns());
        }
    }

    /// Records that another tracer was refused. Without weir the filtered calls of its target would fail, so its ptrace(2)
    /// fails with EPERM instead.
    fn note_refused(&mut self, wanted: u32) {
        self.remarks.insert(format!(
            "{} could not be traced by another program: with a seccomp filter only weir can",
            proc::label(wanted)
        ));
    }

    /// Records that a thread was detached for another tracer.
    fn note_detached(&mut self, tid: u32) {
        self.blind_spots.insert(format!(
            "{} is traced by another program: weir has detached from it and records no more of it",
            proc::label(tid)
        ));
    }

    /// Removes a detached thread; with the last thread, the process.
    fn forget_thread(&mut self, tid: u32) {
        let now = weir_sys::clock::now_ns();
        let Some(pid) = self.threads.remove(&tid).map(|thread| thread.pid) else { return };
        let Some(process) = self.process(pid) else { return };
        process.threads.remove(&tid);
        if process.threads.is_empty() {
            self.end_gap(pid, now);
            self.add_times(pid, now);
            self.processes.remove(&pid);
            self.root_detached |= pid == self.root && !self.attached;
        }
    }
}
