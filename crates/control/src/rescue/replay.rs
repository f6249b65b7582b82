//! Replays a killed thread in a new process until its streams are consistent.
//!
//! A kill can come between any two instructions of a flush: after a write(2) that the buffer has not noted, or while
//! bytes move from one layer to the next. Only the code itself can tell which bytes are written. So a new process gets
//! the dead process's memory, block by block on first access, and the thread's registers. A thread of CPython runs until
//! it reaches the interpreter's loop, whose instructions are replaced by breakpoints. A thread of compiled code runs
//! step by step until it changes the number of pending bytes of a stream: it then has noted its last write. No system
//! call is made: writes are recorded, a few harmless calls are simulated, and any other call ends the replay.
//!
//! A thread that was not in a flush may compute for ever. The replay has a budget of CPU time, and it runs in a thread
//! of its own, so that the supervisor serves other tracees meanwhile. A replay that exceeds its budget shows nothing: it is
//! unknown then which bytes are written.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use weir_sys::clock::{now_ns, process_cpu_ns, thread_cpu_ns};
use weir_sys::hang_guard::ABANDONED_THREAD;
use weir_sys::iovec::{self, IOVEC_BYTES};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::ptrace::last_write::MAX_SEGMENTS;
use weir_sys::ptrace::timer::WaitTimer;
use weir_sys::syscalls::SYSCALL_CODE;
use weir_walkers::CountWord;

use super::killed_thread::KilledThread;
use super::replay_process::{ReplayEnd, ReplayProcess, ReplayStop, ReplayedMemory, ReplayedWrite};

/// The CPU time of a replay to the interpreter, with the thread that serves it. A replay of a flush takes 7 ms at most.
pub(super) const BUDGET_NS: u64 = 40_000_000;
/// The CPU time of a replay step by step: 200 µs for each of [`MAX_STEPS`]. A step takes 7 µs, and 30 µs to 60 µs while other
/// programs want the processors too.
pub(super) const STEPS_BUDGET_NS: u64 = MAX_STEPS as u64 * 200_000;
/// The interval at which the CPU time is checked.
const CHECK_NS: u64 = 2_000_000;
/// The time without a step after which a replay is abandoned: it blocks in a read of the dead process's memory.
const ABANDON_NS: u64 = 1_000_000_000;

/// The most instructions from a write(2) to the one that notes it, several times what libstdc++ or Go need.
const MAX_STEPS: u32 = 2000;
/// The number of steps after which the CPU time is checked too.
const CHECK_STEPS: u32 = 64;

/// A stream that a thread may have been flushing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamInFlush {
    pub fd: i32,
    pub note: CountWord,
    /// Address of its pending bytes.
    pub data_address: u64,
}

/// The end of a replay.
#[derive(Clone)]
enum ReplayGoal {
    /// The thread reaches this code.
    Code(Range<u64>),
    /// The thread notes in one of these words that it has written all bytes of a stream, and does not begin to write
    /// them.
    Written(Vec<StreamInFlush>),
    /// A thread of a runtime's own scheduler notes it, or is about to write the next bytes of any stream.
    OwnThread(Vec<StreamInFlush>, OwnThread),
}

/// A thread of a runtime's own scheduler. The fields are those of [`weir_walkers::SuspendedFlushes`].
#[derive(Debug, Clone)]
pub(crate) struct OwnThread {
    pub yield_word: (u64, u64),
    pub write_entries: Vec<u64>,
    pub scheduler_entries: Vec<u64>,
}

impl OwnThread {
    /// Makes the thread return from a function of the scheduler at once. Returns the descriptor and address of the write
    /// that it is about to make.
    fn at_step(&self, process: &ReplayProcess) -> Option<Option<(i32, u64)>> {
        let mut registers = ptrace::registers(process.pid())?;
        if self.write_entries.contains(&registers.rip) {
            return Some(Some((registers.rax as i32, registers.rbx)));
        }
        if self.scheduler_entries.contains(&registers.rip) {
            let returned_to = process.bytes(registers.rsp, 8);
            registers.rip = u64::from_le_bytes(*returned_to.first_chunk()?);
            registers.rsp += 8;
            registers.rax = 0;
            ptrace::set_registers(process.pid(), &registers).then_some(())?;
        }
        Some(None)
    }
}

/// The replays that reached the interpreter, and those of them that took more than half of the budget.
#[cfg(test)]
pub(super) static REPLAYS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

#[cfg(test)]
fn note_replay(cpu_ns: u64) {
    REPLAYS[0].fetch_add(1, Relaxed);
    REPLAYS[1].fetch_add(u64::from(cpu_ns > BUDGET_NS / 2), Relaxed);
}

/// A replay in a thread of its own.
pub(crate) struct Replay {
    thread: JoinHandle<ReplayResult>,
    /// The number of steps and stops, which the thread counts.
    steps: Arc<AtomicU64>,
    /// The number of them at the last poll, and when it changed.
    polled: (u64, u64),
}

/// The memory that a replay leaves.
type ReplayResult = Result<ReplayedMemory, ReplayFailure>;

/// The reason why a replay has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayFailure {
    /// The thread does not reach the goal by itself.
    NotReached,
    /// The replay could not begin, or its time was too short to find that out.
    Undecided,
}

/// The state of a replay.
pub(crate) enum ReplayState {
    Running(Replay),
    Ended(ReplayResult),
}

impl Replay {
    /// Starts the replay of a thread of `tid`'s process; None if the thread cannot be in a flush.
    pub fn start(tid: u32, thread: &KilledThread, interpreter_code: &Range<u64>) -> Option<Replay> {
        let next = thread.instruction_pointer();
        if interpreter_code.is_empty() || interpreter_code.contains(&next) {
            return None;
        }
        Replay::start_to(tid, thread, ReplayGoal::Code(interpreter_code.clone()), BUDGET_NS)
    }

    /// Starts the replay of a thread that may have written bytes of these streams without noting it. The replay fails
    /// if it has not: the thread puts more bytes, or does not note it soon. It ends where the thread begins to write them. None
    /// if the thread is about to make a call that a flush does not make.
    pub fn start_in_flush(
        tid: u32,
        thread: &KilledThread,
        streams: Vec<StreamInFlush>,
        budget_ns: u64,
    ) -> Option<Replay> {
        Replay::start_to(tid, thread, ReplayGoal::Written(streams), budget_ns)
    }

    /// Starts the replay of a thread of a runtime's own scheduler that is in a flush.
    pub fn start_own_thread(
        tid: u32,
        thread: &KilledThread,
        streams: Vec<StreamInFlush>,
        own: OwnThread,
        budget_ns: u64,
    ) -> Option<Replay> {
        Replay::start_to(tid, thread, ReplayGoal::OwnThread(streams, own), budget_ns)
    }

    fn start_to(tid: u32, thread: &KilledThread, goal: ReplayGoal, budget_ns: u64) -> Option<Replay> {
        let mut instruction = [0; 2];
        let next = thread.instruction_pointer();
        let is_read = ProcessMemory { pid: tid }.read(next, &mut instruction) == instruction.len();
        if is_read
            && instruction == SYSCALL_CODE
            && !is_simulated(thread.register(0) as i64, thread.register(6))
        {
            return None;
        }
        let (thread, steps) = (thread.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&steps);
        let run = move || {
            let budget = ReplayBudget { cpu_ns: budget_ns, is_undecided: Cell::new(true), steps: &counted };
            run(tid, &thread, goal, &budget).ok_or_else(|| budget.failure())
        };
        let thread = std::thread::Builder::new().name(ABANDONED_THREAD.into()).spawn(run).ok()?;
        Some(Replay { thread, steps, polled: (0, now_ns()) })
    }

    /// Returns the result if the replay has ended or blocks.
    pub fn poll(mut self) -> ReplayState {
        if self.thread.is_finished() {
            return ReplayState::Ended(self.thread.join().unwrap_or(Err(ReplayFailure::Undecided)));
        }
        let (steps, now) = (self.steps.load(Relaxed), now_ns());
        if steps != self.polled.0 {
            self.polled = (steps, now);
        }
        match now > self.polled.1 + ABANDON_NS {
            true => ReplayState::Ended(Err(ReplayFailure::Undecided)),
            false => ReplayState::Running(self),
        }
    }
}

/// The CPU time of a replay.
struct ReplayBudget<'s> {
    cpu_ns: u64,
    /// The replay has not begun, or has exceeded the time.
    is_undecided: Cell<bool>,
    steps: &'s AtomicU64,
}

impl ReplayBudget<'_> {
    /// Returns whether the process of the replay has time left.
    fn goes_on(&self, pid: u32) -> bool {
        let is_left = thread_cpu_ns() + process_cpu_ns(pid) < self.cpu_ns;
        self.is_undecided.set(!is_left);
        is_left
    }

    /// Returns whether the process may execute one more instruction after this number of steps.
    fn allows_step(&self, steps: u32, pid: u32) -> bool {
        steps < MAX_STEPS && (!steps.is_multiple_of(CHECK_STEPS) || self.goes_on(pid))
    }

    /// Counts an instruction in eighths. A repeated one (`rep movsb` of a copy) stops after each byte, which counts as one eighth: a
    /// flush copies a few thousand bytes.
    fn count_step(&self, eighths: &mut (u32, u64), pid: u32) -> Option<()> {
        self.allows_step(eighths.0 / 8, pid).then_some(())?;
        let at = ptrace::registers(pid)?.rip;
        *eighths = (eighths.0 + if at == eighths.1 { 1 } else { 8 }, at);
        Some(())
    }

    fn failure(&self) -> ReplayFailure {
        if self.is_undecided.get() { ReplayFailure::Undecided } else { ReplayFailure::NotReached }
    }
}

/// Runs the thread to its goal, and returns the memory that it leaves.
fn run(
    tid: u32,
    thread: &KilledThread,
    goal: ReplayGoal,
    budget: &ReplayBudget<'_>,
) -> Option<ReplayedMemory> {
    let mut timer = WaitTimer::new().ok()?;
    timer.set(now_ns() + CHECK_NS);
    let (code, streams, own) = match goal {
        ReplayGoal::Code(code) => (code, Vec::new(), None),
        ReplayGoal::Written(streams) => (0..0, streams, None),
        ReplayGoal::OwnThread(streams, own) => (0..0, streams, Some(own)),
    };
    let counts: Vec<Option<u64>> =
        streams.iter().map(|one| ProcessMemory { pid: tid }.u64(one.note.address)).collect();
    let mut process = ReplayProcess::start(tid, code)?;
    thread.store_in(process.pid()).then_some(())?;
    budget.is_undecided.set(false);
    if let Some((address, value)) = own.as_ref().map(|own| own.yield_word) {
        process.load_block(address)?;
        ptrace::poke(process.pid(), address, value);
    }
    let (mut writes, mut steps) = (Vec::new(), (0, 0));
    loop {
        budget.steps.fetch_add(1, Relaxed);
        let goes_on = |pid| budget.goes_on(pid);
        let stop = if streams.is_empty() { process.run_to_stop(goes_on)? } else { process.step(goes_on)? };
        match stop {
            ReplayStop::Interpreter => {
                #[cfg(test)]
                note_replay(thread_cpu_ns() + process_cpu_ns(process.pid()));
                return Some(process.into_memory(writes, ReplayEnd::Interpreter));
            }
            ReplayStop::MissingPage(address) => process.load_block(address)?,
            ReplayStop::Syscall => {
                let write = simulate_call(&process)?;
                if let (Some(_), Some(write)) = (&own, &write) {
                    let end = ReplayEnd::NextWrite(write.fd, write.address);
                    return Some(process.into_memory(writes, end));
                }
                let begun = write.as_ref().and_then(|write| {
                    streams.iter().find(|one| (one.fd, one.data_address) == (write.fd, write.address))
                });
                if let Some(begun) = begun {
                    let end = ReplayEnd::FirstByte(begun.note.address);
                    return Some(process.into_memory(writes, end));
                }
                writes.extend(write);
            }
            ReplayStop::Step => {
                budget.count_step(&mut steps, process.pid())?;
                for (stream, before) in streams.iter().zip(&counts) {
                    let now = process.word_of_thread(stream.note.address, *before);
                    if now != *before {
                        (now == Some(stream.note.when_written)).then_some(())?;
                        return Some(process.into_memory(writes, ReplayEnd::Noted(stream.note.address)));
                    }
                }
                let next_write = own.as_ref().map_or(Some(None), |own| own.at_step(&process))?;
                if let Some((fd, address)) = next_write {
                    return Some(process.into_memory(writes, ReplayEnd::NextWrite(fd, address)));
                }
            }
        }
    }
}

/// Returns whether a flush makes this call. `second_arg` distinguishes the operations of futex(2).
fn is_simulated(number: i64, second_arg: u64) -> bool {
    match number {
        // The replay process has no other thread to wake.
        libc::SYS_futex => second_arg & 127 == libc::FUTEX_WAKE as u64,
        libc::SYS_write | libc::SYS_writev | libc::SYS_clock_gettime => true,
        libc::SYS_madvise | libc::SYS_munmap | libc::SYS_rt_sigprocmask => true,
        _ => false,
    }
}

/// Sets the result of a system call without making it, and returns the bytes of a write; None for a call that a flush
/// does not make.
fn simulate_call(process: &ReplayProcess) -> Option<Option<ReplayedWrite>> {
    let mut registers = ptrace::registers(process.pid())?;
    let number = registers.orig_rax as i64;
    if !is_simulated(number, registers.rsi) {
        return None;
    }
    let (mut result, mut write) = (0, None);
    if matches!(number, libc::SYS_write | libc::SYS_writev) {
        let segments = match number {
            libc::SYS_write => vec![(registers.rsi, registers.rdx)],
            _ => {
                let bytes = (registers.rdx as usize).min(MAX_SEGMENTS) * IOVEC_BYTES;
                iovec::parse(&process.bytes(registers.rsi, bytes))
            }
        };
        let length = segments.iter().map(|segment| segment.1).fold(0, u64::saturating_add);
        (length <= 1 << 30).then_some(())?;
        let bytes: Vec<u8> =
            segments.iter().flat_map(|(address, bytes)| process.bytes(*address, *bytes as usize)).collect();
        (bytes.len() as u64 == length).then_some(())?;
        let address = segments.iter().find(|segment| segment.1 > 0).map_or(0, |segment| segment.0);
        (result, write) = (length, Some(ReplayedWrite { fd: registers.rdi as i32, address, bytes }));
    } else if number == libc::SYS_clock_gettime {
        store_time(process.pid(), registers.rdi, registers.rsi)?;
    }
    (registers.rax, registers.orig_rax) = (result, u64::MAX);
    ptrace::set_registers(process.pid(), &registers).then_some(write)
}

/// Stores weir's own time, as clock_gettime(2) does.
fn store_time(pid: u32, clock: u64, address: u64) -> Option<()> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills a struct of this frame.
    if unsafe { libc::clock_gettime(clock as libc::clockid_t, &mut time) } != 0 {
        return None;
    }
    let bytes = [time.tv_sec.to_le_bytes(), time.tv_nsec.to_le_bytes()].concat();
    ptrace::write_memory(pid, address, &bytes).then_some(())
}
