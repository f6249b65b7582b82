//! The registers of a killed thread, from its exit stop.

use libc::user_regs_struct as Registers;
use weir_sys::ptrace;
use weir_sys::syscalls;

use super::replay_process::{extended_state, set_extended_state};

/// The registers of a thread that was killed.
#[derive(Clone)]
pub(crate) struct KilledThread {
    registers: Registers,
    extended_state: Vec<u8>,
}

impl KilledThread {
    /// Reads the registers of a thread in its exit stop; None if it ends by exit(2) or execve(2), or is gone. A call
    /// that a signal interrupted is set up to be made again.
    pub fn read(tid: u32) -> Option<KilledThread> {
        let mut registers = ptrace::registers(tid)?;
        let (number, result) = (registers.orig_rax as i64, registers.rax as i64);
        if matches!(number, libc::SYS_exit | libc::SYS_exit_group | libc::SYS_execve) {
            return None;
        }
        let not_made = syscalls::RESTART_CODES.contains(&result) || result == -i64::from(libc::ENOSYS);
        if number >= 0 && (not_made || result == -i64::from(libc::EINTR)) {
            registers.rip = registers.rip.wrapping_sub(2);
            registers.rax = number as u64;
        }
        registers.orig_rax = u64::MAX;
        Some(KilledThread { registers, extended_state: extended_state(tid)? })
    }

    /// Returns the general registers that can hold a stream's address: all but the stack pointer.
    pub fn general_registers(&self) -> [u64; 15] {
        let r = &self.registers;
        [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ]
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
        self
    }

    /// Gives a stopped process these registers. Returns false if it has died.
    pub(super) fn store_in(&self, pid: u32) -> bool {
        set_extended_state(pid, &self.extended_state).is_some() && ptrace::set_registers(pid, &self.registers)
    }
}
