//! Programs that trace others themselves, such as debuggers and strace: a process can have one tracer only, so
//! those that they want are let go.

use weir_sys::{proc, ptrace};

use super::tracer::Tracer;

impl Tracer<'_, '_> {
    /// At the entry of ptrace(2). True: the thread was let go for good, or stays stopped until another one was.
    pub(super) fn on_ptrace(&mut self, tid: u32, args: [u64; 6]) -> bool {
        const SEIZE: u64 = 0x4206;
        let wanted = match args[0] {
            // The caller asks to be traced by its parent: to be let go at its entry is soon enough.
            request if request == libc::PTRACE_TRACEME as u64 => tid,
            request if request == libc::PTRACE_ATTACH as u64 || request == SEIZE => args[1] as u32,
            _ => return false,
        };
        if !self.threads.contains_key(&wanted) {
            return false;
        }
        if self.filtered {
            self.say_kept(wanted);
            return false;
        }
        self.say_let_go(wanted);
        if wanted == tid {
            ptrace::detach(tid, 0);
            self.drop_thread(tid);
            return true;
        }
        let Some(thread) = self.threads.get_mut(&wanted) else { return false };
        // It goes first; the caller waits at the entry of its call. See `let_go`.
        thread.let_go_for = ptrace::interrupt(wanted).is_ok().then_some(tid);
        thread.let_go_for.is_some()
    }

    /// A child stops itself: its parent may be a debugger that waits for this to call ptrace(2), which is to be
    /// seen. If its calls are not seen now, it is caught; it cannot go on before that, since it is asked before
    /// the child is stopped.
    pub(super) fn expect_tracer(&mut self, child: u32, now: u64) {
        let Some(parent) = self.processes.get(&child).and_then(|process| process.parent) else { return };
        if let Some(process) =
            self.process(parent).filter(|process| process.gap.is_some() && !process.foreign)
        {
            process.budget = crate::overhead_budget::ProcessBudget::new(now);
            self.catch(parent, now);
        }
    }

    /// The wanted thread has stopped.
    pub(super) fn let_go(&mut self, tid: u32, tracer: u32, status: i32) {
        let event = status >> 16;
        let signal =
            if event == 0 && libc::WSTOPSIG(status) & 0x80 == 0 { libc::WSTOPSIG(status) } else { 0 };
        ptrace::detach(tid, signal);
        self.drop_thread(tid);
        self.go_on(tracer, 0, weir_sys::clock::now_ns());
    }

    /// A thread that was to be let go for another has ended before.
    pub(super) fn forget_waiting_for(&mut self, tid: u32) {
        if let Some(tracer) = self.threads.get(&tid).and_then(|thread| thread.let_go_for) {
            self.go_on(tracer, 0, weir_sys::clock::now_ns());
        }
    }

    /// Without weir its calls would fail. It is the call of the other one that does, with EPERM.
    fn say_kept(&mut self, wanted: u32) {
        self.blind.insert(format!(
            "{} could not be traced by another program: with a seccomp filter only weir can",
            proc::label(wanted)
        ));
    }

    fn say_let_go(&mut self, tid: u32) {
        self.blind.insert(format!(
            "{} is traced by another program: weir let it go and sees no more of it",
            proc::label(tid)
        ));
    }

    /// Forgets a thread that is not traced any more, and its process with the last one.
    fn drop_thread(&mut self, tid: u32) {
        let now = weir_sys::clock::now_ns();
        let Some(pid) = self.threads.remove(&tid).map(|thread| thread.pid) else { return };
        let Some(process) = self.process(pid) else { return };
        process.threads.remove(&tid);
        if process.threads.is_empty() {
            self.end_gap(pid, now);
            self.sum_up(pid, now);
            self.processes.remove(&pid);
        }
    }
}
