//! Whether a process can be looked into at all, and if not, why and what to do.

use crate::proc;

/// Why nothing can be done with this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessProblem {
    /// There is none.
    #[error("{0}: kill: ESRCH: there is no such process; 'ps -e' lists those that there are")]
    Gone(u32),
    /// It is a thread.
    #[error("{tid} is a thread: give its process, {pid}")]
    Thread {
        /// What was given.
        tid: u32,
        /// Its process.
        pid: u32,
    },
    /// It has ended.
    #[error(
        "{label} is a zombie: it has ended, its memory is gone, and what waited in it too; only its parent ({parent}) \
         can remove it"
    )]
    Zombie {
        /// Its name.
        label: String,
        /// Its parent's.
        parent: String,
    },
    /// It is a part of the kernel.
    #[error("{0} is a thread of the kernel: it has no memory of a program, and so no streams")]
    Kernel(String),
    /// Its memory may not be read.
    #[error("{label}: process_vm_readv: EPERM: {why}")]
    Denied {
        /// Its name.
        label: String,
        /// Whose it is, and what to do.
        why: String,
    },
    /// It is a program of another architecture.
    #[error("{0} is a program of 32 bits or of another architecture: weir does not know its streams")]
    Foreign(String),
}

/// Checks it.
pub fn check(pid: u32) -> Result<(), AccessProblem> {
    let Some(status) = proc::status(pid) else { return Err(AccessProblem::Gone(pid)) };
    if status.tgid as u32 != pid {
        return Err(AccessProblem::Thread { tid: pid, pid: status.tgid as u32 });
    }
    let label = || proc::label(pid);
    if status.state.starts_with(['Z', 'X']) {
        return Err(AccessProblem::Zombie { label: label(), parent: proc::label(status.ppid as u32) });
    }
    if status.vmsize.is_none() {
        return Err(AccessProblem::Kernel(label()));
    }
    // The list of mappings asks for the same right as reading the memory.
    match std::fs::File::open(format!("/proc/{pid}/mem")) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(AccessProblem::Gone(pid)),
        // It was just ending.
        Err(_) if proc::status(pid).is_none_or(|status| status.vmsize.is_none()) => {
            return Err(AccessProblem::Gone(pid));
        }
        Err(_) => return Err(AccessProblem::Denied { label: label(), why: denied(status.euid) }),
        Ok(_) => {}
    }
    if proc::foreign(pid) { Err(AccessProblem::Foreign(label())) } else { Ok(()) }
}

fn denied(owner: u32) -> String {
    match rustix::process::geteuid().is_root() {
        true => {
            "it has rights that weir has not: run weir outside of this container or user namespace".into()
        }
        false => {
            format!("it belongs to user {owner}, or kernel.yama.ptrace_scope forbids it: run weir as root")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_into() {
        assert_eq!(check(std::process::id()), Ok(()));
        assert_eq!(check(u32::MAX / 2), Err(AccessProblem::Gone(u32::MAX / 2)));
        assert!(
            matches!(check(2), Err(AccessProblem::Kernel(_) | AccessProblem::Gone(_)) | Ok(())),
            "no kthreadd in a container"
        );
        let mut child = std::process::Command::new("true").spawn().expect("true");
        while !proc::status(child.id()).is_some_and(|status| status.state.starts_with('Z')) {
            std::thread::yield_now();
        }
        assert!(matches!(check(child.id()), Err(AccessProblem::Zombie { .. })));
        child.wait().expect("its end");
    }
}
