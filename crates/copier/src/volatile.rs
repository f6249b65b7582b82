//! Finds file systems whose files a power cut removes: no sync makes anything durable there.

use std::fs::{read, read_to_string};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, open, statfs};
use weir_sys::mount_table::unescaped;

use crate::file_stat::FileStat;

/// statfs(2)
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const OVERLAYFS: u64 = 0x794c_7630;

/// Returns whether a file is on tmpfs or ramfs, or on an overlay that writes to one of them or ignores syncs. Returns false if that
/// is not known: the upper directory of a container may be out of sight.
pub(crate) fn is_volatile(file: BorrowedFd<'_>) -> bool {
    // A device node is on devtmpfs, but its bytes are not.
    let is_stored = |stat| matches!(FileStat::from(stat).kind(), FileType::RegularFile | FileType::Directory);
    if !fstat(file).is_ok_and(is_stored) {
        return false;
    }
    match fstatfs(file) {
        Ok(found) if is_memory(found.f_type as u64) => true,
        Ok(found) if found.f_type as u64 & 0xffff_ffff == OVERLAYFS => is_volatile_overlay(file),
        _ => false,
    }
}

/// As [`is_volatile`], of the file or directory that a path leads to.
pub fn is_volatile_path(path: &Path) -> bool {
    open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_ok_and(|file| is_volatile(file.as_fd()))
}

fn is_memory(kind: u64) -> bool {
    [TMPFS, RAMFS].contains(&(kind & 0xffff_ffff))
}

fn is_volatile_overlay(file: BorrowedFd<'_>) -> bool {
    let info = read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap_or_default();
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim);
    // The names of other mounts need not be UTF-8.
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let Some(options) = mount.and_then(|mount| overlay_options(&mounts, mount)) else { return false };
    let mut options = options.split(',');
    options.any(|option| match option.strip_prefix("upperdir=") {
        // A relative path is one of the process that mounted the overlay.
        Some(upper) if !upper.starts_with('/') => false,
        Some(upper) => statfs(unescaped(upper.as_bytes())).is_ok_and(|found| is_memory(found.f_type as u64)),
        // syncfs(2) and fsync(2) then do nothing (Documentation/filesystems/overlayfs.rst).
        None => option == "volatile" || option == "fsync=volatile",
    })
}

/// Returns the options of an overlay's file system in the text of mountinfo (proc_pid_mountinfo(5)).
fn overlay_options<'a>(mounts: &'a str, mount: &str) -> Option<&'a str> {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(mount))?;
    let mut fields = line.split_once(" - ")?.1.splitn(3, ' ');
    fields.next().filter(|kind| *kind == "overlay")?;
    fields.nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_directory_of_an_overlay_is_found() {
        let mounts = "36 1 0:30 / / rw - ext4 /dev/vda rw\n\
                      40 36 0:41 / /m rw,relatime shared:1 - overlay over rw,lowerdir=/l,upperdir=/a\\040b,workdir=/w\n";
        assert_eq!(overlay_options(mounts, "40"), Some("rw,lowerdir=/l,upperdir=/a\\040b,workdir=/w"));
        assert_eq!((overlay_options(mounts, "36"), overlay_options(mounts, "4")), (None, None));
        assert_eq!(unescaped(b"/a\\040b"), Path::new("/a b"));
        assert!(is_volatile_path(Path::new("/dev/shm")) && !is_volatile_path(Path::new("/dev/null")));
    }
}
