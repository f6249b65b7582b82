//! Stops all threads of a process in system calls during which its streams are consistent.
//!
//! One thread makes, uses and drops a [`StoppedThreads`], and ends then: its end detaches from tracees that have not
//! stopped.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use weir_model::Untrusted;
use weir_sys::process_identity::ProcessIdentity;
#[cfg(target_arch = "x86_64")]
use weir_sys::ptrace::late_calls;
use weir_sys::ptrace::registers;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop, SyscallStop};
use weir_sys::{frozen, proc, syscalls};

use weir_walkers::ThreadRegisters;

use super::blocked_call::BlockedCall;
use super::timed_waits::{self, BeforeStop, RepeatedWait, TimedWait};

/// The signal of a syscall stop with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// The longest time for which stopped threads wait for the others. The program's users do not notice a pause of 50 ms.
const STOP_TIMEOUT: Duration = Duration::from_millis(50);

/// The reason why the threads are not stopped.
#[derive(Debug)]
pub(super) enum StopError {
    /// A later attempt may succeed. Holds the obstacle.
    NotNow(String),
    /// As `NotNow`, but a later attempt fails too until something else resumes the process: it is frozen, stopped by job
    /// control, or in state D.
    Stuck(String),
    /// The process or one of its threads has ended or is being killed.
    Ended,
    /// A ptrace(2) request failed, for example without the right to trace.
    Ptrace(io::Error),
}

/// The stopped threads of a process. Dropping it resumes them.
pub(super) struct StoppedThreads<'t> {
    pid: u32,
    targets: &'t [Untrusted],
    threads: BTreeMap<u32, StopState>,
    before: BTreeMap<u32, BeforeStop>,
    /// The calls with a timeout that stopped threads make again.
    repeated: BTreeMap<u32, RepeatedWait>,
    /// The noted waits of the process. Dropping the `StoppedThreads` replaces them.
    waits: &'t mut Vec<TimedWait>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopState {
    /// PTRACE_INTERRUPT was sent, and its stop has not come.
    Requested,
    /// The thread runs to its next system call.
    RunningToCall,
    Stopped {
        /// The signal to deliver when the thread resumes; 0 for none.
        signal: i32,
        /// None in user mode.
        call: Option<BlockedCall>,
        /// The stop is a group stop, by job control.
        group_stop: bool,
    },
}

impl<'t> StoppedThreads<'t> {
    /// Stops all threads of a process in calls that do not write to `targets`. `waits` has the waits that earlier stops have
    /// interrupted, and gets those that this one interrupts.
    pub fn stop(
        process: ProcessIdentity,
        targets: &'t [Untrusted],
        waits: &'t mut Vec<TimedWait>,
    ) -> Result<StoppedThreads<'t>, StopError> {
        let mut stopped = StoppedThreads {
            pid: process.pid(),
            targets,
            threads: BTreeMap::new(),
            before: BTreeMap::new(),
            repeated: BTreeMap::new(),
            waits,
        };
        let (deadline, mut pause) = (Instant::now() + STOP_TIMEOUT, Duration::from_micros(20));
        loop {
            let found_new = stopped.interrupt_new_threads()?;
            while let Some(stop) = ptrace::try_wait() {
                stopped.on_stop(stop);
            }
            if stopped.threads.is_empty() {
                return Err(StopError::Ended);
            }
            let is_stopped = |state: &StopState| matches!(state, StopState::Stopped { .. });
            let all_stopped = !found_new && stopped.threads.values().all(is_stopped);
            // A known thread may have created one just before it stopped.
            if all_stopped && stopped.resume_unsafe_threads()? && !stopped.interrupt_new_threads()? {
                // A thread killed meanwhile may have written bytes that its stream still counts as pending.
                if !stopped.threads.keys().copied().all(proc::is_stopped) {
                    return Err(StopError::Ended);
                }
                // A tracee keeps its number until its tracer waits for its end.
                return if process.is_current() { Ok(stopped) } else { Err(StopError::Ended) };
            }
            if Instant::now() > deadline {
                return Err(stopped.obstacle());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Returns the threads that can make system calls for weir, without a signal to deliver; the main thread first.
    pub fn in_calls(&self) -> Vec<u32> {
        let can = |state: &StopState| matches!(state, StopState::Stopped { signal: 0, call: Some(_), .. });
        let mut tids: Vec<u32> =
            self.threads.iter().filter(|(_, state)| can(state)).map(|(tid, _)| *tid).collect();
        tids.sort_by_key(|tid| *tid != self.pid);
        tids
    }

    /// Returns the registers of all threads; none if a thread is gone, or the architecture is not x86-64.
    #[cfg(target_arch = "x86_64")]
    pub fn registers(&self) -> Vec<ThreadRegisters> {
        let read = |tid: &u32| {
            let r = ptrace::registers(*tid)?;
            let general = [
                r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
                r.r13, r.r14, r.r15,
            ];
            Some(ThreadRegisters { general, next: r.rip })
        };
        self.threads.keys().map(read).collect::<Option<_>>().unwrap_or_default()
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn registers(&self) -> Vec<ThreadRegisters> {
        Vec::new()
    }

    /// Attaches to threads that are not known yet. Returns whether there were any.
    fn interrupt_new_threads(&mut self) -> Result<bool, StopError> {
        let mut found = false;
        for tid in proc::threads(self.pid) {
            if self.threads.contains_key(&tid) || proc::is_dead(tid) {
                continue;
            }
            self.before.insert(tid, BeforeStop::of(tid, self.waits));
            // No work between seize and interrupt: a traced set-user-ID execve(2) would run without its privilege.
            match ptrace::seize_for_syscalls(tid)
                .and_then(|()| ptrace::interrupt(tid))
                .and_then(|()| self.check_own(tid))
            {
                Ok(()) => self.threads.insert(tid, StopState::Requested),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) || proc::is_dead(tid) => continue,
                Err(error) => return Err(StopError::Ptrace(error)),
            };
            found = true;
        }
        Ok(found)
    }

    /// Fails with ESRCH if the tracee belongs to another process: its thread ID was reused. It stays traced until the calling
    /// thread ends.
    fn check_own(&self, tid: u32) -> io::Result<()> {
        match proc::process_of(tid) == Some(self.pid) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    fn on_stop(&mut self, stop: PtraceStop) {
        let PtraceStop { tid, status, .. } = stop;
        if !libc::WIFSTOPPED(status) {
            self.threads.remove(&tid);
            return;
        }
        let Some(state) = self.threads.get_mut(&tid) else { return };
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let at_syscall = signal == SYSCALL_STOP && event == 0;
        let call = match ptrace::syscall_stop(tid) {
            SyscallStop::Entry { number, args, arch }
                if at_syscall && !syscalls::is_foreign(arch, number) =>
            {
                Some(BlockedCall { number: number as i64, args })
            }
            _ if at_syscall => None,
            _ => registers::current_syscall(tid)
                .map(|call| BlockedCall { number: call.number, args: call.args }),
        };
        let has_signal = event == 0 && !at_syscall;
        let is_requested = event == EVENT_STOP && signal == libc::SIGTRAP && *state == StopState::Requested;
        // Without a tracer an ignored signal is not delivered and ends no call.
        if is_requested || has_signal && proc::ignores(tid, signal) {
            // Repeats the interrupted call now: if weir is killed before it resumes the thread, the program would see EINTR.
            let before = self.before.remove(&tid).unwrap_or_default();
            if let Some(wait) = timed_waits::repeat(tid, before) {
                self.repeated.insert(tid, wait);
            }
        }
        *state = StopState::Stopped {
            signal: if has_signal { signal } else { 0 },
            call,
            group_stop: event == EVENT_STOP && signal != libc::SIGTRAP,
        };
    }

    /// Resumes the threads that may be inside of a stream operation to their next call. Returns whether there were
    /// none.
    fn resume_unsafe_threads(&mut self) -> Result<bool, StopError> {
        let mut all_safe = true;
        for (tid, state) in &mut self.threads {
            let StopState::Stopped { signal, call, group_stop } = *state else { continue };
            let is_safe = call.is_some_and(|call| {
                !call.may_be_in_stream() && call.writes_to(self.pid, self.targets).is_none()
            });
            if is_safe {
                continue;
            }
            // A set-user-ID program would lose its privilege under a tracer.
            if call.is_some_and(|call| call.executes()) {
                return Err(StopError::NotNow(format!("thread {tid} executes another program")));
            }
            if group_stop {
                return Err(StopError::Stuck(stopped_text(self.pid)));
            }
            ptrace::resume(*tid, true, signal);
            self.repeated.remove(tid);
            *state = StopState::RunningToCall;
            all_safe = false;
        }
        Ok(all_safe)
    }

    /// Describes at most three threads that did not stop.
    fn obstacle(&self) -> StopError {
        if let Some(why) = frozen_text(self.pid) {
            return StopError::Stuck(why);
        }
        let running = self.threads.iter().filter(|(_, state)| !matches!(state, StopState::Stopped { .. }));
        let running: Vec<u32> = running.map(|(tid, _)| *tid).collect();
        if let Some(tid) = running.iter().find(|tid| is_uninterruptible(**tid)) {
            let call = proc::current_syscall(*tid);
            let call = if call.is_empty() { String::new() } else { format!(" in {call}") };
            return StopError::Stuck(format!("thread {tid} sleeps{call} and cannot be stopped (state D)"));
        }
        let sentences: Vec<String> = running.into_iter().map(|tid| self.describe(tid)).take(3).collect();
        StopError::NotNow(match sentences.is_empty() {
            true => "its threads did not all stop within 50 ms".into(),
            false => sentences.join("; "),
        })
    }

    fn describe(&self, tid: u32) -> String {
        match proc::thread_state(tid) {
            proc::ThreadState::Waiting { number, args } => {
                let call = BlockedCall { number, args };
                match call.writes_to(self.pid, self.targets) {
                    Some(fd) => format!("thread {tid} is writing to descriptor {fd} itself"),
                    None => {
                        format!(
                            "thread {tid} is in {}, perhaps in the middle of a stream operation",
                            call.name()
                        )
                    }
                }
            }
            proc::ThreadState::Running => {
                format!("thread {tid} computes, perhaps in the middle of a stream operation")
            }
            proc::ThreadState::Unknown => {
                format!("thread {tid} did not stop, and its state cannot be read")
            }
        }
    }
}

impl Drop for StoppedThreads<'_> {
    fn drop(&mut self) {
        let mut repeated = Vec::new();
        for (tid, state) in &self.threads {
            if let StopState::Stopped { signal, .. } = state {
                match self.repeated.get(tid).filter(|_| *signal == 0) {
                    Some(wait) => repeated.push((*tid, *wait)),
                    None => timed_waits::let_go(*tid, *signal),
                }
            }
        }
        *self.waits = timed_waits::resume_into(&repeated);
    }
}

/// Waits until each call that weir has injected into a thread of the calling thread's tracees has returned. Only the tracer
/// can restore the thread's registers.
#[cfg(target_arch = "x86_64")]
pub(super) fn await_late_calls() {
    while late_calls::exist() {
        match ptrace::wait() {
            Ok(Some(PtraceStop { tid, status, .. })) => {
                let has_signal = status >> 16 == 0 && libc::WSTOPSIG(status) != SYSCALL_STOP;
                ptrace::detach(tid, if has_signal { libc::WSTOPSIG(status) } else { 0 });
            }
            Ok(None) => {}
            Err(_) => break,
        }
    }
}

/// Returns whether the calling thread traces a thread that makes a call for weir and does not return from it.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_call_late() -> bool {
    late_calls::exist()
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn await_late_calls() {}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn is_call_late() -> bool {
    false
}

/// Returns why a process does not run until something else resumes it: job control has stopped it, or it is frozen. None if it can run.
pub(super) fn stuck_text(pid: u32) -> Option<String> {
    if has_state(pid, 'T') { Some(stopped_text(pid)) } else { frozen_text(pid) }
}

fn frozen_text(pid: u32) -> Option<String> {
    let cgroup = frozen::cgroup_of(pid)?;
    Some(format!("its cgroup is frozen ({cgroup}), so none of its threads runs"))
}

/// Returns the obstacle of a process that job control has stopped outside of a safe call.
fn stopped_text(pid: u32) -> String {
    format!("it was stopped (SIGSTOP, Ctrl-Z) in the middle of its work; resume it: kill -CONT {pid}")
}

/// Returns whether a thread is in uninterruptible sleep: only the end of its wait, or its death, wakes it.
fn is_uninterruptible(tid: u32) -> bool {
    has_state(tid, 'D')
}

/// Returns whether a thread has a state of proc_pid_status(5).
fn has_state(tid: u32, state: char) -> bool {
    proc::status(tid).is_some_and(|status| status.state.starts_with(state))
}
