//! Stops that a seccomp filter makes: the entries of the calls that are followed, and no others.
//!
//! Who has the filter and no tracer has calls that fail. So what could lead there is kept from happening: children
//! that are not to be traced are, and nobody else becomes a tracer.

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace::{self, SyscallStop, registers};
use weir_sys::seccomp::MARK;
use weir_sys::syscalls;

use super::tracer::{TracedProcess, Tracer};

/// What a call returns that nobody makes.
const NOT_MADE: i64 = -(libc::ENOSYS as i64);

impl Tracer<'_, '_> {
    /// weir's own filter has stopped a thread at a call; or the program's own has, which asks for a tracer that the
    /// program would not have without weir: that call is not made (on x86-64).
    pub(super) fn on_filtered(&mut self, tid: u32, pid: u32, now: u64) {
        match ptrace::syscall_stop(tid) {
            SyscallStop::Filtered { arch, number, args, mark: MARK } => {
                if !syscalls::is_foreign(arch, number) {
                    keep_children(tid, number as i64, args);
                }
                let seen = !self.processes.get(&pid).is_none_or(TracedProcess::unseen);
                if seen && self.on_entry(tid, arch, number, args, now) {
                    return;
                }
            }
            SyscallStop::Filtered { .. } => registers::skip_syscall(tid, NOT_MADE),
            _ => {}
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.in_call = thread.inside.is_some();
        }
        self.go_on(tid, 0, now);
    }
}

/// A child that is not to be traced (CLONE_UNTRACED) would have the filter all the same: it is traced. What clone(2)
/// gets can be changed on x86-64 only.
fn keep_children(tid: u32, number: i64, mut args: [u64; 6]) {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    if number == libc::SYS_clone && args[0] & UNTRACED != 0 {
        args[0] &= !UNTRACED;
        registers::replace_syscall(tid, number, &args, NOT_MADE);
    } else if number == libc::SYS_clone3 {
        // struct clone_args begins with the flags.
        let flags = ProcessMemory { pid: tid }.u64(args[0]);
        if let Some(flags) = flags.filter(|flags| flags & UNTRACED != 0) {
            ptrace::poke(tid, args[0], flags & !UNTRACED);
        }
    }
}
