//! The system calls that wait for a file system.

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
    Unknown,
}

/// The numbers of the arguments that name a file.
#[derive(Clone, Copy)]
enum Arguments {
    /// The number of the argument that is a descriptor.
    Fd(usize),
    /// The numbers of the arguments that are a directory and a path.
    At(usize, usize),
    /// The number of the argument that is a path.
    Path(usize),
    None,
}

use Arguments::{At, Fd, Path};

macro_rules! calls {
    ($($number:ident $name:literal $arguments:expr),* $(,)?) => { &[$((libc::$number, $name, $arguments)),*] };
}

const CALLS: &[(libc::c_long, &str, Arguments)] = calls![
    SYS_read "read" Fd(0), SYS_write "write" Fd(0), SYS_readv "readv" Fd(0), SYS_writev "writev" Fd(0),
    SYS_pread64 "pread64" Fd(0), SYS_pwrite64 "pwrite64" Fd(0), SYS_preadv "preadv" Fd(0),
    SYS_pwritev "pwritev" Fd(0), SYS_preadv2 "preadv2" Fd(0), SYS_pwritev2 "pwritev2" Fd(0),
    SYS_sendfile "sendfile" Fd(0), SYS_splice "splice" Fd(2), SYS_copy_file_range "copy_file_range" Fd(2),
    SYS_fsync "fsync" Fd(0), SYS_fdatasync "fdatasync" Fd(0), SYS_syncfs "syncfs" Fd(0),
    SYS_sync_file_range "sync_file_range" Fd(0), SYS_ftruncate "ftruncate" Fd(0),
    SYS_fallocate "fallocate" Fd(0), SYS_getdents64 "getdents64" Fd(0), SYS_fstat "fstat" Fd(0),
    SYS_lseek "lseek" Fd(0), SYS_close "close" Fd(0), SYS_ioctl "ioctl" Fd(0), SYS_fchmod "fchmod" Fd(0),
    SYS_fchown "fchown" Fd(0), SYS_fstatfs "fstatfs" Fd(0), SYS_fadvise64 "fadvise64" Fd(0),
    SYS_fgetxattr "fgetxattr" Fd(0), SYS_fsetxattr "fsetxattr" Fd(0), SYS_flistxattr "flistxattr" Fd(0),
    SYS_openat "openat" At(0, 1), SYS_openat2 "openat2" At(0, 1), SYS_newfstatat "newfstatat" At(0, 1),
    SYS_statx "statx" At(0, 1), SYS_unlinkat "unlinkat" At(0, 1), SYS_mkdirat "mkdirat" At(0, 1),
    SYS_renameat "renameat" At(0, 1), SYS_renameat2 "renameat2" At(0, 1), SYS_linkat "linkat" At(0, 1),
    SYS_symlinkat "symlinkat" At(1, 2), SYS_readlinkat "readlinkat" At(0, 1), SYS_mknodat "mknodat" At(0, 1),
    SYS_fchmodat "fchmodat" At(0, 1), SYS_fchownat "fchownat" At(0, 1), SYS_utimensat "utimensat" At(0, 1),
    SYS_faccessat "faccessat" At(0, 1), SYS_faccessat2 "faccessat2" At(0, 1), SYS_statfs "statfs" Path(0),
    SYS_truncate "truncate" Path(0), SYS_chdir "chdir" Path(0), SYS_umount2 "umount2" Path(0),
    SYS_mount "mount" Path(1), SYS_execve "execve" Path(0), SYS_sync "sync" Arguments::None,
    SYS_io_uring_enter "io_uring_enter" Arguments::None, SYS_msync "msync" Arguments::None,
    SYS_munmap "munmap" Arguments::None,
];

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const X86_ONLY: &[(libc::c_long, &str, Arguments)] = calls![
    SYS_open "open" Path(0), SYS_stat "stat" Path(0), SYS_lstat "lstat" Path(0), SYS_unlink "unlink" Path(0),
    SYS_mkdir "mkdir" Path(0), SYS_rmdir "rmdir" Path(0), SYS_rename "rename" Path(0),
    SYS_access "access" Path(0), SYS_readlink "readlink" Path(0), SYS_chmod "chmod" Path(0),
];
#[cfg(not(target_arch = "x86_64"))]
const X86_ONLY: &[(libc::c_long, &str, Arguments)] = &[];

impl FileCall {
    /// Parses the line of /proc/TID/syscall (proc(5)). Returns None for a thread that runs or is in another call.
    pub fn parse(line: &str) -> Option<FileCall> {
        let mut words = line.split_ascii_whitespace();
        let number: libc::c_long = words.next()?.parse().ok()?;
        if number == -1 {
            return Some(FileCall { name: "an access to mapped memory", target: CallTarget::Unknown });
        }
        let (_, name, arguments) = CALLS.iter().chain(X86_ONLY).find(|(known, ..)| *known == number)?;
        let values: Vec<u64> =
            words.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
        let value = |number: usize| values.get(number).copied().unwrap_or(0);
        let target = match *arguments {
            Fd(fd) => CallTarget::Descriptor(value(fd) as i32),
            At(directory, path) => {
                CallTarget::Path { directory: value(directory) as i32, address: value(path) }
            }
            Path(path) => CallTarget::Path { directory: libc::AT_FDCWD, address: value(path) },
            Arguments::None => CallTarget::Unknown,
        };
        Some(FileCall { name, target })
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
    fn a_page_fault_waits_for_a_mapped_file() {
        assert_eq!(target("-1 0x7ffe 0x7f1\n"), Some(("an access to mapped memory", CallTarget::Unknown)));
    }
}
