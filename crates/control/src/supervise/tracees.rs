//! The traced processes and threads, and the pending bytes of their streams.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_model::run::RescuedBytes;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::foreign_descriptors::forbidden;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop};
#[cfg(target_arch = "x86_64")]
use weir_walkers::SuspendedFlushes;
use weir_walkers::{
    DueSearch, PENDING_MOST, PendingBytes, Walker, WriteEpoch, set_search_time, take_search_cut,
};

#[cfg(target_arch = "x86_64")]
use super::final_state::ResumedThread;
use super::tracee::{TracedProcess, TracedThread, TraceeState};
use crate::delay::ahead_table::AheadTable;
use crate::foreign_file::{ForeignFile, ForeignFileError, TargetThread};

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
    pub(crate) rescued: Vec<RescuedBytes>,
    pub(crate) limitations: BTreeSet<String>,
    /// The processes from which weir has detached because another program traces them, with their names.
    pub(super) detached_for_tracers: BTreeMap<u32, String>,
    /// As [`super::SuperviseOptions::save_in`].
    pub(crate) save_in: Option<PathBuf>,
    pub(crate) timer: WaitTimer,
}

/// A buffered writer of CPython that has a text layer.
pub(crate) struct PythonText {
    pub writer: Buffer,
    /// The address of the text layer.
    pub text: u64,
    /// As [`Walker::bytes_before_counts`].
    pub before_counts: u64,
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
            rescued: Vec::new(),
            limitations: BTreeSet::new(),
            detached_for_tracers: BTreeMap::new(),
            save_in,
            timer: WaitTimer::new()?,
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

    /// Adds a sentence to the outcome's limitations, unless it is there.
    pub fn add_limitation(&mut self, sentence: String) {
        self.limitations.insert(sentence);
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

    /// Returns the pending bytes of a process's streams, read through its thread `tid`. Bytes that were written
    /// ahead are included.
    pub fn pending(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let mut pending = self.pending_and_contested(pid, tid);
        pending.retain(|one| one.rivals.is_empty());
        pending
    }

    /// As [`Tracees::pending`], with the streams whose copies contradict each other, see [`PendingBytes::rivals`]. A search that is
    /// due is made by another thread: meanwhile the tracees' stops are handled.
    pub(crate) fn pending_and_contested(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.update_walkers(tid);
        }
        self.pending_now(pid, tid, DueSearch::Beside)
    }

    fn pending_now(&mut self, pid: u32, tid: u32, due_search: DueSearch) -> Vec<PendingBytes> {
        self.note_writes(pid);
        let set_due_search =
            |all: &Self, how| all.walkers(pid).iter().for_each(|walker| walker.set_due_search(how));
        set_due_search(self, due_search);
        let pending = self.pending_with_rivals(pid, &ProcessMemory { pid: tid });
        set_due_search(self, DueSearch::default());
        pending
    }

    /// As [`Tracees::pending`] for a process whose threads are stopped: its memory is not searched for other streams, which would take
    /// some 0.1 s with a large heap. Its walkers are those of the last read while it ran: new ones would know no streams.
    pub(crate) fn pending_when_held(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let mut pending = self.pending_and_contested_when_held(pid, tid);
        pending.retain(|one| one.rivals.is_empty());
        pending
    }

    /// As [`Tracees::pending_when_held`], with the streams whose copies contradict each other.
    pub(crate) fn pending_and_contested_when_held(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        self.pending_now(pid, tid, DueSearch::Deferred)
    }

    /// Returns the walkers of a process; none if it is unknown.
    fn walkers(&self, pid: u32) -> &[Box<dyn Walker>] {
        self.processes.get(&pid).map_or(&[], |process| &process.walkers)
    }

    /// As [`Tracees::pending`] for a process in its exit stop, with a new search for walkers and streams, and with streams whose copies
    /// contradict each other. A forked process keeps
    /// the walkers of its parent.
    pub(crate) fn final_pending(&mut self, pid: u32, tid: u32) -> Vec<PendingBytes> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        if !(process.forked && process.has_final_walkers()) {
            process.search_walkers(tid);
        }
        self.search_again(pid);
        self.pending_with_rivals(pid, &ProcessMemory { pid: tid })
    }

    /// Returns the oldest begin of the walkers' last full searches; None if no walker has made one.
    pub(crate) fn last_search(&self, pid: u32) -> Option<Instant> {
        self.walkers(pid).iter().filter_map(|walker| walker.last_search()).min()
    }

    /// Makes the next snapshot of a process search all memory.
    pub(crate) fn search_again(&self, pid: u32) {
        self.walkers(pid).iter().for_each(|walker| walker.search_again());
    }

    /// Makes the next snapshot of a process find the streams that were made since the last search.
    pub(crate) fn search_for_new(&self, pid: u32) {
        self.walkers(pid).iter().for_each(|walker| walker.search_for_new());
    }

    /// Returns the pending bytes of a process's streams in `memory`, by the walkers that the last search has found. Notes as a
    /// limitation that streams are left out or may be found late.
    pub(crate) fn pending_in_memory(&mut self, pid: u32, memory: &dyn Memory) -> Vec<PendingBytes> {
        let mut pending = self.pending_with_rivals(pid, memory);
        pending.retain(|one| one.rivals.is_empty());
        pending
    }

    /// As [`Tracees::pending_in_memory`], with the streams whose copies contradict each other, see [`PendingBytes::rivals`].
    fn pending_with_rivals(&mut self, pid: u32, memory: &dyn Memory) -> Vec<PendingBytes> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        let pending = weir_walkers::pending_with_rivals(&process.walkers, memory, PENDING_MOST);
        process.partly_read = pending.is_partial;
        if pending.is_partial {
            self.add_limitation(format!(
                "{}: more than {} MiB are pending in its streams: weir leaves out streams that do not fit",
                proc::label(pid),
                PENDING_MOST >> 20
            ));
        }
        if take_search_cut() {
            let text =
                "its memory is too large to search at once: weir may find some streams late or not at all";
            self.add_limitation(format!("{}: {text}", proc::label(pid)));
        }
        // Without the address of the bytes no write shows whether the program still has them.
        pending.streams.into_iter().filter(|one| !one.found_by_search || one.data_address.is_some()).collect()
    }

    /// Returns the flushes that the runtime's own threads (goroutines) of a dead process have not ended, after
    /// [`Tracees::final_pending`].
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn suspended_flushes(&self, pid: u32, tid: u32) -> SuspendedFlushes {
        let Some(process) = self.processes.get(&pid) else { return SuspendedFlushes::default() };
        let memory = ProcessMemory { pid: tid };
        let mut walkers = process.walkers.iter();
        let found = walkers.find_map(|one| one.suspended_flushes(&memory, &process.final_registers));
        found.unwrap_or_default()
    }

    /// Tells the walkers of a process which writes it has made.
    fn note_writes(&self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else { return };
        let Some(writes) = self.write_count(pid) else { return };
        let counted = self.written_ahead.counted_writes(pid);
        let epoch = WriteEpoch {
            none_yet: writes == 0 && !process.forked,
            all: (counted.map_or(0, |counted| counted.0), writes),
            by_file: counted.map(|counted| counted.1.clone()),
        };
        process.walkers.iter().for_each(|walker| walker.note_writes(&epoch));
    }

    /// Returns the addresses of the streams in which a walker finds no pending bytes.
    pub(crate) fn empty_streams(&self, pid: u32, tid: u32) -> Vec<u64> {
        let buffers = self.walkers(pid).iter().flat_map(|walker| walker.buffers(&ProcessMemory { pid: tid }));
        buffers.filter(|buffer| buffer.pending_bytes == 0).map(|buffer| buffer.address).collect()
    }

    /// Returns CPython's buffered writers that have a text layer.
    pub(crate) fn python_text_streams(&self, pid: u32, tid: u32) -> Vec<PythonText> {
        let memory = ProcessMemory { pid: tid };
        let text_streams = |walker: &dyn Walker| {
            let buffers = walker.buffers(&memory);
            let with_writer = |(text, writer): (u64, u64)| {
                let writer = buffers.iter().find(|buffer| buffer.address == writer)?.clone();
                Some(PythonText { writer, text, before_counts: walker.bytes_before_counts() })
            };
            walker.text_layers(&memory).into_iter().filter_map(with_writer).collect::<Vec<_>>()
        };
        let cpython = self.walkers(pid).iter().filter(|walker| walker.runtime() == RuntimeId::CPYTHON);
        cpython.flat_map(|walker| text_streams(walker.as_ref())).collect()
    }

    /// Returns the address and descriptor of each stream that a thread uses at the moment, as `memory` shows. Returns none for a
    /// process with one thread: only one killed thread is replayed, and with several threads others can be inside of streams.
    pub(crate) fn streams_in_use(&self, pid: u32, memory: &dyn Memory) -> Vec<(u64, i32)> {
        let process = self.processes.get(&pid).filter(|process| process.final_stacks.len() > 1);
        let walkers = process.into_iter().flat_map(|process| &process.walkers);
        let of_walker = |walker: &dyn Walker| {
            let in_use = walker.streams_in_use(memory);
            let buffers = if in_use.is_empty() { Vec::new() } else { walker.buffers(memory) };
            let mine = buffers.into_iter().filter(move |buffer| in_use.contains(&buffer.address));
            mine.map(|buffer| (buffer.address, buffer.fd)).collect::<Vec<_>>()
        };
        walkers.flat_map(|walker| of_walker(walker.as_ref())).collect()
    }

    /// Returns the code range of the interpreter's loop and the addresses of all text layers and their writers. A thread that
    /// reaches the loop has left these streams consistent.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))] // only replays ask
    pub(crate) fn interpreter_code(&self, pid: u32, tid: u32) -> Option<(std::ops::Range<u64>, Vec<u64>)> {
        let walkers = &self.processes.get(&pid)?.walkers;
        let walker = walkers.iter().find(|walker| !walker.interpreter_code().is_empty())?;
        let texts = walker.text_layers(&ProcessMemory { pid: tid });
        Some((
            walker.interpreter_code(),
            texts.into_iter().flat_map(|(text, writer)| [text, writer]).collect(),
        ))
    }

    /// Tells whether the process's threads stop at system calls, to skip bytes that were written ahead.
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
        let (pid, in_skipped_call) = (thread.pid, thread.skipped_call.is_some());
        let to_syscall = in_skipped_call || self.stops_at_syscalls(pid) || self.may_trace(tid);
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
            ptrace::resume(tid, to_syscall, signal);
        }
    }

    /// Tells whether a thread of the process is in a partly skipped call.
    pub(crate) fn in_skipped_call(&self, pid: u32) -> bool {
        self.threads.values().any(|thread| thread.pid == pid && thread.skipped_call.is_some())
    }

    /// Returns the number of writes that the process has made from its own view: with the skipped ones, and without
    /// those that it has made for weir.
    pub(crate) fn write_count(&self, pid: u32) -> Option<u64> {
        let process = self.processes.get(&pid)?;
        Some((proc::io(pid)?.write_calls + process.skipped_writes).wrapping_sub(process.foreign_writes))
    }

    /// Returns the threads of a process that [`Tracees::hold`] has stopped and that can make system calls for weir.
    fn threads_for_calls(&self, pid: u32) -> Vec<u32> {
        let process = self.processes.get(&pid);
        let can = |tid: &&u32| {
            let is_queued = self.deferred_stops.iter().any(|stop| stop.tid == **tid);
            let thread = self.threads.get(tid).filter(|thread| thread.stop_requested && !thread.exiting);
            thread.is_some_and(|thread| thread.state == TraceeState::Stopped) && !is_queued
        };
        process.into_iter().flat_map(|process| process.threads.iter().filter(can)).copied().collect()
    }

    /// Opens the file behind a descriptor of a thread of a stopped process, for a write ahead of the program. Notes a refusal
    /// as a limitation. Returns None then, if there is no such file, or if the program could notice the write.
    pub(crate) fn open_ahead(
        &mut self,
        pid: u32,
        thread: &TargetThread,
        stream: &PendingBytes,
    ) -> Option<ForeignFile> {
        let fd = stream.fd;
        let file = ForeignFile::open(thread, fd, &self.threads_for_calls(pid));
        let why = match &file {
            Err(ForeignFileError::Refused(why)) => Some(why.clone()),
            // The descriptor itself may be closed meanwhile.
            Err(error @ ForeignFileError::Open(_)) if forbidden().is_some() => Some(error.to_string()),
            _ => None,
        };
        if let Some(why) = why {
            let path = proc::descriptor(thread.tid, fd).unwrap_or_default();
            self.add_limitation(format!(
                "{}: its bytes for {path} are not written early: {why}",
                proc::label(pid)
            ));
        }
        // The streams that a search finds are those of types that only write.
        file.ok().filter(|file| file.allows_writing_ahead(stream.found_by_search))
    }

    /// Writes as many bytes as a file takes now. Returns their number. An error is ignored: the program's own write meets
    /// it again.
    pub(crate) fn write_ahead(&mut self, pid: u32, file: &ForeignFile, bytes: &[u8]) -> usize {
        let outcome = file.write_available(bytes);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.foreign_writes += outcome.own_calls;
        }
        // A job control stop or the thread's death, during its own write.
        let is_requested = |stop: &PtraceStop| stop.status >> 8 == libc::SIGTRAP | EVENT_STOP << 8;
        self.deferred_stops.extend(outcome.stop.filter(|stop| !is_requested(stop)));
        self.written_ahead.total_bytes += outcome.written as u64;
        outcome.written
    }

    /// Returns the system call of each live thread of a stopped process; None for a thread in user mode.
    pub(crate) fn thread_calls(&self, pid: u32) -> Vec<(u32, Option<SyscallRegisters>)> {
        self.live_threads(pid).map(|tid| (tid, registers::current_syscall(tid))).collect()
    }
}
