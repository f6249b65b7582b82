//! The system calls that wait for a file system.

use weir_model::trace::Op;

use crate::syscalls;

/// A call of a thread on a file.
pub(super) struct FileCall {
    pub name: &'static str,
    pub target: CallTarget,
}

/// The argument that names the file of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallTarget {
    Descriptor(i32),
    /// A path in the caller's memory, from a directory's descriptor or AT_FDCWD.
    Path {
        directory: i32,
        address: u64,
    },
    /// A file that a descriptor named until this call.
    Closed,
    Unknown,
}

/// The numbers of the arguments that name the file of a call that [`syscalls`] does not know.
#[derive(Clone, Copy)]
enum Arguments {
    /// The first argument is a descriptor.
    Fd,
    /// The numbers of the arguments that are a directory and a path.
    At(usize, usize),
    /// The number of the argument that is a path.
    Path(usize),
    /// The call closes a file.
    Closes,
    None,
}

use Arguments::{At, Closes, Fd, Path};

macro_rules! calls {
    ($($number:ident $name:literal $arguments:expr),* $(,)?) => { &[$((libc::$number, $name, $arguments)),*] };
}

/// The calls that weir does not record, and those that it records for another file.
const CALLS: &[(libc::c_long, &str, Arguments)] = calls![
    SYS_getdents64 "getdents64" Fd, SYS_fstat "fstat" Fd, SYS_ioctl "ioctl" Fd, SYS_fchmod "fchmod" Fd,
    SYS_fchown "fchown" Fd, SYS_fstatfs "fstatfs" Fd, SYS_fgetxattr "fgetxattr" Fd, SYS_fchdir "fchdir" Fd,
    SYS_fsetxattr "fsetxattr" Fd, SYS_flistxattr "flistxattr" Fd, SYS_fremovexattr "fremovexattr" Fd,
    SYS_readahead "readahead" Fd, SYS_newfstatat "newfstatat" At(0, 1), SYS_statx "statx" At(0, 1),
    SYS_mkdirat "mkdirat" At(0, 1), SYS_symlinkat "symlinkat" At(1, 2), SYS_readlinkat "readlinkat" At(0, 1),
    SYS_mknodat "mknodat" At(0, 1), SYS_fchmodat "fchmodat" At(0, 1), SYS_fchownat "fchownat" At(0, 1),
    SYS_utimensat "utimensat" At(0, 1), SYS_faccessat "faccessat" At(0, 1),
    SYS_faccessat2 "faccessat2" At(0, 1), SYS_name_to_handle_at "name_to_handle_at" At(0, 1),
    SYS_statfs "statfs" Path(0), SYS_chdir "chdir" Path(0), SYS_getxattr "getxattr" Path(0),
    SYS_lgetxattr "lgetxattr" Path(0), SYS_setxattr "setxattr" Path(0), SYS_lsetxattr "lsetxattr" Path(0),
    SYS_listxattr "listxattr" Path(0), SYS_llistxattr "llistxattr" Path(0),
    SYS_removexattr "removexattr" Path(0), SYS_lremovexattr "lremovexattr" Path(0),
    SYS_umount2 "umount2" Path(0), SYS_mount "mount" Path(1), SYS_exit_group "exit_group" Closes,
    SYS_exit "exit" Closes, SYS_close "close" Closes, SYS_close_range "close_range" Closes,
    SYS_dup3 "dup3" Closes, SYS_sync "sync" Arguments::None, SYS_io_uring_enter "io_uring_enter" Arguments::None,
    SYS_io_submit "io_submit" Arguments::None, SYS_msync "msync" Arguments::None,
    SYS_munmap "munmap" Arguments::None, SYS_madvise "madvise" Arguments::None,
    SYS_getcwd "getcwd" Arguments::None,
];

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const X86_ONLY: &[(libc::c_long, &str, Arguments)] = calls![
    SYS_stat "stat" Path(0), SYS_lstat "lstat" Path(0), SYS_mkdir "mkdir" Path(0), SYS_rmdir "rmdir" Path(0),
    SYS_access "access" Path(0), SYS_readlink "readlink" Path(0), SYS_chmod "chmod" Path(0),
    SYS_chown "chown" Path(0), SYS_lchown "lchown" Path(0), SYS_symlink "symlink" Path(1),
    SYS_mknod "mknod" Path(0), SYS_utime "utime" Path(0), SYS_utimes "utimes" Path(0),
    SYS_futimesat "futimesat" At(0, 1), SYS_dup2 "dup2" Closes,
];
#[cfg(not(target_arch = "x86_64"))]
const X86_ONLY: &[(libc::c_long, &str, Arguments)] = &[];

/// Returns whether a recorded call waits for a file system. The others wait for something else, or not.
fn waits_for_files(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Read | Write
            | Readv
            | Writev
            | Pread
            | Pwrite
            | Preadv
            | Pwritev
            | Preadv2
            | Pwritev2
            | Sendfile
            | Splice
            | CopyFileRange
            | Fsync
            | Fdatasync
            | Syncfs
            | SyncFileRange
            | Ftruncate
            | Fallocate
            | Lseek
            | Fadvise
            | Mmap
            | Open
            | Openat
            | Openat2
            | Creat
            | Unlink
            | Unlinkat
            | Rename
            | Renameat
            | Renameat2
            | Link
            | Linkat
            | Truncate
            | Execve
            | Execveat
    )
}

impl FileCall {
    /// Parses the line of /proc/TID/syscall (proc(5)). Returns None for a thread that runs or is in another call.
    pub fn parse(line: &str) -> Option<FileCall> {
        let mut words = line.split_ascii_whitespace();
        let number: libc::c_long = words.next()?.parse().ok()?;
        if number == -1 {
            return Some(FileCall { name: "an access to mapped memory", target: CallTarget::Unknown });
        }
        let mut args = [0; 6];
        for (arg, word) in args.iter_mut().zip(words) {
            *arg = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        match syscalls::op(number).filter(|op| waits_for_files(*op)) {
            Some(op) => FileCall::recorded(op, &args),
            None => FileCall::unrecorded(number, &args),
        }
    }

    fn recorded(op: Op, args: &[u64; 6]) -> Option<FileCall> {
        let target = match syscalls::paths(op).first() {
            Some(&(directory, path)) => CallTarget::path(args, directory, path),
            None => CallTarget::Descriptor(syscalls::descriptor(op, args)?),
        };
        Some(FileCall { name: op.name(), target })
    }

    fn unrecorded(number: libc::c_long, args: &[u64; 6]) -> Option<FileCall> {
        let &(_, name, arguments) = CALLS.iter().chain(X86_ONLY).find(|(known, ..)| *known == number)?;
        let target = match arguments {
            Fd => CallTarget::Descriptor(args[0] as i32),
            At(directory, path) => CallTarget::path(args, Some(directory), path),
            Path(path) => CallTarget::path(args, None, path),
            Closes => CallTarget::Closed,
            Arguments::None => CallTarget::Unknown,
        };
        Some(FileCall { name, target })
    }
}

impl CallTarget {
    /// Returns the path that these arguments name: a directory, or None for a path from the working directory, and the path.
    fn path(args: &[u64; 6], directory: Option<usize>, path: usize) -> CallTarget {
        let directory = directory.map_or(libc::AT_FDCWD, |directory| args[directory] as i32);
        CallTarget::Path { directory, address: args[path] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(line: &str) -> Option<(&'static str, CallTarget)> {
        FileCall::parse(line).map(|call| (call.name, call.target))
    }

    #[test]
    fn the_file_of_a_call_is_found() {
        let write = format!("{} 0x5 0x7f00 0x1000 0x0 0x0 0x0 0x7ffe 0x7f1\n", libc::SYS_write);
        assert_eq!(target(&write), Some(("write", CallTarget::Descriptor(5))));
        let open = format!("{} 0xffffff9c 0x7f00 0x0 0x0 0x0 0x0 0x7ffe 0x7f1\n", libc::SYS_openat);
        let path = CallTarget::Path { directory: libc::AT_FDCWD, address: 0x7f00 };
        assert_eq!(target(&open), Some(("openat", path)));
        assert!(target("running\n").is_none());
        let poll = format!("{} 0x1 0x7f 0x40000000 0x0 0x0 0x0 0x7ffe 0x7f1\n", libc::SYS_ppoll);
        assert!(target(&poll).is_none(), "a program may wait there for ever");
    }

    #[test]
    fn a_closed_file_has_no_name_any_more() {
        for number in [libc::SYS_close, libc::SYS_dup3, libc::SYS_exit_group] {
            let call = format!("{number} 0x5 0x7 0x0 0x0 0x0 0x0 0x7ffe 0x7f1\n");
            assert_eq!(target(&call).map(|(_, target)| target), Some(CallTarget::Closed), "{number}");
        }
    }

    #[test]
    fn a_page_fault_waits_for_a_mapped_file() {
        assert_eq!(target("-1 0x7ffe 0x7f1\n"), Some(("an access to mapped memory", CallTarget::Unknown)));
    }
}
