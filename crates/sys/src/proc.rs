//! What /proc says of a process: its names, counts, threads, children, and what it waits in.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::process::{Process, Status, Syscall};
use weir_model::trace::{IoTotals, Op};

use crate::elf::ElfFile;
use crate::syscalls;

/// What the kernel counted for a process in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Processor time, nanoseconds, user mode.
    pub user_ns: u64,
    /// Processor time, nanoseconds, kernel.
    pub system_ns: u64,
    /// How long it could have run and had no processor, nanoseconds.
    pub queued_ns: Option<u64>,
    /// What came from devices for it.
    pub fetched_bytes: Option<u64>,
}

fn process(pid: u32) -> Option<Process> {
    Process::new(pid as i32).ok()
}

/// Bytes and calls as the kernel counts them, with those of children that were waited for.
pub fn io(pid: u32) -> Option<IoTotals> {
    parse_io(&fs::read(format!("/proc/{pid}/io")).ok()?)
}

/// rchar, wchar, syscr, syscw: the first four lines.
pub fn parse_io(text: &[u8]) -> Option<IoTotals> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.lines().map(|line| line.split_once(": ")?.1.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (read_bytes, written_bytes) = (next()?, next()?);
    Some(IoTotals { read_calls: next()?, write_calls: next()?, read_bytes, written_bytes })
}

/// The sum over the threads that live: a process's own counts without those of reaped children, which
/// /proc/PID/io has.
pub fn own_io(pid: u32) -> Option<IoTotals> {
    let threads = threads(pid);
    let of_thread = |tid| parse_io(&fs::read(format!("/proc/{pid}/task/{tid}/io")).ok()?);
    (!threads.is_empty())
        .then(|| threads.into_iter().filter_map(of_thread).fold(IoTotals::default(), IoTotals::plus))
}

/// Processor time in user mode and in the kernel, nanoseconds, of all threads. The kernel says it in ticks.
pub fn times_ns(pid: u32) -> Option<(u64, u64)> {
    let stat = process(pid)?.stat().ok()?;
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    Some((stat.utime * tick_ns, stat.stime * tick_ns))
}

/// What the kernel has counted for a process.
pub fn spent(pid: u32) -> ResourceUsage {
    let (user_ns, system_ns) = times_ns(pid).unwrap_or_default();
    // With that of children that it has waited for, where it is not told apart.
    let process = process(pid);
    let fetched_bytes = process.as_ref().and_then(|process| process.io().ok()).map(|io| io.read_bytes);
    let queues = process.and_then(|process| process.tasks().ok());
    let queued_ns = queues.map(|tasks| tasks.flatten().filter_map(|task| task.schedstat().ok()));
    ResourceUsage {
        user_ns,
        system_ns,
        queued_ns: queued_ns.map(|each| each.map(|one| one.run_delay).sum()),
        fetched_bytes,
    }
}

/// Where its program's own code begins: the dynamic loader jumps there when all libraries are in place.
pub fn entry_point(pid: u32) -> Option<u64> {
    process(pid)?.auxv().ok()?.get(&libc::AT_ENTRY).copied()
}

/// The process that a thread belongs to.
pub fn process_of(tid: u32) -> Option<u32> {
    status(tid).map(|status| status.tgid as u32)
}

/// Executable, name and arguments; empty where /proc does not say it (any more).
pub fn names(pid: u32) -> (String, String, Vec<String>) {
    let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let exe = fs::read_link(format!("/proc/{pid}/exe"));
    let exe = exe.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    (exe, String::from_utf8_lossy(&read("comm")).trim_end().to_string(), words(&read("cmdline")))
}

/// Words that end with a NUL each.
pub fn words(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let words = bytes.strip_suffix(b"\0").unwrap_or(bytes).split(|&byte| byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
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

/// Whether a thread has ended, be it a zombie still.
pub fn is_dead(tid: u32) -> bool {
    status(tid).is_none_or(|status| status.state.starts_with(['Z', 'X']))
}

/// Whether all of a process has ended: a main thread may be gone before the others, or before another executes.
pub fn has_ended(pid: u32) -> bool {
    status(pid).is_none_or(|status| status.state.starts_with(['Z', 'X']) && status.threads <= 1)
}

/// Whether a process is on its way to its end: killed, or stopped there for its tracer.
pub fn is_dying(pid: u32) -> bool {
    const KILL: u64 = 1 << (libc::SIGKILL - 1);
    status(pid).is_some_and(|status| {
        let killed = (status.sigpnd | status.shdpnd) & KILL != 0;
        killed || status.state.starts_with('t')
    })
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

/// The process and all that descend from it, itself first.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat() {
            children.entry(stat.ppid as u32).or_default().push(stat.pid as u32);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

/// Its children and theirs, those that are nearer first.
pub fn descendants(pid: u32) -> Vec<u32> {
    with_descendants(pid).split_off(1)
}

/// The numbers among the names in a directory.
pub fn numbers(path: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
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
pub fn thread_state(tid: u32) -> ThreadState {
    match process(tid).and_then(|process| process.syscall().ok()) {
        Some(Syscall::Running) => ThreadState::Running,
        Some(Syscall::Blocked { syscall_number, argument_registers, .. }) if syscall_number >= 0 => {
            ThreadState::Waiting { number: syscall_number, args: argument_registers }
        }
        _ => ThreadState::Unknown,
    }
}

/// Whether any of its threads is in no wait that can be seen.
pub fn is_running(pid: u32) -> bool {
    threads(pid).into_iter().any(|tid| thread_state(tid) == ThreadState::Running)
}

/// The name of the system call that the main thread waits in; empty: none, or not known.
pub fn waits_in(pid: u32) -> String {
    match thread_state(pid) {
        ThreadState::Waiting { number, .. } => syscalls::op(number)
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

/// The directory that its relative paths begin in.
pub fn directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Its open descriptors.
pub fn descriptors(pid: u32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/fd")).into_iter().filter_map(|fd| i32::try_from(fd).ok()).collect()
}

/// Whether its executable is for another architecture than weir's, such as 32-bit x86.
pub fn foreign(pid: u32) -> bool {
    file_is_foreign(Path::new(&format!("/proc/{pid}/exe")))
}

/// The same of a program's file.
pub fn file_is_foreign(path: &Path) -> bool {
    ElfFile::open(path).is_some_and(|elf| elf.is_foreign() || elf.is_native().is_ok_and(|own| !own))
}

/// Whether its executable is set-user-ID or set-group-ID to somebody else than weir's user: a tracer without
/// privilege keeps the program from getting that one's rights, and so does no_new_privs, whoever traces.
pub fn loses_privilege(pid: u32) -> bool {
    let kept_from = || status(pid).is_some_and(|status| status.nonewprivs == Some(1));
    let exe = format!("/proc/{pid}/exe");
    file_loses_privilege(Path::new(&exe)) || gives_privilege(Path::new(&exe)) && kept_from()
}

/// The same of a program's file.
pub fn file_loses_privilege(path: &Path) -> bool {
    !rustix::process::geteuid().is_root() && gives_privilege(path)
}

fn gives_privilege(path: &Path) -> bool {
    let Ok(exe) = fs::metadata(path) else { return false };
    let owner = exe.mode() & libc::S_ISUID != 0 && exe.uid() != rustix::process::geteuid().as_raw();
    let group = exe.mode() & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
        && exe.gid() != rustix::process::getegid().as_raw();
    owner || group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_first_four_lines() {
        let text = b"rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 0\n";
        let counts = IoTotals { read_calls: 3, write_calls: 4, read_bytes: 10, written_bytes: 20 };
        assert_eq!(parse_io(text), Some(counts));
        assert_eq!(parse_io(b"rchar: 10\nwchar: x\nsyscr: 3\nsyscw: 4\n"), None);
        assert_eq!(parse_io(b"rchar: 10\n"), None);
    }

    #[test]
    fn own_counts_grow_with_a_read() {
        let before = own_io(std::process::id()).unwrap();
        fs::read("/proc/self/stat").unwrap();
        assert!(own_io(std::process::id()).unwrap().read_calls > before.read_calls);
    }

    #[test]
    fn names_are_as_the_kernel_has_them() {
        let mut command = std::process::Command::new("sh");
        let mut child = command
            .args(["-c", "read line", "", "last"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        while !names(child.id()).0.contains("sh") || names(child.id()).2.len() != 5 {
            std::thread::yield_now(); // it is this test until it has become sh
        }
        let (exe, comm, arguments) = names(child.id());
        assert!(exe.starts_with('/'), "{exe}");
        assert_eq!(
            (comm.as_str(), arguments),
            ("sh", ["sh", "-c", "read line", "", "last"].map(String::from).to_vec())
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(child.id()), Default::default());
        assert_eq!(
            (words(b""), words(b"\0"), words(b"a")),
            (vec![], vec![String::new()], vec!["a".to_string()])
        );
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let found = with_descendants(std::process::id());
        assert_eq!(found[0], std::process::id());
        assert!(found.contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
