//! All threads of a process, stopped where nothing of a stream is in their hands.
//!
//! Made, used and dropped by one thread, which ends then: that lets go of those that are not stopped.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use weir_sys::ptrace::registers;
use weir_sys::ptrace::{self, EVENT_STOP, PtraceStop, SyscallStop};
use weir_sys::{proc, syscalls};

use super::blocked_call::BlockedCall;

/// A system call stop, with PTRACE_O_TRACESYSGOOD.
const CALL: i32 = libc::SIGTRAP | 0x80;

/// How long threads that have reached a good place wait for the others.
const TOGETHER: Duration = Duration::from_millis(50);

/// Why there is no hold.
#[derive(Debug)]
pub(super) enum StopError {
    /// Not at this moment; what is in the way.
    Now(String),
    /// It has ended.
    Ended,
    /// ptrace(2) does not work.
    Refused(io::Error),
}

/// The threads, stopped as long as this lives.
pub(super) struct StoppedThreads<'t> {
    pid: u32,
    targets: &'t [String],
    threads: BTreeMap<u32, StopState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopState {
    /// It was asked to stop.
    Asked,
    /// It runs to its next system call.
    ToCall,
    Stopped {
        /// To be delivered when it goes on.
        signal: i32,
        call: Option<BlockedCall>,
        /// By job control.
        group: bool,
    },
}

impl<'t> StoppedThreads<'t> {
    /// Stops them; `targets` are the files that none may be writing to.
    pub fn take(pid: u32, targets: &'t [String]) -> Result<StoppedThreads<'t>, StopError> {
        let mut hold = StoppedThreads { pid, targets, threads: BTreeMap::new() };
        let (until, mut pause) = (Instant::now() + TOGETHER, Duration::from_micros(20));
        loop {
            let new = hold.ask_new()?;
            while let Some(stop) = ptrace::wait_no_longer() {
                hold.on_stop(stop);
            }
            if hold.threads.is_empty() {
                return Err(StopError::Ended);
            }
            let stopped = |state: &StopState| matches!(state, StopState::Stopped { .. });
            if !new && hold.threads.values().all(stopped) && hold.go_on_where_needed()? {
                return Ok(hold);
            }
            if Instant::now() > until {
                return Err(StopError::Now(hold.in_the_way()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Asks those that are not known yet. True: there were some.
    fn ask_new(&mut self) -> Result<bool, StopError> {
        let mut found = false;
        for tid in proc::threads(self.pid) {
            if self.threads.contains_key(&tid) || is_ended(tid) {
                continue;
            }
            match seize(tid).and_then(|()| ptrace::interrupt(tid)) {
                Ok(()) => self.threads.insert(tid, StopState::Asked),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) || is_ended(tid) => continue,
                Err(error) => return Err(StopError::Refused(error)),
            };
            found = true;
        }
        Ok(found)
    }

    fn on_stop(&mut self, stop: PtraceStop) {
        let PtraceStop { tid, status } = stop;
        if !libc::WIFSTOPPED(status) {
            self.threads.remove(&tid);
            return;
        }
        let Some(state) = self.threads.get_mut(&tid) else { return };
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let of_call = signal == CALL && event == 0;
        let call = match ptrace::side(tid) {
            SyscallStop::Entry { number, args, arch } if of_call && !syscalls::foreign(arch, number) => {
                Some(BlockedCall { number: number as i64, args })
            }
            _ if of_call => None,
            _ => registers::call(tid).map(|call| BlockedCall { number: call.number, args: call.args }),
        };
        if event == EVENT_STOP && signal == libc::SIGTRAP && *state == StopState::Asked {
            mend(tid);
        }
        let signal_waits = event == 0 && !of_call;
        *state = StopState::Stopped {
            signal: if signal_waits { signal } else { 0 },
            call,
            group: event == EVENT_STOP && signal != libc::SIGTRAP,
        };
    }

    /// Lets those that may be inside a stream run to their next call. True: there are none.
    fn go_on_where_needed(&mut self) -> Result<bool, StopError> {
        let mut good = true;
        for (tid, state) in &mut self.threads {
            let StopState::Stopped { signal, call, group } = *state else { continue };
            let well = call.is_some_and(|call| {
                !call.may_be_inside() && call.writes_to(self.pid, self.targets).is_none()
            });
            if well {
                continue;
            }
            if group {
                return Err(StopError::Now(format!(
                    "it was stopped (SIGSTOP, Ctrl-Z) in the middle of its work; let it go on: kill -CONT {}",
                    self.pid
                )));
            }
            ptrace::resume(*tid, true, signal);
            *state = StopState::ToCall;
            good = false;
        }
        Ok(good)
    }

    /// Those that did not come to a good place.
    fn in_the_way(&self) -> String {
        let late = self.threads.iter().filter(|(_, state)| !matches!(state, StopState::Stopped { .. }));
        let said: Vec<String> = late.map(|(tid, _)| self.doing(*tid)).take(3).collect();
        match said.is_empty() {
            true => "its threads did not come to rest together".into(),
            false => said.join("; "),
        }
    }

    fn doing(&self, tid: u32) -> String {
        match proc::thread_state(tid) {
            proc::ThreadState::Waiting { number, args } => {
                let call = BlockedCall { number, args };
                match call.writes_to(self.pid, self.targets) {
                    Some(fd) => format!("thread {tid} is writing to descriptor {fd} itself"),
                    None => format!("thread {tid} is in {}, maybe in the middle of a stream", call.name()),
                }
            }
            _ => format!("thread {tid} computes and makes no system call, maybe in the middle of a stream"),
        }
    }
}

impl Drop for StoppedThreads<'_> {
    fn drop(&mut self) {
        for (tid, state) in &self.threads {
            if let StopState::Stopped { signal, .. } = state {
                ptrace::detach(*tid, *signal);
            }
        }
    }
}

/// Undoes what the stop did to the call that it came into. At once: weir may be killed before it lets go.
fn mend(tid: u32) {
    let broken = registers::broken_call(tid);
    let ends = |(number, result): (i64, i64)| {
        result == -i64::from(libc::EINTR) && syscalls::may_be_made_again(number)
    };
    if broken.is_some_and(ends) && !proc::has_signal(tid) {
        registers::make_again(tid);
    }
}

fn is_ended(tid: u32) -> bool {
    proc::status(tid).is_none_or(|status| status.state.starts_with(['Z', 'X']))
}

/// Becomes a thread's tracer for nothing but the stops that it is asked for.
fn seize(tid: u32) -> io::Result<()> {
    const SEIZE: libc::c_uint = 0x4206;
    let options = libc::PTRACE_O_TRACESYSGOOD as usize;
    // SAFETY: the request takes two numbers.
    let answer = unsafe { libc::ptrace(SEIZE as _, tid as libc::pid_t, 0usize, options) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
