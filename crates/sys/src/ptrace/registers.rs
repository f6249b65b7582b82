//! Reads and changes the system call of a stopped thread through its registers, on x86-64 and aarch64.

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

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::memory::{Memory, ProcessMemory};
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};
    use crate::ptrace::{registers, set_registers};
    use crate::syscalls::SYSCALL_CODE;

    /// Returns the system call of a stopped thread; None if the thread is in user mode.
    pub fn current_syscall(tid: u32) -> Option<SyscallRegisters> {
        syscall_of(&registers(tid)?)
    }

    /// Returns the system call of a stopped thread with these registers; None if the thread is in user mode.
    pub fn syscall_of(regs: &libc::user_regs_struct) -> Option<SyscallRegisters> {
        let number = regs.orig_rax as i64;
        (number >= 0).then_some(SyscallRegisters { number, args: args_of(regs), result: regs.rax as i64 })
    }

    /// Returns the system call that a stopped thread with these registers, in user mode, makes with its next instruction; None if
    /// it executes another instruction. The result is 0, as for a call that a signal has interrupted before it wrote.
    pub fn next_syscall_of(tid: u32, regs: &libc::user_regs_struct) -> Option<SyscallRegisters> {
        let mut instruction = [0; 2];
        let is_read = ProcessMemory { pid: tid }.read(regs.rip, &mut instruction) == instruction.len();
        let is_next = is_read && instruction == SYSCALL_CODE && (regs.orig_rax as i64) < 0;
        is_next.then_some(SyscallRegisters { number: regs.rax as i64, args: args_of(regs), result: 0 })
    }

    fn args_of(regs: &libc::user_regs_struct) -> [u64; 6] {
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9]
    }

    /// Returns these registers of a stopped thread in user mode; None if it is in a system call.
    pub fn after_syscall_of(r: &libc::user_regs_struct) -> Option<AfterSyscall> {
        let general =
            [r.rax, r.rbx, r.rdx, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r12, r.r13, r.r14, r.r15];
        ((r.orig_rax as i64) < 0).then_some(AfterSyscall { returned_to: r.rcx, second_arg: r.rsi, general })
    }

    /// Returns a hash of the general registers of a stopped thread and of its program counter; None if it has died. While it is the
    /// same, the thread has probably executed no instruction of its program.
    pub fn digest(tid: u32) -> Option<u64> {
        let r = registers(tid)?;
        let general = [r.rax, r.rbx, r.rcx, r.rdx, r.rbp, r.rsi, r.rdi, r.rsp, r.rip, r.eflags];
        Some(super::hash(&(general, [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15])))
    }

    /// Returns the address of the next instruction of a stopped thread; None if it has died.
    pub fn program_counter(tid: u32) -> Option<u64> {
        Some(registers(tid)?.rip)
    }

    /// Returns the stack pointer and the callee-saved registers (x86-64 ABI) of a stopped thread.
    pub fn stack(tid: u32) -> Option<(u64, [u64; 6])> {
        Some(stack_of(&registers(tid)?))
    }

    /// As [`stack`], of a stopped thread with these registers.
    pub fn stack_of(regs: &libc::user_regs_struct) -> (u64, [u64; 6]) {
        (regs.rsp, [regs.rbx, regs.rbp, regs.r12, regs.r13, regs.r14, regs.r15])
    }

    /// Replaces the system call at its entry. With number -1 no call is made, and the thread gets the result `instead`.
    pub fn replace_syscall(tid: u32, number: i64, args: &[u64; 6], instead: i64) {
        let Some(mut regs) = registers(tid) else { return };
        assign_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (number as u64, instead as u64);
        let _died = set_registers(tid, &regs);
    }

    /// Sets the result of a call at its exit, and restores the argument registers, which the program expects unchanged.
    /// The kernel does not restart the call, whatever it returned. Returns false if the thread has died.
    pub fn set_result(tid: u32, args: &[u64; 6], result: i64) -> bool {
        let Some(mut regs) = registers(tid) else { return false };
        assign_args(&mut regs, args);
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        set_registers(tid, &regs)
    }

    /// Skips the system call at its entry, of any architecture; the thread gets this result.
    pub fn skip_syscall(tid: u32, result: i64) {
        let Some(mut regs) = registers(tid) else { return };
        (regs.orig_rax, regs.rax) = (u64::MAX, result as u64);
        let _died = set_registers(tid, &regs);
    }

    /// Replaces the argument registers of a stopped thread.
    pub fn set_args(tid: u32, args: &[u64; 6]) {
        let Some(mut regs) = registers(tid) else { return };
        assign_args(&mut regs, args);
        let _died = set_registers(tid, &regs);
    }

    fn assign_args(regs: &mut libc::user_regs_struct, args: &[u64; 6]) {
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = *args;
    }

    /// Returns number and result of the system call that a stop interrupted.
    pub fn interrupted_syscall(tid: u32) -> Option<(i64, i64)> {
        current_syscall(tid).map(|call| (call.number, call.result))
    }

    /// Makes the thread repeat the interrupted call, as the kernel does for most calls: sets the program counter back to
    /// the two-byte `syscall` instruction and restores the call number.
    pub fn restart_syscall(tid: u32) {
        if let Some(regs) = registers(tid) {
            rewind(tid, regs);
        }
    }

    /// As [`restart_syscall`], with other arguments.
    pub fn restart_with(tid: u32, args: &[u64; 6]) {
        let Some(mut regs) = registers(tid) else { return };
        assign_args(&mut regs, args);
        rewind(tid, regs);
    }

    fn rewind(tid: u32, mut regs: libc::user_regs_struct) {
        regs.rax = regs.orig_rax;
        regs.rip = regs.rip.wrapping_sub(2);
        let _died = set_registers(tid, &regs);
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86_64::{
    after_syscall_of, current_syscall, digest, interrupted_syscall, next_syscall_of, program_counter,
    replace_syscall, restart_syscall, restart_with, set_args, set_result, skip_syscall, stack, stack_of,
    syscall_of,
};

fn hash(registers: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    registers.hash(&mut hasher);
    hasher.finish()
}

/// On aarch64 the kernel has rewound an interrupted call before the tracer sees the stop: the thread is about to make it again,
/// with the same arguments. A call that failed with EINTR looks like any finished one, and its first argument is overwritten.
#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use crate::memory::{Memory, ProcessMemory};
    use crate::ptrace::registers::{AfterSyscall, SyscallRegisters};
    use crate::ptrace::{SyscallStop, ptrace, syscall_stop};

    const PTRACE_GETREGSET: i64 = 0x4204;
    const PTRACE_SETREGSET: i64 = 0x4205;
    /// The kind of the general-purpose registers (linux/elf.h).
    const NT_PRSTATUS: usize = 1;
    /// The kind of the number of the current call; -1 for none.
    const NT_ARM_SYSTEM_CALL: usize = 0x404;
    /// `svc #0`, the instruction of a system call.
    const SVC: i32 = 0xd400_0001_u32 as i32;
    /// The bit of `pstate` that is set in 32-bit programs.
    const IS_32_BIT: u64 = 0x10;
    const ERESTARTSYS: i64 = -512;

    /// `struct user_pt_regs`.
    #[repr(C)]
    #[derive(Default)]
    struct Registers {
        x: [u64; 31],
        sp: u64,
        pc: u64,
        pstate: u64,
    }

    /// Calls ptrace(2) with a `struct iovec` for `value`. Returns false if the thread has died.
    fn transfer<T>(request: i64, tid: u32, kind: usize, value: &mut T) -> bool {
        let mut vector = [std::ptr::from_mut(value) as usize, size_of::<T>()];
        ptrace(request, tid, kind, vector.as_mut_ptr() as usize).is_ok()
    }

    fn registers(tid: u32) -> Option<Registers> {
        let mut registers = Registers::default();
        transfer(PTRACE_GETREGSET, tid, NT_PRSTATUS, &mut registers).then_some(registers)
    }

    fn set_registers(tid: u32, registers: &mut Registers) -> bool {
        transfer(PTRACE_SETREGSET, tid, NT_PRSTATUS, registers)
    }

    fn set_number(tid: u32, number: i64) {
        let _died = transfer(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &mut (number as i32));
    }

    /// Returns the system call of a stopped thread, or the one that it makes next after an interruption; None if it is in user
    /// mode elsewhere. Before the call's exit, and without an interruption, the result is -ENOSYS.
    pub fn current_syscall(tid: u32) -> Option<SyscallRegisters> {
        let regs = registers(tid).filter(|regs| regs.pstate & IS_32_BIT == 0)?;
        let mut number: i32 = -1;
        let is_read = transfer(PTRACE_GETREGSET, tid, NT_ARM_SYSTEM_CALL, &mut number);
        let args = std::array::from_fn(|at| regs.x[at]);
        if is_read && number >= 0 {
            let result = match syscall_stop(tid) {
                SyscallStop::Exit { result } => result,
                _ => -i64::from(libc::ENOSYS),
            };
            return Some(SyscallRegisters { number: number.into(), args, result });
        }
        let is_rewound = ProcessMemory { pid: tid }.i32(regs.pc) == Some(SVC);
        is_rewound.then_some(SyscallRegisters { number: regs.x[8] as i64, args, result: ERESTARTSYS })
    }

    /// Returns a hash of the general registers of a stopped thread and of its program counter; None if it has died. While it is the
    /// same, the thread has probably executed no instruction of its program.
    pub fn digest(tid: u32) -> Option<u64> {
        let Registers { x, sp, pc, .. } = registers(tid)?;
        Some(super::hash(&(x, sp, pc)))
    }

    /// Returns the address of the next instruction of a stopped thread; None if it has died.
    pub fn program_counter(tid: u32) -> Option<u64> {
        Some(registers(tid)?.pc)
    }

    /// Returns None: the first argument is overwritten by the result, so nothing shows which descriptor was written.
    pub fn after_syscall(_tid: u32) -> Option<AfterSyscall> {
        None
    }

    /// Returns None: the rescue that executes a program's code needs x86-64.
    pub fn stack(_tid: u32) -> Option<(u64, [u64; 6])> {
        None
    }

    /// Replaces the system call at its entry. With number -1 no call is made, and the thread gets the result `instead`.
    pub fn replace_syscall(tid: u32, number: i64, args: &[u64; 6], instead: i64) {
        let Some(mut regs) = registers(tid) else { return };
        regs.x[..6].copy_from_slice(args);
        if number < 0 {
            regs.x[0] = instead as u64;
        }
        if set_registers(tid, &mut regs) {
            set_number(tid, number);
        }
    }

    /// Sets the result of a call at its exit, and restores the other argument registers, which the program expects unchanged.
    /// The kernel does not restart the call, whatever it returned. Returns false if the thread has died.
    pub fn set_result(tid: u32, args: &[u64; 6], result: i64) -> bool {
        let Some(mut regs) = registers(tid) else { return false };
        regs.x[0] = result as u64;
        regs.x[1..6].copy_from_slice(&args[1..]);
        set_number(tid, -1);
        set_registers(tid, &mut regs)
    }

    /// Skips the system call at its entry; the thread gets this result.
    pub fn skip_syscall(tid: u32, result: i64) {
        let Some(mut regs) = registers(tid) else { return };
        regs.x[0] = result as u64;
        if set_registers(tid, &mut regs) {
            set_number(tid, -1);
        }
    }

    /// Returns None: nothing is left of an interrupted call that the tracer must repair.
    pub fn interrupted_syscall(_tid: u32) -> Option<(i64, i64)> {
        None
    }

    /// Does nothing: the kernel has rewound the call.
    pub fn restart_syscall(_tid: u32) {}

    /// Does nothing: weir does not see that a call failed with EINTR, so it repeats none.
    pub fn restart_with(_tid: u32, _args: &[u64; 6]) {}

    /// Does nothing: see [`restart_with`].
    pub fn set_args(_tid: u32, _args: &[u64; 6]) {}
}

#[cfg(target_arch = "aarch64")]
pub use aarch64::{
    after_syscall, current_syscall, digest, interrupted_syscall, program_counter, replace_syscall,
    restart_syscall, restart_with, set_args, set_result, skip_syscall, stack,
};

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    /// Starts a program that is stopped at its execve(2).
    fn stopped_program() -> Child {
        let mut command = Command::new("true");
        // SAFETY: the closure makes one system call between fork and exec.
        unsafe { command.pre_exec(|| crate::ptrace::ptrace(libc::PTRACE_TRACEME as i64, 0, 0, 0).map(drop)) };
        let child = command.spawn().expect("it starts");
        assert!(is_stopped(child.id()), "at its execve(2)");
        child
    }

    fn is_stopped(pid: u32) -> bool {
        let stop = crate::ptrace::wait_for(pid).expect("a stop");
        stop.is_some_and(|stop| libc::WIFSTOPPED(stop.status))
    }

    fn step(pid: u32) {
        crate::ptrace::ptrace(libc::PTRACE_SINGLESTEP as i64, pid, 0, 0).expect("it is stopped");
        assert!(is_stopped(pid));
    }

    #[test]
    fn the_hash_of_the_registers_changes_with_an_instruction() {
        let mut child = stopped_program();
        let pid = child.id();
        let first = digest(pid);
        assert!(first.is_some() && digest(pid) == first);
        step(pid);
        assert_ne!(digest(pid), first);
        child.kill().expect("it is alive");
        child.wait().expect("its end");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_next_call_is_that_of_the_next_instruction() {
        let mut child = stopped_program();
        let pid = child.id();
        step(pid);
        let next = (0..1_000_000).find_map(|_| {
            let next = next_syscall_of(pid, &crate::ptrace::registers(pid).expect("it is stopped"));
            step(pid);
            next
        });
        assert_eq!(
            next.map(|call| (call.number, call.args[0])),
            Some((libc::SYS_brk, 0)),
            "the loader's first call"
        );
        child.kill().expect("it is alive");
        child.wait().expect("its end");
    }
}
