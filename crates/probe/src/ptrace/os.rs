//! ptrace(2) and waitpid(2), which rustix has not, as functions that cannot be called wrongly.

use std::io;

/// What a tracee stops for. EXITKILL is never among them: a program outlives weir.
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
pub struct Stop {
    /// Whose.
    pub tid: u32,
    /// As waitpid(2) gives it.
    pub status: i32,
}

/// What a system call stop tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The call is about to be made.
    Entry {
        /// AUDIT_ARCH_ of the program.
        arch: u32,
        /// The call's number.
        number: u64,
        /// Its arguments.
        args: [u64; 6],
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

/// The same for a process of which only forks and the end are of interest.
pub fn seize_for_ends(tid: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACEEXIT;
    ptrace(SEIZE, tid, 0, options as usize).map(drop)
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
    // struct siginfo: si_signo and si_errno, si_code, si_band, si_fd.
    let mut info = [0u64; 16];
    ptrace(libc::PTRACE_GETSIGINFO as i64, tid, 0, info.as_mut_ptr() as usize).ok()?;
    (info[1] as i32 == POLL_IN).then_some(info[3] as i32)
}

/// Which call, at a system call stop.
pub fn side(tid: u32) -> Side {
    let mut info = SyscallInfo::default();
    if ptrace(GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), (&raw mut info) as usize).is_err() {
        return Side::Neither;
    }
    let words = info.words;
    match info.op {
        1 => Side::Entry { arch: info.arch, number: words[0], args: std::array::from_fn(|at| words[at + 1]) },
        2 => Side::Exit { result: words[0] as i64 },
        _ => Side::Neither,
    }
}

/// The next stop of a tracee of this thread; Ok(None): a signal came first.
pub fn wait() -> io::Result<Option<Stop>> {
    let mut status = 0;
    // Only this thread's: other threads of this process may wait for children of their own.
    // SAFETY: fills an integer.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid > 0 {
        return Ok(Some(Stop { tid: tid as u32, status }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINTR) { Ok(None) } else { Err(error) }
}

/// A stop of a tracee of this thread that is there already.
pub fn wait_no_longer() -> Option<Stop> {
    let mut status = 0;
    // SAFETY: fills an integer.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
    (tid > 0).then_some(Stop { tid: tid as u32, status })
}

/// Whether two processes have one table of descriptors (CLONE_FILES).
pub fn share_files(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: compares and returns a number.
    unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, KCMP_FILES, 0, 0) == 0 }
}

/// The system call that a stop came into the middle of, and what it is about to return. Known on x86-64 only:
/// on aarch64 the kernel has put the registers back before the stop.
#[cfg(target_arch = "x86_64")]
pub fn broken_call(tid: u32) -> Option<(i64, i64)> {
    let registers = registers(tid)?;
    let number = registers.orig_rax as i64;
    (number >= 0).then_some((number, registers.rax as i64))
}

#[cfg(not(target_arch = "x86_64"))]
/// Not known here.
pub fn broken_call(_tid: u32) -> Option<(i64, i64)> {
    None
}

/// Has the thread make the broken call again, as the kernel does by itself for most calls: back to the
/// instruction that made it, which is two bytes long, with the call's number where it was.
#[cfg(target_arch = "x86_64")]
pub fn make_again(tid: u32) {
    let Some(mut registers) = registers(tid) else { return };
    registers.rax = registers.orig_rax;
    registers.rip = registers.rip.wrapping_sub(2);
    let _died = ptrace(libc::PTRACE_SETREGS as i64, tid, 0, (&raw const registers) as usize);
}

#[cfg(not(target_arch = "x86_64"))]
/// Nothing to do here: the kernel does it.
pub fn make_again(_tid: u32) {}

#[cfg(target_arch = "x86_64")]
fn registers(tid: u32) -> Option<libc::user_regs_struct> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS as i64, tid, 0, (&raw mut registers) as usize).ok()?;
    Some(registers)
}
