//! The tables of descriptors of all processes, and the open files behind them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use weir_model::trace::{Flow, Op, OpenFile};
use weir_model::{Direction, StreamKind};

use super::names::Names;
use super::paths::{Directories, below, resolved};
use super::renewal::current;
use crate::behind::{blank, info, is_terminal, kind_of, look, named, same_file};
use crate::raw::{RawCall, RawFile};
use crate::{proc, syscalls};

/// What a number stands for in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub file: u32,
    pub close_on_exec: bool,
    /// Since that was seen there was a pause, in which it may have become another file's: see `renewal`.
    pub stale: bool,
}

impl Descriptor {
    /// As it was seen just now.
    pub fn new(file: u32, close_on_exec: bool) -> Self {
        Self { file, close_on_exec, stale: false }
    }
}

/// In so many directories a name is looked for.
const PLACES_MOST: usize = 32;

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
    unknown_stream: Option<u32>,
    /// The engine says what is behind each descriptor: /proc need not be asked.
    pub told_by_kernel: bool,
}

impl Files {
    pub fn new(told_by_kernel: bool) -> Self {
        Self { told_by_kernel, ..Self::default() }
    }

    pub fn add(&mut self, file: OpenFile) -> u32 {
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
    pub fn seen(&mut self, known: Option<u32>, (raw, name): (&RawFile, &str), pid: u32, fd: i32) -> u32 {
        let fits = |file: &OpenFile| file.ino == 0 || (file.ino == raw.ino && file.dev == raw.dev);
        let fresh = known.filter(|id| !self.keyed.contains(id) && fits(&self.all[*id as usize]));
        let by_key = self.by_key.get(&raw.key).copied().filter(|id| fits(&self.all[*id as usize]));
        let opened = fresh.filter(|id| self.all[*id as usize].opened_by.is_some());
        let id = opened.or(by_key).or(fresh).unwrap_or_else(|| {
            let path = self.path_of(pid, fd, raw, name);
            self.add(OpenFile { path, ..blank(kind_of(raw.mode)) })
        });
        self.by_key.insert(raw.key, id);
        self.keyed.insert(id);
        self.renew(id, raw);
        id
    }

    /// The number may be another file's already, or the process gone: then the file has the name by which it is known, or
    /// none.
    fn path_of(&self, pid: u32, fd: i32, raw: &RawFile, name: &str) -> String {
        let kind = kind_of(raw.mode);
        let now = look(pid, fd).filter(|now| now.kind == kind || now.kind == StreamKind::Terminal);
        let same = now.filter(|now| kind != StreamKind::File || now.ino == raw.ino);
        let known =
            || self.all.iter().rfind(|file| file.ino != 0 && (file.dev, file.ino) == (raw.dev, raw.ino));
        let path = same.map(|now| now.path).or_else(|| Some(known()?.path.clone()));
        path.or_else(|| self.named(raw, name)).unwrap_or_else(|| unnamed(raw))
    }

    /// By its name, in the directories of files that are known and in that of weir; or that name alone.
    fn named(&self, raw: &RawFile, name: &str) -> Option<String> {
        if kind_of(raw.mode) != StreamKind::File || name.is_empty() {
            return None;
        }
        let own = std::env::current_dir().ok();
        let of = |file: &OpenFile| Some(Path::new(&file.path).parent()?.to_path_buf());
        let absolute = self.all.iter().rev().filter(|file| file.path.starts_with('/'));
        let mut tried = HashSet::new();
        let places =
            own.into_iter().chain(absolute.filter_map(of)).filter(|place| tried.insert(place.clone()));
        let is = |path: &PathBuf| {
            rustix::fs::stat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (raw.dev, raw.ino))
        };
        let found = places.take(PLACES_MOST).map(|place| place.join(name)).find(is);
        Some(found.map_or_else(|| format!("…/{name}"), |path| path.to_string_lossy().into_owned()))
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

    /// What stands for streams of which it is not known which they are.
    pub fn unknown_stream(&mut self) -> u32 {
        if let Some(known) = self.unknown_stream {
            return known;
        }
        let path = Flow::UNKNOWN_PATH.to_string();
        let new = self.add(OpenFile { path, ..blank(StreamKind::Other) });
        *self.unknown_stream.insert(new)
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

fn unnamed(raw: &RawFile) -> String {
    match kind_of(raw.mode) {
        StreamKind::Pipe => format!("pipe:[{}]", raw.ino),
        StreamKind::Socket => format!("socket:[{}]", raw.ino),
        _ => format!("inode {}", raw.ino),
    }
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
        table.insert(fd, Descriptor::new(id, close_on_exec));
    }
    table
}

/// kcmp(2): two descriptors of one open file, as a shell's `2>&1` makes.
pub(super) fn same_open_file(pid: u32, one: i32, other: i32) -> bool {
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
fn directory(table: &mut Descriptors, files: &mut Files, fd: i32, pid: u32) -> Option<String> {
    let known = if fd >= 0 { current(table, files, pid, fd) } else { None };
    let path = known.map(|file| files.all[file as usize].path.clone());
    let path = path.or_else(|| if fd >= 0 { proc::descriptor(pid, fd) } else { None });
    path.filter(|path| path.starts_with('/'))
}

/// The path that a call was given as its first or second, from the root.
pub(super) fn path_of(
    table: &mut Descriptors,
    files: &mut Files,
    call: &RawCall,
    pid: u32,
    which: usize,
) -> Option<String> {
    let name = call.paths.get(which)?;
    let under = syscalls::paths(call.op).get(which)?.0;
    let under = under.and_then(|argument| directory(table, files, call.args[argument] as i32, pid));
    // Who is gone, and was not told of while it was there, stood nobody knows where.
    let somewhere = || name.starts_with('/') || under.is_some() || call.directory.is_some();
    if !somewhere() && proc::directory(pid).is_none() {
        return None;
    }
    files.directories.absolute(pid, &below(under.as_deref(), name), call.directory.as_deref())
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
                _ => info(pid, result).map_or(0, |info| info.flags),
            };
            let name = call.paths.first().map_or("", String::as_str);
            let under = matches!(call.op, Openat | Openat2).then(|| directory(table, files, first, pid));
            let name = resolved(below(under.flatten().as_deref(), name), flags);
            let file = files.opened(pid, result, &name, call.directory.as_deref(), flags);
            table.insert(result, Descriptor::new(file, flags & libc::O_CLOEXEC != 0));
        }
        Close => {
            table.remove(&first);
        }
        CloseRange if call.args[2] & 4 == 0 => {
            let last = call.args[1].min(i32::MAX as u64) as i32;
            table.retain(|fd, _| *fd < first || *fd > last);
        }
        Dup | Dup2 | Dup3 => {
            duplicate((table, files), pid, first, result, call.op == Dup3 && call.args[2] != 0)
        }
        Fcntl => match call.args[1] as i32 {
            libc::F_DUPFD => duplicate((table, files), pid, first, result, false),
            libc::F_DUPFD_CLOEXEC => duplicate((table, files), pid, first, result, true),
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
                table.insert(fd, Descriptor::new(file, flags & libc::O_CLOEXEC != 0));
            }
        }
        Socket | Accept | Accept4 => {
            let flags = if call.op == Accept4 { call.args[3] } else { call.args[1] } as i32;
            let file = files.made(pid, result, StreamKind::Socket, "socket");
            let close_on_exec = call.op != Accept && flags & libc::O_CLOEXEC != 0;
            table.insert(result, Descriptor::new(file, close_on_exec));
        }
        Eventfd2 | MemfdCreate | IoUringSetup => {
            let kind = if call.op == MemfdCreate { StreamKind::File } else { StreamKind::Other };
            let file = files.made(pid, result, kind, call.op.name());
            table.insert(result, Descriptor::new(file, true));
        }
        _ => {}
    }
}

fn duplicate(
    (table, files): (&mut Descriptors, &mut Files),
    pid: u32,
    from: i32,
    to: i32,
    close_on_exec: bool,
) {
    if let Some(file) = current(table, files, pid, from) {
        table.insert(to, Descriptor::new(file, close_on_exec));
    }
}
