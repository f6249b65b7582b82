//! What is behind a descriptor of another process, as /proc shows it now.

use std::path::Path;

use rustix::fs::{FileType, Stat};
use weir_model::trace::{Buffer, OpenFile};
use weir_model::{Direction, StreamKind};

use crate::proc;

/// What is behind the descriptors of those streams in which something waits: to be asked while the process stands still,
/// or sleeps, since numbers are given again.
pub fn of_buffers(pid: u32, buffers: &[Buffer]) -> Vec<(i32, OpenFile)> {
    let holds = |one: &&Buffer| one.fd >= 0 && (one.pending_bytes > 0 || one.unread_bytes > 0);
    let mut fds: Vec<i32> = buffers.iter().filter(holds).map(|one| one.fd).collect();
    fds.sort_unstable();
    fds.dedup();
    fds.into_iter().filter_map(|fd| Some((fd, open_file(pid, fd)?))).collect()
}

/// Of which only the kind is known.
pub fn unknown_file(kind: StreamKind) -> OpenFile {
    OpenFile {
        id: 0,
        path: String::new(),
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

/// By st_mode.
pub fn kind_of(mode: u32) -> StreamKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => StreamKind::File,
        FileType::Fifo => StreamKind::Pipe,
        FileType::Socket => StreamKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => StreamKind::Device,
        _ => StreamKind::Other,
    }
}

/// By its path.
fn is_terminal(path: &str) -> bool {
    path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console"
}

/// By both.
pub fn kind_at(path: &str, mode: u32) -> StreamKind {
    match kind_of(mode) {
        StreamKind::Device if is_terminal(path) => StreamKind::Terminal,
        kind => kind,
    }
}

fn from_stat(path: String, status: &Stat) -> OpenFile {
    let kind = kind_at(&path, status.st_mode);
    OpenFile {
        path,
        dev: status.st_dev,
        ino: status.st_ino,
        block_bytes: status.st_blksize as u32,
        size_bytes: (kind == StreamKind::File).then_some(status.st_size as u64),
        ..unknown_file(kind)
    }
}

/// What /proc says of a descriptor, if the process is still there.
pub fn open_file(pid: u32, fd: i32) -> Option<OpenFile> {
    let link = format!("/proc/{pid}/fd/{fd}");
    let path = proc::descriptor(pid, fd)?;
    let status = rustix::fs::stat(link.as_str()).ok()?;
    let mut file = from_stat(path, &status);
    file.flags = fdinfo(pid, fd).map_or(0, |info| info.flags);
    file.direct_align = direct_align(Path::new(&link), &file);
    Some(file)
}

/// What /proc/PID/fdinfo/FD says, which takes less than all that [`open_file`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdInfo {
    /// Where the open file stands.
    pub position: u64,
    /// Flags of open(2).
    pub flags: i32,
    /// Of the inode; 0 before Linux 5.14.
    pub ino: u64,
}

/// The same as [`open_file`], without a name; None: there is no such descriptor.
pub fn fdinfo(pid: u32, fd: i32) -> Option<FdInfo> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    parse(&text)
}

fn parse(text: &str) -> Option<FdInfo> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(FdInfo {
        position: field("pos:")?.parse().ok()?,
        flags: i32::from_str_radix(field("flags:")?, 8).ok()?,
        ino: field("ino:").and_then(|ino| ino.parse().ok()).unwrap_or(0),
    })
}

/// Which way bytes go through what was opened with these flags, where that is one only.
pub fn direction_of(flags: i32) -> Option<Direction> {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Some(Direction::In),
        libc::O_WRONLY => Some(Direction::Out),
        _ => None,
    }
}

/// statx(2)'s STATX_DIOALIGN (Linux 6.1): what O_DIRECT needs of memory, and of offsets and lengths.
fn direct_align(path: &Path, file: &OpenFile) -> Option<(u32, u32)> {
    if file.kind != StreamKind::File || file.flags & libc::O_DIRECT == 0 {
        return None;
    }
    let mask = rustix::fs::StatxFlags::from_bits_retain(0x2000);
    let status = rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), mask).ok()?;
    let known = status.stx_mask & 0x2000 != 0 && status.stx_dio_offset_align > 0;
    known.then_some((status.stx_dio_mem_align, status.stx_dio_offset_align))
}

/// The file that a program has named, as it is now.
pub fn file_at(path: &str) -> OpenFile {
    match rustix::fs::stat(path) {
        Ok(status) => from_stat(path.to_string(), &status),
        Err(_) => OpenFile { path: path.to_string(), ..unknown_file(StreamKind::File) },
    }
}

/// The size of the file, if its path leads there still.
pub fn size_of_same(file: &OpenFile) -> Option<u64> {
    let now = rustix::fs::stat(file.path.as_str()).ok()?;
    ((now.st_dev, now.st_ino) == (file.dev, file.ino)).then_some(now.st_size as u64)
}

/// Whether the path leads to this file.
pub fn same_file(file: &OpenFile, path: Option<&str>) -> bool {
    let status = path.and_then(|path| rustix::fs::stat(path).ok());
    status.is_some_and(|status| status.st_dev == file.dev && status.st_ino == file.ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn fields_of_fdinfo() {
        let text = "pos:\t4096\nflags:\t0100001\nmnt_id:\t25\nino:\t77\n";
        assert_eq!(parse(text), Some(FdInfo { position: 4096, flags: 0o100_001, ino: 77 }));
        let old = parse("pos:\t0\nflags:\t02\nmnt_id:\t1\n");
        assert_eq!(old, Some(FdInfo { position: 0, flags: libc::O_RDWR, ino: 0 }));
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
        let (info, seen) = (fdinfo(pid, fd).unwrap(), open_file(pid, fd).unwrap());
        assert_eq!((info.position, info.ino), (5, seen.ino));
        assert_eq!((seen.path.as_str(), seen.kind), (file.path().to_str().unwrap(), StreamKind::File));
        assert_eq!(super::fdinfo(pid, 9999), None);
    }
}
