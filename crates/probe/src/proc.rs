//! What /proc says of a process: its names, counts, threads, children, and what it waits in.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use procfs::process::{Process, Status, Syscall};
use weir_model::trace::{IoTotals, Op};

use crate::syscalls;

fn process(pid: u32) -> Option<Process> {
    Process::new(pid as i32).ok()
}

/// Bytes and calls as the kernel counts them, with those of children that were waited for.
pub fn io(pid: u32) -> Option<IoTotals> {
    let io = process(pid)?.io().ok()?;
    Some(IoTotals {
        read_calls: io.syscr,
        write_calls: io.syscw,
        read_bytes: io.rchar,
        written_bytes: io.wchar,
    })
}

/// Processor time in user mode and in the kernel, nanoseconds, of all threads. The kernel says it in ticks.
pub fn times_ns(pid: u32) -> Option<(u64, u64)> {
    let stat = process(pid)?.stat().ok()?;
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    Some((stat.utime * tick_ns, stat.stime * tick_ns))
}

/// Executable, name and arguments.
pub fn names(pid: u32) -> (String, String, Vec<String>) {
    let Some(process) = process(pid) else { return Default::default() };
    let exe = process.exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let comm = process.stat().map(|stat| stat.comm).unwrap_or_default();
    (exe, comm, process.cmdline().unwrap_or_default())
}

/// Its name, or its number where that cannot be read.
pub fn label(pid: u32) -> String {
    match process(pid).and_then(|process| process.stat().ok()) {
        Some(stat) => format!("process {pid} ({})", stat.comm),
        None => format!("process {pid}"),
    }
}

/// /proc/PID/status of a process or a thread.
pub fn status(tid: u32) -> Option<Status> {
    process(tid)?.status().ok()
}

/// The processor that a thread runs on, or ran on last.
pub fn last_processor(tid: u32) -> Option<usize> {
    process(tid)?.stat().ok()?.processor?.try_into().ok()
}

/// Whether a signal waits that the thread does not block.
pub fn has_signal(tid: u32) -> bool {
    status(tid).is_none_or(|status| (status.sigpnd | status.shdpnd) & !status.sigblk != 0)
}

/// Whether there is such a process, be it a zombie.
pub fn exists(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// Its threads.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Its children, by all of its threads.
pub fn children(pid: u32) -> Vec<u32> {
    let of = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let lists: Vec<String> = threads(pid).into_iter().map(of).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// Its children and theirs, those that are nearer first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let (mut found, mut at) = (vec![pid], 0);
    while at < found.len() {
        let new: Vec<u32> = children(found[at]).into_iter().filter(|child| !found.contains(child)).collect();
        found.extend(new);
        at += 1;
    }
    found.split_off(1)
}

/// The numbers among the names in a directory.
pub fn numbers(path: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It runs, or is about to.
    Running,
    /// It waits in this system call.
    Waiting {
        /// Its number.
        number: i64,
        /// Its arguments.
        args: [u64; 6],
    },
    /// It waits for something else, or cannot be seen.
    Unknown,
}

/// What a thread is doing now.
pub fn doing(tid: u32) -> Doing {
    match process(tid).and_then(|process| process.syscall().ok()) {
        Some(Syscall::Running) => Doing::Running,
        Some(Syscall::Blocked { syscall_number, argument_registers, .. }) if syscall_number >= 0 => {
            Doing::Waiting { number: syscall_number, args: argument_registers }
        }
        _ => Doing::Unknown,
    }
}

/// The name of the system call that the main thread waits in; empty: none, or not known.
pub fn waits_in(pid: u32) -> String {
    match doing(pid) {
        Doing::Waiting { number, .. } => syscalls::op(number)
            .map(Op::name)
            .or_else(|| syscalls::waiting_name(number))
            .unwrap_or("")
            .to_string(),
        _ => String::new(),
    }
}

/// What a descriptor is, as its link in /proc shows it.
pub fn descriptor(pid: u32, fd: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?.to_string_lossy().into_owned())
}

/// Whether its executable is for another architecture than weir's, such as 32-bit x86.
pub fn foreign(pid: u32) -> bool {
    const CLASS_64: u8 = 2;
    let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let mut header = [0; 20];
    let Ok(mut exe) = fs::File::open(format!("/proc/{pid}/exe")) else { return false };
    exe.read_exact(&mut header).is_ok()
        && (header[4] != CLASS_64 || u16::from_le_bytes([header[18], header[19]]) != machine)
}

/// Whether its executable is set-user-ID or set-group-ID to somebody else than weir's user: a tracer without
/// privilege keeps the program from getting that one's rights.
pub fn loses_privilege(pid: u32) -> bool {
    let root = rustix::process::geteuid().is_root();
    let Ok(exe) = fs::metadata(format!("/proc/{pid}/exe")) else { return false };
    let owner = exe.mode() & libc::S_ISUID != 0 && exe.uid() != rustix::process::geteuid().as_raw();
    let group = exe.mode() & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
        && exe.gid() != rustix::process::getegid().as_raw();
    !root && (owner || group)
}
