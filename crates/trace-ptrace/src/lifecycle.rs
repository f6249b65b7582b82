//! Births, changes of image and deaths.

use std::path::Path;

use weir_model::trace::{Exit, SnapshotMoment};
use weir_sys::clock::now_ns;
use weir_sys::{proc, ptrace, syscalls};
use weir_trace_api::RawEventKind;
use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_walkers::begins_with_streams;

use super::stops::FIRST_WRITES;
use super::tracer::{TracedProcess, Tracer};
use crate::overhead_budget::ProcessBudget;

impl Tracer<'_, '_> {
    /// fork(2), vfork(2) or clone(2): the parent is stopped, and the child has not run.
    pub(super) fn on_birth(&mut self, tid: u32, event: i32, now: u64) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        let child = ptrace::event_message(tid).unwrap_or(0) as u32;
        if child != 0 && !self.threads.contains_key(&child) {
            let same = event == libc::PTRACE_EVENT_CLONE
                && proc::status(child).is_none_or(|status| status.tgid as u32 == pid);
            if same {
                self.add_thread(pid, child);
            } else {
                let lends = event == libc::PTRACE_EVENT_VFORK;
                if lends {
                    self.look_at_lender(pid, tid, now);
                }
                self.born(pid, tid, child, !lends, now);
            }
            self.handle_early(child);
        }
        self.go_on(tid, 0, now);
    }

    fn born(&mut self, pid: u32, tid: u32, child: u32, copies_memory: bool, now: u64) {
        if copies_memory {
            self.look(pid, tid, SnapshotMoment::Fork, now);
        }
        let mut process = TracedProcess::new(Some(pid), now);
        let parent = self.processes.get(&pid);
        process.foreign = parent.is_some_and(|parent| parent.foreign);
        process.hidden = parent.is_some_and(|parent| parent.hidden);
        if process.foreign {
            process.gap = Some(now);
        }
        self.processes.insert(child, process);
        self.add_thread(child, child);
        self.tell(
            now,
            pid,
            tid,
            RawEventKind::Fork { child, shares_files: ptrace::share_fd_table(tid, child) },
        );
    }

    /// Its first stop may have come before the event that says whose it is.
    fn handle_early(&mut self, child: u32) {
        if let Some((stop, _)) = self.early.remove(&child) {
            self.on_stop(stop);
        }
    }

    /// A new child whose parent died before it could say so.
    pub(super) fn adopt(&mut self, child: u32) {
        let now = now_ns();
        let status = proc::status(child);
        let pid = status.as_ref().map_or(child, |status| status.tgid as u32);
        let parent = status.map_or(0, |status| status.ppid as u32);
        if self.processes.contains_key(&pid) {
            self.add_thread(pid, child);
        } else if self.processes.contains_key(&parent) {
            self.born(parent, parent, pid, false, now);
        } else {
            self.processes.insert(pid, TracedProcess::new(None, now));
            self.add_thread(pid, child);
            self.tell(now, pid, child, RawEventKind::Begin);
            self.tell(now, pid, child, RawEventKind::Totals(Default::default()));
        }
        self.handle_early(child);
    }

    /// At the entry of execve(2): what is in its buffers is lost if it succeeds.
    pub(super) fn before_exec(&mut self, tid: u32, pid: u32, now: u64) {
        self.look(pid, tid, SnapshotMoment::Exec, now);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.before_exec = proc::io(pid);
        }
    }

    /// A new image. Other threads are gone, and the one that asked for it has the process's number now.
    pub(super) fn on_exec(&mut self, tid: u32, now: u64) {
        let former = ptrace::event_message(tid).map_or(tid, |former| former as u32);
        let mut thread = self.threads.remove(&former).unwrap_or_default();
        let Some(process) = self.processes.get_mut(&tid) else { return ptrace::resume(tid, false, 0) };
        for gone in process.threads.drain() {
            self.threads.remove(&gone);
        }
        process.threads.insert(tid);
        (thread.pid, thread.ending, thread.interrupted, thread.shy_calls) = (tid, None, false, 0);
        (thread.looked_before, thread.lent) = (0, 0);
        process.foreign = false;
        process.threaded = false;
        process.budget = ProcessBudget::new(now);
        let first = std::mem::take(&mut process.hidden);
        if first {
            process.account.begin(tid);
            process.began_ns = now;
        } else if let Some(before) = thread.before_exec.take() {
            process.account.kernel_read(tid, before);
        }
        self.threads.insert(tid, thread);
        if let Some(process) = self.process(tid) {
            process.told_buffers.clear();
        }
        self.end_gap(tid, now);
        self.new_image(tid, first && tid == self.root, now);
        let exe = format!("/proc/{tid}/exe");
        let entry = begins_with_streams(Path::new(&exe)).then(|| BreakpointTraps::at_entry(tid)).flatten();
        if let Some(process) = self.process(tid) {
            process.entry = entry;
        }
        // What a beginning takes comes once, and is not the calls'.
        self.go_on(tid, 0, now_ns());
    }

    /// At a signal: whether it is that of the trap where the program's own code begins. The C library is there, and
    /// has not written yet.
    pub(super) fn begins(&mut self, tid: u32, pid: u32) -> bool {
        let Some(process) = self.process(pid) else { return false };
        let by = || ptrace::signal_fd(tid);
        if process.entry.as_ref().and_then(|traps| traps.kind_of(by()?)).is_none() {
            return false;
        }
        process.entry = None;
        let _nothing = self.hooks.snapshots.snapshot(pid, SnapshotMoment::Sample);
        true
    }

    fn new_image(&mut self, pid: u32, begins: bool, now: u64) {
        if begins {
            self.gated = None;
            self.tell(now, pid, pid, RawEventKind::Begin);
            self.tell(now, pid, pid, RawEventKind::Totals(Default::default()));
        }
        let (exe, comm, argv) = proc::names(pid);
        let label = format!("process {pid} ({comm})");
        if proc::loses_privilege(pid) {
            let why = "is set-user-ID: it runs without that privilege while weir, which has none, watches it";
            self.blind.insert(format!("{label} {why}"));
        }
        self.tell(now, pid, pid, RawEventKind::Exec { exe, comm, argv });
        if proc::is_foreign(pid) {
            self.make_foreign(pid, &label);
            self.begin_gap(pid, now);
        }
    }

    /// A thread is about to end; its memory and descriptors are there still.
    pub(super) fn on_exit(&mut self, tid: u32, now: u64) {
        let status = ptrace::event_message(tid).unwrap_or(0) as i32;
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.ending = Some(status);
        let pid = thread.pid;
        let lives = |other: &u32| self.threads.get(other).is_some_and(|thread| thread.ending.is_none());
        let last = self.processes.get(&pid).is_some_and(|process| !process.threads.iter().any(lives));
        if last {
            self.last_look(pid, tid, status, now);
        }
        ptrace::resume(tid, false, 0);
    }

    fn last_look(&mut self, pid: u32, tid: u32, status: i32, now: u64) {
        let moment = if libc::WIFSIGNALED(status) {
            self.tell(now, pid, tid, RawEventKind::Signal { number: libc::WTERMSIG(status) });
            SnapshotMoment::Signal
        } else {
            SnapshotMoment::Exit
        };
        // First: what its descriptors are now is known then.
        self.end_gap(pid, now);
        self.tell_rest(pid, now);
        self.look(pid, tid, moment, now);
        let spent = proc::resource_usage(pid);
        if let Some(process) = self.process(pid) {
            process.last = Some((process.account.read(pid), spent));
        }
    }

    /// A thread has ended, and with its leader the process.
    pub(super) fn gone(&mut self, tid: u32, status: i32, now: u64) {
        self.early.remove(&tid);
        self.forget_waiting_for(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        let pid = thread.pid;
        if let Some(process) = self.process(pid) {
            process.threads.remove(&tid);
        }
        if tid == pid {
            self.ended(pid, exit_of(status), now);
        }
    }

    fn ended(&mut self, pid: u32, exit: Exit, now: u64) {
        self.end_gap(pid, now);
        self.sum_up(pid, now);
        if pid == self.root {
            self.exit = Some(exit);
            self.root_gone = true;
        }
        let Some(process) = self.process(pid) else { return };
        let parent = process.parent;
        let (io, spent) = process.last.take().unwrap_or_default();
        self.tell(now, pid, pid, RawEventKind::Exit { exit, io, usage: spent });
        if let (Some(mut process), Some(io)) = (self.processes.remove(&pid), io)
            && let Some(parent) = parent.and_then(|parent| self.processes.get_mut(&parent))
        {
            parent.account.child_ended(pid, process.account.with_excess(io));
        }
    }

    /// Asks the walkers for the stream buffers of a process one of whose threads is stopped.
    pub(super) fn look(&mut self, pid: u32, tid: u32, moment: SnapshotMoment, now: u64) {
        if self.processes.get(&pid).is_some_and(|process| !process.hidden) {
            // At the end the main thread may be gone before the last one, and its memory is not to be seen by it then.
            let ends = matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal);
            let by = if ends { tid } else { pid };
            let buffers = self.hooks.snapshots.snapshot(by, moment);
            self.tell(now, pid, tid, RawEventKind::buffers(by, moment, buffers, String::new()));
        }
    }

    /// At vfork(2): the child has this very memory, and what waits in it is this one's, which may write it behind the
    /// child's output.
    fn look_at_lender(&mut self, pid: u32, tid: u32, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let early = thread.lent < FIRST_WRITES;
        thread.lent += u32::from(early);
        if self.processes.get(&pid).is_none_or(|process| process.hidden) {
            return;
        }
        // Its runtime may have been found by no look before; later on, who has none is not searched for it each time.
        let buffers = self
            .hooks
            .snapshots
            .snapshot(pid, if early { SnapshotMoment::Call } else { SnapshotMoment::Sample });
        if !buffers.is_empty() {
            self.tell(
                now,
                pid,
                tid,
                RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, String::new()),
            );
        }
    }

    /// At the entry of a call: what the program has put into its buffers, or taken from them, since the last one.
    pub(super) fn look_before(&mut self, pid: u32, tid: u32, number: i64, now: u64) {
        if self.processes.get(&pid).is_none_or(|process| process.hidden) {
            return;
        }
        let buffers = self.hooks.snapshots.snapshot(pid, SnapshotMoment::Call);
        let Some(process) = self.process(pid).filter(|process| process.told_buffers != buffers) else {
            return;
        };
        process.told_buffers.clone_from(&buffers);
        let waits_in = syscalls::name(number).unwrap_or_default().to_string();
        self.tell(now, pid, tid, RawEventKind::buffers(pid, SnapshotMoment::Call, buffers, waits_in));
    }
}

fn exit_of(status: i32) -> Exit {
    match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    }
}
