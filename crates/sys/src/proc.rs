//! Processes and threads as /proc describes them (proc(5)): names, counters, threads, children, state.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::FromBufRead;
use procfs::process::{Process, Stat, Status, Syscall};
use weir_model::Untrusted;
use weir_model::trace::IoTotals;

use crate::{foreign_reads, living_thread, process_stat, process_status, syscalls};

/// The resources that a process has used since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ResourceUsage {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Time in the run queue: runnable without a processor (run_delay of schedstat).
    pub queued_ns: Option<u64>,
    /// Bytes read from storage (`read_bytes` of /proc/PID/io).
    pub fetched_bytes: Option<u64>,
}

/// The most bytes of arguments that are read: the kernel's limit for a stack of 8 MiB (execve(2)). A program can move its
/// arguments to a mapping of any size (PR_SET_MM_MAP).
const MAX_ARGUMENT_BYTES: u64 = 2 << 20;

/// Returns whether proc(5) is mounted at /proc.
pub fn is_mounted() -> bool {
    fs::symlink_metadata("/proc/self").is_ok()
}

fn process(pid: u32) -> Option<Process> {
    Process::new(pid as i32).ok()
}

/// Reads a file of /proc/PID as text. A name in it may have any bytes; those that are no UTF-8 are replaced.
fn text(pid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

fn stat(pid: u32) -> Option<Stat> {
    process_stat::parse_all(&text(pid, "stat")?)
}

/// Reads the counters of /proc/PID/io. They include those of reaped children. Returns None also in execve(2).
pub fn io(pid: u32) -> Option<IoTotals> {
    if process_status::is_executing(pid) {
        return None;
    }
    parse_io(&fs::read(format!("/proc/{pid}/io")).ok()?)
}

/// Parses /proc/PID/io: rchar, wchar, syscr and syscw, its first four lines.
pub fn parse_io(text: &[u8]) -> Option<IoTotals> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.lines().map(|line| line.split_once(": ")?.1.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (read_bytes, written_bytes) = (next()?, next()?);
    Some(IoTotals { read_calls: next()?, write_calls: next()?, read_bytes, written_bytes })
}

/// Returns the sum of the counters of the living threads. Unlike [`io`], it excludes reaped children. Returns None also in
/// execve(2), and if the counters of a living thread cannot be read.
pub fn own_io(pid: u32) -> Option<IoTotals> {
    let threads = if process_status::is_executing(pid) { Vec::new() } else { threads(pid) };
    sum_io(threads.into_iter().map(|tid| fs::read(format!("/proc/{pid}/task/{tid}/io"))))
}

/// Returns the sum of texts of /proc/PID/task/TID/io, without those of threads that have ended meanwhile. None if a text could not
/// be read for another reason, or if all threads have ended.
fn sum_io(texts: impl Iterator<Item = std::io::Result<Vec<u8>>>) -> Option<IoTotals> {
    let mut sum = None;
    for text in texts {
        match text {
            Ok(text) => sum = Some(sum.unwrap_or_else(IoTotals::default).plus(parse_io(&text)?)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) => {}
            Err(_) => return None,
        }
    }
    sum
}

/// Returns the CPU time of all threads in user mode and in the kernel, in nanoseconds. Its resolution is one tick.
pub fn cpu_times_ns(pid: u32) -> Option<(u64, u64)> {
    let stat = stat(pid)?;
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    Some((stat.utime * tick_ns, stat.stime * tick_ns))
}

/// Reads the resource usage of a process. Fields that cannot be read are 0 or None.
pub fn resource_usage(pid: u32) -> ResourceUsage {
    let (user_ns, system_ns) = cpu_times_ns(pid).unwrap_or_default();
    // Includes reaped children: /proc/PID/io has one sum.
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

/// Returns the time that the first thread of a process has been in the run queue: runnable without a processor. None for a process
/// that has been reaped, and without CONFIG_SCHED_INFO.
pub fn time_in_queue(pid: u32) -> Option<Duration> {
    Some(Duration::from_nanos(process(pid)?.schedstat().ok()?.run_delay))
}

/// Returns the entry point of the process's executable (AT_ENTRY, getauxval(3)), to which the dynamic loader jumps when
/// all libraries are loaded.
pub fn entry_point(pid: u32) -> Option<u64> {
    process(pid)?.auxv().ok()?.get(&libc::AT_ENTRY).copied()
}

/// Returns the process (thread group) of a thread.
pub fn process_of(tid: u32) -> Option<u32> {
    status(tid).map(|status| status.tgid as u32)
}

/// Returns the executable path, the name and the arguments of a process; empty where /proc does not show them.
pub fn names(pid: u32) -> (Untrusted, Untrusted, Vec<Untrusted>) {
    // The kernel reads the arguments in the memory of the process. Unlike the executable, they are not denied to other users.
    let arguments = |tid: u32| {
        let path = format!("/proc/{tid}/cmdline");
        let text = foreign_reads::beginning(Path::new(&path), MAX_ARGUMENT_BYTES).ok();
        text.filter(|text| !text.is_empty())
    };
    let exe = link(pid, "exe").map(Untrusted::of_os).unwrap_or_default();
    let arguments = living_thread::or_by_other(pid, arguments).unwrap_or_default();
    (exe, comm(pid), split_nul(&arguments))
}

/// Returns the name of a process; empty if it has ended. Unlike [`names`], this reads no memory of the process.
pub fn comm(pid: u32) -> Untrusted {
    read_comm(pid).unwrap_or_default()
}

fn read_comm(pid: u32) -> Option<Untrusted> {
    let comm = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(Untrusted::of_bytes(comm.strip_suffix(b"\n").unwrap_or(&comm)))
}

/// Splits a list of NUL-terminated strings.
pub fn split_nul(bytes: &[u8]) -> Vec<Untrusted> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let strings = bytes.strip_suffix(b"\0").unwrap_or(bytes).split(|&byte| byte == 0);
    strings.map(Untrusted::of_bytes).collect()
}

/// Returns "process PID (NAME)" with escapes, or "process PID" if the name cannot be read. The name
/// can also be read while execve(2) blocks.
pub fn label(pid: u32) -> String {
    match read_comm(pid) {
        Some(comm) => format!("process {pid} ({comm})"),
        None => format!("process {pid}"),
    }
}

/// Reads /proc/PID/status of a process or thread.
pub fn status(tid: u32) -> Option<Status> {
    Status::from_buf_read(text(tid, "status")?.as_bytes()).ok()
}

/// Returns the number of the processor on which a thread runs or last ran.
pub fn last_processor(tid: u32) -> Option<usize> {
    stat(tid)?.processor?.try_into().ok()
}

/// Returns whether the thread has a pending signal that it neither blocks nor ignores. A thread that /proc
/// no longer has counts as having one.
pub fn has_deliverable_signal(tid: u32) -> bool {
    status(tid).is_none_or(|status| {
        has_effect(status.sigpnd | status.shdpnd, status.sigblk, status.sigign, status.sigcgt)
    })
}

/// Returns whether a signal has no effect on a thread: it is ignored, or has no handler and is ignored by default.
pub fn ignores(tid: u32, signal: i32) -> bool {
    status(tid).is_some_and(|status| !has_effect(1 << (signal - 1), 0, status.sigign, status.sigcgt))
}

/// Returns whether one of the pending signals has an effect. The kernel queues ignored signals for a tracer; without one
/// they do not exist, and interrupt no call.
fn has_effect(pending: u64, blocked: u64, ignored: u64, caught: u64) -> bool {
    let ignored_by_default = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    let by_default: u64 = ignored_by_default.iter().map(|signal| 1 << (signal - 1)).sum();
    pending & !blocked & !ignored & (caught | !by_default) != 0
}

/// Returns whether a thread has ended. A zombie has ended.
pub fn is_dead(tid: u32) -> bool {
    status(tid).is_none_or(|status| status.state.starts_with(['Z', 'X']))
}

/// Returns whether all threads of a process have ended. The main thread may end before the others.
pub fn has_ended(pid: u32) -> bool {
    status(pid).is_none_or(|status| status.state.starts_with(['Z', 'X']) && status.threads <= 1)
}

/// Returns whether SIGKILL is pending for the thread of this status, or for its process.
fn is_kill_pending(status: &Status) -> bool {
    (status.sigpnd | status.shdpnd) & 1 << (libc::SIGKILL - 1) != 0
}

/// Returns whether /proc no longer has a thread, or SIGKILL is pending for it.
pub fn is_killed(tid: u32) -> bool {
    status(tid).is_none_or(|status| is_kill_pending(&status))
}

/// Returns whether another process traces this one, for example strace(1): each of its calls stops it.
pub fn is_traced() -> bool {
    status(std::process::id()).is_some_and(|status| status.tracerpid > 0)
}

/// Returns whether a thread is in a stop, and SIGKILL has not come since.
pub fn is_stopped(tid: u32) -> bool {
    status(tid).is_some_and(|status| status.state.starts_with(['t', 'T']) && !is_kill_pending(&status))
}

/// Returns whether SIGKILL is pending for a process, or its main thread is in a tracing stop, which may be that of its exit.
pub fn is_dying(pid: u32) -> bool {
    status(pid).is_some_and(|status| is_kill_pending(&status) || status.state.starts_with('t'))
}

/// Returns whether a process exists. A zombie exists.
pub fn exists(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// Returns whether a process or thread exists and /proc hides it, as with the mount option hidepid (proc(5)).
pub fn is_hidden(pid: u32) -> bool {
    if pid == 0 || fs::read(format!("/proc/{pid}/status")).is_ok() || !is_mounted() {
        return false;
    }
    // A security module can deny the session of a process that exists.
    // SAFETY: the call takes and returns a number.
    let has_session = unsafe { libc::getsid(pid as libc::pid_t) } >= 0;
    has_session || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Returns whether /proc hides processes of other users from weir.
pub fn hides_others() -> bool {
    is_hidden(1)
}

/// Returns the thread IDs of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the children of all threads of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let of = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let lists: Vec<String> = threads(pid).into_iter().map(of).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// Returns the process and its descendants; the process itself first, parents before their children.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in numbers("/proc") {
        // /proc/PID/stat of any user's process can block for ever.
        if let Some(status) = process_status::read(process) {
            children.entry(status.parent).or_default().push(process);
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

/// Returns the descendants of a process, parents before their children.
pub fn descendants(pid: u32) -> Vec<u32> {
    with_descendants(pid).split_off(1)
}

/// Returns the process group of a process, by getpgid(2): 0 for one of the kernel or of an outer PID namespace. None if there is no
/// such process.
pub fn group(pid: u32) -> Option<u32> {
    // SAFETY: takes a number and reads no memory of this process.
    u32::try_from(unsafe { libc::getpgid(i32::try_from(pid).ok()?) }).ok()
}

/// Returns the names of a directory that are numbers.
pub fn numbers(path: &str) -> Vec<u32> {
    some_numbers(path, usize::MAX)
}

/// As [`numbers`], but only the first `most` names are read.
pub fn some_numbers(path: &str, most: usize) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.take(most).filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The state of a thread, as /proc/PID/syscall shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ThreadState {
    /// The thread runs or is runnable.
    Running,
    /// The thread blocks in this system call.
    Waiting { number: i64, args: [u64; 6] },
    /// The thread blocks outside of a system call or in execve(2), or its state may not be read.
    Unknown,
}

/// Returns the current state of a thread.
pub fn thread_state(tid: u32) -> ThreadState {
    if process_status::is_executing(tid) {
        return ThreadState::Unknown;
    }
    match process(tid).and_then(|process| process.syscall().ok()) {
        Some(Syscall::Running) => ThreadState::Running,
        Some(Syscall::Blocked { syscall_number, argument_registers, .. }) if syscall_number >= 0 => {
            ThreadState::Waiting { number: syscall_number, args: argument_registers }
        }
        _ => ThreadState::Unknown,
    }
}

/// Returns whether any thread of a process is running.
pub fn is_running(pid: u32) -> bool {
    threads(pid).into_iter().any(|tid| thread_state(tid) == ThreadState::Running)
}

/// Returns the name of the system call in which a thread blocks; empty if it runs or the call has no name here. Unlike
/// [`crate::blocking_calls::current`], it also names observed calls that rarely block.
pub fn current_syscall(tid: u32) -> String {
    match thread_state(tid) {
        ThreadState::Waiting { number, .. } => syscalls::name(number).unwrap_or_default().to_string(),
        _ => String::new(),
    }
}

/// Returns the target of /proc/PID/fd/FD: a path, or a text such as "pipe:[123]".
pub fn descriptor(pid: u32, fd: i32) -> Option<Untrusted> {
    let target = |tid: u32| fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok();
    living_thread::or_by_other(pid, target).map(Untrusted::of_os)
}

/// Returns the working directory of a process.
pub fn directory(pid: u32) -> Option<PathBuf> {
    link(pid, "cwd")
}

/// Returns whether a process has another root directory or other mounts than this one, so that its paths name other files. False if
/// that is unknown.
pub fn has_other_files(pid: u32) -> bool {
    let root = link(pid, "root");
    let mounts = link(pid, "ns/mnt");
    root.is_some_and(|root| root != Path::new("/"))
        || mounts.is_some_and(|mounts| Some(mounts) != link(std::process::id(), "ns/mnt"))
}

/// Returns where a link in /proc/PID leads. Returns None also in execve(2), in which the link may not answer.
fn link(pid: u32, name: &str) -> Option<PathBuf> {
    let of_thread = |tid: u32| {
        let path = format!("/proc/{tid}/{name}");
        if process_status::is_executing(tid) { None } else { fs::read_link(path).ok() }
    };
    living_thread::or_by_other(pid, of_thread)
}

/// The most descriptors of a process that are listed, which takes about 30 ms.
const MAX_DESCRIPTORS: usize = 1 << 16;

/// Returns the open descriptors of a process, at most [`MAX_DESCRIPTORS`].
pub fn descriptors(pid: u32) -> Vec<i32> {
    let of_thread =
        |tid| Some(some_numbers(&format!("/proc/{tid}/fd"), MAX_DESCRIPTORS)).filter(|fds| !fds.is_empty());
    let fds = living_thread::or_by_other(pid, of_thread).unwrap_or_default();
    fds.into_iter().filter_map(|fd| i32::try_from(fd).ok()).collect()
}
