//! The lifecycle of tracees: clone, exec and exit stops.

use std::path::Path;

use weir_model::trace::{Exit, SnapshotMoment};
use weir_sys::clock::now_ns;
use weir_sys::ptrace::last_write::LastWrite;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::{executable, proc, ptrace, syscalls};
use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_trace_api::{RawEventKind, remove_unknown, remove_written};
use weir_walkers::begins_with_streams;

use super::stops::FIRST_WRITES;
use super::tracer::{PtracedProcess, Tracer};
use crate::overhead_budget::ProcessBudget;

impl Tracer<'_, '_> {
    /// Handles the stop of a parent at fork(2), vfork(2) or clone(2). The child has not run yet.
    pub(super) fn on_clone(&mut self, tid: u32, event: i32, now: u64) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        // A child of a killed parent becomes known by its own first stop.
        let child = ptrace::new_tid(tid).filter(|child| !self.threads.contains_key(child));
        if let Some(child) = child {
            let is_thread = event == libc::PTRACE_EVENT_CLONE
                && proc::status(child).is_none_or(|status| status.tgid as u32 == pid);
            if is_thread {
                self.add_thread(pid, child);
            } else {
                let shares_memory = event == libc::PTRACE_EVENT_VFORK;
                if shares_memory {
                    self.snapshot_at_vfork(pid, tid, now);
                }
                self.add_child(pid, tid, child, !shares_memory, now);
            }
            self.handle_early_stop(child);
        }
        self.resume(tid, 0, now);
    }

    /// Adds a child process. If it has its own copy of the memory, takes a buffer snapshot of the parent first.
    fn add_child(&mut self, pid: u32, tid: u32, child: u32, copies_memory: bool, now: u64) {
        if copies_memory {
            self.snapshot(pid, tid, SnapshotMoment::Fork, now);
        }
        let mut process = PtracedProcess::new(Some(pid), now);
        let parent = self.processes.get(&pid);
        process.foreign = parent.is_some_and(|parent| parent.foreign);
        process.hidden = parent.is_some_and(|parent| parent.hidden);
        if process.foreign {
            process.gap = Some(now);
        }
        self.processes.insert(child, process);
        self.add_thread(child, child);
        self.emit(
            now,
            pid,
            tid,
            RawEventKind::Fork { child, shares_files: ptrace::share_fd_table(tid, child) },
        );
    }

    /// Handles the first stop of a child if it came before the stop of its parent.
    fn handle_early_stop(&mut self, child: u32) {
        if let Some((stop, _)) = self.early.remove(&child) {
            self.on_stop(stop);
        }
    }

    /// Adds a child whose parent died before its clone stop.
    pub(super) fn add_orphan(&mut self, child: u32) {
        let now = now_ns();
        let status = proc::status(child);
        let pid = status.as_ref().map_or(child, |status| status.tgid as u32);
        let parent = status.map_or(0, |status| status.ppid as u32);
        if self.processes.contains_key(&pid) {
            self.add_thread(pid, child);
        } else if self.processes.contains_key(&parent) {
            self.add_child(parent, parent, pid, false, now);
        } else {
            self.processes.insert(pid, PtracedProcess::new(None, now));
            self.add_thread(pid, child);
            self.emit(now, pid, child, RawEventKind::Begin);
            self.emit(now, pid, child, RawEventKind::Totals(Default::default()));
        }
        self.handle_early_stop(child);
    }

    /// Takes a buffer snapshot at the entry of execve(2), which discards pending bytes if it succeeds.
    pub(super) fn before_exec(&mut self, tid: u32, pid: u32, now: u64) {
        self.snapshot(pid, tid, SnapshotMoment::Exec, now);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.before_exec = proc::io(pid);
        }
    }

    /// Handles an exec stop: the process has a new image. The kernel has ended the other threads, and the calling thread has
    /// taken over the thread ID of the main thread.
    pub(super) fn on_exec(&mut self, tid: u32, now: u64) {
        let former = ptrace::event_message(tid).map_or(tid, |former| former as u32);
        let mut thread = self.threads.remove(&former).unwrap_or_default();
        let Some(process) = self.processes.get_mut(&tid) else { return ptrace::resume(tid, false, 0) };
        for gone in process.threads.drain() {
            self.threads.remove(&gone);
        }
        process.threads.insert(tid);
        (thread.pid, thread.ending, thread.interrupted, thread.fragile_calls) = (tid, None, false, 0);
        (thread.first_writes, thread.vforks) = (0, 0);
        process.foreign = false;
        process.threaded = false;
        process.budget = ProcessBudget::new(now);
        let first = std::mem::take(&mut process.hidden);
        if first {
            process.account.begin(tid);
            process.began_ns = now;
        } else if let Some(before) = thread.before_exec.take() {
            process.account.exclude_exec(tid, before);
        }
        self.threads.insert(tid, thread);
        if let Some(process) = self.process(tid) {
            process.emitted_buffers.clear();
            process.last_writes.clear();
        }
        self.end_gap(tid, now);
        self.emit_image(tid, first && tid == self.root, now);
        let exe = format!("/proc/{tid}/exe");
        let entry = begins_with_streams(Path::new(&exe)).then(|| BreakpointTraps::at_entry(tid)).flatten();
        if let Some(process) = self.process(tid) {
            process.entry = entry;
        }
        // The work at the start of an image comes once, so it is not charged to the calls.
        self.resume(tid, 0, now_ns());
    }

    /// Handles a signal if it is that of the entry point's breakpoint, and returns whether it is. The C library is loaded
    /// and has not written yet.
    pub(super) fn on_entry_breakpoint(&mut self, tid: u32, pid: u32) -> bool {
        let Some(process) = self.process(pid) else { return false };
        let fd = || ptrace::signal_fd(tid);
        if process.entry.as_ref().and_then(|traps| traps.kind_of(fd()?)).is_none() {
            return false;
        }
        process.entry = None;
        let _nothing = self.hooks.snapshots.snapshot(pid, SnapshotMoment::Sample);
        true
    }

    /// Emits the events of a new image. `is_command`: the gated child has become the command.
    fn emit_image(&mut self, pid: u32, is_command: bool, now: u64) {
        if is_command {
            self.gated = None;
            self.emit(now, pid, pid, RawEventKind::Begin);
            self.emit(now, pid, pid, RawEventKind::Totals(Default::default()));
        }
        let (exe, comm, argv) = proc::names(pid);
        let label = format!("process {pid} ({comm})");
        if executable::loses_privilege(pid) {
            let reason =
                "is set-user-ID: it runs without that privilege while weir, which has none, watches it";
            self.remarks.insert(format!("{label} {reason}"));
        }
        self.emit(now, pid, pid, RawEventKind::Exec { exe, comm, argv });
        if executable::is_foreign(pid) {
            self.make_foreign(pid, &label);
            self.begin_gap(pid, now);
        }
    }

    /// Handles an exit stop. Memory and descriptors of the process still exist.
    pub(super) fn on_exit(&mut self, tid: u32, now: u64) {
        let status = ptrace::event_message(tid).unwrap_or(0) as i32;
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.ending = Some(status);
        let pid = thread.pid;
        if let Some(process) = self.process(pid) {
            process.last_writes.extend(LastWrite::all_of_thread(tid));
        }
        self.finish_interrupted_write(tid, now);
        self.take_exit_stop(pid, tid, status, now);
    }

    /// Emits the write in which a kill has ended a thread, which has no stop at the call's exit. In the exit stop its registers have
    /// the call's result.
    fn finish_interrupted_write(&mut self, tid: u32, now: u64) {
        let inside = self.threads.get(&tid).and_then(|thread| thread.inside.as_ref());
        if !inside.is_some_and(|call| call.op.writes()) {
            return;
        }
        let has_begun = |call: &SyscallRegisters| call.result != -i64::from(libc::ENOSYS);
        if let Some(call) = registers::current_syscall(tid).filter(has_begun) {
            self.on_syscall_exit(tid, call.result, now);
        }
    }

    /// Emits the end of the recorded calls and takes the last buffer snapshot of a process.
    pub(super) fn snapshot_at_end(&mut self, pid: u32, tid: u32, status: i32, now: u64) {
        let moment = if libc::WIFSIGNALED(status) {
            self.emit(now, pid, tid, RawEventKind::Signal { number: libc::WTERMSIG(status) });
            SnapshotMoment::Signal
        } else {
            SnapshotMoment::Exit
        };
        // The gap ends first, so that the recorder knows the descriptors at the snapshot.
        self.end_gap(pid, now);
        self.emit_uncounted(pid, now);
        self.snapshot(pid, tid, moment, now);
        let usage = proc::resource_usage(pid);
        if let Some(process) = self.process(pid) {
            process.final_counters = Some((process.account.read(pid), usage));
        }
    }

    /// Removes a thread that has ended; with the main thread, the process.
    pub(super) fn on_thread_end(&mut self, tid: u32, status: i32, now: u64) {
        self.early.remove(&tid);
        self.resume_waiting_tracer(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        let pid = thread.pid;
        if let Some(process) = self.process(pid) {
            process.threads.remove(&tid);
        }
        self.retry_held_exits();
        if tid == pid {
            self.on_process_end(pid, exit_of(status), now);
        }
    }

    /// Emits the end of a process and removes it.
    fn on_process_end(&mut self, pid: u32, exit: Exit, now: u64) {
        self.end_gap(pid, now);
        self.add_times(pid, now);
        if pid == self.root {
            self.exit = Some(exit);
            self.root_gone = true;
        }
        let Some(process) = self.process(pid) else { return };
        let parent = process.parent;
        let (io, usage) = process.final_counters.take().unwrap_or_default();
        self.emit(now, pid, pid, RawEventKind::Exit { exit, io, usage });
        if let (Some(mut process), Some(io)) = (self.processes.remove(&pid), io)
            && let Some(parent) = parent.and_then(|parent| self.processes.get_mut(&parent))
        {
            parent.account.add_zombie(pid, process.account.with_excess(io));
        }
    }

    /// Takes and emits a buffer snapshot of a process. Its thread `tid` is stopped.
    pub(super) fn snapshot(&mut self, pid: u32, tid: u32, moment: SnapshotMoment, now: u64) {
        if self.processes.get(&pid).is_some_and(|process| !process.hidden) {
            // The main thread may have ended before the last one; then the memory is readable only through the last.
            let ends = matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal);
            let reader = if ends { tid } else { pid };
            let mut buffers = self.hooks.snapshots.snapshot(reader, moment);
            if ends {
                let flushing = self.hooks.snapshots.flushing();
                let last_writes = self.processes.get(&pid).map_or(&[][..], |process| &process.last_writes);
                let is_unknown = remove_unknown(tid, &flushing, last_writes, &mut buffers);
                remove_written(tid, last_writes, &mut buffers);
                if is_unknown {
                    self.emit(now, pid, tid, RawEventKind::Unstopped);
                }
            }
            self.emit(now, pid, tid, RawEventKind::buffers(reader, moment, buffers, String::new()));
        }
    }

    /// Takes a buffer snapshot at vfork(2). The child shares the memory, and the parent may write its pending bytes after
    /// the child's output.
    fn snapshot_at_vfork(&mut self, pid: u32, tid: u32, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let searches = thread.vforks < FIRST_WRITES;
        thread.vforks += u32::from(searches);
        if self.processes.get(&pid).is_none_or(|process| process.hidden) {
            return;
        }
        // The first snapshots search for the runtime; later ones do not, because a process without one would be searched
        // each time.
        let buffers = self
            .hooks
            .snapshots
            .snapshot(pid, if searches { SnapshotMoment::Call } else { SnapshotMoment::Sample });
        if !buffers.is_empty() {
            self.emit(
                now,
                pid,
                tid,
                RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, String::new()),
            );
        }
    }

    /// Takes a buffer snapshot at the entry of a call, and emits it if the buffers have changed.
    pub(super) fn snapshot_before_call(&mut self, pid: u32, tid: u32, number: i64, now: u64) {
        if self.processes.get(&pid).is_none_or(|process| process.hidden) {
            return;
        }
        let buffers = self.hooks.snapshots.snapshot(pid, SnapshotMoment::Call);
        let Some(process) = self.process(pid).filter(|process| process.emitted_buffers != buffers) else {
            return;
        };
        process.emitted_buffers.clone_from(&buffers);
        let blocked_in = syscalls::name(number).unwrap_or_default().to_string();
        self.emit(now, pid, tid, RawEventKind::buffers(pid, SnapshotMoment::Call, buffers, blocked_in));
    }
}

/// Converts a wait status of a process that has ended.
fn exit_of(status: i32) -> Exit {
    match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    }
}
