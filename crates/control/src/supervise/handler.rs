//! What a follower is told, one method a moment. Everything is empty by default.

use std::time::Duration;

use crate::supervise::Tracees;

/// Does something for a command that is followed. A process is named by its number, `pid`; in these moments the
/// thread that came into it is stopped, and nothing of what it does next has happened.
pub trait LifecycleHandler {
    /// How often `tick` is wanted; None: never, and then nothing wakes weir between the other moments.
    fn every(&self) -> Option<Duration> {
        None
    }

    /// A new image, of which nothing has run.
    fn exec(&mut self, world: &mut Tracees, pid: u32) {
        let _ = (world, pid);
    }

    /// A new process. With `shares_memory` (vfork and its kin) the child runs in the parent's memory.
    fn fork(&mut self, world: &mut Tracees, parent: u32, child: u32, shares_memory: bool) {
        let _ = (world, parent, child, shares_memory);
    }

    /// The last thread of a process is about to end, with this wait status: the memory and the descriptors of the
    /// thread `tid` are there still, and no parent knows of the end yet. Not called for a process that runs in
    /// another's memory. False: it is to wait, and is asked again in a moment.
    fn exits(&mut self, world: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let _ = (world, pid, tid, status);
        true
    }

    /// The process is gone.
    fn gone(&mut self, world: &mut Tracees, pid: u32) {
        let _ = (world, pid);
    }

    /// It is time; `now` as of [`weir_sys::clock::now_ns`].
    fn tick(&mut self, world: &mut Tracees, now: u64) {
        let _ = (world, now);
    }
}
