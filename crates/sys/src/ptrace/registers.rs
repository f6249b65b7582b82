//! Reads and changes the system call of a stopped thread through its registers. Supported on x86-64 only.

/// The system call from which a stopped thread has not returned to user mode yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SyscallRegisters {
    pub number: i64,
    pub args: [u64; 6],
    /// The return value, or one of the kernel's restart codes (-ERESTARTSYS to -ERESTART_RESTARTBLOCK).
    pub result: i64,
}

/// Registers of a thread in user mode. A system call leaves these values; the program may have overwritten them since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfterSyscall {
    /// The address to which the last call returned (rcx).
    pub returned_to: u64,
    /// The second argument of the last call (rsi).
    pub second_arg: u64,
    /// The general-purpose registers except rcx, r11 and rsp.
    pub general: [u64; 13],
}

/// Whether this architecture supports reading and changing calls.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};
    use crate::ptrace::{registers, set_registers};

    /// Returns the system call of a stopped thread; None if the thread is in user mode.
    pub fn current_syscall(tid: u32) -> Option<SyscallRegisters> {
        let regs = registers(tid)?;
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let number = regs.orig_rax as i64;
        (number >= 0).then_some(SyscallRegisters { number, args, result: regs.rax as i64 })
    }

    /// Returns the registers of a thread in user mode; None if it is in a system call.
    pub fn after_syscall(tid: u32) -> Option<AfterSyscall> {
        let r = registers(tid)?;
        let general =
            [r.rax, r.rbx, r.rdx, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r12, r.r13, r.r14, r.r15];
        ((r.orig_rax as i64) < 0).then_some(AfterSyscall { returned_to: r.rcx, second_arg: r.rsi, general })
    }

    /// Returns the stack pointer and the callee-saved registers (x86-64 ABI) of a stopped thread.
    pub fn stack(tid: u32) -> Option<(u64, [u64; 6])> {
        let regs = registers(tid)?;
        Some((regs.rsp, [regs.rbx, regs.rbp, regs.r12, regs.r13, regs.r14, regs.r15]))
    }

    /// Replaces the system call at its entry. With number -1 no call is made, and the thread gets the result `instead`.
    pub fn replace_syscall(tid: u32, number: i64, args: &[u64; 6], instead: i64) {
        let Some(mut regs) = registers(tid) else { return };
        set_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (number as u64, instead as u64);
        let _died = set_registers(tid, &regs);
    }

    /// Sets the result of a call at its exit, and restores the argument registers, which the program expects unchanged.
    /// The kernel does not restart the call, whatever it returned. Returns false if the thread has died.
    pub fn set_result(tid: u32, args: &[u64; 6], result: i64) -> bool {
        let Some(mut regs) = registers(tid) else { return false };
        set_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        set_registers(tid, &regs)
    }

    /// Skips the system call at its entry, of any architecture; the thread gets this result.
    pub fn skip_syscall(tid: u32, result: i64) {
        let Some(mut regs) = registers(tid) else { return };
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        let _died = set_registers(tid, &regs);
    }

    fn set_args(regs: &mut libc::user_regs_struct, args: &[u64; 6]) {
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = *args;
    }

    /// Returns number and result of the system call that a stop interrupted.
    pub fn interrupted_syscall(tid: u32) -> Option<(i64, i64)> {
        current_syscall(tid).map(|call| (call.number, call.result))
    }

    /// Makes the thread repeat the interrupted call, as the kernel does for most calls: sets the program counter back to
    /// the two-byte `syscall` instruction and restores the call number.
    pub fn restart_syscall(tid: u32) {
        let Some(mut regs) = registers(tid) else { return };
        regs.rax = regs.orig_rax;
        regs.rip = regs.rip.wrapping_sub(2);
        let _died = set_registers(tid, &regs);
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::{
    after_syscall, current_syscall, interrupted_syscall, replace_syscall, restart_syscall, set_result,
    skip_syscall, stack,
};

/// Stubs for architectures without support. On aarch64 the kernel rewinds an interrupted call before the tracer sees the
/// stop, so there is no interrupted call to repair.
#[cfg(not(target_arch = "x86_64"))]
#[allow(missing_docs)]
mod unsupported {
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};

    pub fn current_syscall(_tid: u32) -> Option<SyscallRegisters> {
        None
    }

    pub fn after_syscall(_tid: u32) -> Option<AfterSyscall> {
        None
    }

    pub fn stack(_tid: u32) -> Option<(u64, [u64; 6])> {
        None
    }

    pub fn replace_syscall(_tid: u32, _number: i64, _args: &[u64; 6], _instead: i64) {}

    pub fn set_result(_tid: u32, _args: &[u64; 6], _result: i64) -> bool {
        false
    }

    pub fn skip_syscall(_tid: u32, _result: i64) {}

    pub fn interrupted_syscall(_tid: u32) -> Option<(i64, i64)> {
        None
    }

    pub fn restart_syscall(_tid: u32) {}
}

#[cfg(not(target_arch = "x86_64"))]
pub use unsupported::{
    after_syscall, current_syscall, interrupted_syscall, replace_syscall, restart_syscall, set_result,
    skip_syscall, stack,
};
