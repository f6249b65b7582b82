//! Finds files without asking any server, so that weir needs no child for most of them.
//!
//! The kernel resolves a path from its cache alone (RESOLVE_CACHED of openat2(2)), or follows a link of /proc, which leads
//! to the file itself. O_PATH then opens nothing. The file is used only if its mount is one of weir's own, on a file system
//! that the kernel alone answers for.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};

use crate::foreign_reads::FileStatus;
use crate::mount_table::{self, Mount};
use crate::process_status;

/// The time for which the table of mounts is used again. The number of a mount can be given to another one only after root
/// has unmounted it.
const KEPT: Duration = Duration::from_millis(20);

/// Types of file systems that no server and no layer below answers for, and overlays: weir's own were mounted by root.
const LOCAL: [&str; 16] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "f2fs", "vfat", "exfat", "squashfs", "erofs",
    "bcachefs", "zfs", "overlay", "devtmpfs",
];

/// Returns a descriptor (O_PATH) of a local file; None if weir cannot be sure, or there is no such file. Blocks only for a process
/// that begins execve(2) meanwhile.
pub(crate) fn find(path: &Path, follows: bool) -> Option<OwnedFd> {
    let last = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::PATH | OFlags::CLOEXEC | last;
    let found = match link_of_process(path) {
        Some((link, _)) if is_of_executing(&link) => return None,
        Some((link, rest)) => {
            // The kernel follows the link to the file itself, without the lookup of a path.
            let base = openat(CWD, &link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
            match rest {
                Some(rest) => cached(&base, rest, flags, ResolveFlags::IN_ROOT)?,
                None => base,
            }
        }
        None if path.starts_with("/proc") || !path.is_absolute() => return None,
        None => cached(CWD, path, flags, ResolveFlags::empty())?,
    };
    is_on_local_mount(&found).then_some(found)
}

fn cached(base: impl std::os::fd::AsFd, path: &Path, flags: OFlags, more: ResolveFlags) -> Option<OwnedFd> {
    openat2(base, path, flags, Mode::empty(), ResolveFlags::CACHED | more).ok()
}

/// Splits a path into a link of /proc/PID that leads to a file, and the rest below it: that of /proc/PID/root/… is resolved
/// in this root. A relative rest of another link could leave it.
fn link_of_process(path: &Path) -> Option<(PathBuf, Option<&Path>)> {
    let inside = path.strip_prefix("/proc").ok()?;
    let mut parts = inside.components();
    let pid = parts.next()?.as_os_str();
    let _number: u32 = pid.to_str()?.parse().ok()?;
    let name = parts.next()?.as_os_str();
    let link = Path::new("/proc").join(pid).join(name);
    let rest = parts.as_path();
    match name.to_str()? {
        "root" if rest != OsStr::new("") => Some((link, Some(rest))),
        "root" | "cwd" | "exe" if rest == OsStr::new("") => Some((link, None)),
        "fd" | "map_files" if rest.components().count() == 1 => Some((link.join(rest), None)),
        _ => None,
    }
}

/// Returns the status of the file that a link of /proc leads to, as the kernel knows it: it asks no FUSE server, so that size and times may
/// be those of the last answer. NFS and 9P can be asked all the same when the link is followed.
pub(crate) fn status_of_link(link: &Path) -> io::Result<FileStatus> {
    let about = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS)?;
    Ok(FileStatus::of_statx(&about))
}

/// Returns whether a link of /proc is one of a process in execve(2), which may not answer.
fn is_of_executing(link: &Path) -> bool {
    let pid = link.strip_prefix("/proc").ok().and_then(|path| path.iter().next()?.to_str()?.parse().ok());
    pid.is_some_and(process_status::is_executing)
}

/// Returns the status of a file as the kernel knows it; None if it does not know the path. Never blocks.
pub(crate) fn status(path: &Path) -> Option<FileStatus> {
    let file = cached(CWD, path, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::empty())?;
    status_of(file).ok()
}

/// Returns the status of an open file as the kernel knows it. Asks no server.
pub(crate) fn status_of(file: impl std::os::fd::AsFd) -> io::Result<FileStatus> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    Ok(FileStatus::of_statx(&statx(file, c"", flags, StatxFlags::BASIC_STATS)?))
}

fn is_on_local_mount(file: &OwnedFd) -> bool {
    mount_table::number_of_descriptor("self", file.as_raw_fd()).is_some_and(is_local_mount)
}

/// Returns whether the mount of this number is local, and one of weir's own.
fn is_local_mount(number: u64) -> bool {
    static TABLE: Mutex<Option<(Instant, HashSet<u64>)>> = Mutex::new(None);
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if table.as_ref().is_none_or(|(read, _)| read.elapsed() >= KEPT) {
        let mounts = mount_table::of_process("self").unwrap_or_default();
        *table = Some((Instant::now(), local_mounts(&mounts)));
    }
    table.as_ref().is_some_and(|(_, mounts)| mounts.contains(&number))
}

fn local_mounts(mounts: &[Mount]) -> HashSet<u64> {
    let local = mounts.iter().filter(|mount| LOCAL.contains(&&*mount.kind));
    local.map(|mount| mount.number).collect()
}

/// Returns the path of a found file, without links; None if it has been removed.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    (path.is_absolute() && !path.to_string_lossy().ends_with(" (deleted)")).then_some(path)
}

/// Opens a found file for reading. Fails with InvalidInput if it is no regular one, without opening it: to open a FIFO may
/// block for ever, and to open a device may start it (a watchdog).
pub(crate) fn open_regular(found: OwnedFd) -> io::Result<File> {
    let found = File::from(found);
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // O_NONBLOCK: otherwise the holder of a lease (F_SETLEASE of fcntl(2)) keeps weir waiting, by default for 45 s.
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_process_is_split() {
        let link = |path: &'static str| {
            link_of_process(Path::new(path)).map(|(link, rest)| (link.to_str().map(str::to_owned), rest))
        };
        let split =
            |link: &str, rest: Option<&'static str>| Some((Some(link.to_owned()), rest.map(Path::new)));
        assert_eq!(link("/proc/7/root/usr/a.so"), split("/proc/7/root", Some("usr/a.so")));
        assert_eq!(link("/proc/7/exe"), split("/proc/7/exe", None));
        assert_eq!(link("/proc/7/fd/3"), split("/proc/7/fd/3", None));
        for other in
            ["/proc/7/fd/3/../../8/mem", "/proc/7/cwd/../a", "/proc/self/exe", "/proc/7/environ", "/usr/a"]
        {
            assert_eq!(link(other), None, "{other}");
        }
    }

    #[test]
    fn only_local_mounts_count() {
        let table = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     40 22 0:39 / /home/far rw,nosuid - fuse.sshfs far: rw,user_id=0\n\
                     41 22 0:5 / /proc rw - proc proc rw\n";
        assert_eq!(local_mounts(&mount_table::parse(table.as_bytes())), HashSet::from([22]));
    }

    #[test]
    fn a_lease_does_not_block() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        // F_SETSIG of fcntl(2): a signal that is ignored unless it is handled, instead of SIGIO.
        const SET_SIGNAL: libc::c_int = 10;
        // SAFETY: the calls take numbers.
        let is_leased = unsafe {
            libc::fcntl(file.as_raw_fd(), SET_SIGNAL, libc::SIGURG);
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
        };
        let found = find(file.path(), true);
        // Not every file system has leases, and not every one is local.
        if let Some(found) = found.filter(|_| is_leased) {
            let refused = open_regular(found).expect_err("another process writes to the file");
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_file_of_procfs_is_not_used() {
        assert!(find(Path::new("/proc/self/maps"), true).is_none());
        assert!(find(Path::new("relative"), true).is_none());
    }
}
