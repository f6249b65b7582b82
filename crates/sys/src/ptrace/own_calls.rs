//! System calls that a stopped tracee makes for its tracer: the kernel judges them as the program's own.
//!
//! The thread gets other registers, runs from a system call's entry to its exit, and gets its registers back. Signals are
//! blocked meanwhile. At the end the thread is in a stop like the first one, so its interrupted call restarts as before.
//! If the tracer is killed in these microseconds, the thread continues with wrong registers.
//!
//! A call can block where no signal reaches it: the server of its file does not answer, or the program has frozen itself. The
//! tracer does not wait for it then. The thread gets its registers back when its call returns: see `late_calls`.

use std::time::{Duration, Instant};

use libc::user_regs_struct as Registers;

use super::{
    EVENT_STOP, PtraceStop, SyscallStop, interrupt, late_calls, ptrace, registers, resume, set_registers,
    syscall_stop, try_wait_for,
};
use crate::memory::{Memory, ProcessMemory};
use crate::syscalls::{self, SYSCALL_CODE};

const PTRACE_GETSIGMASK: i64 = 0x420a;
const PTRACE_SETSIGMASK: i64 = 0x420b;
/// The signal of a system call stop with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// The code segment of 64-bit programs on Linux (arch/x86/include/asm/segment.h).
const USER_CODE_64: u64 = 0x33;
/// The time after which a call that should not block is interrupted.
const INTERRUPT_AFTER: Duration = Duration::from_secs(2);
/// The time after which the tracer waits no longer: a second interruption would not end the call either.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3);

/// A stopped tracee that makes system calls. [`OwnCalls::end`] must follow; a drop does the same without an answer.
pub struct OwnCalls {
    tid: u32,
    saved: Registers,
    signal_mask: u64,
    /// The address of a SYSCALL instruction.
    instruction: u64,
    /// The thread is at the entry of a call that it has not made.
    at_entry: bool,
    /// SIGSTOP cannot be blocked. It is sent again at the end.
    held_signal: Option<i32>,
    /// The stop at the thread's exit, or its end.
    died: Option<PtraceStop>,
    /// The call that has not returned in time; None if there is none.
    late: Option<LateCall>,
    has_ended: bool,
}

/// The reason why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoResult {
    /// The thread was killed. Holds the result of the call, if the kernel had finished it.
    Died(Option<i64>),
    /// The call has not returned. The thread still makes it.
    Late,
}

/// The state of a call that has not returned. At its entry it can still be taken back.
#[derive(Debug, Clone, Copy)]
enum LateCall {
    NotEntered,
    TakenBack,
    /// Holds the number of the call.
    Entered(i64),
}

impl OwnCalls {
    /// Prepares a tracee that is in the stop of PTRACE_INTERRUPT inside of a system call, or at a system call's entry.
    ///
    /// Returns None for a thread in user mode, whose restartable sequence (rseq(2)) a call could break, and for a thread
    /// whose last call was not made by a SYSCALL instruction.
    pub fn begin(tid: u32) -> Option<OwnCalls> {
        let mut saved = registers(tid)?;
        let stop = syscall_stop(tid);
        let at_entry = match stop {
            SyscallStop::Entry { arch, number, .. } if !syscalls::is_foreign(arch, number) => true,
            SyscallStop::Other => false,
            _ => return None,
        };
        if saved.cs != USER_CODE_64 || (saved.orig_rax as i64) < 0 {
            return None;
        }
        let memory = ProcessMemory { pid: tid };
        // A call that will be made again has its instruction pointer at the instruction.
        let candidates = [saved.rip.wrapping_sub(2), saved.rip];
        let is_syscall = |address: &u64| memory.bytes(*address, SYSCALL_CODE.len()) == SYSCALL_CODE;
        let instruction = candidates.into_iter().find(is_syscall)?;
        let mut signal_mask = 0u64;
        let size = size_of::<u64>();
        ptrace(PTRACE_GETSIGMASK, tid, size, (&raw mut signal_mask) as usize).ok()?;
        set_signal_mask(tid, u64::MAX);
        if at_entry {
            // The program's own call is made when the thread is resumed.
            (saved.rip, saved.rax, saved.orig_rax) = (instruction, saved.orig_rax, u64::MAX);
        }
        Some(OwnCalls {
            tid,
            saved,
            signal_mask,
            instruction,
            at_entry,
            held_signal: None,
            died: None,
            late: None,
            has_ended: false,
        })
    }

    /// Returns the thread that makes the calls.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Makes a call and returns its result, a negative errno on failure. The call should not block; after two seconds it
    /// is interrupted, and after another one it counts as late.
    pub fn call(&mut self, number: i64, args: [u64; 6]) -> Result<i64, NoResult> {
        if self.died.is_some() {
            return Err(NoResult::Died(None));
        }
        if self.late.is_some() {
            return Err(NoResult::Late);
        }
        let mut call = self.saved;
        [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9] = args;
        if self.at_entry {
            (call.rip, call.orig_rax, call.rax) = (
                self.instruction + SYSCALL_CODE.len() as u64,
                number as u64,
                -i64::from(libc::ENOSYS) as u64,
            );
            set_registers(self.tid, &call);
            self.at_entry = false;
        } else {
            (call.rip, call.rax, call.orig_rax) = (self.instruction, number as u64, u64::MAX);
            set_registers(self.tid, &call);
            self.run_to_syscall_stop(number, LateCall::NotEntered)?;
        }
        self.run_to_syscall_stop(number, LateCall::Entered(number))?;
        Ok(registers(self.tid).map_or(-i64::from(libc::ESRCH), |registers| registers.rax as i64))
    }

    /// Restores the registers and the signal mask of the thread, and stops it as before. Returns the stop in which it is
    /// then: that of PTRACE_INTERRUPT or of job control, or that of its death.
    ///
    /// Returns None if its call is late: the thread runs. [`super::wait_for`] and its like return its stop later, when
    /// it has its registers back. `then` gets the result of the late call, 0 if it was not made; None if it is not known.
    pub fn end(mut self, then: impl FnOnce(Option<i64>) + 'static) -> Option<PtraceStop> {
        if self.late.is_some() {
            late_calls::add(self, Box::new(then));
            return None;
        }
        self.restore()
    }

    fn restore(&mut self) -> Option<PtraceStop> {
        self.has_ended = true;
        if self.died.is_some() {
            return self.died;
        }
        set_registers(self.tid, &self.saved);
        set_signal_mask(self.tid, self.signal_mask);
        let _died = interrupt(self.tid);
        resume(self.tid, false, 0);
        let stop = self.wait(|status| status >> 16 == EVENT_STOP);
        if let Some(signal) = self.held_signal {
            // SAFETY: the call takes numbers; the thread is not reaped, so the number is its own.
            unsafe { libc::syscall(libc::SYS_tkill, self.tid, signal) };
        }
        stop
    }

    /// Runs the thread to the next entry or exit of a system call. `if_late` is its state if it does not come there.
    fn run_to_syscall_stop(&mut self, number: i64, if_late: LateCall) -> Result<(), NoResult> {
        resume(self.tid, true, 0);
        let Some(stop) = self.wait(|status| status >> 8 == SYSCALL_STOP) else {
            self.late = Some(if_late);
            return Err(NoResult::Late);
        };
        if self.died.is_none() {
            return Ok(());
        }
        Err(NoResult::Died(self.result_at_death(stop, number)))
    }

    /// Returns the result of a call that the thread had finished when it was killed.
    fn result_at_death(&self, stop: PtraceStop, number: i64) -> Option<i64> {
        let at_exit_stop = libc::WIFSTOPPED(stop.status);
        let finished =
            registers(self.tid).filter(|registers| at_exit_stop && registers.orig_rax as i64 == number);
        // ENOSYS: the thread was killed at the entry.
        finished.map(|registers| registers.rax as i64).filter(|result| *result >= 0)
    }

    /// Waits for a stop with a wanted status, or the thread's death. Other stops are passed. Returns None if neither comes
    /// in time.
    fn wait(&mut self, wanted: impl Fn(i32) -> bool) -> Option<PtraceStop> {
        const LONGEST_PAUSE: Duration = Duration::from_millis(1);
        let (started, mut pause, mut is_interrupted) = (Instant::now(), Duration::from_micros(5), false);
        loop {
            // A thread that is not there any more has ended.
            let ended = PtraceStop { tid: self.tid, status: 0, cpu_ns: 0 };
            let Some(stop) = try_wait_for(self.tid).unwrap_or(Some(ended)) else {
                if started.elapsed() > GIVE_UP_AFTER {
                    return None;
                }
                if started.elapsed() > INTERRUPT_AFTER && !is_interrupted {
                    is_interrupted = interrupt(self.tid).is_ok();
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            };
            if self.is_death(stop) || wanted(stop.status) {
                return Some(stop);
            }
            self.pass(stop);
        }
    }

    /// Notes the thread's exit stop or end. Returns whether the stop is one.
    fn is_death(&mut self, stop: PtraceStop) -> bool {
        let is_death = !libc::WIFSTOPPED(stop.status) || stop.status >> 16 == libc::PTRACE_EVENT_EXIT;
        if is_death {
            self.died = Some(stop);
        }
        is_death
    }

    /// Lets the thread go on after a stop that is of no interest.
    fn pass(&mut self, stop: PtraceStop) {
        let status = stop.status;
        if status >> 16 == 0 && libc::WSTOPSIG(status) != SYSCALL_STOP {
            self.held_signal = Some(libc::WSTOPSIG(status));
        }
        resume(self.tid, true, 0);
    }

    /// Handles a stop of a thread with a late call. Returns None while the call goes on, and else its result, and the stop in
    /// which the thread is then.
    pub(super) fn on_late_stop(&mut self, stop: PtraceStop) -> Option<(Option<i64>, Option<PtraceStop>)> {
        let late = self.late?;
        if self.is_death(stop) {
            let result = match late {
                LateCall::Entered(number) => self.result_at_death(stop, number),
                _ => Some(0),
            };
            return Some((result, Some(stop)));
        }
        if stop.status >> 8 != SYSCALL_STOP {
            self.pass(stop);
            return None;
        }
        let now = registers(self.tid);
        if let (LateCall::NotEntered, Some(mut now)) = (late, now) {
            // The kernel skips a call without a number.
            now.orig_rax = u64::MAX;
            set_registers(self.tid, &now);
            self.late = Some(LateCall::TakenBack);
            resume(self.tid, true, 0);
            return None;
        }
        self.late = None;
        let is_made = matches!(late, LateCall::Entered(_));
        let result = now.map(|now| if is_made { now.rax as i64 } else { 0 });
        Some((result, self.restore()))
    }
}

impl Drop for OwnCalls {
    fn drop(&mut self) {
        // A thread whose call is late cannot be restored; the end of the tracer detaches it.
        if !self.has_ended && self.late.is_none() {
            self.restore();
        }
    }
}

fn set_signal_mask(tid: u32, mask: u64) {
    let _died = ptrace(PTRACE_SETSIGMASK, tid, size_of::<u64>(), (&raw const mask) as usize);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::proc::{self, ThreadState};

    /// Starts cat(1), and returns it stopped in its read.
    fn stopped_cat() -> Child {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
        let reads = |state| matches!(state, ThreadState::Waiting { number: libc::SYS_read, .. });
        while !reads(proc::thread_state(child.id())) {
            std::thread::yield_now();
        }
        super::super::seize(child.id()).expect("it may be traced");
        interrupt(child.id()).expect("a stop");
        wait_for_stop(child.id());
        child
    }

    fn wait_for_stop(tid: u32) -> PtraceStop {
        super::super::wait_for(tid).expect("a stop").expect("no signal")
    }

    fn end(calls: OwnCalls) -> PtraceStop {
        calls.end(|_| panic!("no call is late")).expect("a stop")
    }

    /// Lets the program go on, and checks that it copies its input as if nothing had happened.
    fn assert_it_goes_on(mut child: Child, before: &[u8]) {
        super::super::detach(child.id(), 0);
        child.stdin.take().expect("a pipe").write_all(b"input").expect("it reads");
        let mut output = Vec::new();
        child.stdout.take().expect("a pipe").read_to_end(&mut output).expect("its output");
        assert_eq!((output, child.wait().expect("its end").code()), ([before, b"input"].concat(), Some(0)));
    }

    #[test]
    fn a_blocked_thread_makes_calls_and_goes_on() {
        let child = stopped_cat();
        let mut calls = OwnCalls::begin(child.id()).expect("it is in read(2)");
        assert_eq!(calls.call(libc::SYS_getpid, [0; 6]), Ok(child.id().into()));
        let map = [0, 4096, 3, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64, u64::MAX, 0];
        let address = calls.call(libc::SYS_mmap, map).expect("it lives") as u64;
        assert!(super::super::write_memory(child.id(), address, b"its own "));
        assert_eq!(calls.call(libc::SYS_write, [1, address, 8, 0, 0, 0]), Ok(8));
        assert_eq!(calls.call(libc::SYS_munmap, [address, 4096, 0, 0, 0, 0]), Ok(0));
        assert_eq!(end(calls).status >> 16, EVENT_STOP);
        assert_it_goes_on(child, b"its own ");
    }

    #[test]
    fn a_call_at_its_entry_is_made_afterwards() {
        let child = stopped_cat();
        // The read is interrupted and made again, so the next stop is its entry.
        resume(child.id(), true, 0);
        wait_for_stop(child.id());
        assert!(matches!(syscall_stop(child.id()), SyscallStop::Entry { .. }));
        let mut calls = OwnCalls::begin(child.id()).expect("it enters read(2)");
        assert_eq!(calls.call(libc::SYS_getpid, [0; 6]), Ok(child.id().into()));
        assert_eq!(calls.call(libc::SYS_getppid, [0; 6]), Ok(std::process::id().into()));
        end(calls);
        assert_it_goes_on(child, b"");
    }

    #[test]
    fn a_failed_write_sends_no_signal_yet() {
        let child = stopped_cat();
        let mut calls = OwnCalls::begin(child.id()).expect("it is in read(2)");
        let bad = calls.call(libc::SYS_write, [999, 0, 1, 0, 0, 0]);
        assert_eq!(bad, Ok(-i64::from(libc::EBADF)));
        drop(calls);
        assert_it_goes_on(child, b"");
    }

    #[test]
    fn a_killed_thread_is_noticed() {
        let mut child = stopped_cat();
        let mut calls = OwnCalls::begin(child.id()).expect("it is in read(2)");
        child.kill().expect("a signal");
        assert!(calls.call(libc::SYS_getpid, [0; 6]).is_err());
        let stop = end(calls);
        assert!(!libc::WIFSTOPPED(stop.status) || stop.status >> 16 == libc::PTRACE_EVENT_EXIT);
        let at_exit_stop = libc::WIFSTOPPED(stop.status);
        if at_exit_stop {
            resume(child.id(), false, 0);
        }
        // Without an exit stop, the calls have waited for its end.
        assert_eq!(child.wait().is_ok(), at_exit_stop);
    }

    #[test]
    fn a_stop_signal_comes_after_the_call() {
        let child = stopped_cat();
        let mut calls = OwnCalls::begin(child.id()).expect("it is in read(2)");
        // SAFETY: a signal to a child that has not been reaped.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGSTOP) };
        assert_eq!(calls.call(libc::SYS_getpid, [0; 6]), Ok(child.id().into()));
        end(calls);
        super::super::detach(child.id(), 0);
        while proc::status(child.id()).is_some_and(|status| !status.state.starts_with('T')) {
            std::thread::yield_now();
        }
        // SAFETY: as above.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGCONT) };
        let mut child = child;
        child.stdin.take().map(|input| input.as_raw_fd());
        assert_eq!(child.wait().expect("its end").code(), Some(0));
    }
}
