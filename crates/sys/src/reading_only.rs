//! Takes from the calling process every right that a reader of other processes does not need.
//!
//! A child that walks foreign memory is the part of weir that an attacker reaches. Should a crafted buffer make it do
//! something else than read, the kernel refuses: it keeps the capabilities to read processes, and its seccomp(2) filter
//! passes only calls that read, that manage its own memory, and that answer its parent through an open descriptor.

use libc::{c_long, sock_filter, sock_fprog};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use crate::seccomp::{ARCH_OFFSET, NUMBER_OFFSET, jump, statement};
use crate::syscalls::NATIVE_ARCH;

/// The capabilities that reading a process of another user can need: ptrace(2) access, files of /proc, and the mapped files of
/// another mount namespace (/proc/PID/map_files).
const KEPT: CapabilitySet =
    CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::CHECKPOINT_RESTORE);

/// Flags of open(2) with which the call can change a file.
const WRITES: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;

/// The offset of argument 1 and 2 in struct seccomp_data (linux/seccomp.h): the low half, on a little-endian machine.
#[cfg(target_arch = "x86_64")]
const ARGUMENT_1: u32 = 24;
const ARGUMENT_2: u32 = 32;

/// The calls that pass whatever their arguments are.
const PASSED: &[c_long] = &[
    // Reads of files and of other processes.
    libc::SYS_close,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    libc::SYS_getsid,
    libc::SYS_kcmp,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_pidfd_open,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_process_vm_readv,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statfs,
    libc::SYS_statx,
    // The answer; no descriptor but the socket is open for writing.
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_write,
    libc::SYS_writev,
    // Own memory, threads, time and end.
    libc::SYS_brk,
    libc::SYS_memfd_create,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
];

/// The calls that pass if they open for reading, and where their flags are.
const OPENS: &[(c_long, u32)] = &[
    (libc::SYS_openat, ARGUMENT_2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, ARGUMENT_1),
];

/// Drops the rights of the calling process, whose only thread this is, for good. A kernel without seccomp(2) filters drops
/// the capabilities only: the reads are the same. One more call can pass.
pub(crate) fn restrict(passed_too: Option<c_long>) {
    // Each step can only fail where the process has not the right anyway, or where the kernel has no filters.
    let _ = set_no_new_privs(true);
    if let Ok(held) = capabilities(None) {
        // Without CAP_SYS_PTRACE the kernel permits to read only processes that have no capability more than the reader (ptrace(2)).
        let may_read_all = held.permitted.contains(CapabilitySet::SYS_PTRACE);
        let kept = if may_read_all { held.permitted & KEPT } else { held.permitted };
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        let _ = set_capabilities(None, sets);
    }
    install(&build(passed_too));
}

/// Installs a filter in the calling thread. Does nothing if the kernel refuses it.
fn install(code: &[sock_filter]) {
    let program = sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // SAFETY: the program outlives the call, which only reads it; the other arguments are numbers.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
}

/// Returns the filter program: refused calls fail with EPERM, so that a reader that meets one reports it.
fn build(passed_too: Option<c_long>) -> Vec<sock_filter> {
    let load = |from: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from);
    let answer = |action: u32| statement(libc::BPF_RET | libc::BPF_K, action);
    let (pass, refuse) =
        (answer(libc::SECCOMP_RET_ALLOW), answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let mut code =
        vec![load(ARCH_OFFSET), jump(libc::BPF_JEQ, NATIVE_ARCH, 1, 0), refuse, load(NUMBER_OFFSET)];
    for &(call, flags) in OPENS {
        code.push(jump(libc::BPF_JEQ, call as u32, 0, 4));
        code.extend([load(flags), jump(libc::BPF_JSET, WRITES, 0, 1), refuse, pass]);
    }
    for call in PASSED.iter().copied().chain(passed_too) {
        code.extend([jump(libc::BPF_JEQ, call as u32, 0, 1), pass]);
    }
    code.push(refuse);
    code
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::time::Duration;

    use crate::expendable::{Limits, Rights, answer_of};
    use crate::memory::{Memory, ProcessMemory};

    const LIMITS: Limits = Limits { blocked: Duration::from_secs(5), total: None };

    /// Does the work in a child that may only read, and returns its answer.
    fn reading_only(work: impl FnOnce() -> bool) -> Option<bool> {
        let answer = answer_of(Rights::ReadingOnly, |_| vec![u8::from(work())], LIMITS, None);
        answer.ok().map(|answer| answer == [1])
    }

    #[test]
    fn files_and_the_memory_of_processes_can_be_read() {
        let word = 0x1234_5678_u64;
        let read = move || {
            let own = ProcessMemory { pid: std::process::id() };
            own.u64(&raw const word as u64) == Some(word) && fs::read("/proc/self/maps").is_ok()
        };
        assert_eq!(reading_only(read), Some(true));
    }

    #[test]
    fn nothing_can_be_changed_or_started() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "kept").unwrap();
        let refused = || {
            let file = [File::create(&new), OpenOptions::new().append(true).open(&old)];
            file.iter().all(Result::is_err)
                && fs::remove_file(&old).is_err()
                && fs::rename(&old, &new).is_err()
                && fs::create_dir(&new).is_err()
                && std::process::Command::new("/bin/true").status().is_err()
                && std::net::UdpSocket::bind("127.0.0.1:0").is_err()
                // SAFETY: the call takes numbers; signal 0 only asks.
                && unsafe { libc::kill(libc::getppid(), 0) } == -1
        };
        assert_eq!(reading_only(refused), Some(true));
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
    }

    #[test]
    fn only_the_capabilities_to_read_are_left() {
        let left = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let held = |set: &str| {
                let value = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
                u64::from_str_radix(value.trim(), 16).unwrap()
            };
            held("CapPrm:") & !super::KEPT.bits() == 0 && held("CapInh:") == 0 && held("NoNewPrivs:") == 1
        };
        assert_eq!(reading_only(left), Some(true));
    }
}
