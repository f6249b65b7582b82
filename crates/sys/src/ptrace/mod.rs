//! ptrace(2) and waitpid(2), which rustix has not, as functions that cannot be called wrongly.

pub mod interrupt;
pub mod registers;
pub mod sockets;
pub mod timer;

use std::io;

/// What a tracee stops for. EXITKILL is not among them: a program outlives weir.
const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// PTRACE_EVENT_STOP.
pub const EVENT_STOP: i32 = 128;

const SEIZE: i64 = 0x4206;
const INTERRUPT: i64 = 0x4207;
const LISTEN: i64 = 0x4208;
const GET_SYSCALL_INFO: i64 = 0x420e;

/// A stop of a tracee, or its end.
#[derive(Debug, Clone, Copy)]
pub struct PtraceStop {
    /// Whose.
    pub tid: u32,
    /// As waitpid(2) gives it.
    pub status: i32,
}

/// What a system call stop tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyscallStop {
    /// The call is about to be made.
    Entry {
        /// AUDIT_ARCH_ of the program.
        arch: u32,
        /// The call's number.
        number: u64,
        /// Its arguments.
        args: [u64; 6],
    },
    /// It is about to be made, and a seccomp filter says so.
    Filtered {
        /// AUDIT_ARCH_ of the program.
        arch: u32,
        /// The call's number.
        number: u64,
        /// Its arguments.
        args: [u64; 6],
        /// What the filter has added.
        said: u16,
    },
    /// It was made.
    Exit {
        /// What it returns, a negative errno for an error.
        result: i64,
    },
    /// It is another stop.
    Neither,
}

/// struct ptrace_syscall_info, which not every C library declares.
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
    // SAFETY: the callers below pass what each request expects: numbers, or pointers to live locals of the
    // size that the request writes.
    let answer = unsafe { libc::ptrace(request as _, tid as libc::pid_t, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer as i64) }
}

/// Becomes the tracer of a thread without stopping it.
pub fn seize(tid: u32) -> io::Result<()> {
    ptrace(SEIZE, tid, 0, OPTIONS as usize).map(drop)
}

/// The same of one with the filter of [`crate::seccomp`]. It and its descendants do not outlive their tracer, without
/// whom their calls fail.
pub fn seize_filtered(tid: u32) -> io::Result<()> {
    let options = OPTIONS | libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
    ptrace(SEIZE, tid, 0, options as usize).map(drop)
}

/// What a process stops for of which only its beginnings and ends are of interest.
const ENDS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// The same for a process of which only forks, threads, what it executes and the end are of interest.
pub fn seize_for_ends(tid: u32) -> io::Result<()> {
    ptrace(SEIZE, tid, 0, (ENDS | libc::PTRACE_O_TRACECLONE) as usize).map(drop)
}

/// The same of which nothing but the end of this very thread is of interest.
pub fn seize_for_exit(tid: u32) -> io::Result<()> {
    ptrace(SEIZE, tid, 0, libc::PTRACE_O_TRACEEXIT as usize).map(drop)
}

/// The same of which nothing but its signals is of interest.
pub fn seize_for_signals(tid: u32) -> io::Result<()> {
    ptrace(SEIZE, tid, 0, 0).map(drop)
}

/// At a stop of one that was seized so: threads that it starts from now on are not of interest.
pub fn leave_threads_out(tid: u32) {
    let _died = ptrace(libc::PTRACE_SETOPTIONS as i64, tid, 0, ENDS as usize);
}

/// At a stop: nothing but its end is of interest from now on.
pub fn leave_all_but_exit_out(tid: u32) {
    let _died = ptrace(libc::PTRACE_SETOPTIONS as i64, tid, 0, libc::PTRACE_O_TRACEEXIT as usize);
}

/// This thread goes before others where that is allowed: somebody stands still until it has looked, or makes more than it
/// can take.
pub fn hurry() {
    const BEFORE_OTHERS: libc::c_int = -10;
    // SAFETY: numbers; 0 is the calling thread.
    let _not_allowed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, BEFORE_OTHERS) };
}

/// Has it stop soon. Some system calls that it waits in would end with EINTR: see `catch`.
pub fn interrupt(tid: u32) -> io::Result<()> {
    ptrace(INTERRUPT, tid, 0, 0).map(drop)
}

/// Lets it run, to the next system call stop if `watched`. That it has died meanwhile is no error.
pub fn resume(tid: u32, watched: bool, signal: i32) {
    let request = if watched { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    let _died = ptrace(request as i64, tid, 0, signal as usize);
}

/// Leaves it stopped by job control, and able to be continued by SIGCONT.
pub fn listen(tid: u32) {
    let _died = ptrace(LISTEN, tid, 0, 0);
}

/// Lets a stopped one go for good.
pub fn detach(tid: u32, signal: i32) {
    let _died = ptrace(libc::PTRACE_DETACH as i64, tid, 0, signal as usize);
}

/// The child's number, the exit status or the former thread's number, by the event.
pub fn message(tid: u32) -> Option<u64> {
    let mut message: libc::c_ulong = 0;
    ptrace(libc::PTRACE_GETEVENTMSG as i64, tid, 0, (&raw mut message) as usize).ok()?;
    Some(message)
}

/// At the stop of a signal by which a descriptor says that something is there (F_SETSIG): the descriptor.
pub fn signalled_by(tid: u32) -> Option<i32> {
    const POLL_IN: i32 = 1;
    let info = signal_info(tid)?;
    (info[1] as i32 == POLL_IN).then_some(info[3] as i32)
}

/// At the stop of a signal: whether the kernel itself has sent it.
pub fn is_of_kernel(tid: u32) -> bool {
    const OF_KERNEL: i32 = 0x80; // SI_KERNEL, which no process can say
    signal_info(tid).is_some_and(|info| info[1] as i32 == OF_KERNEL)
}

/// struct siginfo at the stop of a signal: si_signo and si_errno, si_code, and of a descriptor's si_band, si_fd.
fn signal_info(tid: u32) -> Option<[u64; 16]> {
    let mut info = [0u64; 16];
    ptrace(libc::PTRACE_GETSIGINFO as i64, tid, 0, info.as_mut_ptr() as usize).ok()?;
    Some(info)
}

/// Which call, at a system call stop.
pub fn side(tid: u32) -> SyscallStop {
    let mut info = SyscallInfo::default();
    if ptrace(GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), (&raw mut info) as usize).is_err() {
        return SyscallStop::Neither;
    }
    let words = info.words;
    let (arch, number, args) = (info.arch, words[0], std::array::from_fn(|at| words[at + 1]));
    match info.op {
        1 => SyscallStop::Entry { arch, number, args },
        3 => SyscallStop::Filtered { arch, number, args, said: words[7] as u16 },
        2 => SyscallStop::Exit { result: words[0] as i64 },
        _ => SyscallStop::Neither,
    }
}

/// The next stop of a tracee of this thread; Ok(None): a signal came first.
pub fn wait() -> io::Result<Option<PtraceStop>> {
    let mut status = 0;
    // Only this thread's: other threads of this process may wait for children of their own.
    // SAFETY: fills an integer.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid > 0 {
        return Ok(Some(PtraceStop { tid: tid as u32, status }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINTR) { Ok(None) } else { Err(error) }
}

/// The next stop of this tracee of this thread; Ok(None): a signal came first.
pub fn wait_for(tid: u32) -> io::Result<Option<PtraceStop>> {
    let mut status = 0;
    // SAFETY: fills an integer.
    let got = unsafe { libc::waitpid(tid as libc::pid_t, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    if got > 0 {
        return Ok(Some(PtraceStop { tid, status }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINTR) { Ok(None) } else { Err(error) }
}

/// A stop of a tracee of this thread that is there already.
pub fn wait_no_longer() -> Option<PtraceStop> {
    let mut status = 0;
    // SAFETY: fills an integer.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
    (tid > 0).then_some(PtraceStop { tid: tid as u32, status })
}

/// Whether a tracee of this thread has a stop, which stays to be waited for.
pub fn has_stop(tid: u32) -> bool {
    // SAFETY: zeroed is a valid siginfo_t, which is filled.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let how =
            libc::WSTOPPED | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
        libc::waitid(libc::P_PID, tid, &mut about, how) == 0 && about.si_pid() != 0
    }
}

/// Stores bytes into the memory of a traced thread's process. False: not all of them could be stored.
pub fn write_memory(tid: u32, address: u64, bytes: &[u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `local` is only read; the remote memory is another process's, and checked by the kernel.
    let put = unsafe { libc::process_vm_writev(tid as libc::pid_t, &local, 1, &remote, 1, 0) };
    usize::try_from(put) == Ok(bytes.len())
}

/// Stores a word into a stopped thread's memory, even where the program itself may not write.
pub fn poke(tid: u32, address: u64, word: u64) {
    let _died = ptrace(libc::PTRACE_POKEDATA as i64, tid, address as usize, word as usize);
}

/// Whether two processes have one table of descriptors (CLONE_FILES).
pub fn share_files(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: compares and returns a number.
    unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, KCMP_FILES, 0, 0) == 0 }
}

/// Whether two processes have one memory (CLONE_VM); the child of a vfork(2) has its parent's until it executes, and
/// what waits in it is the parent's to write. False where the kernel does not tell, or one of them is gone.
pub fn share_memory(one: u32, other: u32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: compares and returns a number.
    unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, KCMP_VM, 0, 0) == 0 }
}

/// Whether a descriptor of one process and one of another are of the same open file.
pub fn same_file(one: (u32, i32), other: (u32, i32)) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let (here, there) = (one.0 as libc::pid_t, other.0 as libc::pid_t);
    // SAFETY: compares and returns a number.
    unsafe { libc::syscall(libc::SYS_kcmp, here, there, KCMP_FILE, one.1 as u64, other.1 as u64) == 0 }
}

/// The registers, which only x86-64 has in this form.
#[cfg(target_arch = "x86_64")]
pub fn registers(tid: u32) -> Option<libc::user_regs_struct> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS as i64, tid, 0, (&raw mut registers) as usize).ok()?;
    Some(registers)
}

/// Sets them; false: the thread has died meanwhile.
#[cfg(target_arch = "x86_64")]
pub fn set_registers(tid: u32, registers: &libc::user_regs_struct) -> bool {
    ptrace(libc::PTRACE_SETREGS as i64, tid, 0, std::ptr::from_ref(registers) as usize).is_ok()
}

/// Waits for it: the kernel lets the tracees go late in a thread's end, after it has told those that join it.
pub fn wait_until_gone(task: libc::pid_t) {
    let path = format!("/proc/self/task/{task}");
    while std::fs::exists(&path).unwrap_or(false) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_only_with_oneself() {
        let own = std::process::id();
        assert!(share_memory(own, own));
        assert!(!share_memory(own, std::os::unix::process::parent_id()));
        assert!(!share_memory(own, u32::MAX));
    }
}
