//! The traced processes and threads.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use weir_model::run::RescuedBytes;
use weir_sys::proc;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::ptrace::{self, PtraceStop};
use weir_walkers::set_search_time;

#[cfg(target_arch = "x86_64")]
use super::final_state::ResumedThread;
use super::fork_copies::WrittenCopy;
use super::results::UnlistedResults;
use super::tracee::{TracedProcess, TracedThread, TraceeState};
use crate::delay::ahead_table::AheadTable;

/// The most CPU time of one search of a process's memory: a long one delays that of all other processes.
const SEARCH_TIME: Duration = Duration::from_millis(100);

/// All traced processes and threads.
pub struct Tracees {
    /// The process of the command.
    pub(crate) root: u32,
    pub(crate) threads: HashMap<u32, TracedThread>,
    pub(crate) processes: HashMap<u32, TracedProcess>,
    /// First stops of threads whose parent's clone stop has not come, with the time of each in ns.
    pub(crate) early_stops: HashMap<u32, (PtraceStop, u64)>,
    pub(super) deferred_forks: Vec<super::deferred_fork::DeferredFork>,
    /// Stops that came during a wait for another thread.
    pub(crate) deferred_stops: VecDeque<PtraceStop>,
    pub(crate) written_ahead: AheadTable,
    pub(super) written_copies: Vec<WrittenCopy>,
    pub(crate) rescued: Vec<RescuedBytes>,
    pub(crate) limitations: BTreeSet<String>,
    pub(super) unlisted: UnlistedResults,
    /// The processes from which weir has detached because another program traces them, with their names.
    pub(super) detached_for_tracers: BTreeMap<u32, String>,
    /// As [`super::SuperviseOptions::save_in`].
    pub(crate) save_in: Option<PathBuf>,
    pub(crate) timer: WaitTimer,
    /// The command has ended, and no bytes of its descendants are written early any more.
    pub(crate) is_leaving: bool,
    /// The user wants weir to end: a rescue saves what its file does not take now.
    pub(crate) saves_at_once: bool,
}

impl Tracees {
    pub(crate) fn new(root: u32, save_in: Option<PathBuf>) -> std::io::Result<Tracees> {
        let tracees = Tracees {
            root,
            threads: HashMap::new(),
            processes: HashMap::new(),
            early_stops: HashMap::new(),
            deferred_forks: Vec::new(),
            deferred_stops: VecDeque::new(),
            written_ahead: AheadTable::default(),
            written_copies: Vec::new(),
            rescued: Vec::new(),
            limitations: BTreeSet::new(),
            unlisted: UnlistedResults::default(),
            detached_for_tracers: BTreeMap::new(),
            save_in,
            timer: WaitTimer::new()?,
            is_leaving: false,
            saves_at_once: false,
        };
        set_search_time(SEARCH_TIME);
        Ok(tracees)
    }

    /// Returns the processes that own their memory, from their first execve(2) on.
    pub fn pids(&self) -> Vec<u32> {
        let own = |(pid, process): &(&u32, &TracedProcess)| {
            process.memory_owner == **pid && !process.before_exec && !process.detaching
        };
        self.processes.iter().filter(own).map(|(pid, _)| *pid).collect()
    }

    /// Returns a thread of the process that has not reached its exit stop: the leader if possible.
    pub fn live_thread(&self, pid: u32) -> Option<u32> {
        let process = self.processes.get(&pid)?;
        let leader = process.threads.get(&pid).copied().filter(|tid| self.is_live(*tid));
        leader.or_else(|| self.live_threads(pid).next())
    }

    /// Returns the threads of the process that have not reached their exit stop.
    pub fn live_threads(&self, pid: u32) -> impl Iterator<Item = u32> {
        let threads =
            self.processes.get(&pid).into_iter().flat_map(|process| process.threads.iter().copied());
        threads.filter(|tid| self.is_live(*tid))
    }

    fn is_live(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| !thread.exiting)
    }

    /// Returns whether the process's threads stop at system calls, to skip bytes that were written ahead.
    pub(crate) fn stops_at_syscalls(&self, pid: u32) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| self.written_ahead.stops_at_syscalls(process.memory_owner))
    }

    pub(crate) fn thread_stops_at_syscalls(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| self.stops_at_syscalls(thread.pid))
    }

    /// Returns the process that owns the memory of a thread.
    pub(crate) fn memory_owner_of(&self, tid: u32) -> Option<u32> {
        Some(self.processes.get(&self.threads.get(&tid)?.pid)?.memory_owner)
    }

    /// Resumes a stopped thread. A thread that was killed meanwhile has left this stop for its exit stop. It is not resumed,
    /// because that would lose its pending bytes.
    pub(crate) fn resume(&mut self, tid: u32, signal: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let pid = thread.pid;
        let in_changed_call = thread.skipped_call.is_some() || thread.repeated_call.changes_args();
        let to_syscall = in_changed_call || self.stops_at_syscalls(pid) || self.may_trace(tid);
        #[cfg(target_arch = "x86_64")]
        let has_streams = self.processes.get(&pid).is_some_and(|process| !process.walkers.is_empty());
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        #[cfg(target_arch = "x86_64")]
        if !thread.exiting {
            // A kill can come between the check and the resume.
            thread.resumed = has_streams.then(|| ResumedThread::read(tid)).flatten();
        }
        if !ptrace::has_stop(tid) {
            thread.state = TraceeState::Running;
            thread.repeated_call.on_resume();
            ptrace::resume(tid, to_syscall, signal);
        }
    }

    /// Returns whether another process shares the memory of this one, as a child of vfork(2) does.
    pub(crate) fn shares_memory(&self, pid: u32) -> bool {
        self.processes.iter().any(|(other, process)| *other != pid && process.memory_owner == pid)
    }

    /// Returns whether a thread of the process is in a partly skipped call.
    pub(crate) fn in_skipped_call(&self, pid: u32) -> bool {
        self.threads.values().any(|thread| thread.pid == pid && thread.skipped_call.is_some())
    }

    /// Returns the number of writes that the process has made from its own view: with the skipped ones, and without
    /// those that it has made for weir.
    pub(crate) fn write_count(&self, pid: u32) -> Option<u64> {
        let process = self.processes.get(&pid)?;
        Some((proc::io(pid)?.write_calls + process.skipped_writes).wrapping_sub(process.foreign_writes))
    }

    /// Returns the system call of each live thread of a stopped process; None for a thread in user mode.
    pub(crate) fn thread_calls(&self, pid: u32) -> Vec<(u32, Option<SyscallRegisters>)> {
        self.live_threads(pid).map(|tid| (tid, registers::current_syscall(tid))).collect()
    }
}
