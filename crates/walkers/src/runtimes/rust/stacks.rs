//! The stacks of a process's threads. The stack pointer of a running thread is unknown, so its stack is not listed.

use weir_sys::maps::{MappingKind, regions};
use weir_sys::proc;

/// The red zone of the x86-64 ABI: a leaf function may use this much beyond the end of the stack.
const RED_ZONE: u64 = 128;

/// The stack of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadStack {
    low: u64,
    /// The lowest address in use.
    used: u64,
    high: u64,
}

impl ThreadStack {
    pub fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }

    /// Returns whether an address is in the part that no function uses now.
    pub fn is_unused(&self, address: u64) -> bool {
        (self.low..self.used).contains(&address)
    }
}

/// Returns the stacks of a process's threads. Leaves out threads that run, whose stack pointers are unknown.
pub(super) fn read(pid: u32) -> Vec<ThreadStack> {
    let regions = regions(pid);
    let stack = |pointer: u64| {
        let stack = regions.iter().find(|one| (one.start..one.end).contains(&pointer))?;
        let is_stack = stack.writable && matches!(stack.kind, MappingKind::Stack | MappingKind::Anonymous);
        let used = pointer.saturating_sub(RED_ZONE);
        is_stack.then_some(ThreadStack { low: stack.start, used, high: stack.end })
    };
    proc::threads(pid).into_iter().filter_map(|tid| stack(stack_pointer(pid, tid)?)).collect()
}

/// Returns the stack pointer of a waiting thread, the last but one number in `/proc/PID/task/TID/syscall`.
fn stack_pointer(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let number = text.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()
}
