//! Calls of ptrace(2) by the tracees themselves, which make another program the tracer.

/// Returns the thread that wants a new tracer by the ptrace(2) with these arguments of thread `tid`: itself or another one. None if
/// the request makes no tracer.
pub fn target(tid: u32, args: &[u64; 6]) -> Option<u32> {
    const ATTACH: u64 = libc::PTRACE_ATTACH as u64;
    const TRACEME: u64 = libc::PTRACE_TRACEME as u64;
    const SEIZE: u64 = super::PTRACE_SEIZE as u64;
    match args[0] {
        // The caller will be traced by its parent. A detach at the entry of the call is early enough.
        TRACEME => Some(tid),
        ATTACH | SEIZE => Some(args[1] as u32),
        _ => None,
    }
}
