//! Comparisons of the resources of two processes (kcmp(2)).

use std::io;

use crate::process_status;

/// Returns whether two processes share their descriptor table (CLONE_FILES; kcmp(2)).
pub fn share_fd_table(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    is_same(one, other, KCMP_FILES)
}

/// Returns whether two processes share their memory (CLONE_VM), as the child of a vfork(2) does until its execve(2).
/// Returns false if the kernel does not tell (kcmp(2)) or one of them has ended.
pub fn share_memory(one: u32, other: u32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    is_same(one, other, KCMP_VM)
}

/// Returns the answer of kcmp(2). A process in execve(2) shares nothing, and the call could block for ever.
fn is_same(one: u32, other: u32, kind: libc::c_int) -> bool {
    let executes = process_status::is_executing(one) || process_status::is_executing(other);
    // SAFETY: the call takes and returns numbers.
    !executes
        && unsafe { libc::syscall(libc::SYS_kcmp, one as libc::pid_t, other as libc::pid_t, kind, 0, 0) == 0 }
}

/// Returns whether two descriptors refer to the same open file; false if the kernel does not tell.
pub fn same_file(one: (u32, i32), other: (u32, i32)) -> bool {
    compare_files(one, other).unwrap_or(false)
}

/// As [`same_file`]. Fails if the kernel does not tell (kcmp(2)), as with EPERM in a container that forbids the call.
pub fn compare_files(one: (u32, i32), other: (u32, i32)) -> io::Result<bool> {
    const KCMP_FILE: libc::c_int = 0;
    let (one_pid, other_pid) = (one.0 as libc::pid_t, other.0 as libc::pid_t);
    // SAFETY: the call takes and returns numbers.
    let answer =
        unsafe { libc::syscall(libc::SYS_kcmp, one_pid, other_pid, KCMP_FILE, one.1 as u64, other.1 as u64) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer == 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_shared_with_other_processes() {
        let own = std::process::id();
        assert!(share_memory(own, own));
        assert!(!share_memory(own, std::os::unix::process::parent_id()));
        assert!(!share_memory(own, u32::MAX));
    }
}
