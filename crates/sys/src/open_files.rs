//! The open files of other processes, read from /proc/PID/fd and /proc/PID/fdinfo (proc_pid_fdinfo(5)).

use std::path::Path;

use rustix::fs::FileType;
use weir_model::trace::{Buffer, OpenFile};
use weir_model::{Direction, StreamKind, Untrusted, os_string_of};

use crate::file_system::{FileStatus, last_status, status_of_descriptor};
use crate::{living_thread, proc};

/// Returns descriptor and open file of each buffer that holds pending or read-ahead bytes. The process must be stopped or
/// blocked, because a running process may reuse descriptor numbers.
pub fn of_buffers(pid: u32, buffers: &[Buffer]) -> Vec<(i32, OpenFile)> {
    let is_filled = |one: &&Buffer| one.fd >= 0 && (one.pending_bytes > 0 || one.unread_bytes > 0);
    let mut fds: Vec<i32> = buffers.iter().filter(is_filled).map(|one| one.fd).collect();
    fds.sort_unstable();
    fds.dedup();
    fds.into_iter().filter_map(|fd| Some((fd, open_file(pid, fd)?))).collect()
}

/// Returns an open file of which only the kind is known.
pub fn unknown_file(kind: StreamKind) -> OpenFile {
    OpenFile {
        id: 0,
        path: Untrusted::default(),
        kind,
        dev: 0,
        ino: 0,
        flags: 0,
        opened_by: None,
        block_bytes: 0,
        size_bytes: None,
        pipe_bytes: None,
        direct_align: None,
        same_as: None,
    }
}

/// Returns the kind of a file by its st_mode. Terminals are devices here: see [`kind_at`].
pub fn kind_of(mode: u32) -> StreamKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => StreamKind::File,
        FileType::Fifo => StreamKind::Pipe,
        FileType::Socket => StreamKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => StreamKind::Device,
        _ => StreamKind::Other,
    }
}

fn is_terminal(path: &str) -> bool {
    path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console"
}

/// Returns the kind of a file by its path and st_mode.
pub fn kind_at(path: &str, mode: u32) -> StreamKind {
    match kind_of(mode) {
        StreamKind::Device if is_terminal(path) => StreamKind::Terminal,
        kind => kind,
    }
}

fn from_status(path: Untrusted, status: &FileStatus) -> OpenFile {
    let kind = kind_at(path.exact(), status.mode);
    OpenFile {
        path,
        dev: status.dev,
        ino: status.ino,
        block_bytes: status.block_bytes as u32,
        size_bytes: (kind == StreamKind::File).then_some(status.size),
        ..unknown_file(kind)
    }
}

/// Reads what /proc shows of the open file of a descriptor. Returns None if the process has ended or has no such
/// descriptor.
pub fn open_file(pid: u32, fd: i32) -> Option<OpenFile> {
    let path = proc::descriptor(pid, fd)?;
    let status = status_of_descriptor(pid, fd).ok()?;
    let mut file = from_status(path, &status);
    file.flags = fdinfo(pid, fd).map_or(0, |info| info.flags);
    file.direct_align = direct_align(pid, fd, &file);
    Some(file)
}

/// The contents of /proc/PID/fdinfo/FD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdInfo {
    /// The file offset in bytes.
    pub position: u64,
    /// The flags of open(2).
    pub flags: i32,
    /// The number of the mount; 0 before Linux 3.15.
    pub mount: u64,
    /// The inode number; 0 before Linux 5.14.
    pub ino: u64,
}

impl FdInfo {
    /// Returns whether each write goes to the end of the file (O_APPEND).
    pub fn appends(&self) -> bool {
        self.flags & libc::O_APPEND != 0
    }
}

/// Reads /proc/PID/fdinfo/FD, which is cheaper than [`open_file`]. Returns None if there is no such descriptor.
pub fn fdinfo(pid: u32, fd: i32) -> Option<FdInfo> {
    let of_thread = |tid: u32| std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{fd}")).ok();
    parse(&living_thread::or_by_other(pid, of_thread)?)
}

pub(crate) fn parse(text: &str) -> Option<FdInfo> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let number = |name: &str| field(name).and_then(|number| number.parse().ok()).unwrap_or(0);
    Some(FdInfo {
        position: field("pos:")?.parse().ok()?,
        flags: i32::from_str_radix(field("flags:")?, 8).ok()?,
        mount: number("mnt_id:"),
        ino: number("ino:"),
    })
}

/// Returns the direction of an open file with these flags of open(2); None for O_RDWR.
pub fn direction_of(flags: i32) -> Option<Direction> {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Some(Direction::In),
        libc::O_WRONLY => Some(Direction::Out),
        _ => None,
    }
}

/// Returns the alignment in bytes that O_DIRECT requires of memory, and of offsets and lengths (STATX_DIOALIGN of
/// statx(2), Linux 6.1). Returns None if the file is not open with O_DIRECT.
fn direct_align(pid: u32, fd: i32, file: &OpenFile) -> Option<(u32, u32)> {
    if file.kind != StreamKind::File || file.flags & libc::O_DIRECT == 0 {
        return None;
    }
    let mask = rustix::fs::StatxFlags::from_bits_retain(0x2000);
    let link = format!("/proc/{}/fd/{fd}", living_thread::of(pid));
    let flags = rustix::fs::AtFlags::STATX_DONT_SYNC;
    let status = rustix::fs::statx(rustix::fs::CWD, link.as_str(), flags, mask).ok()?;
    let known = status.stx_mask & 0x2000 != 0 && status.stx_dio_offset_align > 0;
    known.then_some((status.stx_dio_mem_align, status.stx_dio_offset_align))
}

/// Returns the file that `path` names now. If there is none, only the path is known.
pub fn file_at(path: &str) -> OpenFile {
    match last_status(Path::new(&os_string_of(path))) {
        Ok(status) => from_status(path.into(), &status),
        Err(_) => OpenFile { path: path.into(), ..unknown_file(StreamKind::File) },
    }
}

/// Returns the current size of the file in bytes; None if its path no longer names the same inode.
pub fn current_size(file: &OpenFile) -> Option<u64> {
    let now = last_status(&file.path.to_path()).ok()?;
    ((now.dev, now.ino) == (file.dev, file.ino)).then_some(now.size)
}

/// Returns whether `path` names the inode of this file.
pub fn same_file(file: &OpenFile, path: Option<&str>) -> bool {
    let status = path.and_then(|path| last_status(Path::new(&os_string_of(path))).ok());
    status.is_some_and(|status| status.dev == file.dev && status.ino == file.ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn fields_of_fdinfo() {
        let text = "pos:\t4096\nflags:\t0100001\nmnt_id:\t25\nino:\t77\n";
        assert_eq!(parse(text), Some(FdInfo { position: 4096, flags: 0o100_001, mount: 25, ino: 77 }));
        let old = parse("pos:\t0\nflags:\t02\nmnt_id:\t1\n");
        assert_eq!(old, Some(FdInfo { position: 0, flags: libc::O_RDWR, mount: 1, ino: 0 }));
        assert_eq!(parse("flags:\t02\n"), None);
    }

    #[test]
    fn consoles_and_serial_lines_are_terminals() {
        let device = FileType::CharacterDevice.as_raw_mode();
        for path in ["/dev/pts/3", "/dev/tty", "/dev/tty1", "/dev/ttyS0", "/dev/ttyAMA0", "/dev/console"] {
            assert_eq!(kind_at(path, device), StreamKind::Terminal, "{path}");
        }
        assert_eq!(kind_at("/dev/null", device), StreamKind::Device);
        assert_eq!(kind_at("/dev/tty", FileType::RegularFile.as_raw_mode()), StreamKind::File);
    }

    #[test]
    fn a_descriptor_of_this_process() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"12345").unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        let (info, opened) = (fdinfo(pid, fd).unwrap(), open_file(pid, fd).unwrap());
        assert_eq!((info.position, info.ino), (5, opened.ino));
        assert_eq!((opened.path.exact(), opened.kind), (file.path().to_str().unwrap(), StreamKind::File));
        assert_eq!(super::fdinfo(pid, 9999), None);
    }
}
