//! The descriptor tables of all processes: which open file each descriptor refers to. Each call that opens,
//! duplicates or closes a descriptor changes the table, so that every later event of the descriptor belongs to
//! the right file.

use foldhash::HashMap;
use weir_model::trace::Op;
use weir_model::{Direction, StreamKind, Untrusted};
use weir_sys::open_files::{direction_of, fdinfo, open_file};
use weir_sys::{proc, syscalls};
use weir_trace_api::RawCall;

use super::paths::{join_path, without_parent_parts};
use crate::fd_revalidation::lookup;
use crate::open_files::OpenFileTable;

/// The open file of a descriptor in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FdEntry {
    pub file: u32,
    pub close_on_exec: bool,
    /// A gap has passed since the last lookup, so the descriptor may refer to another file (see
    /// `fd_revalidation`).
    pub stale: bool,
}

impl FdEntry {
    /// Returns an entry that is not stale.
    pub fn new(file: u32, close_on_exec: bool) -> Self {
        Self { file, close_on_exec, stale: false }
    }
}

pub(super) type FdTable = HashMap<i32, FdEntry>;

/// The most descriptors of a process that are read at once, at about 0.1 ms each: the events of other processes wait
/// meanwhile. Few programs have more, and a descriptor that is not read is looked up when a call uses it.
pub(super) const MAX_READ_AT_ONCE: usize = 1024;
/// The most open files of one inode with which a descriptor is compared by kcmp(2), at about 1 µs each.
const MAX_COMPARED: usize = 64;

/// Returns the descriptors of a process in ascending order, at most [`MAX_READ_AT_ONCE`], and whether these are all.
pub(super) fn first_descriptors(pid: u32) -> (Vec<i32>, bool) {
    let mut fds = proc::descriptors(pid);
    fds.sort_unstable();
    let is_complete = fds.len() <= MAX_READ_AT_ONCE;
    fds.truncate(MAX_READ_AT_ONCE);
    (fds, is_complete)
}

/// Reads the descriptor table of a process from /proc, and returns whether it has all descriptors. Those of one open file get
/// one id.
pub(super) fn from_proc(pid: u32, files: &mut OpenFileTable) -> (FdTable, bool) {
    let mut table = FdTable::default();
    let (fds, is_complete) = first_descriptors(pid);
    // One descriptor of each open file, with its id.
    let mut by_inode: HashMap<u64, Vec<(i32, u32)>> = HashMap::default();
    for fd in fds {
        let Some(file) = open_file(pid, fd) else { continue };
        let close_on_exec = file.flags & libc::O_CLOEXEC != 0;
        let others = by_inode.entry(file.ino).or_default();
        let shared = others.iter().take(MAX_COMPARED).find(|(other, _)| same_open_file(pid, fd, *other));
        let id = shared.map(|(_, id)| *id).unwrap_or_else(|| {
            let id = files.add(file);
            others.push((fd, id));
            id
        });
        table.insert(fd, FdEntry::new(id, close_on_exec));
    }
    (table, is_complete)
}

/// Returns whether two descriptors refer to one open file, as after a shell's `2>&1` (kcmp(2)). False if kcmp
/// is not permitted.
pub(super) fn same_open_file(pid: u32, one: i32, other: i32) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: kcmp(2) takes integers only.
    unsafe {
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one as libc::c_ulong, other as libc::c_ulong) == 0
    }
}

/// Returns the descriptor of a call, or -1. For a copying call it is the input, for a call that makes a
/// descriptor the new one.
pub(super) fn event_fd(call: &RawCall) -> i32 {
    let fd = match call.op {
        op if op.makes_descriptor() => i32::try_from(call.result).ok().filter(|&fd| fd >= 0),
        op if op.copies() => syscalls::input(op, &call.args),
        op => syscalls::descriptor(op, &call.args),
    };
    fd.unwrap_or(-1)
}

/// Returns the descriptors that a call moves bytes from (In) and to (Out).
pub(super) fn transfer_fds(call: &RawCall, pid: u32) -> impl Iterator<Item = (i32, Direction)> {
    // vmsplice(2) reads from the reading end of a pipe, and writes to the other end.
    let reads = |&(fd, _): &(i32, Direction)| {
        call.op == Op::Vmsplice
            && fdinfo(pid, fd).is_some_and(|info| direction_of(info.flags) == Some(Direction::In))
    };
    let input = syscalls::input(call.op, &call.args).map(|fd| (fd, Direction::In));
    let output = syscalls::output(call.op, &call.args).map(|fd| (fd, Direction::Out));
    let output = output.map(|output| if reads(&output) { (output.0, Direction::In) } else { output });
    input.into_iter().chain(output)
}

/// Returns the path of a directory descriptor. Returns none for AT_FDCWD and for unknown descriptors.
fn directory_path(table: &mut FdTable, files: &mut OpenFileTable, fd: i32, pid: u32) -> Option<Untrusted> {
    let known = if fd >= 0 { lookup(table, files, pid, fd) } else { None };
    let path = known.map(|file| files.all[file as usize].path.clone());
    let path = path.or_else(|| if fd >= 0 { proc::descriptor(pid, fd) } else { None });
    path.filter(|path| path.exact().starts_with('/'))
}

/// Returns the absolute path of a call's path argument number `which` (0 or 1). Returns none if the directory
/// that it is relative to is unknown.
pub(super) fn path_of(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    call: &RawCall,
    pid: u32,
    which: usize,
) -> Option<Untrusted> {
    let name = call.paths.get(which)?.exact();
    let parent = syscalls::paths(call.op).get(which)?.0;
    let parent = parent.and_then(|argument| directory_path(table, files, call.args[argument] as i32, pid));
    let relative = !name.starts_with('/') && parent.is_none();
    if relative && !files.directories.knows(pid) {
        return None;
    }
    files.directories.absolute(pid, &join_path(parent.as_ref().map(Untrusted::exact), name))
}

/// Applies a successful call to the table: opens, duplicates, closes and flags.
pub(super) fn apply_call(table: &mut FdTable, files: &mut OpenFileTable, call: &RawCall, pid: u32) {
    use Op::*;
    if call.result < 0 {
        return;
    }
    let (first, result) = (call.args[0] as i32, call.result as i32);
    match call.op {
        op if op.opens() => apply_open(table, files, call, pid),
        Close => {
            table.remove(&first);
        }
        CloseRange => {
            if let Some(closed) = syscalls::closed_range(&call.args) {
                table.retain(|fd, _| !closed.contains(fd));
            }
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
        Pipe | Pipe2 | Socketpair => apply_pipe(table, files, call, pid),
        Socket | Accept | Accept4 => {
            let flags = if call.op == Accept4 { call.args[3] } else { call.args[1] } as i32;
            let file = files.add_made(pid, result, StreamKind::Socket, "socket");
            let close_on_exec = call.op != Accept && flags & libc::O_CLOEXEC != 0;
            table.insert(result, FdEntry::new(file, close_on_exec));
        }
        Eventfd2 | MemfdCreate | IoUringSetup => {
            let kind = if call.op == MemfdCreate { StreamKind::File } else { StreamKind::Other };
            let file = files.add_made(pid, result, kind, call.op.name());
            table.insert(result, FdEntry::new(file, true));
        }
        _ => {}
    }
}

/// Enters the file that a call opened.
fn apply_open(table: &mut FdTable, files: &mut OpenFileTable, call: &RawCall, pid: u32) {
    let fd = call.result as i32;
    let flags = match call.op {
        Op::Open => call.args[1] as i32,
        Op::Openat => call.args[2] as i32,
        Op::Creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
        _ => fdinfo(pid, fd).map_or(0, |info| info.flags),
    };
    let name = call.paths.first().map_or("", Untrusted::exact);
    let has_directory = matches!(call.op, Op::Openat | Op::Openat2);
    let parent = has_directory.then(|| directory_path(table, files, call.args[0] as i32, pid));
    let name = without_parent_parts(join_path(parent.flatten().as_ref().map(Untrusted::exact), name), flags);
    let file = files.add_opened(pid, fd, &name, flags);
    table.insert(fd, FdEntry::new(file, flags & libc::O_CLOEXEC != 0));
}

/// Enters both descriptors of pipe(2) or socketpair(2).
fn apply_pipe(table: &mut FdTable, files: &mut OpenFileTable, call: &RawCall, pid: u32) {
    let (kind, name, flags) = match call.op {
        Op::Socketpair => (StreamKind::Socket, "socket", call.args[1] as i32),
        Op::Pipe2 => (StreamKind::Pipe, "pipe", call.args[1] as i32),
        _ => (StreamKind::Pipe, "pipe", 0),
    };
    for number in call.head.chunks_exact(4).take(2) {
        let fd = i32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        let file = files.add_made(pid, fd, kind, name);
        table.insert(fd, FdEntry::new(file, flags & libc::O_CLOEXEC != 0));
    }
}

/// Enters a second descriptor of the same open file.
fn duplicate(
    (table, files): (&mut FdTable, &mut OpenFileTable),
    pid: u32,
    from: i32,
    to: i32,
    close_on_exec: bool,
) {
    if let Some(file) = lookup(table, files, pid, from) {
        table.insert(to, FdEntry::new(file, close_on_exec));
    }
}
