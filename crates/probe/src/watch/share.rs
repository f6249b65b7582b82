//! Whether two processes have one memory: the child of a vfork(2) has its parent's until it executes, and what
//! waits in it is the parent's to write.

/// `KCMP_VM` of linux/kcmp.h.
const KCMP_VM: libc::c_int = 1;

/// False where the kernel does not tell, or one of them is gone.
pub(super) fn one_memory(one: u32, other: u32) -> bool {
    let (one, other) = (one as libc::pid_t, other as libc::pid_t);
    // SAFETY: kcmp(2) takes numbers only and changes nothing.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0u64, 0u64) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_with_oneself() {
        let own = std::process::id();
        assert!(one_memory(own, own));
        assert!(!one_memory(own, std::os::unix::process::parent_id()));
        assert!(!one_memory(own, u32::MAX));
    }
}
