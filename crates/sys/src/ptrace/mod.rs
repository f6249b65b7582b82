//! Safe wrappers of ptrace(2), waitpid(2) and kcmp(2), which rustix does not offer.
//!
//! Every function on a tracee must be called by the thread that traces it. A tracee that has died is not an error unless
//! the function says so: the death is reported by the next [`wait`].

pub mod held_exit;
pub mod interrupt;
pub mod interrupted_write;
mod kcmp;
pub mod last_write;
#[cfg(target_arch = "x86_64")]
pub mod late_calls;
pub mod other_tracers;
#[cfg(target_arch = "x86_64")]
pub mod own_calls;
pub mod registers;
pub mod repeat;
pub mod sockets;
pub mod timed_wait;
pub mod timer;

use std::io;

use crate::{foreign_reads, served_mappings};
pub use kcmp::{compare_files, same_file, share_fd_table, share_memory};

/// The options of [`seize`]. PTRACE_O_EXITKILL is not among them: a program outlives weir.
const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// PTRACE_EVENT_STOP of linux/ptrace.h.
pub const EVENT_STOP: i32 = 128;

// Requests of linux/ptrace.h that not every C library declares.
const PTRACE_SEIZE: i64 = 0x4206;
const PTRACE_INTERRUPT: i64 = 0x4207;
const PTRACE_LISTEN: i64 = 0x4208;
const PTRACE_GET_SYSCALL_INFO: i64 = 0x420e;

/// A stop or the end of a tracee.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct PtraceStop {
    pub tid: u32,
    /// The status of waitpid(2).
    pub status: i32,
    /// The CPU time of the thread's process and of the children that it has waited for, in nanoseconds; 0 if unknown.
    pub cpu_ns: u64,
}

/// The kind of a system call stop. `arch` is an AUDIT_ARCH_ value of linux/audit.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SyscallStop {
    /// A stop before the call.
    Entry { arch: u32, number: u64, args: [u64; 6] },
    /// A stop before the call, by a seccomp filter. `mark` is the data of the filter's verdict (SECCOMP_RET_DATA).
    Filtered { arch: u32, number: u64, args: [u64; 6], mark: u16 },
    /// A stop after the call. `result` is a negative errno on failure.
    Exit { result: i64 },
    /// Not a system call stop, or the tracee has died.
    Other,
}

/// struct ptrace_syscall_info of linux/ptrace.h, which not every C library declares.
#[repr(C)]
#[derive(Default)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction: u64,
    stack: u64,
    words: [u64; 8],
}

fn ptrace(request: i64, tid: u32, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: the callers below pass the arguments that each request expects: numbers, or pointers to live locals of the
    // size that the request writes.
    let answer = unsafe { libc::ptrace(request as _, tid as libc::pid_t, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer as i64) }
}

/// Returns a seccomp filter of a stopped tracee by its number, from the newest (PTRACE_SECCOMP_GET_FILTER); an instruction is
/// a struct sock_filter of 8 bytes. Fails with ENOENT if there is none.
pub(crate) fn seccomp_filter(tid: u32, number: usize) -> io::Result<Vec<[u8; 8]>> {
    const GET_FILTER: i64 = 0x420c;
    let length = ptrace(GET_FILTER, tid, number, 0)?;
    let mut filter = vec![[0; 8]; length as usize];
    ptrace(GET_FILTER, tid, number, filter.as_mut_ptr() as usize)?;
    Ok(filter)
}

/// Makes the calling thread the tracer of a thread, without stopping it (PTRACE_SEIZE).
///
/// Fails with EPERM if the thread has another tracer or may not be traced, and with ESRCH if it has ended.
pub fn seize(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(drop)
}

/// Seizes a thread that has the filter of [`crate::seccomp`]. The kernel kills it and its descendants if the tracer dies,
/// because their calls would fail without a tracer.
pub fn seize_filtered(tid: u32) -> io::Result<()> {
    let options = OPTIONS | libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
    ptrace(PTRACE_SEIZE, tid, 0, options as usize).map(drop)
}

/// The options for lifecycle stops: fork, exec and exit.
const LIFECYCLE_OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// Seizes a thread for lifecycle stops and stops at new threads, without system call stops.
pub fn seize_for_lifecycle(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_SEIZE, tid, 0, (LIFECYCLE_OPTIONS | libc::PTRACE_O_TRACECLONE) as usize).map(drop)
}

/// Seizes a thread as [`seize_for_lifecycle`], without a stop at its exit.
pub fn seize_for_forks(tid: u32) -> io::Result<()> {
    let options = (LIFECYCLE_OPTIONS | libc::PTRACE_O_TRACECLONE) & !libc::PTRACE_O_TRACEEXIT;
    ptrace(PTRACE_SEIZE, tid, 0, options as usize).map(drop)
}

/// Makes a stopped tracee stop at the events of [`seize_for_lifecycle`] from now on, and at its exit.
pub fn trace_lifecycle(tid: u32) {
    let options = LIFECYCLE_OPTIONS | libc::PTRACE_O_TRACECLONE;
    let _died = ptrace(libc::PTRACE_SETOPTIONS as i64, tid, 0, options as usize);
}

/// Seizes a thread for its syscall stops only.
pub fn seize_for_syscalls(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_SEIZE, tid, 0, libc::PTRACE_O_TRACESYSGOOD as usize).map(drop)
}

/// Seizes a thread for the stop at its own exit only.
pub fn seize_for_exit(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_SEIZE, tid, 0, libc::PTRACE_O_TRACEEXIT as usize).map(drop)
}

/// Seizes a thread for its signal-delivery stops only.
pub fn seize_for_signals(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_SEIZE, tid, 0, 0).map(drop)
}

/// Ends the stops of a stopped tracee at new threads, after [`seize_for_lifecycle`].
pub fn ignore_new_threads(tid: u32) {
    let _died = ptrace(libc::PTRACE_SETOPTIONS as i64, tid, 0, LIFECYCLE_OPTIONS as usize);
}

/// Limits the stops of a stopped tracee to that at its exit.
pub fn trace_exit_only(tid: u32) {
    let _died = ptrace(libc::PTRACE_SETOPTIONS as i64, tid, 0, libc::PTRACE_O_TRACEEXIT as usize);
}

/// Raises the priority of the calling thread if that is allowed (setpriority(2)). Processes are stopped until this thread
/// has handled them, or emit events faster than it would read them.
pub fn raise_priority() {
    const NICE: libc::c_int = -10;
    // SAFETY: all arguments are numbers; 0 is the calling thread.
    let _not_allowed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// Requests a stop of a running tracee (PTRACE_INTERRUPT). Some blocked system calls fail with EINTR then: see
/// [`interrupt::may_interrupt`].
pub fn interrupt(tid: u32) -> io::Result<()> {
    ptrace(PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

/// Resumes a stopped tracee and delivers `signal` (0: none). With `to_syscall`, it stops at the next system call
/// (PTRACE_SYSCALL).
pub fn resume(tid: u32, to_syscall: bool, signal: i32) {
    let request = if to_syscall { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    let _died = ptrace(request as i64, tid, 0, signal as usize);
}

/// Leaves a tracee in its group-stop until SIGCONT (PTRACE_LISTEN).
pub fn listen(tid: u32) {
    let _died = ptrace(PTRACE_LISTEN, tid, 0, 0);
}

/// Detaches from a stopped tracee and delivers `signal` (0: none).
pub fn detach(tid: u32, signal: i32) {
    let _died = ptrace(libc::PTRACE_DETACH as i64, tid, 0, signal as usize);
}

/// Returns the data of a ptrace event stop: the new thread's ID, the exit status, or the former thread ID at execve(2)
/// (PTRACE_GETEVENTMSG). Returns None if the tracee has died.
pub fn event_message(tid: u32) -> Option<u64> {
    let mut message: libc::c_ulong = 0;
    ptrace(libc::PTRACE_GETEVENTMSG as i64, tid, 0, (&raw mut message) as usize).ok()?;
    Some(message)
}

/// Returns the ID of the process or thread that a tracee has just created. None if the tracee has died or is killed: its event
/// data may be the exit status already.
pub fn new_tid(tid: u32) -> Option<u32> {
    let new = event_message(tid).and_then(|new| u32::try_from(new).ok());
    new.filter(|new| *new != 0 && !has_stop(tid))
}

/// Returns whether a signal stops processes (signal(7)).
pub fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// Returns the descriptor that caused the signal of a signal-delivery stop (si_fd, F_SETSIG of fcntl(2)); None if the
/// signal has another cause.
pub fn signal_fd(tid: u32) -> Option<i32> {
    const POLL_IN: i32 = 1;
    let info = signal_info(tid)?;
    (info[1] as i32 == POLL_IN).then_some(info[3] as i32)
}

/// Returns whether the kernel itself sent the signal of a signal-delivery stop.
pub fn is_kernel_signal(tid: u32) -> bool {
    const SI_KERNEL: i32 = 0x80; // sigaction(2); no process can send it
    signal_info(tid).is_some_and(|info| info[1] as i32 == SI_KERNEL)
}

/// Returns the process that has sent the signal of a signal-delivery stop by kill(2); None if it has another cause.
pub fn signal_sender(tid: u32) -> Option<i32> {
    let info = signal_info(tid)?;
    // si_pid and si_uid are in the word after si_code.
    (info[1] as i32 == libc::SI_USER).then_some(info[2] as i32)
}

/// Returns the siginfo_t of a signal-delivery stop as words: si_signo and si_errno, si_code, si_band or si_pid, si_fd.
fn signal_info(tid: u32) -> Option<[u64; 16]> {
    let mut info = [0u64; 16];
    ptrace(libc::PTRACE_GETSIGINFO as i64, tid, 0, info.as_mut_ptr() as usize).ok()?;
    Some(info)
}

/// Returns the kind of a system call stop, and its call (PTRACE_GET_SYSCALL_INFO, Linux 5.3).
pub fn syscall_stop(tid: u32) -> SyscallStop {
    let mut info = SyscallInfo::default();
    if ptrace(PTRACE_GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), (&raw mut info) as usize).is_err() {
        return SyscallStop::Other;
    }
    let words = info.words;
    let (arch, number, args) = (info.arch, words[0], std::array::from_fn(|at| words[at + 1]));
    match info.op {
        1 => SyscallStop::Entry { arch, number, args },
        3 => SyscallStop::Filtered { arch, number, args, mark: words[7] as u16 },
        2 => SyscallStop::Exit { result: words[0] as i64 },
        _ => SyscallStop::Other,
    }
}

/// Returns whether a thread is stopped before its call, by PTRACE_SYSCALL or by a seccomp filter.
pub fn at_syscall_entry(tid: u32) -> bool {
    matches!(syscall_stop(tid), SyscallStop::Entry { .. } | SyscallStop::Filtered { .. })
}

/// Calls wait4(2) for the tracees of the calling thread. Returns None without a stop; `tid` is -1 for every tracee.
fn wait4(tid: i32, options: i32) -> io::Result<Option<PtraceStop>> {
    let mut status = 0;
    // __WNOTHREAD: other threads of this process may wait for children of their own.
    let options = options | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: a struct of integers, for which all zeros are valid; the call fills it and an integer.
    let (got, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(tid, &mut status, options, &mut usage), usage)
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let cpu_ns = ns(usage.ru_utime) + ns(usage.ru_stime);
    match got {
        0 => Ok(None),
        got if got > 0 => Ok(late_stop(PtraceStop { tid: got as u32, status, cpu_ns })),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_arch = "x86_64")]
use late_calls::filter as late_stop;

/// No tracee of another architecture makes calls for its tracer.
#[cfg(not(target_arch = "x86_64"))]
fn late_stop(stop: PtraceStop) -> Option<PtraceStop> {
    Some(stop)
}

/// Converts the interruption of a wait by a signal to None.
fn unless_interrupted(waited: io::Result<Option<PtraceStop>>) -> io::Result<Option<PtraceStop>> {
    match waited {
        Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(None),
        waited => waited,
    }
}

/// Waits for the next stop of a tracee of the calling thread. Returns None if a signal interrupted the wait; fails with
/// ECHILD if the thread has no tracees.
pub fn wait() -> io::Result<Option<PtraceStop>> {
    unless_interrupted(wait4(-1, 0))
}

/// Waits for the next stop of one tracee. Returns None if a signal interrupted the wait; fails with ECHILD if the calling
/// thread does not trace it.
pub fn wait_for(tid: u32) -> io::Result<Option<PtraceStop>> {
    unless_interrupted(wait4(tid as i32, 0))
}

/// Returns a stop of one tracee, or its end, if it has already occurred. Fails with ECHILD if this thread does not trace it.
pub fn try_wait_for(tid: u32) -> io::Result<Option<PtraceStop>> {
    wait4(tid as i32, libc::WNOHANG)
}

/// Returns a stop of a tracee of the calling thread that has already occurred, without waiting.
pub fn try_wait() -> Option<PtraceStop> {
    wait4(-1, libc::WNOHANG).ok().flatten()
}

/// Returns whether a tracee has a stop that was not waited for yet. The stop is not consumed.
pub fn has_stop(tid: u32) -> bool {
    next_status(tid).is_some()
}

/// As [`has_stop`], for an exit stop.
pub fn has_exit_stop(tid: u32) -> bool {
    next_status(tid) == Some(libc::SIGTRAP | libc::PTRACE_EVENT_EXIT << 8)
}

/// Returns the si_status (waitid(2)) of a stop or end of a tracee that was not waited for yet.
fn next_status(tid: u32) -> Option<i32> {
    // SAFETY: zeroed is a valid siginfo_t, which the call fills.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options =
            libc::WSTOPPED | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
        let is_filled = libc::waitid(libc::P_PID, tid, &mut info, options) == 0 && info.si_pid() != 0;
        is_filled.then(|| info.si_status())
    }
}

/// Reaps a child of this process that has ended, also one that another thread has started. Returns its wait status.
pub fn try_reap_child(pid: u32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: waitpid fills an integer.
    let got = unsafe { libc::waitpid(pid as i32, &mut status, libc::WNOHANG | libc::__WALL) };
    (got == pid as i32 && !libc::WIFSTOPPED(status)).then_some(status)
}

/// Writes bytes to the memory of a tracee (process_vm_writev(2)). Returns false if not all bytes were written. That of another
/// user's process is written by a child with a limit of time.
pub fn write_memory(tid: u32, address: u64, bytes: &[u8]) -> bool {
    foreign_reads::write_memory(tid, address, bytes)
}

/// Writes a word to the memory of a stopped tracee. If the page is read-only, it must be a process of weir's own user.
pub fn write_word(tid: u32, address: u64, word: u64) {
    if !write_memory(tid, address, &word.to_le_bytes()) && served_mappings::is_of_own_user(tid) {
        poke(tid, address, word);
    }
}

/// Writes a word to the memory of a stopped tracee, also to read-only pages (PTRACE_POKEDATA). May block for ever in memory
/// that no server answers for: the tracee must be a process of weir's own.
pub fn poke(tid: u32, address: u64, word: u64) {
    let _died = ptrace(libc::PTRACE_POKEDATA as i64, tid, address as usize, word as usize);
}

/// Returns the registers of a stopped tracee; None if it has died.
#[cfg(target_arch = "x86_64")]
pub fn registers(tid: u32) -> Option<libc::user_regs_struct> {
    // SAFETY: a struct of integers, for which zero is valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS as i64, tid, 0, (&raw mut registers) as usize).ok()?;
    Some(registers)
}

/// Sets the registers of a stopped tracee. Returns false if it has died.
#[cfg(target_arch = "x86_64")]
pub fn set_registers(tid: u32, registers: &libc::user_regs_struct) -> bool {
    ptrace(libc::PTRACE_SETREGS as i64, tid, 0, std::ptr::from_ref(registers) as usize).is_ok()
}

/// Waits until a thread of this process has left the kernel. The kernel detaches a thread's tracees late in its exit,
/// after pthread_join(3) has returned.
pub fn wait_until_gone(task: libc::pid_t) {
    let path = format!("/proc/self/task/{task}");
    while std::fs::exists(&path).unwrap_or(false) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}
