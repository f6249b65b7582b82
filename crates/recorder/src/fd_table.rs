//! The tables of descriptors of all processes: what each number stands for, and what calls make of it.

use foldhash::HashMap;
use weir_model::trace::Op;
use weir_model::{Direction, StreamKind};
use weir_sys::open_files::{fdinfo, open_file};
use weir_sys::{proc, syscalls};
use weir_trace_api::RawCall;

use super::paths::{below, resolved};
use crate::fd_revalidation::current;
use crate::open_files::OpenFileTable;

/// What a number stands for in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FdEntry {
    pub file: u32,
    pub close_on_exec: bool,
    /// Since that was seen there was a pause, in which it may have become another file's: see `renewal`.
    pub stale: bool,
}

impl FdEntry {
    /// As it was seen just now.
    pub fn new(file: u32, close_on_exec: bool) -> Self {
        Self { file, close_on_exec, stale: false }
    }
}

/// One process's table.
pub(super) type FdTable = HashMap<i32, FdEntry>;

/// The table of a process as it is now.
pub(super) fn from_proc(pid: u32, files: &mut OpenFileTable) -> FdTable {
    let mut table = FdTable::default();
    let mut numbers = proc::descriptors(pid);
    numbers.sort_unstable();
    for fd in numbers {
        let Some(file) = open_file(pid, fd) else { continue };
        let close_on_exec = file.flags & libc::O_CLOEXEC != 0;
        let shared = table.iter().find(|(other, known): &(&i32, &FdEntry)| {
            files.all[known.file as usize].ino == file.ino && same_open_file(pid, fd, **other)
        });
        let id = shared.map(|(_, known)| known.file);
        let id = id.unwrap_or_else(|| files.add(file));
        table.insert(fd, FdEntry::new(id, close_on_exec));
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
    let fd = match call.op {
        op if op.makes_descriptor() => i32::try_from(call.result).ok().filter(|&fd| fd >= 0),
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
fn directory(table: &mut FdTable, files: &mut OpenFileTable, fd: i32, pid: u32) -> Option<String> {
    let known = if fd >= 0 { current(table, files, pid, fd) } else { None };
    let path = known.map(|file| files.all[file as usize].path.clone());
    let path = path.or_else(|| if fd >= 0 { proc::descriptor(pid, fd) } else { None });
    path.filter(|path| path.starts_with('/'))
}

/// The path that a call was given as its first or second, from the root.
pub(super) fn path_of(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    call: &RawCall,
    pid: u32,
    which: usize,
) -> Option<String> {
    let name = call.paths.get(which)?;
    let under = syscalls::paths(call.op).get(which)?.0;
    let under = under.and_then(|argument| directory(table, files, call.args[argument] as i32, pid));
    let relative = !name.starts_with('/') && under.is_none();
    if relative && !files.directories.knows(pid, call.directory) {
        return None;
    }
    files.directories.absolute(pid, &below(under.as_deref(), name), call.directory)
}

/// What a call does to the table.
pub(super) fn follow(table: &mut FdTable, files: &mut OpenFileTable, call: &RawCall, pid: u32) {
    use Op::*;
    if call.result < 0 {
        return;
    }
    let (first, result) = (call.args[0] as i32, call.result as i32);
    match call.op {
        op if op.opens() => {
            let flags = match call.op {
                Open => call.args[1] as i32,
                Openat => call.args[2] as i32,
                Creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
                _ => fdinfo(pid, result).map_or(0, |info| info.flags),
            };
            let name = call.paths.first().map_or("", String::as_str);
            let under = matches!(call.op, Openat | Openat2).then(|| directory(table, files, first, pid));
            let name = resolved(below(under.flatten().as_deref(), name), flags);
            let file = files.opened(pid, result, &name, call.directory, flags);
            table.insert(result, FdEntry::new(file, flags & libc::O_CLOEXEC != 0));
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
                table.insert(fd, FdEntry::new(file, flags & libc::O_CLOEXEC != 0));
            }
        }
        Socket | Accept | Accept4 => {
            let flags = if call.op == Accept4 { call.args[3] } else { call.args[1] } as i32;
            let file = files.made(pid, result, StreamKind::Socket, "socket");
            let close_on_exec = call.op != Accept && flags & libc::O_CLOEXEC != 0;
            table.insert(result, FdEntry::new(file, close_on_exec));
        }
        Eventfd2 | MemfdCreate | IoUringSetup => {
            let kind = if call.op == MemfdCreate { StreamKind::File } else { StreamKind::Other };
            let file = files.made(pid, result, kind, call.op.name());
            table.insert(result, FdEntry::new(file, true));
        }
        _ => {}
    }
}

fn duplicate(
    (table, files): (&mut FdTable, &mut OpenFileTable),
    pid: u32,
    from: i32,
    to: i32,
    close_on_exec: bool,
) {
    if let Some(file) = current(table, files, pid, from) {
        table.insert(to, FdEntry::new(file, close_on_exec));
    }
}
