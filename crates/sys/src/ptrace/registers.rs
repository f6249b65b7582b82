//! System calls as a stopped thread's registers show them, and how they are changed. Known on x86-64 only.

/// A system call that a stopped thread is in, or is just coming back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallRegisters {
    /// Its number.
    pub number: i64,
    /// Its arguments.
    pub args: [u64; 6],
    /// What it returns, or the kernel's own code for "to be made again".
    pub result: i64,
}

/// What a thread's registers held that is in its program: what a system call leaves there, unless they were used
/// for something else since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfterSyscall {
    /// Where the last call returned to.
    pub returned_to: u64,
    /// Its second argument.
    pub second: u64,
    /// All that are not special.
    pub all: [u64; 13],
}

/// Whether calls can be seen and changed here.
pub const KNOWN: bool = cfg!(target_arch = "x86_64");

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};
    use crate::ptrace::{registers, set_registers};

    /// The call that a stopped thread has not come back from to its program yet; None: it is in the program.
    pub fn call(tid: u32) -> Option<SyscallRegisters> {
        let regs = registers(tid)?;
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let number = regs.orig_rax as i64;
        (number >= 0).then_some(SyscallRegisters { number, args, result: regs.rax as i64 })
    }

    /// The last call of a thread that is in its program, as far as its registers still show it.
    pub fn behind(tid: u32) -> Option<AfterSyscall> {
        let r = registers(tid)?;
        let all = [r.rax, r.rbx, r.rdx, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r12, r.r13, r.r14, r.r15];
        ((r.orig_rax as i64) < 0).then_some(AfterSyscall { returned_to: r.rcx, second: r.rsi, all })
    }

    /// Where its stack ends now, and the registers that a call leaves as they are.
    pub fn stack(tid: u32) -> Option<(u64, [u64; 6])> {
        let regs = registers(tid)?;
        Some((regs.rsp, [regs.rbx, regs.rbp, regs.r12, regs.r13, regs.r14, regs.r15]))
    }

    /// At a call's entry: makes it another one; -1: none, which returns `instead`.
    pub fn change(tid: u32, number: i64, args: &[u64; 6], instead: i64) {
        let Some(mut regs) = registers(tid) else { return };
        set_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (number as u64, instead as u64);
        let _died = set_registers(tid, &regs);
    }

    /// At a call's exit: what it returns, and the arguments that the program gave, which it expects unchanged.
    /// The call is not made again, whatever it returned before. False: the thread has died meanwhile.
    pub fn answer(tid: u32, args: &[u64; 6], result: i64) -> bool {
        let Some(mut regs) = registers(tid) else { return false };
        set_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        set_registers(tid, &regs)
    }

    /// At a call's entry, of whatever architecture: it is not made, and returns this.
    pub fn refuse(tid: u32, result: i64) {
        let Some(mut regs) = registers(tid) else { return };
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        let _died = set_registers(tid, &regs);
    }

    fn set_args(regs: &mut libc::user_regs_struct, args: &[u64; 6]) {
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = *args;
    }

    /// The system call that a stop came into the middle of, and what it is about to return.
    pub fn broken_call(tid: u32) -> Option<(i64, i64)> {
        call(tid).map(|call| (call.number, call.result))
    }

    /// Has the thread make the broken call again, as the kernel does by itself for most calls: back to the
    /// instruction that made it, which is two bytes long, with the call's number where it was.
    pub fn make_again(tid: u32) {
        let Some(mut regs) = registers(tid) else { return };
        regs.rax = regs.orig_rax;
        regs.rip = regs.rip.wrapping_sub(2);
        let _died = set_registers(tid, &regs);
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::{answer, behind, broken_call, call, change, make_again, refuse, stack};

/// On aarch64 the kernel has put the registers back before a stop: no broken call is seen, and none is mended.
#[cfg(not(target_arch = "x86_64"))]
mod unknown {
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};

    /// Not known here.
    pub fn call(_tid: u32) -> Option<SyscallRegisters> {
        None
    }

    /// Not known here.
    pub fn behind(_tid: u32) -> Option<AfterSyscall> {
        None
    }

    /// Not known here.
    pub fn stack(_tid: u32) -> Option<(u64, [u64; 6])> {
        None
    }

    /// Not done here.
    pub fn change(_tid: u32, _number: i64, _args: &[u64; 6], _instead: i64) {}

    /// Not done here.
    pub fn answer(_tid: u32, _args: &[u64; 6], _result: i64) -> bool {
        false
    }

    /// Not done here.
    pub fn refuse(_tid: u32, _result: i64) {}

    /// Not known here.
    pub fn broken_call(_tid: u32) -> Option<(i64, i64)> {
        None
    }

    /// Nothing to do here: the kernel does it.
    pub fn make_again(_tid: u32) {}
}

#[cfg(not(target_arch = "x86_64"))]
pub use unknown::{answer, behind, broken_call, call, change, make_again, refuse, stack};
