//! Who is followed: processes and threads, what waits in their streams, and stopping them for a moment.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::clock::now_ns;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc;
use weir_sys::ptrace::registers::{self, SyscallRegisters};
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop};
use weir_walkers::{Pending, Walker, walkers};

use super::RescuedBytes;
use crate::delay::ahead_table::AheadTable;
use crate::delay::skip::SkippedCall;
use crate::rescue::last_write::LastWrite;
use crate::supervise::interruptible::{may_stop, mend_call};

/// How long a stop of a thread may be waited for.
const HOLD_NS: u64 = 30_000_000;

/// How long after its beginning an image's walkers are found anew: libraries are loaded, interpreters set up.
const SETTLED_MS: [u64; 11] = [5, 15, 30, 60, 100, 200, 400, 700, 1000, 2000, 5000];

/// An image older than this has been through its loader, if a fork or an end is seen of it.
const LOADED_NS: u64 = 2_000_000;

/// Whether a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ThreadState {
    #[default]
    Runs,
    /// At a stop that is being handled, or is still to be.
    Stopped,
    /// By job control.
    Listens,
}

/// A thread that is traced.
#[derive(Debug, Default)]
pub(crate) struct TracedThread {
    pub pid: u32,
    pub state: ThreadState,
    /// It was asked to stop, and has not yet.
    pub asked: bool,
    /// It has begun to end.
    pub ending: bool,
    /// It is inside a call of which a part was skipped.
    pub inside: Option<SkippedCall>,
}

/// A process that is traced.
pub(crate) struct TracedProcess {
    pub threads: BTreeSet<u32>,
    /// The process whose memory it is: its own, but for vfork(2) and its kin.
    pub owner: u32,
    /// It has not become the command yet.
    pub hidden: bool,
    /// It runs what its parent ran.
    forked: bool,
    /// What waited in its parent's streams when it was forked.
    inherited: Vec<(u64, Vec<u8>)>,
    /// The parent waits for its exec or end: a child of vfork(2).
    pub vforked_by: Option<u32>,
    pub began_ns: u64,
    /// How many of its writes were skipped, at least in part.
    pub skips: u64,
    walkers: Vec<Box<dyn Walker>>,
    found: usize,
    /// How old the image was then.
    found_at_ns: u64,
    /// What its threads that were ended had written last.
    pub lasts: Vec<LastWrite>,
    /// And their stack pointers, each with the registers that a call leaves as they are.
    pub stacks: Vec<(u64, [u64; 6])>,
    /// They themselves, as they were killed.
    #[cfg(target_arch = "x86_64")]
    pub torn: Vec<crate::rescue::replay::KilledThread>,
}

impl TracedProcess {
    pub fn new(owner: u32) -> TracedProcess {
        TracedProcess {
            threads: BTreeSet::new(),
            owner,
            hidden: false,
            forked: false,
            inherited: Vec::new(),
            vforked_by: None,
            began_ns: now_ns(),
            skips: 0,
            walkers: Vec::new(),
            found: 0,
            found_at_ns: 0,
            lasts: Vec::new(),
            stacks: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            torn: Vec::new(),
        }
    }

    /// A new image is in it.
    pub fn renew(&mut self) {
        (self.walkers, self.found, self.began_ns) = (Vec::new(), 0, now_ns());
        self.forked = false;
        self.inherited.clear();
        self.lasts.clear();
        self.stacks.clear();
    }

    /// What was found in it is what there is: its loader was done by then, as far as can be told.
    fn is_settled(&self) -> bool {
        !self.walkers.is_empty() && self.found_at_ns >= LOADED_NS
    }

    /// Finds its walkers by one of its threads, or by a child that has the same image.
    fn find_walkers(&mut self, tid: u32) {
        self.found_at_ns = now_ns().saturating_sub(self.began_ns);
        self.found = self.stage();
        self.walkers = walkers(tid);
    }

    fn stage(&self) -> usize {
        let age_ms = now_ns().saturating_sub(self.began_ns) / 1_000_000;
        1 + SETTLED_MS.iter().filter(|settled| age_ms >= **settled).count()
    }
}

/// All that is followed.
pub struct Tracees {
    pub(crate) root: u32,
    pub(crate) threads: HashMap<u32, TracedThread>,
    pub(crate) processes: HashMap<u32, TracedProcess>,
    /// Stopped before it was known whose they are, and since when.
    pub(crate) early: HashMap<u32, (PtraceStop, u64)>,
    /// Stops that came while something else was waited for.
    pub(crate) deferred: VecDeque<PtraceStop>,
    pub(crate) written: AheadTable,
    pub(crate) rescued: Vec<RescuedBytes>,
    pub(crate) unable: BTreeSet<String>,
    pub(crate) save_in: Option<PathBuf>,
    pub(crate) timer: WaitTimer,
}

impl Tracees {
    pub(crate) fn new(root: u32, save_in: Option<PathBuf>) -> std::io::Result<Tracees> {
        Ok(Tracees {
            root,
            threads: HashMap::new(),
            processes: HashMap::new(),
            early: HashMap::new(),
            deferred: VecDeque::new(),
            written: AheadTable::default(),
            rescued: Vec::new(),
            unable: BTreeSet::new(),
            save_in,
            timer: WaitTimer::new()?,
        })
    }

    /// The processes that have a memory of their own, from their first exec on.
    pub fn pids(&self) -> Vec<u32> {
        let own = |(pid, process): &(&u32, &TracedProcess)| process.owner == **pid && !process.hidden;
        self.processes.iter().filter(own).map(|(pid, _)| *pid).collect()
    }

    /// Says once, at the end, that something could not be done.
    pub fn say(&mut self, sentence: String) {
        self.unable.insert(sentence);
    }

    /// A thread of the process that has not begun to end: its leader, where that lives.
    pub fn task(&self, pid: u32) -> Option<u32> {
        let lives = |tid: &&u32| self.threads.get(tid).is_some_and(|thread| !thread.ending);
        let process = self.processes.get(&pid)?;
        process.threads.get(&pid).filter(lives).or_else(|| process.threads.iter().find(lives)).copied()
    }

    /// All that waits in the streams of a process, seen through one of its threads. What was written ahead of it
    /// is among it.
    pub fn pending(&mut self, pid: u32, tid: u32) -> Vec<Pending> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        // A loader that gets no processor may take long.
        let none_yet = process.walkers.is_empty() && process.found <= SETTLED_MS.len();
        if process.stage() > process.found || none_yet {
            process.find_walkers(tid);
        }
        let memory = ProcessMemory { pid: tid };
        let all = process.walkers.iter().flat_map(|walker| walker.pending(&memory));
        all.filter(Pending::is_listed).collect()
    }

    /// The same for one that is about to end, whose walkers are found anew if they may have been found too early.
    pub(crate) fn last_pending(&mut self, pid: u32, tid: u32) -> Vec<Pending> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        if !(process.forked && process.is_settled()) {
            process.find_walkers(tid);
        }
        process.walkers.iter().for_each(|walker| walker.search_again());
        let memory = ProcessMemory { pid: tid };
        let all = process.walkers.iter().flat_map(|walker| walker.pending(&memory));
        all.filter(Pending::is_listed).collect()
    }

    /// Every stream of CPython in a process that has a text layer, by the walkers that are known of it, and where
    /// the text layers are.
    pub(crate) fn python_texts(&self, pid: u32, tid: u32) -> Vec<(Buffer, u64)> {
        let memory = ProcessMemory { pid: tid };
        let walkers = self.processes.get(&pid).into_iter().flat_map(|process| &process.walkers);
        let texts = |one: &dyn Walker| {
            let buffers = one.buffers(&memory);
            let below = |(text, below): (u64, u64)| {
                Some((buffers.iter().find(|buffer| buffer.address == below)?.clone(), text))
            };
            one.texts(&memory).into_iter().filter_map(below).collect::<Vec<_>>()
        };
        walkers.filter(|one| one.walker() == RuntimeId::Cpython).flat_map(|one| texts(one.as_ref())).collect()
    }

    /// Where an interpreter is that a thread comes back to when it has done with a stream; the streams' addresses.
    pub(crate) fn outside(&self, pid: u32, tid: u32) -> Option<(std::ops::Range<u64>, Vec<u64>)> {
        let walkers = &self.processes.get(&pid)?.walkers;
        let walker = walkers.iter().find(|one| !one.outside().is_empty())?;
        let texts = walker.texts(&ProcessMemory { pid: tid });
        Some((walker.outside(), texts.into_iter().flat_map(|(text, below)| [text, below]).collect()))
    }

    /// What waits in the streams of a process as this memory has them.
    pub(crate) fn pending_in(&self, pid: u32, memory: &dyn Memory) -> Vec<Pending> {
        let walkers = self.processes.get(&pid).into_iter().flat_map(|process| &process.walkers);
        walkers.flat_map(|walker| walker.pending(memory)).filter(Pending::is_listed).collect()
    }

    /// The child of a fork has streams where its parent has. Those of a parent that forks early may not be known.
    pub(crate) fn inherit(&mut self, parent: u32, child: u32) {
        if let Some(parent) = self.processes.get_mut(&parent).filter(|parent| !parent.is_settled()) {
            parent.find_walkers(child);
        }
        let Some(parent) = self.processes.get(&parent) else { return };
        let cloned: Option<Vec<_>> = parent.walkers.iter().map(|one| one.for_child(child)).collect();
        let (found, found_at, began) = (parent.found, parent.found_at_ns, parent.began_ns);
        if let (Some(walkers), Some(process)) = (cloned, self.processes.get_mut(&child)) {
            (process.walkers, process.found, process.found_at_ns) = (walkers, found, found_at);
            (process.began_ns, process.forked) = (began, true);
        }
        let pending = self.pending(child, child);
        if let Some(process) = self.processes.get_mut(&child) {
            process.inherited = pending.into_iter().map(|one| (one.stream, one.bytes)).collect();
        }
    }

    /// How many of the bytes that wait in a stream were its parent's: it may end without writing them.
    pub(crate) fn inherited(&self, pid: u32, pending: &Pending) -> usize {
        let all = self.processes.get(&pid).map(|process| process.inherited.as_slice()).unwrap_or_default();
        let of_parent = all.iter().find(|(stream, _)| *stream == pending.stream);
        of_parent.filter(|(_, bytes)| pending.bytes.starts_with(bytes)).map_or(0, |(_, bytes)| bytes.len())
    }

    /// How many of the first bytes for a stream, or a descriptor whose streams are empty, need not be written: they
    /// were written ahead, or are a parent's.
    pub(crate) fn written_before(&self, pid: u32, stream: u64, fd: i32, bytes: &[u8]) -> usize {
        let own = |known: u64, its: i32| known == stream || stream == 0 && its == fd;
        let ahead = self.written.of_memory(pid).filter(|one| own(one.stream, one.fd)).map(|one| &one.bytes);
        let inherited =
            self.processes.get(&pid).map(|process| process.inherited.as_slice()).unwrap_or_default();
        let of_parent = inherited.iter().filter(|one| one.0 == stream).map(|one| &one.1);
        ahead.chain(of_parent).filter(|one| bytes.starts_with(one)).map(Vec::len).max().unwrap_or(0)
    }

    /// Whether the system calls of a process's threads are watched.
    pub(crate) fn is_watched(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_some_and(|process| self.written.any(process.owner))
    }

    pub(crate) fn is_watched_thread(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| self.is_watched(thread.pid))
    }

    /// The process whose memory a thread runs in.
    pub(crate) fn owner_of(&self, tid: u32) -> Option<u32> {
        Some(self.processes.get(&self.threads.get(&tid)?.pid)?.owner)
    }

    /// Lets a stopped thread run on. One that was killed meanwhile has left that stop, and stands in its last one or
    /// will soon: it would be let go out of that, and all that it held would be lost.
    pub(crate) fn go_on(&mut self, tid: u32, signal: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if ptrace::has_stop(tid) {
            return;
        }
        thread.state = ThreadState::Runs;
        let (pid, inside) = (thread.pid, thread.inside.is_some());
        ptrace::resume(tid, inside || self.is_watched(pid), signal);
    }

    /// Stops all threads of a process where that goes unnoticed by it. True: every one of them stands now, at a
    /// stop that was asked for or on its own; [`World::release`] lets them go on.
    pub(crate) fn hold(&mut self, pid: u32) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        let waited_for = self.processes.values().any(|other| other.vforked_by == Some(pid));
        let tids: Vec<u32> = process.threads.iter().copied().collect();
        let unfit = |tid: &u32| !self.can_hold(pid, *tid);
        if waited_for || self.early.values().any(|early| early.0.tid == pid) || tids.iter().any(unfit) {
            return false;
        }
        let deadline = now_ns() + HOLD_NS;
        tids.iter().for_each(|tid| self.ask(*tid));
        tids.into_iter().all(|tid| self.await_stop(tid, deadline))
    }

    fn can_hold(&self, pid: u32, tid: u32) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        match thread.state {
            _ if thread.ending => true,
            ThreadState::Stopped => true,
            ThreadState::Listens => false,
            ThreadState::Runs => may_stop(pid, tid),
        }
    }

    fn ask(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.state == ThreadState::Runs && !thread.ending && !thread.asked {
            thread.asked = ptrace::interrupt(tid).is_ok();
        }
    }

    fn await_stop(&mut self, tid: u32, deadline: u64) -> bool {
        self.timer.set(deadline);
        loop {
            let Some(thread) = self.threads.get(&tid) else { return false };
            if thread.state != ThreadState::Runs || thread.ending {
                return true;
            }
            match ptrace::wait_for(tid) {
                Ok(Some(stop)) => return self.came(stop),
                Ok(None) if now_ns() < deadline => {}
                _ => return false,
            }
        }
    }

    /// A thread that was waited for has stopped, for this or for another reason, which is handled later.
    fn came(&mut self, stop: PtraceStop) -> bool {
        if libc::WIFSTOPPED(stop.status) {
            if let Some(thread) = self.threads.get_mut(&stop.tid) {
                thread.state = ThreadState::Stopped;
            }
            let ours = libc::WSTOPSIG(stop.status) == libc::SIGTRAP && stop.status >> 16 == EVENT_STOP;
            if !ours {
                self.deferred.push_back(stop);
            }
            return true;
        }
        self.deferred.push_back(stop);
        false
    }

    /// Lets the threads go on that were held, but for those that have a stop of their own.
    pub(crate) fn release(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else { return };
        let tids: Vec<u32> = process.threads.iter().copied().collect();
        for tid in tids {
            let own = self.deferred.iter().any(|stop| stop.tid == tid);
            let held = self.threads.get_mut(&tid).filter(|thread| thread.asked && !own);
            if let Some(thread) = held.filter(|thread| thread.state == ThreadState::Stopped) {
                thread.asked = false;
                mend_call(tid);
                self.go_on(tid, 0);
            }
        }
    }

    /// Whether a thread of the process is inside a write of which a part was skipped.
    pub(crate) fn is_skipping(&self, pid: u32) -> bool {
        self.threads.values().any(|thread| thread.pid == pid && thread.inside.is_some())
    }

    /// How many writes the process has made, or thinks that it has.
    pub(crate) fn writes(&self, pid: u32) -> Option<u64> {
        Some(proc::io(pid)?.write_calls + self.processes.get(&pid)?.skips)
    }

    /// The calls that the threads of a held process are in; None: one of them is in its program.
    pub(crate) fn calls(&self, pid: u32) -> Vec<(u32, Option<SyscallRegisters>)> {
        let process = self.processes.get(&pid);
        let living = |tid: &&u32| self.threads.get(tid).is_some_and(|thread| !thread.ending);
        let tids = process.into_iter().flat_map(|process| process.threads.iter().filter(living));
        tids.map(|tid| (*tid, registers::call(*tid))).collect()
    }
}
