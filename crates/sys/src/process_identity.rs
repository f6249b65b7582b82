//! The identity of a process. The kernel gives the number of a process that has ended and was waited for to another one.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::fs::{fstat, fstatfs};

use crate::{foreign_reads, pidfd, proc, process_stat};

/// A process, known by more than its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    pid: u32,
    /// Field starttime of proc_pid_stat(5), in clock ticks since boot; None if there is no such process, or if the inode
    /// identifies it and no start time was given.
    start_ticks: Option<u64>,
    /// The inode of its pidfd, if it differs for any two processes: since Linux 6.9 (pidfs). None for no process, and before.
    inode: Option<u64>,
}

impl ProcessIdentity {
    /// Returns the identity of the process that has this number now. Without one the result belongs to no process.
    pub fn of(pid: u32) -> ProcessIdentity {
        let start_ticks = if has_pidfs() { None } else { start_ticks(pid) };
        ProcessIdentity { pid, start_ticks, inode: pidfd_inode(pid) }
    }

    /// As [`ProcessIdentity::of`], but of the process with this start time, if it is given: another one has another identity.
    pub fn started_at(pid: u32, start_ticks: Option<u64>) -> ProcessIdentity {
        let now = ProcessIdentity::of(pid);
        ProcessIdentity { start_ticks: start_ticks.or(now.start_ticks), ..now }
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether there was a process with this number when its identity was read, or given.
    pub fn has_existed(&self) -> bool {
        self.inode.is_some() || self.start_ticks.is_some()
    }

    /// Returns the descendants of the process, parents before their children; none if it has ended.
    pub fn descendants(&self) -> Vec<ProcessIdentity> {
        let found: Vec<ProcessIdentity> =
            proc::descendants(self.pid).into_iter().map(ProcessIdentity::of).collect();
        // A PID that was given to another process between the list and the read of its identity is not in both lists.
        let again = proc::descendants(self.pid);
        let is_same = |one: &ProcessIdentity| again.contains(&one.pid) && one.is_current();
        let found: Vec<ProcessIdentity> = found.into_iter().filter(is_same).collect();
        if self.is_current() { found } else { Vec::new() }
    }

    /// Returns whether the process still has its PID, as a zombie does. If so, data that was read by the PID before this call belong
    /// to the process.
    pub fn is_current(&self) -> bool {
        let same_inode = self.inode.is_none_or(|inode| pidfd_inode(self.pid) == Some(inode));
        let same_start = self.start_ticks.is_none_or(|ticks| start_ticks(self.pid) == Some(ticks));
        self.has_existed() && same_inode && same_start
    }
}

/// Returns the start time of a process; None if there is none, or if its /proc/PID/stat does not answer.
fn start_ticks(pid: u32) -> Option<u64> {
    foreign_reads::answers(pid).then(|| process_stat::read(pid)).flatten().map(|stat| stat.start_ticks)
}

/// Returns whether the inodes of pidfds identify processes. Reading them needs no file of /proc, which can block for ever.
fn has_pidfs() -> bool {
    /// PID_FS_MAGIC of linux/magic.h.
    const PIDFS: u32 = 0x5049_4446;
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let own = pidfd::open_thread(std::process::id());
        own.is_ok_and(|own| fstatfs(own).is_ok_and(|about| about.f_type as u32 == PIDFS))
    })
}

fn pidfd_inode(pid: u32) -> Option<u64> {
    let pidfd = if has_pidfs() { pidfd::open_thread(pid).ok() } else { None }?;
    fstat(pidfd.as_fd()).ok().map(|about| about.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_its_identity_until_it_is_waited_for() {
        let own = ProcessIdentity::of(std::process::id());
        assert!(own.is_current() && own == ProcessIdentity::of(own.pid()));
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let identity = ProcessIdentity::of(child.id());
        assert!(identity.is_current() && identity != own);
        child.wait().expect("its end");
        assert!(!identity.is_current());
        assert!(!ProcessIdentity::of(child.id()).is_current(), "there is none");
    }

    #[test]
    fn another_process_with_the_number_has_another_identity() {
        let own = ProcessIdentity::of(std::process::id());
        let ticks = start_ticks(own.pid).expect("the start time of this process");
        let by_start = ProcessIdentity { start_ticks: Some(ticks), inode: None, ..own };
        assert!(by_start.is_current(), "without pidfs");
        for other in [
            ProcessIdentity { start_ticks: Some(ticks + 1), ..own },
            ProcessIdentity { inode: Some(own.inode.map_or(1, |inode| inode + 1)), ..own },
            ProcessIdentity { start_ticks: None, inode: None, ..own },
        ] {
            assert!(!other.is_current(), "{other:?}");
        }
        assert!(ProcessIdentity::started_at(own.pid, Some(ticks)).is_current());
        assert!(!ProcessIdentity::started_at(own.pid, Some(0)).is_current());
    }

    #[test]
    fn a_thread_has_an_identity_until_it_ends() {
        // SAFETY: gettid returns a number and has no other effect.
        let thread = std::thread::spawn(|| ProcessIdentity::of(unsafe { libc::gettid() } as u32));
        let identity = thread.join().expect("its identity");
        assert!(identity.inode.is_some() || identity.start_ticks.is_some());
        assert_ne!(identity, ProcessIdentity::of(std::process::id()));
    }
}
