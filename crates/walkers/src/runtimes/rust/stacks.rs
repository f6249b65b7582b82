//! Returns the unused part of each thread's stack. The stack pointer of a running thread is unknown, so its whole
//! stack counts as used.

use weir_sys::maps::{MappingKind, regions};
use weir_sys::proc;

/// The red zone of the x86-64 ABI: a leaf function may use this much beyond the end of the stack.
const RED_ZONE: u64 = 128;

/// The unused part of each thread's stack. A thread that runs does not say where its stack ends; all of it counts
/// as used then.
pub(super) fn unused(pid: u32) -> Vec<(u64, u64)> {
    let regions = regions(pid);
    let part = |end: u64| {
        let stack = regions.iter().find(|one| (one.start..one.end).contains(&end))?;
        let is_stack = stack.writable && matches!(stack.kind, MappingKind::Stack | MappingKind::Anonymous);
        is_stack.then(|| (stack.start, end.saturating_sub(RED_ZONE)))
    };
    proc::threads(pid).into_iter().filter_map(|tid| part(stack_pointer(pid, tid)?)).collect()
}

/// Returns the stack pointer of a waiting thread, the last but one number in `/proc/PID/task/TID/syscall`.
fn stack_pointer(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let number = text.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()
}
