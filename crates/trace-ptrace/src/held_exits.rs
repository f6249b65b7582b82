//! Exit stops that weir holds until the other threads of the process have ended.
//!
//! The kernel leaves out the exit stop of a thread that ends by itself while exit_group(2) or a signal ends the process
//! (ptrace_stop() in kernel/signal.c: a fatal signal is pending). The exit stop of another thread is then the last moment at which
//! the memory and the counters of the process can be read.

use weir_sys::clock::now_ns;
use weir_sys::ptrace::held_exit::HeldExit;
use weir_sys::{proc, ptrace};

use super::tracer::Tracer;

/// For how long an exit stop is held at most, nanoseconds. On a busy machine a killed thread can need 100 ms and more to reach its own
/// exit stop, which shows what its last write has written. In an uninterruptible wait it can need any time.
const MAX_HELD_NS: u64 = 2_000_000_000;

/// The interval at which held exits are checked, nanoseconds.
pub(super) const RETRY_NS: u64 = 200_000;

impl Tracer<'_, '_> {
    /// Handles a thread in its exit stop: takes the last snapshot of its process if no other thread lives, and resumes the thread. If
    /// other threads live and all of them have been killed, holds the thread instead.
    pub(super) fn take_exit_stop(&mut self, pid: u32, tid: u32, status: i32, now: u64) {
        if !self.has_living_thread(pid) {
            self.snapshot_at_end(pid, tid, status, now);
        } else if self.living_threads(pid).all(proc::is_killed) {
            self.held_exits.push(HeldExit { pid, tid, status, until_ns: now + MAX_HELD_NS });
            return;
        }
        ptrace::resume(tid, false, 0);
    }

    /// Resumes the held threads whose process has no other living thread, after its last snapshot, and those that were held too long.
    pub(super) fn retry_held_exits(&mut self) {
        for held in std::mem::take(&mut self.held_exits) {
            let HeldExit { pid, tid, status, until_ns } = held;
            let now = now_ns();
            let is_done = self.processes.get(&pid).is_none_or(|process| process.final_counters.is_some());
            let is_last = !is_done && !self.has_living_thread(pid);
            if is_last {
                self.snapshot_at_end(pid, tid, status, now);
            }
            if is_last || is_done || now >= until_ns || self.closing() {
                ptrace::resume(tid, false, 0);
            } else {
                self.held_exits.push(held);
            }
        }
    }

    /// Returns the threads of a process that have not reached their exit stop.
    fn living_threads(&self, pid: u32) -> impl Iterator<Item = u32> {
        let threads =
            self.processes.get(&pid).into_iter().flat_map(|process| process.threads.iter().copied());
        threads.filter(|tid| self.threads.get(tid).is_some_and(|thread| thread.ending.is_none()))
    }

    fn has_living_thread(&self, pid: u32) -> bool {
        self.living_threads(pid).any(|tid| !proc::is_dead(tid))
    }
}
