//! Maps each system call number to the class by which the BPF program handles the call (`enum syscall_class`).

use weir_model::trace::Op;
use weir_sys::syscalls;

use super::shared_types::*;

const NUMBERS: usize = SYSCALL_NUMBERS as usize;

/// The class of an operation; None if another tracepoint reports it (execve).
fn class(op: Op) -> Option<u32> {
    Some(match op {
        Op::Read | Op::Recvfrom => CLASS_READ,
        Op::Write | Op::Sendto => CLASS_WRITE,
        Op::Pread => CLASS_PREAD,
        Op::Pwrite => CLASS_PWRITE,
        Op::Readv => CLASS_READV,
        Op::Writev | Op::Vmsplice => CLASS_WRITEV,
        Op::Preadv | Op::Preadv2 => CLASS_PREADV,
        Op::Pwritev | Op::Pwritev2 => CLASS_PWRITEV,
        Op::Recvmsg => CLASS_RECVMSG,
        Op::Sendmsg => CLASS_SENDMSG,
        Op::Sendfile => CLASS_COPY_01,
        Op::Splice | Op::CopyFileRange => CLASS_COPY_02,
        Op::Tee => CLASS_TEE,
        Op::Lseek => CLASS_LSEEK,
        Op::Close => CLASS_CLOSE,
        Op::CloseRange => CLASS_CLOSE_RANGE,
        Op::Dup2 | Op::Dup3 => CLASS_DUP_TO,
        Op::Dup | Op::Socket | Op::Accept | Op::Accept4 | Op::Eventfd2 | Op::MemfdCreate => CLASS_NEW_FD,
        Op::IoUringSetup => CLASS_RING,
        Op::Openat | Op::Openat2 => CLASS_OPENAT,
        Op::Open | Op::Creat => CLASS_OPEN,
        Op::Fcntl => CLASS_FCNTL,
        Op::Truncate | Op::Unlink => CLASS_PATH_0,
        Op::Unlinkat => CLASS_PATH_1,
        Op::Rename | Op::Link => CLASS_PATHS_01,
        Op::Renameat | Op::Renameat2 | Op::Linkat => CLASS_PATHS_13,
        Op::Mmap => CLASS_MMAP,
        Op::Execve | Op::Execveat => return None,
        Op::Pipe | Op::Pipe2 => CLASS_PAIR_0,
        Op::Socketpair => CLASS_PAIR_3,
        Op::Fsync | Op::Fdatasync | Op::SyncFileRange => CLASS_SYNC,
        Op::Sync | Op::Syncfs | Op::Msync | Op::Fallocate | Op::Ftruncate | Op::Fadvise => CLASS_PLAIN,
        Op::IoUringEnter | Op::IoSubmit | Op::Kill | Op::Tgkill => CLASS_PLAIN,
    })
}

/// Returns the class of each number, 0 for system calls that are ignored.
pub fn table() -> [u8; NUMBERS] {
    let mut table = [0; NUMBERS];
    for &op in Op::ALL {
        if let (Some(number), Some(class)) = (syscalls::number(op), class(op))
            && let Some(entry) = usize::try_from(number).ok().and_then(|number| table.get_mut(number))
        {
            *entry = class as u8;
        }
    }
    // Not an operation on a stream: the call shows that the dynamic loader has relocated the C library.
    table[libc::SYS_mprotect as usize] = CLASS_PROTECT as u8;
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
            let classed = table[number as usize] != 0;
            assert_eq!(classed, !matches!(op, Op::Execve | Op::Execveat), "{}", op.name());
        }
    }
}
