//! The tables of descriptors of all processes, and the open files behind them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rustix::fs::{FileType, Stat};
use weir_model::trace::{Op, OpenFile};
use weir_model::{Direction, StreamKind};

use super::names::Names;
use super::paths::{Directories, below, resolved};
use crate::raw::{RawCall, RawFile};
use crate::{proc, syscalls};

/// What a number stands for in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub file: u32,
    pub close_on_exec: bool,
}

/// One process's table.
pub(super) type Descriptors = HashMap<i32, Descriptor>;

/// All open files that were ever seen.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub all: Vec<OpenFile>,
    by_key: HashMap<u64, u32>,
    keyed: HashSet<u32>,
    names: Names,
    directories: Directories,
    /// The engine says what is behind each descriptor: /proc need not be asked.
    pub told_by_kernel: bool,
}

impl Files {
    pub fn new(told_by_kernel: bool) -> Self {
        Self { told_by_kernel, ..Self::default() }
    }

    fn add(&mut self, file: OpenFile) -> u32 {
        let id = self.all.len() as u32;
        self.all.push(OpenFile { id, ..file });
        self.recognise(id);
        id
    }

    /// Is it one that was opened by another name before?
    fn recognise(&mut self, id: u32) {
        if let Some(first) = self.names.first_of(id, &self.all) {
            self.all[id as usize].same_as = Some(first);
        }
    }

    pub fn is_regular(&self, id: u32) -> bool {
        self.all.get(id as usize).is_some_and(|file| file.kind == StreamKind::File)
    }

    pub fn is_socket(&self, id: u32) -> bool {
        self.all.get(id as usize).is_some_and(|file| file.kind == StreamKind::Socket)
    }

    /// The kernel says what is behind a descriptor. `known`: what was believed to be there. A key may be
    /// that of a file which is closed by now, so it is no proof against an open(2) that was seen.
    pub fn seen(&mut self, known: Option<u32>, raw: &RawFile, pid: u32, fd: i32) -> u32 {
        let fits = |file: &OpenFile| file.ino == 0 || (file.ino == raw.ino && file.dev == raw.dev);
        let fresh = known.filter(|id| !self.keyed.contains(id) && fits(&self.all[*id as usize]));
        let by_key = self.by_key.get(&raw.key).copied().filter(|id| fits(&self.all[*id as usize]));
        let opened = fresh.filter(|id| self.all[*id as usize].opened_by.is_some());
        let id = opened.or(by_key).or(fresh).unwrap_or_else(|| {
            let path = proc::descriptor(pid, fd).unwrap_or_else(|| unnamed(raw));
            self.add(OpenFile { path, ..blank(kind_of(raw.mode)) })
        });
        self.by_key.insert(raw.key, id);
        self.keyed.insert(id);
        self.renew(id, raw);
        id
    }

    fn renew(&mut self, id: u32, raw: &RawFile) {
        let file = &mut self.all[id as usize];
        if let "pipe" | "socket" = file.path.as_str() {
            file.path = unnamed(raw);
        }
        // The kernel forgets what only mattered for the opening; a rule asks whether the file was there before.
        let opening = file.flags & (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        (file.dev, file.ino, file.flags) = (raw.dev, raw.ino, raw.flags | opening);
        if file.kind == StreamKind::File || file.kind == StreamKind::Other {
            let kind = kind_of(raw.mode);
            let terminal = kind == StreamKind::Device && is_terminal(&file.path);
            file.kind = if terminal { StreamKind::Terminal } else { kind };
        }
        file.block_bytes = raw.block_bytes;
        file.pipe_bytes = raw.pipe_bytes.or(file.pipe_bytes);
        if file.kind == StreamKind::File {
            file.size_bytes = Some(raw.size_bytes);
        }
        self.recognise(id);
    }

    /// A call used a descriptor that nothing was known of.
    pub fn unknown(&mut self, pid: u32, fd: i32) -> u32 {
        match look(pid, fd) {
            Some(file) => self.add(file),
            None => self.add(OpenFile { path: format!("descriptor {fd}"), ..blank(StreamKind::Other) }),
        }
    }

    /// open(2) and its relatives: a new open file, by the name that the program gave.
    fn opened(&mut self, pid: u32, fd: i32, name: &str, directory: Option<&Path>, flags: i32) -> u32 {
        let given = self.directories.absolute(pid, name, directory);
        if self.told_by_kernel {
            let path = given.unwrap_or_else(|| name.to_string());
            return self.add(OpenFile { path, flags, opened_by: Some(pid), ..blank(StreamKind::Other) });
        }
        let file = match look(pid, fd) {
            Some(file) if Some(&file.path) == given.as_ref() || same_file(&file, given.as_deref()) => file,
            _ => named(given.as_deref().unwrap_or(name)),
        };
        let path =
            given.unwrap_or_else(|| if name.is_empty() { file.path.clone() } else { name.to_string() });
        self.add(OpenFile { path, flags, opened_by: Some(pid), ..file })
    }

    fn made(&mut self, pid: u32, fd: i32, kind: StreamKind, what: &str) -> u32 {
        let seen = if self.told_by_kernel { None } else { look(pid, fd) };
        let file = seen.filter(|file| file.kind == kind);
        let file = file.unwrap_or_else(|| OpenFile { path: what.to_string(), ..blank(kind) });
        self.add(OpenFile { opened_by: Some(pid), ..file })
    }
}

pub(super) fn blank(kind: StreamKind) -> OpenFile {
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

fn kind_of(mode: u32) -> StreamKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => StreamKind::File,
        FileType::Fifo => StreamKind::Pipe,
        FileType::Socket => StreamKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => StreamKind::Device,
        _ => StreamKind::Other,
    }
}

fn unnamed(raw: &RawFile) -> String {
    match kind_of(raw.mode) {
        StreamKind::Pipe => format!("pipe:[{}]", raw.ino),
        StreamKind::Socket => format!("socket:[{}]", raw.ino),
        _ => format!("inode {}", raw.ino),
    }
}

fn is_terminal(path: &str) -> bool {
    path.starts_with("/dev/pts/")
        || path == "/dev/tty"
        || path.starts_with("/dev/ttyS")
        || path == "/dev/console"
}

fn from_stat(path: String, status: &Stat) -> OpenFile {
    let kind = kind_of(status.st_mode);
    let kind = if kind == StreamKind::Device && is_terminal(&path) { StreamKind::Terminal } else { kind };
    OpenFile {
        path,
        dev: status.st_dev,
        ino: status.st_ino,
        block_bytes: status.st_blksize as u32,
        size_bytes: (kind == StreamKind::File).then_some(status.st_size as u64),
        ..blank(kind)
    }
}

/// What /proc says of a descriptor, if the process is still there.
fn look(pid: u32, fd: i32) -> Option<OpenFile> {
    let link = format!("/proc/{pid}/fd/{fd}");
    let path = proc::descriptor(pid, fd)?;
    let status = rustix::fs::stat(link.as_str()).ok()?;
    let mut file = from_stat(path, &status);
    file.flags = flags_of(pid, fd).unwrap_or(0);
    file.direct_align = direct_align(Path::new(&link), &file);
    Some(file)
}

fn flags_of(pid: u32, fd: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let octal = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(octal.trim(), 8).ok()
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

fn named(path: &str) -> OpenFile {
    match rustix::fs::stat(path) {
        Ok(status) => from_stat(path.to_string(), &status),
        Err(_) => OpenFile { path: path.to_string(), ..blank(StreamKind::File) },
    }
}

fn same_file(file: &OpenFile, path: Option<&str>) -> bool {
    let status = path.and_then(|path| rustix::fs::stat(path).ok());
    status.is_some_and(|status| status.st_dev == file.dev && status.st_ino == file.ino)
}

/// The table of a process as it is now.
pub(super) fn from_proc(pid: u32, files: &mut Files) -> Descriptors {
    let mut table = Descriptors::new();
    let mut numbers = proc::descriptors(pid);
    numbers.sort_unstable();
    for fd in numbers {
        let Some(file) = look(pid, fd) else { continue };
        let close_on_exec = file.flags & libc::O_CLOEXEC != 0;
        let shared = table.iter().find(|(other, known): &(&i32, &Descriptor)| {
            files.all[known.file as usize].ino == file.ino && same_open_file(pid, fd, **other)
        });
        let id = shared.map(|(_, known)| known.file);
        let id = id.unwrap_or_else(|| files.add(file));
        table.insert(fd, Descriptor { file: id, close_on_exec });
    }
    table
}

/// What was opened and closed while nobody looked: the table as it is now, with the open files that are the
/// same still.
pub(super) fn renew(table: &mut Descriptors, files: &mut Files, pid: u32) {
    let numbers = proc::descriptors(pid);
    if numbers.is_empty() {
        return; // it has just ended
    }
    table.retain(|fd, _| numbers.contains(fd));
    for fd in numbers {
        let Some(now) = look(pid, fd) else { continue };
        let same = |known: &Descriptor| {
            let file = &files.all[known.file as usize];
            (file.dev, file.ino) == (now.dev, now.ino)
        };
        if !table.get(&fd).is_some_and(same) {
            let close_on_exec = now.flags & libc::O_CLOEXEC != 0;
            let inherited = files.all.iter().rposition(|file| {
                (file.dev, file.ino) == (now.dev, now.ino) && now.kind != StreamKind::File && now.ino != 0
            });
            let file = inherited.map_or_else(|| files.add(now), |id| id as u32);
            table.insert(fd, Descriptor { file, close_on_exec });
        }
    }
}

/// kcmp(2): two descriptors of one open file, as a shell's `2>&1` makes.
fn same_open_file(pid: u32, one: i32, other: i32) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: kcmp reads numbers only.
    unsafe {
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one as libc::c_ulong, other as libc::c_ulong) == 0
    }
}

/// The descriptor that a call is about; -1: none. Of calls that copy, the one that bytes come from; of those that
/// make one, that.
pub(super) fn descriptor_of(call: &RawCall) -> i32 {
    use Op::*;
    let made = matches!(
        call.op,
        Open | Openat
            | Openat2
            | Creat
            | Dup
            | Dup2
            | Dup3
            | Socket
            | Accept
            | Accept4
            | Eventfd2
            | MemfdCreate
            | IoUringSetup
    );
    let fd = match call.op {
        _ if made => i32::try_from(call.result).ok().filter(|&fd| fd >= 0),
        op if op.copies() => syscalls::input(op, &call.args),
        op => syscalls::descriptor(op, &call.args),
    };
    fd.unwrap_or(-1)
}

/// The descriptors that a call moves bytes from and to.
pub(super) fn sides(call: &RawCall) -> impl Iterator<Item = (i32, Direction)> {
    let input = syscalls::input(call.op, &call.args).map(|fd| (fd, Direction::In));
    let output = syscalls::output(call.op, &call.args).map(|fd| (fd, Direction::Out));
    input.into_iter().chain(output)
}

/// The directory that a descriptor stands for; None: it is AT_FDCWD, or not known.
fn directory(table: &Descriptors, files: &Files, fd: i32, pid: u32) -> Option<String> {
    let known = || table.get(&fd).and_then(|known| files.all.get(known.file as usize));
    let path = (fd >= 0).then(|| known().map(|file| file.path.clone()).or_else(|| proc::descriptor(pid, fd)));
    path.flatten().filter(|path| path.starts_with('/'))
}

/// What a call does to the table.
pub(super) fn follow(table: &mut Descriptors, files: &mut Files, call: &RawCall, pid: u32) {
    use Op::*;
    if call.result < 0 {
        return;
    }
    let (first, result) = (call.args[0] as i32, call.result as i32);
    match call.op {
        Open | Openat | Openat2 | Creat => {
            let flags = match call.op {
                Open => call.args[1] as i32,
                Openat => call.args[2] as i32,
                Creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
                _ => flags_of(pid, result).unwrap_or(0),
            };
            let name = call.paths.first().map_or("", String::as_str);
            let under = matches!(call.op, Openat | Openat2).then(|| directory(table, files, first, pid));
            let name = resolved(below(under.flatten().as_deref(), name), flags);
            let file = files.opened(pid, result, &name, call.directory.as_deref(), flags);
            table.insert(result, Descriptor { file, close_on_exec: flags & libc::O_CLOEXEC != 0 });
        }
        Close => {
            table.remove(&first);
        }
        CloseRange if call.args[2] & 4 == 0 => {
            let last = call.args[1].min(i32::MAX as u64) as i32;
            table.retain(|fd, _| *fd < first || *fd > last);
        }
        Dup | Dup2 | Dup3 => duplicate(table, first, result, call.op == Dup3 && call.args[2] != 0),
        Fcntl => match call.args[1] as i32 {
            libc::F_DUPFD => duplicate(table, first, result, false),
            libc::F_DUPFD_CLOEXEC => duplicate(table, first, result, true),
            libc::F_SETFD => {
                if let Some(known) = table.get_mut(&first) {
                    known.close_on_exec = call.args[2] & libc::FD_CLOEXEC as u64 != 0;
                }
            }
            libc::F_SETPIPE_SZ => {
                if let Some(known) = table.get(&first) {
                    files.all[known.file as usize].pipe_bytes = Some(call.result as u64);
                }
            }
            _ => {}
        },
        Pipe | Pipe2 | Socketpair => {
            let (kind, word, flags) = match call.op {
                Socketpair => (StreamKind::Socket, "socket", call.args[1] as i32),
                Pipe2 => (StreamKind::Pipe, "pipe", call.args[1] as i32),
                _ => (StreamKind::Pipe, "pipe", 0),
            };
            for number in call.head.chunks_exact(4).take(2) {
                let fd = i32::from_le_bytes([number[0], number[1], number[2], number[3]]);
                let file = files.made(pid, fd, kind, word);
                table.insert(fd, Descriptor { file, close_on_exec: flags & libc::O_CLOEXEC != 0 });
            }
        }
        Socket | Accept | Accept4 => {
            let flags = if call.op == Accept4 { call.args[3] } else { call.args[1] } as i32;
            let file = files.made(pid, result, StreamKind::Socket, "socket");
            let close_on_exec = call.op != Accept && flags & libc::O_CLOEXEC != 0;
            table.insert(result, Descriptor { file, close_on_exec });
        }
        Eventfd2 | MemfdCreate | IoUringSetup => {
            let kind = if call.op == MemfdCreate { StreamKind::File } else { StreamKind::Other };
            let file = files.made(pid, result, kind, call.op.name());
            table.insert(result, Descriptor { file, close_on_exec: true });
        }
        _ => {}
    }
}

fn duplicate(table: &mut Descriptors, from: i32, to: i32, close_on_exec: bool) {
    if let Some(&known) = table.get(&from) {
        table.insert(to, Descriptor { close_on_exec, ..known });
    }
}
