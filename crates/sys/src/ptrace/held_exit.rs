//! The exit stop of a thread that a tracer holds until the other threads of its process have ended.

use super::registers;

/// A thread in its exit stop, which is resumed when the other threads of its process have ended, or when its time is over.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct HeldExit {
    pub pid: u32,
    pub tid: u32,
    /// The exit status as wait(2) will report it.
    pub status: i32,
    /// The end of the wait on the clock of [`crate::clock::now_ns`].
    pub until_ns: u64,
}

/// Returns whether a thread in its exit stop ends by its own exit(2), so that its process continues. Returns false if the thread
/// has left the stop: it may have been killed.
pub fn ends_alone(tid: u32) -> bool {
    registers::current_syscall(tid).is_some_and(|call| call.number == libc::SYS_exit)
}
