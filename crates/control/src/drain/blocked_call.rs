//! In which system calls a thread can be while its streams are changed, and in which it can be stopped at all.

use weir_model::trace::Op;
use weir_sys::{proc, syscalls};

/// The most that a write to a pipe puts there whole or not at all.
const PIPE_BUF: u64 = 4096;

/// A system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockedCall {
    pub number: i64,
    pub args: [u64; 6],
}

impl BlockedCall {
    /// `read`, or its number.
    pub fn name(&self) -> String {
        let name = syscalls::op(self.number).map(Op::name).or_else(|| syscalls::waiting_name(self.number));
        name.map_or_else(|| format!("system call {}", self.number), str::to_string)
    }

    /// The descriptor that it writes to.
    fn output(&self) -> Option<i32> {
        syscalls::op(self.number).and_then(|op| syscalls::output(op, &self.args))
    }

    /// Whether it writes to one of these files, as links in /proc show them.
    pub fn writes_to(&self, pid: u32, targets: &[String]) -> Option<i32> {
        let fd = self.output()?;
        let target = proc::descriptor(pid, fd)?;
        targets.contains(&target).then_some(fd)
    }

    /// Whether it may come from the middle of a function that changes a stream: one that gets memory, that asks for
    /// a file's place or kind, or that comes back from a signal handler to wherever the signal came.
    pub fn may_be_inside(&self) -> bool {
        const INSIDE: [libc::c_long; 15] = [
            libc::SYS_brk,
            libc::SYS_mmap,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_mprotect,
            libc::SYS_madvise,
            libc::SYS_lseek,
            libc::SYS_fstat,
            libc::SYS_newfstatat,
            libc::SYS_ioctl,
            libc::SYS_rt_sigreturn,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ];
        INSIDE.contains(&self.number)
    }

    /// Whether a stop would show: a call that has done a part of its work says so, and connect(2) cannot be made
    /// twice. The thread is left alone then.
    pub fn breaks(&self) -> bool {
        let bytes = syscalls::op(self.number).filter(|op| op.writes()).map(|op| match op {
            Op::Write => syscalls::asked_bytes(op, &self.args).unwrap_or(u64::MAX),
            _ => u64::MAX,
        });
        bytes.is_some_and(|bytes| bytes > PIPE_BUF) || self.number == libc::SYS_connect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: i64, args: [u64; 6]) -> BlockedCall {
        BlockedCall { number, args }
    }

    #[test]
    fn waits_are_told_from_work() {
        let sleeps = call(libc::SYS_clock_nanosleep, [0; 6]);
        assert!(!sleeps.may_be_inside() && !sleeps.breaks());
        assert!(call(libc::SYS_brk, [0; 6]).may_be_inside());
        assert!(call(libc::SYS_connect, [0; 6]).breaks());
        assert!(call(libc::SYS_write, [1, 0, 4097, 0, 0, 0]).breaks());
        assert!(!call(libc::SYS_write, [1, 0, 4096, 0, 0, 0]).breaks());
        assert!(call(libc::SYS_writev, [1, 0, 1, 0, 0, 0]).breaks());
        assert_eq!(
            (sleeps.name(), call(9999, [0; 6]).name()),
            ("clock_nanosleep".into(), "system call 9999".into())
        );
    }

    #[test]
    fn a_write_to_the_same_file_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("out")).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let targets = [dir.path().join("out").display().to_string()];
        let write = |fd: i32| call(libc::SYS_write, [fd as u64, 0, 1, 0, 0, 0]);
        let pid = std::process::id();
        assert_eq!(write(fd).writes_to(pid, &targets), Some(fd));
        assert_eq!(write(2).writes_to(pid, &targets), None);
        assert_eq!(call(libc::SYS_read, [fd as u64, 0, 1, 0, 0, 0]).writes_to(pid, &targets), None);
    }
}
