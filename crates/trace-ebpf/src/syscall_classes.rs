//! What each system call's number means to the programs in the kernel.

use weir_model::trace::Op;
use weir_sys::syscalls;

use super::wire::{CLASSES, Class};

/// The class of an operation; None: it is told by another way (execve by its tracepoint).
fn class(op: Op) -> Option<Class> {
    use Class::*;
    Some(match op {
        Op::Read | Op::Recvfrom => Read,
        Op::Write | Op::Sendto => Write,
        Op::Pread => Pread,
        Op::Pwrite => Pwrite,
        Op::Readv => Readv,
        Op::Writev | Op::Vmsplice => Writev,
        Op::Preadv | Op::Preadv2 => Preadv,
        Op::Pwritev | Op::Pwritev2 => Pwritev,
        Op::Recvmsg => Recvmsg,
        Op::Sendmsg => Sendmsg,
        Op::Sendfile => Copy01,
        Op::Splice | Op::CopyFileRange => Copy02,
        Op::Tee => Tee,
        Op::Lseek => Lseek,
        Op::Close => Close,
        Op::CloseRange => CloseRange,
        Op::Dup2 | Op::Dup3 => DupTo,
        Op::Dup | Op::Socket | Op::Accept | Op::Accept4 | Op::Eventfd2 | Op::MemfdCreate => NewFd,
        Op::IoUringSetup => Ring,
        Op::Openat | Op::Openat2 => Openat,
        Op::Open | Op::Creat => Open,
        Op::Fcntl => Fcntl,
        Op::Truncate | Op::Unlink => Path0,
        Op::Unlinkat => Path1,
        Op::Rename | Op::Link => Paths01,
        Op::Renameat | Op::Renameat2 | Op::Linkat => Paths13,
        Op::Mmap => Mmap,
        Op::Execve | Op::Execveat => return None,
        Op::Pipe | Op::Pipe2 => Pair0,
        Op::Socketpair => Pair3,
        Op::Fsync | Op::Fdatasync | Op::SyncFileRange => Sync,
        Op::Sync | Op::Syncfs | Op::Msync | Op::Fallocate | Op::Ftruncate | Op::Fadvise => Plain,
        Op::IoUringEnter | Op::IoSubmit | Op::Kill | Op::Tgkill => Plain,
    })
}

/// The table by number.
pub fn table() -> [u8; CLASSES] {
    let mut table = [0; CLASSES];
    for &op in Op::ALL {
        if let (Some(number), Some(class)) = (syscalls::number(op), class(op))
            && let Some(entry) = usize::try_from(number).ok().and_then(|number| table.get_mut(number))
        {
            *entry = class as u8;
        }
    }
    // No operation on a stream: the kernel sees by it that a program's C library stands.
    table[libc::SYS_mprotect as usize] = Class::Protect as u8;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_this_machine_has_is_classed_but_exec() {
        let table = table();
        for &op in Op::ALL {
            let Some(number) = syscalls::number(op) else { continue };
            let told = table[number as usize] != 0;
            assert_eq!(told, !matches!(op, Op::Execve | Op::Execveat), "{}", op.name());
        }
    }
}
