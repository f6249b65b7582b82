//! The abilities of the kernel and of weir's own descriptors that a plan can use.

use std::io::{stdin, stdout};

use weir_sys::file_system::{self, FileStatus};
use weir_sys::process_access::yama_forbids;
use weir_sys::{foreign_descriptors, launch, proc};

/// The facts that a plan depends on besides the program.
#[derive(Debug, Clone, Default)]
pub struct HostCapabilities {
    /// The reason why no process may be traced here; None if processes may be traced.
    pub not_traceable: Option<String>,
    /// Another tracer follows weir and its children: its name. A process can have only one tracer.
    pub tracer: Option<String>,
    /// pidfd_getfd(2) is forbidden, so weir writes only to descriptors that it has inherited too, and to files without an offset.
    pub no_foreign_files: bool,
    /// /proc is not mounted, so the supervisor finds no buffers.
    pub no_proc: bool,
    /// The reason why system calls cannot be intercepted here; None if they can.
    pub no_syscall_dispatch: Option<&'static str>,
    #[allow(missing_docs)]
    pub stdout_is_terminal: bool,
    /// Standard input is a regular file, which has all its bytes at once.
    pub stdin_is_file: bool,
    /// Device and inode of standard input; None if it is closed.
    pub stdin_inode: Option<(u64, u64)>,
}

impl HostCapabilities {
    /// Reads the kernel's settings and the status of descriptors 0 and 1.
    pub fn read() -> HostCapabilities {
        let stdin = file_system::status_of(stdin()).ok();
        HostCapabilities {
            not_traceable: yama_forbids().map(str::to_string),
            tracer: tracer_of_children(),
            no_foreign_files: foreign_descriptors::forbidden().is_some(),
            no_proc: !proc::is_mounted(),
            no_syscall_dispatch: no_syscall_dispatch(),
            stdout_is_terminal: file_system::is_terminal(stdout()),
            stdin_is_file: stdin.as_ref().is_some_and(FileStatus::is_file),
            stdin_inode: stdin.map(|stat| (stat.dev, stat.ino)),
        }
    }
}

/// Returns the name of the tracer that would trace a child of weir too, as `strace -f` does; None if there is none.
fn tracer_of_children() -> Option<String> {
    proc::is_traced().then_some(())?;
    // Only a child shows whether the tracer follows forks. Without release it ends before any execve(2).
    let child = launch::start(&["true".into()]).ok()?;
    let tracer = proc::status(child.pid).map(|status| status.tracerpid).filter(|pid| *pid > 0)?;
    Some(proc::label(tracer as u32))
}

/// Returns the reason why prctl(2) has no PR_SET_SYSCALL_USER_DISPATCH here; None if it has.
fn no_syscall_dispatch() -> Option<&'static str> {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const OFF: libc::c_ulong = 0;
    if !cfg!(target_arch = "x86_64") {
        return Some("syscall user dispatch exists on x86-64 only");
    }
    // SAFETY: turning off a feature that is off changes nothing; the kernel rejects an unknown option with EINVAL.
    let off = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, OFF, OFF, OFF) };
    (off != 0).then_some("this kernel has no syscall user dispatch: it needs 5.11 or later")
}
