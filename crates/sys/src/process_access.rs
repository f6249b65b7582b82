//! Checks whether the memory of a process can be read.

use crate::process_identity::ProcessIdentity;
use crate::{executable, foreign_reads, living_thread, proc, process_stat};

/// The reason why the memory of a process cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessProblem {
    /// There is no process with this number.
    #[error("no process {0}")]
    Gone(u32),
    /// The process existed when weir began, and has ended since.
    #[error("process {0} has ended meanwhile")]
    Ended(u32),
    /// /proc is not mounted.
    #[error(
        "process {0} cannot be examined: /proc is not mounted here, and weir reads it: mount -t proc proc /proc"
    )]
    NoProc(u32),
    /// The process exists, but /proc does not show it.
    #[error(
        "process {0} is hidden: /proc is mounted with hidepid, so only root and its own user see it: run weir as root"
    )]
    Hidden(u32),
    /// The process has ended, and another one has its number.
    #[error("no process {0}: it has ended, and another process has its number now")]
    Replaced(u32),
    /// The number is a thread's, not a process's.
    #[error("{tid} is a thread; use the PID of its process, {pid}")]
    #[allow(missing_docs)]
    Thread { tid: u32, pid: u32 },
    /// The process has ended and its parent has not waited for it yet.
    #[error(
        "{label} is a zombie: it has ended, and its memory with all pending bytes is gone; only its parent ({parent}) can \
         remove it"
    )]
    Zombie {
        /// Name and number of the process.
        label: String,
        /// Name and number of its parent.
        parent: String,
    },
    /// The process is a kernel thread, by name and number.
    #[error("{0} is a kernel thread: it has no user memory and no streams")]
    Kernel(String),
    /// The memory of the process may not be read.
    #[error("{label}: process_vm_readv: EPERM: {why}")]
    Denied {
        /// Name and number of the process.
        label: String,
        /// Its owner, and what to do.
        why: String,
    },
    /// The process holds the lock that its execve(2) takes. `label` is its name and number.
    #[error(
        "{label} does not answer: a read of /proc/{pid}/stat blocks; probably its execve(2) waits until a file system (FUSE, \
         NFS) has closed a file: end that file system's server, or unmount it with 'umount -f'"
    )]
    #[allow(missing_docs)]
    Unanswered { label: String, pid: u32 },
    /// The process, by name and number, runs a program of another architecture.
    #[error("{0} is a 32-bit program or one of another architecture: weir does not know its streams")]
    Foreign(String),
}

impl AccessProblem {
    /// Returns whether the process has ended.
    pub fn has_ended(&self) -> bool {
        matches!(
            self,
            AccessProblem::Gone(_)
                | AccessProblem::Ended(_)
                | AccessProblem::Replaced(_)
                | AccessProblem::Zombie { .. }
        )
    }
}

/// Checks whether a process answers at all, which takes 2 s if it does not. A process can stop to answer at any time, so a
/// caller that then must not wait reads in a child that it can abandon.
pub fn check_answers(pid: u32) -> Result<(), AccessProblem> {
    match foreign_reads::answers(pid) {
        true => Ok(()),
        false => Err(AccessProblem::Unanswered { label: proc::label(pid), pid }),
    }
}

/// Checks whether this process can read the memory of a process, and whether that process still has its PID, so that data read by
/// the PID before belong to it.
pub fn check_same(process: ProcessIdentity) -> Result<(), AccessProblem> {
    let pid = process.pid();
    let result = check(pid);
    match process.is_current() {
        true => result,
        false if matches!(result, Err(AccessProblem::Hidden(_))) => result,
        false if proc::exists(pid) => Err(AccessProblem::Replaced(pid)),
        false if process.has_existed() => Err(AccessProblem::Ended(pid)),
        false => Err(AccessProblem::Gone(pid)),
    }
}

/// Returns why /proc does not show a process.
pub fn absent(pid: u32) -> AccessProblem {
    match proc::is_hidden(pid) {
        _ if !proc::is_mounted() => AccessProblem::NoProc(pid),
        true => AccessProblem::Hidden(pid),
        false => AccessProblem::Gone(pid),
    }
}

/// Checks whether this process can read the memory of process `pid`.
pub fn check(pid: u32) -> Result<(), AccessProblem> {
    let Some(status) = proc::status(pid) else {
        return Err(absent(pid));
    };
    if status.tgid as u32 != pid {
        return Err(AccessProblem::Thread { tid: pid, pid: status.tgid as u32 });
    }
    let label = || proc::label(pid);
    let thread = living_thread::of(pid);
    let status = if thread == pid { Some(status) } else { proc::status(thread) };
    let Some(status) = status else { return Err(AccessProblem::Ended(pid)) };
    if status.state.starts_with(['Z', 'X']) {
        return Err(AccessProblem::Zombie { label: label(), parent: proc::label(status.ppid as u32) });
    }
    if status.vmsize.is_none() {
        return Err(without_memory(pid));
    }
    // Opening /proc/PID/mem needs the same access right as process_vm_readv(2).
    match std::fs::File::open(format!("/proc/{thread}/mem")) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(AccessProblem::Ended(pid)),
        // The process has begun to exit.
        Err(_) if proc::status(thread).is_none_or(|status| status.vmsize.is_none()) => {
            return Err(AccessProblem::Ended(pid));
        }
        // The process may have executed a set-user-ID program since the first look.
        Err(_) => {
            let owner = proc::status(thread).map_or(status.euid, |status| status.euid);
            return Err(AccessProblem::Denied { label: label(), why: denied(owner) });
        }
        Ok(_) => {}
    }
    if executable::is_foreign(pid) { Err(AccessProblem::Foreign(label())) } else { Ok(()) }
}

/// Returns the problem of a process without memory: a kernel thread never had any, and another one loses it when it ends, a
/// moment before it is a zombie.
fn without_memory(pid: u32) -> AccessProblem {
    match process_stat::read(pid) {
        Some(stat) if stat.is_kernel_thread => AccessProblem::Kernel(proc::label(pid)),
        _ => AccessProblem::Ended(pid),
    }
}

/// Returns a sentence if Yama lets weir trace not even its own command. At levels 0 and 1 a parent may trace its child.
pub fn yama_forbids() -> Option<&'static str> {
    let level = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    let is_root = rustix::process::geteuid().is_root();
    match level.trim() {
        "2" if !is_root => Some("kernel.yama.ptrace_scope is 2: only root may trace"),
        "3" => Some("kernel.yama.ptrace_scope is 3: nobody may trace until the next boot"),
        _ => None,
    }
}

/// Returns the likely reason of a denied access and a remedy.
fn denied(owner: u32) -> String {
    if let Some(why) = yama_forbids() {
        return why.into();
    }
    match rustix::process::geteuid().is_root() {
        true => {
            "it has privileges that weir lacks: run weir outside of this container or user namespace".into()
        }
        false if owner == rustix::process::geteuid().as_raw() => {
            "it has more privileges than weir, or kernel.yama.ptrace_scope forbids it: run weir as root"
                .into()
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
    fn inaccessible_processes_are_told_apart() {
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
        let identity = ProcessIdentity::of(child.id());
        child.wait().expect("its end");
        assert_eq!(check_same(identity), Err(AccessProblem::Ended(child.id())), "it existed");
        let never = u32::MAX / 2;
        assert_eq!(check_same(ProcessIdentity::of(never)), Err(AccessProblem::Gone(never)));
    }
}
