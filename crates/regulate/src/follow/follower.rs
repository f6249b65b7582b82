//! What a follower is told, one method a moment. Everything is empty by default.

use std::time::Duration;

use super::World;

pub use weir_probe::ptrace::registers::Call;

/// What is to become of a system call that a follower was shown at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it is made as it is.
    Make,
    /// It is made with these arguments, and the follower is shown its exit.
    Change([u64; 6]),
    /// It is not made, and returns this.
    Instead(i64),
}

/// Does something for a command that is followed. A process is named by its number, `pid`; in these moments the
/// thread `tid` is stopped, and nothing of what it does next has happened.
pub trait Follower {
    /// How often `tick` is wanted; None: never, and then nothing wakes the follower between the other moments.
    fn every(&self) -> Option<Duration> {
        None
    }

    /// A new image, of which nothing has run.
    fn exec(&mut self, world: &mut World, pid: u32) {
        let _ = (world, pid);
    }

    /// A new process. With `shares_memory` (vfork and its kin) the child runs in the parent's memory.
    fn fork(&mut self, world: &mut World, parent: u32, child: u32, shares_memory: bool) {
        let _ = (world, parent, child, shares_memory);
    }

    /// The last thread of a process is about to end, with this wait status: `tid`'s memory and descriptors are
    /// there still, and no parent knows of the end yet. Not called for a process in another's memory.
    fn exits(&mut self, world: &mut World, pid: u32, tid: u32, status: i32) {
        let _ = (world, pid, tid, status);
    }

    /// The process is gone.
    fn gone(&mut self, world: &mut World, pid: u32) {
        let _ = (world, pid);
    }

    /// It is time; `now` as of [`weir_probe::engine::now_ns`].
    fn tick(&mut self, world: &mut World, now: u64) {
        let _ = (world, now);
    }

    /// A thread of a process that is watched ([`World::watch`]) is about to make a system call.
    fn entry(&mut self, world: &mut World, pid: u32, tid: u32, call: &Call) -> Answer {
        let _ = (world, pid, tid, call);
        Answer::Make
    }

    /// A call that this follower changed has been made, with this result; what the program is to see of it.
    fn exit(&mut self, world: &mut World, pid: u32, tid: u32, result: i64) -> i64 {
        let _ = (world, pid, tid);
        result
    }

    /// Whether weir must stay for this process after the command's end.
    fn holds(&self, pid: u32) -> bool {
        let _ = pid;
        false
    }

    /// How many bytes were written ahead of their programs.
    fn emitted_bytes(&self) -> u64 {
        0
    }
}
