//! Lets weir end although its command cannot: a process that waits for a file whose server does not answer sleeps on,
//! whatever signal comes (state D of proc_pid_status(5)).

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::{proc, signals};

/// The signal for which weir ends before its command; 0: none.
static LEAVING: AtomicI32 = AtomicI32::new(0);

/// The number of intervals of 0.5 s for which a process must sleep in the same call after the second signal that asks weir to
/// end, so that weir ends within 2 s. The intervals since the first SIGTERM count.
const INTERVALS_AFTER_SECOND: u32 = 2;
/// As above, after one SIGTERM or SIGHUP: the time that supervisors give a process before SIGKILL (10 s in containers), less the
/// time that weir needs to end.
const INTERVALS_AFTER_FIRST: u32 = 16;

/// Returns the signal for which weir must end before its command, which no signal ends; None in other cases.
pub fn leaving() -> Option<i32> {
    Some(LEAVING.load(Relaxed)).filter(|signal| *signal != 0)
}

/// A thread that no signal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unkillable {
    pub pid: u32,
    pub tid: u32,
    /// The signal that asked weir to end.
    pub signal: i32,
}

/// A search for unkillable threads among the processes of a command, once a signal has asked weir to end.
#[derive(Default)]
pub(crate) struct UnkillableSearch {
    /// Threads with their call, and the number of intervals for which they have slept in it.
    asleep: HashMap<u32, (String, u32)>,
}

impl UnkillableSearch {
    /// Searches again, an interval later. If a thread is found, [`leaving`] returns the signal from now on.
    pub fn check(&mut self, command: u32) -> Option<Unkillable> {
        let (signal, most) = limit(signals::end_requests())?;
        let mut asleep = HashMap::new();
        for pid in proc::with_descendants(command) {
            for tid in proc::threads(pid) {
                let Some(call) = uninterruptible_call(tid, signal) else { continue };
                let before = self.asleep.get(&tid).filter(|(before, _)| *before == call);
                let intervals = before.map_or(0, |(_, intervals)| intervals + 1);
                if intervals >= most {
                    LEAVING.store(signal, Relaxed);
                    return Some(Unkillable { pid, tid, signal });
                }
                asleep.insert(tid, (call, intervals));
            }
        }
        self.asleep = asleep;
        None
    }
}

/// Returns the last of the signals that asked weir to end, and the intervals after which weir ends; None if it goes on: the terminal
/// sends one Ctrl-C to the command, which may handle it.
fn limit((requests, last): (u32, i32)) -> Option<(i32, u32)> {
    match (requests, last) {
        (0, _) | (1, libc::SIGINT | libc::SIGQUIT) => None,
        (1, _) => Some((last, INTERVALS_AFTER_FIRST)),
        _ => Some((last, INTERVALS_AFTER_SECOND)),
    }
}

/// Returns what identifies the call of a thread, if it sleeps there although this signal, or SIGKILL, is pending.
fn uninterruptible_call(tid: u32, signal: i32) -> Option<String> {
    let status = proc::status(tid)?;
    let asked = 1 << (signal - 1) | 1 << (libc::SIGKILL - 1);
    if !status.state.starts_with('D') || (status.sigpnd | status.shdpnd) & asked == 0 {
        return None;
    }
    // A thread that has not run since is in the same call. /proc/TID/syscall of one that hangs in execve(2) blocks for ever.
    fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interrupt_is_the_business_of_the_command() {
        assert_eq!([(0, 0), (1, libc::SIGINT), (1, libc::SIGQUIT)].map(limit), [None; 3]);
        assert_eq!(limit((1, libc::SIGTERM)), Some((libc::SIGTERM, INTERVALS_AFTER_FIRST)));
        assert_eq!(limit((2, libc::SIGINT)), Some((libc::SIGINT, INTERVALS_AFTER_SECOND)));
    }

    #[test]
    fn a_thread_that_sleeps_and_can_be_ended_is_not_found() {
        let (_reader, writer) = std::io::pipe().expect("a pipe");
        let mut child = std::process::Command::new("cat").stdin(_reader).spawn().expect("cat");
        assert_eq!(uninterruptible_call(child.id(), libc::SIGTERM), None);
        drop(writer);
        child.wait().expect("its end");
    }
}
