//! Replays a killed CPython thread in a new process until its streams are consistent.
//!
//! A kill can come between any two instructions of a flush: after a write(2) that the buffer has not noted, or while
//! bytes move from one layer to the next. Only the code itself can tell which bytes are written. So a new process gets
//! the dead process's memory, block by block on first access, and the thread's registers. It runs until the thread
//! reaches the interpreter's loop, whose instructions are replaced by breakpoints. No system call is made: writes are
//! recorded, a few harmless calls are simulated, and any other call ends the replay.
//!
//! A thread that was not in a flush may compute for ever. The replay has a budget of CPU time, and it runs in a thread
//! of its own, so that the supervisor serves other tracees meanwhile.

use std::ops::Range;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use weir_sys::clock::{now_ns, process_cpu_ns, thread_cpu_ns};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::ptrace::timer::WaitTimer;

use super::killed_thread::KilledThread;
use super::replay_process::{ReplayProcess, ReplayStop, ReplayedMemory, SYSCALL};

/// The CPU time of a replay, with the thread that serves it. A replay of a flush takes 7 ms at most.
pub(super) const BUDGET_NS: u64 = 40_000_000;
/// The interval at which the CPU time is checked.
const CHECK_NS: u64 = 2_000_000;
/// The time after which a replay is abandoned: it blocks in a read of the dead process's memory, or gets no processor.
const ABANDON_NS: u64 = 1_000_000_000;

/// The largest CPU time of a replay that reached the interpreter.
#[cfg(test)]
pub(super) static LONGEST_NS: AtomicU64 = AtomicU64::new(0);

/// A replay in a thread of its own.
pub(crate) struct Replay {
    thread: JoinHandle<Option<ReplayedMemory>>,
    started_ns: u64,
}

/// The state of a replay.
pub(crate) enum ReplayState {
    Running(Replay),
    /// None if the thread does not reach the interpreter by itself within the budget.
    Ended(Option<ReplayedMemory>),
}

impl Replay {
    /// Starts the replay of a thread of `tid`'s process; None if the thread cannot be in a flush.
    pub fn start(tid: u32, thread: &KilledThread, interpreter_code: &Range<u64>) -> Option<Replay> {
        let next = thread.instruction_pointer();
        if interpreter_code.is_empty() || interpreter_code.contains(&next) {
            return None;
        }
        let mut instruction = [0; 2];
        let is_read = ProcessMemory { pid: tid }.read(next, &mut instruction) == instruction.len();
        if is_read && instruction == SYSCALL && !is_simulated(thread.register(0) as i64, thread.register(6)) {
            return None;
        }
        let (thread, code) = (thread.clone(), interpreter_code.clone());
        let run = move || run(tid, &thread, code);
        let thread = std::thread::Builder::new().name("weir-replay".into()).spawn(run).ok()?;
        Some(Replay { thread, started_ns: now_ns() })
    }

    /// Returns the result if the replay has ended or blocks.
    pub fn poll(self) -> ReplayState {
        if self.thread.is_finished() {
            return ReplayState::Ended(self.thread.join().unwrap_or_default());
        }
        match now_ns() > self.started_ns + ABANDON_NS {
            true => ReplayState::Ended(None),
            false => ReplayState::Running(self),
        }
    }
}

/// Runs the thread until it reaches `interpreter_code`, and returns the memory that it leaves.
fn run(tid: u32, thread: &KilledThread, interpreter_code: Range<u64>) -> Option<ReplayedMemory> {
    let mut timer = WaitTimer::new().ok()?;
    timer.set(now_ns() + CHECK_NS);
    let mut process = ReplayProcess::start(tid, interpreter_code)?;
    thread.store_in(process.pid()).then_some(())?;
    let mut writes = Vec::new();
    loop {
        match process.run_to_stop(|pid| thread_cpu_ns() + process_cpu_ns(pid) < BUDGET_NS)? {
            ReplayStop::Interpreter => {
                #[cfg(test)]
                LONGEST_NS.fetch_max(thread_cpu_ns() + process_cpu_ns(process.pid()), Relaxed);
                return Some(process.into_memory(writes));
            }
            ReplayStop::MissingPage(address) => process.load_block(address)?,
            ReplayStop::Syscall => writes.extend(simulate_call(&process)?),
        }
    }
}

/// Tells whether a flush makes this call. `second_arg` distinguishes the operations of futex(2).
fn is_simulated(number: i64, second_arg: u64) -> bool {
    match number {
        // The replay process has no other thread to wake.
        libc::SYS_futex => second_arg & 127 == libc::FUTEX_WAKE as u64,
        libc::SYS_write | libc::SYS_clock_gettime => true,
        libc::SYS_madvise | libc::SYS_munmap | libc::SYS_rt_sigprocmask => true,
        _ => false,
    }
}

/// Sets the result of a system call without making it, and returns the bytes of a write; None for a call that a flush
/// does not make.
fn simulate_call(process: &ReplayProcess) -> Option<Option<(i32, Vec<u8>)>> {
    let mut registers = ptrace::registers(process.pid())?;
    let number = registers.orig_rax as i64;
    if !is_simulated(number, registers.rsi) {
        return None;
    }
    let (mut result, mut write) = (0, None);
    if number == libc::SYS_write {
        let length = usize::try_from(registers.rdx).ok().filter(|length| *length <= 1 << 30)?;
        let bytes = process.bytes(registers.rsi, length);
        (bytes.len() == length).then_some(())?;
        (result, write) = (length as u64, Some((registers.rdi as i32, bytes)));
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
