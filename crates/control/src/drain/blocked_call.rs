//! Classifies system calls: those during which a stream may change, and those in which the program would notice a stop.

use weir_model::Untrusted;
use weir_model::trace::Op;
use weir_sys::{proc, syscalls};

/// PIPE_BUF (pipe(7)): a write of this size to a pipe is atomic.
const PIPE_BUF: u64 = 4096;

/// The system call of a thread that blocks or is stopped in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockedCall {
    pub number: i64,
    pub args: [u64; 6],
}

impl BlockedCall {
    /// Returns the call's name, or its number if it has none.
    pub fn name(&self) -> String {
        let name = syscalls::name(self.number);
        name.map_or_else(|| format!("system call {}", self.number), str::to_string)
    }

    /// Returns the descriptor that the call writes to.
    fn output(&self) -> Option<i32> {
        syscalls::op(self.number).and_then(|op| syscalls::output(op, &self.args))
    }

    /// Returns the descriptor if the call writes to one of these files, named by their links in /proc.
    pub fn writes_to(&self, pid: u32, targets: &[Untrusted]) -> Option<i32> {
        let fd = self.output()?;
        let target = proc::descriptor(pid, fd)?;
        targets.contains(&target).then_some(fd)
    }

    /// Returns whether the call may come from the middle of a stream operation: it allocates memory, asks for a file's
    /// offset or type, or returns from a signal handler to any code.
    pub fn may_be_in_stream(&self) -> bool {
        const IN_STREAM: [libc::c_long; 15] = [
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
        IN_STREAM.contains(&self.number)
    }

    /// Returns whether the call replaces the program.
    pub fn executes(&self) -> bool {
        syscalls::executes(self.number)
    }

    /// Returns whether the program would notice a stop: an interrupted write returns a part, and connect(2) cannot be
    /// made again.
    pub fn shows_interruption(&self) -> bool {
        let bytes = syscalls::op(self.number).filter(|op| op.writes()).map(|op| match op {
            Op::Write => syscalls::requested_bytes(op, &self.args).unwrap_or(u64::MAX),
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
    fn calls_are_classified() {
        let sleep = call(libc::SYS_clock_nanosleep, [0; 6]);
        assert!(!sleep.may_be_in_stream() && !sleep.shows_interruption());
        assert!(call(libc::SYS_brk, [0; 6]).may_be_in_stream());
        assert!(call(libc::SYS_connect, [0; 6]).shows_interruption());
        assert!(call(libc::SYS_write, [1, 0, 4097, 0, 0, 0]).shows_interruption());
        assert!(!call(libc::SYS_write, [1, 0, 4096, 0, 0, 0]).shows_interruption());
        assert!(call(libc::SYS_writev, [1, 0, 1, 0, 0, 0]).shows_interruption());
        assert_eq!(
            (sleep.name(), call(9999, [0; 6]).name()),
            ("clock_nanosleep".into(), "system call 9999".into())
        );
    }

    #[test]
    fn a_write_to_a_target_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("out")).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let targets = [Untrusted::from(dir.path().join("out").display().to_string())];
        let write = |fd: i32| call(libc::SYS_write, [fd as u64, 0, 1, 0, 0, 0]);
        let pid = std::process::id();
        assert_eq!(write(fd).writes_to(pid, &targets), Some(fd));
        assert_eq!(write(2).writes_to(pid, &targets), None);
        assert_eq!(call(libc::SYS_read, [fd as u64, 0, 1, 0, 0, 0]).writes_to(pid, &targets), None);
    }
}
