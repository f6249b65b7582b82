//! The identity of a process. The kernel gives the number of a process that has ended and was waited for to another one.

use std::os::fd::AsFd;

use rustix::fs::fstat;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{proc, process_stat};

/// A process, known by more than its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIdentity {
    pid: u32,
    /// Field starttime of proc_pid_stat(5), in clock ticks since boot; None if there is no such process.
    start_ticks: Option<u64>,
    /// The inode of its pidfd, which differs for any two processes since Linux 6.9 (pidfs) and is the same for all before.
    inode: Option<u64>,
}

impl ProcessIdentity {
    /// Returns the identity of the process that has this number now. Without one the result belongs to no process.
    pub fn of(pid: u32) -> ProcessIdentity {
        let start_ticks = process_stat::read(pid).map(|stat| stat.start_ticks);
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

    /// Returns the descendants of the process, parents before their children; none if it has ended.
    pub fn descendants(&self) -> Vec<ProcessIdentity> {
        let found: Vec<ProcessIdentity> =
            proc::descendants(self.pid).into_iter().map(ProcessIdentity::of).collect();
        // A number that was given to another process between the list and the look at it is not in both lists.
        let again = proc::descendants(self.pid);
        let is_same = |one: &ProcessIdentity| again.contains(&one.pid) && one.is_current();
        let found: Vec<ProcessIdentity> = found.into_iter().filter(is_same).collect();
        if self.is_current() { found } else { Vec::new() }
    }

    /// Returns whether the process still has its number. A zombie has it. What was read by the number before a call that
    /// returns true belongs to the process.
    pub fn is_current(&self) -> bool {
        let now = ProcessIdentity::of(self.pid);
        // A pidfd needs a free descriptor.
        let same_inode = self.inode.zip(now.inode).is_none_or(|(before, now)| before == now);
        self.start_ticks.is_some() && self.start_ticks == now.start_ticks && same_inode
    }
}

fn pidfd_inode(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
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
        for other in [
            ProcessIdentity { start_ticks: own.start_ticks.map(|ticks| ticks + 1), ..own },
            ProcessIdentity { inode: own.inode.map(|inode| inode + 1), ..own },
        ] {
            assert!(!other.is_current(), "{other:?}");
        }
        assert!(ProcessIdentity { inode: None, ..own }.is_current());
        assert!(ProcessIdentity::started_at(own.pid, own.start_ticks).is_current());
        assert!(!ProcessIdentity::started_at(own.pid, Some(0)).is_current());
    }
}
