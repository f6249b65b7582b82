//! The thread by which /proc shows the memory and the descriptors of a process. They belong to each of its threads, and
//! the kernel takes them from a thread that ends, also from the main thread: after its pthread_exit(3), /proc/PID shows
//! none although other threads use them, and /proc/TID of another thread does (proc(5); exit_mm and exit_files in
//! kernel/exit.c).

use crate::{proc, process_status};

/// Returns a thread of the process that has not ended: the main thread, else another one, else `pid`.
pub fn of(pid: u32) -> u32 {
    other(pid).unwrap_or(pid)
}

/// Returns a living thread of a process whose main thread has ended; none if it lives, or if the whole process has ended.
pub fn other(pid: u32) -> Option<u32> {
    process_status::read(pid).filter(|status| matches!(status.state, b'Z' | b'X'))?;
    proc::threads(pid).into_iter().find(|&tid| tid != pid && !proc::is_dead(tid))
}

/// Returns what `read` finds for the process, or else by another of its threads if the main thread has ended.
pub(crate) fn or_by_other<T>(pid: u32, read: impl Fn(u32) -> Option<T>) -> Option<T> {
    read(pid).or_else(|| read(other(pid)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_its_main_thread_needs_no_other() {
        let own = std::process::id();
        assert_eq!((of(own), other(own)), (own, None));
        assert_eq!(or_by_other(own, |_| None::<u32>), None);
    }

    #[test]
    fn a_process_that_has_ended_has_no_thread() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        while !proc::has_ended(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!((of(child.id()), other(child.id())), (child.id(), None));
        child.wait().expect("its end");
    }
}
