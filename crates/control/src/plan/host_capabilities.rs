//! What this machine, and what weir was started with, allow.

use std::fs;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use crate::plan::HostCapabilities;

/// Looks at descriptors 0 and 1, and at who may trace whom.
pub fn look() -> HostCapabilities {
    let input = rustix::fs::fstat(std::io::stdin().as_fd()).ok();
    let kind = |about: &rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(about.st_mode);
    HostCapabilities {
        untraceable: untraceable(),
        terminal: std::io::stdout().is_terminal(),
        input_is_whole: input.as_ref().is_some_and(|about| kind(about) == rustix::fs::FileType::RegularFile),
        no_dispatch: no_dispatch(),
        input: input.map(|about| (about.st_dev, about.st_ino)),
    }
}

/// Yama lets a parent trace its child at levels 0 and 1.
fn untraceable() -> Option<String> {
    let level = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    let root = rustix::process::geteuid().is_root();
    match level.trim() {
        "2" if !root => Some("kernel.yama.ptrace_scope is 2: only root may trace".into()),
        "3" => Some("kernel.yama.ptrace_scope is 3: nobody may trace".into()),
        _ => None,
    }
}

/// Why system calls cannot be intercepted here (prctl(2), PR_SET_SYSCALL_USER_DISPATCH); None: they can.
fn no_dispatch() -> Option<&'static str> {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const OFF: libc::c_ulong = 0;
    if !cfg!(target_arch = "x86_64") {
        return Some("this machine's kernel cannot hand a program its own system calls: only x86-64's can");
    }
    // SAFETY: turning off what is not on changes nothing; an unknown option is answered with EINVAL.
    let off = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, OFF, OFF, OFF) };
    (off != 0).then_some("this kernel has no system call user dispatch: it has to be 5.11 or later")
}
