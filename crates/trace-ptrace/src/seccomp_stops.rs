//! Stops by weir's seccomp filter: the entries of recorded calls only.
//!
//! Filtered calls fail without a tracer. So no process with the filter may run untraced: children with CLONE_UNTRACED are
//! traced too, and no other program may become a tracer.

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace::{self, SyscallStop, registers};
use weir_sys::seccomp::MARK;
use weir_sys::syscalls;

use super::tracer::{PtracedProcess, Tracer};

/// The result of a call that is skipped: the kernel returns it for filtered calls without a tracer (seccomp(2)).
const SKIPPED: i64 = -(libc::ENOSYS as i64);

impl Tracer<'_, '_> {
    /// Handles a seccomp stop. If a filter of the program itself caused it, the call is skipped, as it would be without weir, where
    /// the program has no tracer.
    pub(super) fn on_seccomp_stop(&mut self, tid: u32, pid: u32, now: u64) {
        match ptrace::syscall_stop(tid) {
            SyscallStop::Filtered { arch, number, args, mark: MARK } => {
                if !syscalls::is_foreign(arch, number) {
                    trace_all_children(tid, number as i64, args);
                }
                let is_observed = !self.processes.get(&pid).is_none_or(PtracedProcess::is_unobserved);
                if is_observed && self.on_syscall_entry(tid, arch, number, args, now) {
                    return;
                }
            }
            SyscallStop::Filtered { .. } => registers::skip_syscall(tid, SKIPPED),
            _ => {}
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.in_call = thread.inside.is_some();
        }
        self.resume(tid, 0, now);
    }
}

/// Clears CLONE_UNTRACED of a clone call, because the child inherits the filter.
fn trace_all_children(tid: u32, number: i64, mut args: [u64; 6]) {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    if number == libc::SYS_clone && args[0] & UNTRACED != 0 {
        args[0] &= !UNTRACED;
        registers::replace_syscall(tid, number, &args, SKIPPED);
    } else if number == libc::SYS_clone3 {
        // The first member of struct clone_args is the flags.
        let flags = ProcessMemory { pid: tid }.u64(args[0]);
        if let Some(flags) = flags.filter(|flags| flags & UNTRACED != 0) {
            ptrace::write_word(tid, args[0], flags & !UNTRACED);
        }
    }
}
