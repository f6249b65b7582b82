//! The registers of a killed thread, from its exit stop.

use libc::user_regs_struct as Registers;
use weir_sys::ptrace;
use weir_sys::syscalls::{self, SYSCALL_CODE};
use weir_walkers::ThreadRegisters;

use super::replay_process::{extended_state, set_extended_state};

/// The registers at a stop.
#[derive(Debug, Clone)]
pub(crate) struct StopRegisters {
    pub general: Registers,
    extended_state: Vec<u8>,
}

impl StopRegisters {
    /// Reads the registers of a stopped thread; None if it is gone.
    pub fn read(tid: u32) -> Option<StopRegisters> {
        Some(StopRegisters { general: ptrace::registers(tid)?, extended_state: extended_state(tid)? })
    }
}

/// The registers of a thread that was killed.
#[derive(Clone)]
pub(crate) struct KilledThread {
    registers: Registers,
    extended_state: Vec<u8>,
    /// The next instruction makes a call that was interrupted.
    repeats_call: bool,
}

impl KilledThread {
    /// Reads the registers of a thread in its exit stop; None if it ends by exit(2) or execve(2), or is gone. A call
    /// that a signal interrupted is set up to be made again.
    pub fn read(tid: u32) -> Option<KilledThread> {
        KilledThread::of(StopRegisters::read(tid)?)
    }

    /// As [`KilledThread::read`], of a thread that was killed at a stop with these registers.
    pub fn of(stop: StopRegisters) -> Option<KilledThread> {
        let StopRegisters { general: mut registers, extended_state } = stop;
        let (number, result) = (registers.orig_rax as i64, registers.rax as i64);
        if matches!(number, libc::SYS_exit | libc::SYS_exit_group | libc::SYS_execve) {
            return None;
        }
        let not_made = syscalls::RESTART_CODES.contains(&result) || result == -i64::from(libc::ENOSYS);
        let repeats_call = number >= 0 && (not_made || result == -i64::from(libc::EINTR));
        if repeats_call {
            registers.rip = registers.rip.wrapping_sub(SYSCALL_CODE.len() as u64);
            registers.rax = number as u64;
        }
        registers.orig_rax = u64::MAX;
        Some(KilledThread { registers, extended_state, repeats_call })
    }

    /// Returns the general registers that can hold a stream's address: all but the stack pointer.
    pub fn general_registers(&self) -> [u64; 15] {
        let r = &self.registers;
        [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ]
    }

    /// Reads any thread in its exit stop, as a base for [`Self::with_registers`].
    pub fn read_any(tid: u32) -> Option<KilledThread> {
        let StopRegisters { general: mut registers, extended_state } = StopRegisters::read(tid)?;
        registers.orig_rax = u64::MAX;
        Some(KilledThread { registers, extended_state, repeats_call: false })
    }

    /// Returns the registers for a walker.
    pub fn thread_registers(&self) -> ThreadRegisters {
        let general = std::array::from_fn(|number| self.register(number as u8));
        ThreadRegisters { general, next: self.instruction_pointer() }
    }

    /// Returns the thread with other general registers. The vector register that Go expects to be zero is zero.
    pub fn with_registers(mut self, own: &ThreadRegisters) -> KilledThread {
        /// The place of XMM15 in the extended state.
        const ZERO_REGISTER: std::ops::Range<usize> = 400..416;
        let r = &mut self.registers;
        let [ax, cx, dx, bx, sp, bp, si, di, rest @ ..] = own.general;
        [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi] = [ax, cx, dx, bx, sp, bp, si, di];
        [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15] = rest;
        r.rip = own.next;
        if let Some(zero) = self.extended_state.get_mut(ZERO_REGISTER) {
            zero.fill(0);
        }
        self
    }

    /// Returns the register that instructions encode by this number.
    pub fn register(&self, number: u8) -> u64 {
        let r = &self.registers;
        [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ][usize::from(number & 15)]
    }

    pub fn instruction_pointer(&self) -> u64 {
        self.registers.rip
    }

    pub fn stack_pointer(&self) -> u64 {
        self.registers.rsp
    }

    /// Returns the thread as it would be after a write(2) with these arguments that wrote `bytes`.
    pub fn with_write(mut self, args: [u64; 6], bytes: u64) -> KilledThread {
        let r = &mut self.registers;
        [r.rdi, r.rsi, r.rdx] = [args[0], args[1], args[2]];
        r.rax = bytes;
        if std::mem::take(&mut self.repeats_call) {
            r.rip = r.rip.wrapping_add(SYSCALL_CODE.len() as u64);
        }
        self
    }

    /// Gives a stopped process these registers. Returns false if it has died.
    pub(super) fn store_in(&self, pid: u32) -> bool {
        set_extended_state(pid, &self.extended_state).is_some() && ptrace::set_registers(pid, &self.registers)
    }
}
