//! File systems and their mounts.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use crate::foreign_reads::FileStatus;
use crate::mount_table::{self, Mount};
use crate::{cached_paths, foreign_reads};

/// Opens a regular file for reading, by a path that another process chose. Fails with InvalidInput for another kind of
/// file, without opening it: to open a FIFO may block for ever, and to open a device may start it (a watchdog). If a server
/// answers for its file system, returns a copy, and fails with TimedOut if it does not answer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_with_status(path).map(|(file, _)| file)
}

/// As [`open_regular`], and also returns the status of the file: a copy has another one.
pub fn open_with_status(path: &Path) -> io::Result<(File, FileStatus)> {
    foreign_reads::open_regular(path)
}

/// As [`fs::metadata`], for a path that another process chose: fails with TimedOut if its file system does not answer.
pub fn status(path: &Path) -> io::Result<FileStatus> {
    foreign_reads::status(path, true)
}

/// As [`status`], of a symbolic link itself.
pub fn link_status(path: &Path) -> io::Result<FileStatus> {
    foreign_reads::status(path, false)
}

/// Returns the status of the open file of a descriptor of a process. Never waits for a FUSE server: size and times are then the
/// last that the kernel received. Fails with TimedOut if the server of another file system does not answer.
pub fn status_of_descriptor(pid: u32, fd: i32) -> io::Result<FileStatus> {
    foreign_reads::status_of_descriptor(pid, fd)
}

/// As [`status`], but size and times may be the last that the kernel received, which costs less.
pub fn last_status(path: &Path) -> io::Result<FileStatus> {
    foreign_reads::last_status(path)
}

/// Returns whether weir may use a directory of its own environment: its file system answers, and no other user serves it. A
/// directory that does not exist may be used.
pub fn is_usable(directory: &Path) -> bool {
    trusted_status(directory).is_none_or(|status| status.is_ok())
}

/// Returns whether weir may keep files of its own in a directory and believe what it reads there: as [`is_usable`], and it, or the
/// nearest directory above it that exists, belongs to weir's user or root, and not everybody may write to it.
pub fn is_private(directory: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let mut status = directory.ancestors().filter_map(trusted_status);
    status.next().is_some_and(|status| {
        status.is_ok_and(|about| (about.uid == user || about.uid == 0) && about.mode & 0o002 == 0)
    })
}

/// Returns the status of a directory; None if it does not exist. Fails if it does not answer, or another user serves it.
fn trusted_status(directory: &Path) -> Option<io::Result<FileStatus>> {
    let own = std::process::id();
    let current = PathBuf::from(format!("/proc/{own}/cwd"));
    let path = if directory == Path::new(".") { &current } else { directory };
    let about = match foreign_reads::status(path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        about => about,
    };
    let served_by = about.as_ref().ok().and_then(|about| fuse_user(own, about.dev));
    let user = rustix::process::geteuid().as_raw();
    let is_strange = served_by.is_some_and(|server| server != 0 && server != user);
    Some(if is_strange { Err(io::ErrorKind::PermissionDenied.into()) } else { about })
}

/// Returns the status of an open file of weir, which may be one that a server answers for. Never waits for the server.
pub fn status_of(file: impl AsFd) -> io::Result<FileStatus> {
    cached_paths::status_of(file)
}

/// Returns whether a file is a terminal. isatty(3) asks the server of a FUSE file, which may never answer.
#[expect(clippy::disallowed_methods, reason = "only a device is asked")]
pub fn is_terminal(file: impl AsFd) -> bool {
    let is_device = |status: FileStatus| status.mode & libc::S_IFMT == libc::S_IFCHR;
    status_of(&file).is_ok_and(is_device) && rustix::termios::isatty(file)
}

/// Returns whether this process may draw on a terminal: it is in the foreground process group. True also if the terminal is not its
/// controlling terminal, which has no such group for it.
pub fn is_foreground(terminal: impl AsFd) -> bool {
    rustix::termios::tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}

/// As [`fs::canonicalize`], for a path that another process chose: fails with TimedOut if its file system does not answer.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    foreign_reads::canonicalize(path)
}

/// Returns the names in a directory that another process chose; None if there are more than `most`. Fails with TimedOut if
/// its file system does not answer.
pub fn names(path: &Path, most: usize) -> io::Result<Option<Vec<OsString>>> {
    foreign_reads::names(path, most)
}

/// Returns the type and the mount options of the file system that holds `dir`, from /proc/self/mountinfo (proc(5)).
pub fn mount_of(dir: &Path) -> (String, String) {
    let real = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    let mounts = mount_table::of_process("self").unwrap_or_default();
    let containing = mounts.into_iter().filter(|mount| real.starts_with(&mount.point));
    // Of equals max_by_key returns the last: it was mounted over the others.
    let longest = containing.max_by_key(|mount| mount.point.as_os_str().len());
    longest.map_or_else(|| (fs_by_magic(&real), String::new()), |mount| (mount.kind, mount.options))
}

/// Returns the user who mounted the FUSE file system of a device number (`st_dev`), whose server answers every call to its
/// files; 0 for a mount that only root can make. Returns None if the mounts of the caller do not have it, nor those of
/// process `pid` in the same user namespace: another namespace counts its users differently.
pub fn fuse_user(pid: u32, device: u64) -> Option<u32> {
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let of = |mounts: Vec<Mount>| {
        let mount = mounts.into_iter().find(|mount| mount.device == device)?;
        let user = mount.options.split(',').find_map(|option| option.strip_prefix("user_id="));
        user.map_or(Some(0), |user| user.parse().ok())
    };
    let in_other = || {
        let mounts = mount_table::of_process(&pid.to_string()).filter(|_| shares_user_namespace(pid));
        mounts.and_then(of)
    };
    mount_table::of_process("self").and_then(of).or_else(in_other)
}

/// Returns whether a process counts its users as the caller does.
fn shares_user_namespace(pid: u32) -> bool {
    let namespace = |process: &str| {
        let about = fs::metadata(format!("/proc/{process}/ns/user")).ok()?;
        Some((about.dev(), about.ino()))
    };
    namespace("self").is_some_and(|own| namespace(&pid.to_string()) == Some(own))
}

/// Returns the mount options of the FUSE file system of a descriptor of a process; None if the file system is another one, or its
/// mount is not among those of the caller and of process `pid`. Also returns whether the user in the options is one of the caller's
/// user namespace. Unlike fstatfs(2), never asks the server.
pub fn fuse_options(pid: u32, fd: i32) -> Option<(String, bool)> {
    let number = mount_table::number_of_descriptor(&pid.to_string(), fd)?;
    ["self".to_owned(), pid.to_string()].into_iter().find_map(|process| {
        let mounts = mount_table::of_process(&process)?;
        let mount = mounts.into_iter().find(|mount| mount.number == number)?;
        (mount.kind.starts_with("fuse") && mount.kind != "fusectl")
            .then(|| (mount.options, process == "self" || shares_user_namespace(pid)))
    })
}

/// Returns the type by statfs(2). In a chroot whose root is no mount point, mountinfo has no line for it.
fn fs_by_magic(dir: &Path) -> String {
    // linux/magic.h; zfs: its own source.
    const KNOWN: [(u32, &str); 11] = [
        (0xef53, "ext2/3/4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlay"),
        (0xf2f5_2010, "f2fs"),
        (0x4d44, "vfat"),
        (0x6969, "nfs"),
        (0x2fc1_2fc1, "zfs"),
        (0x6573_5546, "fuse"),
    ];
    let Ok(magic) = rustix::fs::statfs(dir).map(|fs| fs.f_type as u32) else { return "unknown".into() };
    let known = KNOWN.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn only_a_regular_file_is_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let [fifo, link, file] = ["fifo", "link", "file"].map(|name| dir.path().join(name));
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        fs::write(&file, "text").expect("a file");
        for path in [&fifo, &link, &dir.path().to_path_buf()] {
            assert_eq!(open_regular(path).expect_err("refused").kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(io::read_to_string(open_regular(&file).expect("a file")).expect("text"), "text");
    }

    /// Mounts a FUSE file system as root of a user namespace, and prints its device number.
    const MOUNT: &str = "exec 5<>/dev/fuse && mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 x /mnt \
                         && grep ' /mnt ' /proc/self/mountinfo | cut -d' ' -f3; read line";

    #[test]
    fn root_of_a_user_namespace_is_not_root() {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", MOUNT]);
        let unshare = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Not every machine permits such namespaces.
        let Ok(mut child) = unshare.spawn() else { return };
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        if let Some((major, minor)) = line.trim().split_once(':') {
            let number = |text: &str| text.parse::<u32>().expect("a number");
            let device = rustix::fs::makedev(number(major), number(minor));
            let table = fs::read_to_string(format!("/proc/{}/mountinfo", child.id())).expect("mounts");
            assert!(table.contains("user_id=0"), "{table}");
            assert_eq!(fuse_user(child.id(), device), None);
        }
        drop(child.stdin.take());
        child.wait().expect("its end");
    }

    #[test]
    fn statfs_knows_the_type_without_mountinfo() {
        assert_eq!(fs_by_magic(Path::new("/dev/shm")), mount_of(Path::new("/dev/shm")).0);
        assert_eq!(fs_by_magic(Path::new("/proc")), "type 0x9fa0");
        assert_eq!(fs_by_magic(Path::new("/nonexistent")), "unknown");
    }
}
