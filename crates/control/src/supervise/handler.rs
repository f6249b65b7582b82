//! The interface between the supervisor and the features that act on its events.

use std::time::Duration;

use super::Tracees;

/// A call that has made a process.
#[derive(Debug, Clone, Copy)]
pub struct Fork {
    /// The process that made the call.
    pub parent: u32,
    /// It has executed no instruction.
    pub child: u32,
    /// Set for vfork(2) and clone(2) with CLONE_VM.
    pub shares_memory: bool,
    /// When the handlers were first called, on the clock of [`weir_sys::clock::now_ns`].
    pub begun_ns: u64,
}

/// Acts on lifecycle events of supervised processes. During an event the thread that caused it is stopped.
///
/// `pid` is a process and `tid` one of its threads. The default methods do nothing.
pub trait LifecycleHandler {
    /// Returns the interval of `on_tick`; None if the handler needs no ticks.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns a participle for the handler's work on pending bytes, which ends with the command: "written early". None: no work.
    fn service(&self) -> Option<&'static str> {
        None
    }

    /// A process has executed a new image and has not run its first instruction.
    fn on_exec(&mut self, tracees: &mut Tracees, pid: u32) {
        let _ = (tracees, pid);
    }

    /// A process exists that has not run. Returns false to be called again soon; the child and the thread that made the call
    /// stay stopped meanwhile.
    fn on_fork(&mut self, tracees: &mut Tracees, fork: &Fork) -> bool {
        let _ = (tracees, fork);
        true
    }

    /// The last thread of a process is in its exit stop: its memory and descriptors still exist. `status` is the wait
    /// status. Not called for a process that shares its parent's memory. Returns false to be called again soon; the
    /// thread stays stopped meanwhile.
    fn on_exit(&mut self, tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let _ = (tracees, pid, tid, status);
        true
    }

    /// A process has been reaped.
    fn on_reaped(&mut self, tracees: &mut Tracees, pid: u32) {
        let _ = (tracees, pid);
    }

    /// Weir has detached from a process, which another program traces now.
    fn on_detached(&mut self, tracees: &mut Tracees, pid: u32) {
        let _ = (tracees, pid);
    }

    /// The supervision ends: weir detaches from the processes that are left.
    fn on_end(&mut self, tracees: &mut Tracees) {
        let _ = tracees;
    }

    /// The interval has passed. `now` is [`weir_sys::clock::now_ns`].
    fn on_tick(&mut self, tracees: &mut Tracees, now: u64) {
        let _ = (tracees, now);
    }
}
