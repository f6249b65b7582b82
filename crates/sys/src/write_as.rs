//! Writes with the credentials of another process, in a child process that has no others.
//!
//! The kernel judges some writes by the writer: a set-user-ID bit stays if the writer is root, a socket delivers the
//! writer's user ID. So the child takes user and group IDs, groups, RLIMIT_FSIZE and user namespace of the process for
//! which it writes, and drops all capabilities.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::descriptors::close_all_but;
use crate::seccomp_copy::SeccompCopy;
use crate::shared_memory::Shared;
use crate::writer_identity::{FileSizeLimit, WriterIdentity, file_size_limit};

/// The longest time of the child: its write waits for no reader, but a file system may not answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The state of the child's work, in memory that it shares with its parent.
#[derive(Debug, Default)]
pub struct WriteProgress {
    /// The number of bytes written.
    pub written: AtomicUsize,
    /// The errno of the first failed write; 0 for none.
    pub errno: AtomicI32,
    /// The child has the other credentials.
    is_set_up: AtomicBool,
    is_finished: AtomicBool,
}

/// The credentials that a child can take.
#[derive(Debug)]
pub struct ChildCredentials {
    identity: WriterIdentity,
    /// Not above weir's own, which a child without privilege cannot raise.
    file_size: FileSizeLimit,
    /// The groups differ from weir's: a child without privilege cannot set even its own.
    changes_groups: bool,
    /// None if the user namespace is the caller's own.
    user_namespace: Option<File>,
    /// The filters that judge the child's calls, and the number that the file's descriptor has for them.
    filters: Option<(SeccompCopy, RawFd)>,
}

impl ChildCredentials {
    /// Reads the credentials of a thread. Fails with EACCES if a security module confines the thread, which a child
    /// cannot imitate, and with the error of a file of /proc that cannot be read.
    pub fn of(tid: u32, identity: WriterIdentity, own: &WriterIdentity) -> io::Result<ChildCredentials> {
        if identity.security_label != own.security_label {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        let limit = |pid| file_size_limit(pid).ok_or_else(io::Error::last_os_error);
        let (limit, own_limit) = (limit(tid)?, limit(0)?);
        let hard = limit.1.min(own_limit.1);
        let user_namespace = match identity.user_namespace == own.user_namespace {
            true => None,
            false => Some(File::open(format!("/proc/{tid}/ns/user"))?),
        };
        let changes_groups = identity.groups != own.groups;
        Ok(ChildCredentials {
            identity,
            file_size: (limit.0.min(hard), hard),
            changes_groups,
            user_namespace,
            filters: None,
        })
    }

    /// Lets these filters judge the child's calls. Its file then has the descriptor `fd`.
    pub fn with_filters(self, filters: SeccompCopy, fd: RawFd) -> ChildCredentials {
        ChildCredentials { filters: Some((filters, fd)), ..self }
    }

    /// Runs `work` on `file` in a child with these credentials. Returns the number of bytes that it wrote. Fails if the
    /// child cannot take the credentials, does not end in time, or notes an errno.
    ///
    /// `work` must make only async-signal-safe calls: other threads of the parent may hold locks at the fork. In the
    /// child all descriptors but that of `file` are closed.
    pub fn run(
        &self,
        file: BorrowedFd,
        work: impl FnOnce(BorrowedFd, &WriteProgress),
    ) -> (usize, io::Result<()>) {
        // SAFETY: zero bytes are valid atomics.
        let progress = match unsafe { Shared::<WriteProgress>::zeroed() } {
            Ok(progress) => progress,
            Err(error) => return (0, Err(error)),
        };
        // SAFETY: the child makes only async-signal-safe calls, as the caller promises for `work`, and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return (0, Err(io::Error::last_os_error())),
            0 => self.run_in_child(file, &progress, work),
            pid => pid,
        };
        let status = wait_or_kill(pid);
        let is_refused = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS;
        let written = progress.written.load(Relaxed);
        let error = match progress.errno.load(Relaxed) {
            0 if progress.is_finished.load(Relaxed) => return (written, Ok(())),
            0 if progress.is_set_up.load(Relaxed) && !is_refused => libc::ETIMEDOUT,
            0 => libc::EPERM,
            errno => errno,
        };
        (written, Err(io::Error::from_raw_os_error(error)))
    }

    fn run_in_child(
        &self,
        file: BorrowedFd,
        progress: &WriteProgress,
        work: impl FnOnce(BorrowedFd, &WriteProgress),
    ) -> ! {
        let (file_fd, namespace) = (file.as_raw_fd(), self.user_namespace.as_ref().map(AsRawFd::as_raw_fd));
        let other = namespace.unwrap_or(file_fd);
        // SAFETY: the child has one thread, which uses no other descriptors.
        unsafe { close_all_but(&[file_fd.min(other), file_fd.max(other)]) };
        match self.take() {
            // SAFETY: the calls take numbers. The child uses no descriptor that dup2(2) replaces.
            0 if self
                .filters
                .as_ref()
                .is_some_and(|(_, fd)| unsafe { libc::dup2(file.as_raw_fd(), *fd) } < 0) =>
            {
                progress.errno.store(libc::EBADF, Relaxed);
            }
            0 => {
                let file = match &self.filters {
                    // SAFETY: `dup2` has opened the descriptor, and this process never closes it.
                    Some((_, fd)) => unsafe { BorrowedFd::borrow_raw(*fd) },
                    None => file,
                };
                let errno = self.filters.as_ref().map_or(0, |(filters, _)| filters.install());
                if errno != 0 {
                    progress.errno.store(errno, Relaxed);
                    // SAFETY: ends the child without the parent's exit handlers.
                    unsafe { libc::_exit(0) }
                }
                progress.is_set_up.store(true, Relaxed);
                work(file, progress);
                progress.is_finished.store(true, Relaxed);
            }
            errno => progress.errno.store(errno, Relaxed),
        }
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }

    /// Takes the credentials. Returns an errno; 0 on success. Async-signal-safe.
    fn take(&self) -> i32 {
        let (users, groups, list) = (self.identity.user_ids, self.identity.group_ids, &self.identity.groups);
        let limit = libc::rlimit { rlim_cur: self.file_size.0, rlim_max: self.file_size.1 };
        // SAFETY: the calls take numbers, and pointers to live data of the size that they expect. The raw calls change
        // this thread only, which is the child's only one; the functions of the C library would signal others.
        unsafe {
            // No process of the same user may trace this copy of weir's memory.
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::prctl(libc::PR_SET_KEEPCAPS, 1);
            let fails = libc::setrlimit(libc::RLIMIT_FSIZE, &limit) != 0
                || self.changes_groups && libc::syscall(libc::SYS_setgroups, list.len(), list.as_ptr()) != 0
                || libc::syscall(libc::SYS_setresgid, groups[0], groups[1], groups[2]) != 0
                || libc::syscall(libc::SYS_setresuid, users[0], users[1], users[2]) != 0
                || set_capabilities(Capabilities::AllPermitted) != 0;
            if fails {
                return *libc::__errno_location();
            }
            libc::setfsgid(groups[3]);
            libc::setfsuid(users[3]);
            // An invalid ID changes nothing and returns the present one.
            if (libc::setfsuid(u32::MAX) as u32, libc::setfsgid(u32::MAX) as u32) != (users[3], groups[3]) {
                return libc::EPERM;
            }
            let namespace = self.user_namespace.as_ref();
            let fails = namespace.is_some_and(|file| libc::setns(file.as_raw_fd(), libc::CLONE_NEWUSER) != 0)
                || set_capabilities(Capabilities::None) != 0;
            if fails {
                return *libc::__errno_location();
            }
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
            // A change of user IDs would have cleared it.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        0
    }
}

/// The capabilities that the calling thread shall have.
enum Capabilities {
    AllPermitted,
    None,
}

/// Sets the effective capabilities of the calling thread; with [`Capabilities::None`] also the others. Returns -1 on
/// failure. Async-signal-safe.
fn set_capabilities(wanted: Capabilities) -> libc::c_long {
    /// _LINUX_CAPABILITY_VERSION_3 of linux/capability.h.
    const VERSION: u32 = 0x2008_0522;
    // struct __user_cap_header_struct, and two of struct __user_cap_data_struct: effective, permitted, inheritable.
    let mut header = [VERSION, 0];
    let mut sets = [[0u32; 3]; 2];
    // SAFETY: the calls read and fill arrays of this frame, of the size that this version has.
    unsafe {
        if matches!(wanted, Capabilities::AllPermitted) {
            if libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) != 0 {
                return -1;
            }
            sets.iter_mut().for_each(|set| set[0] = set[1]);
        }
        libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr())
    }
}

/// Waits for the child, and kills it when its time is over. A child that cannot even be killed is left alone. Returns the wait
/// status; 0 without one.
fn wait_or_kill(pid: libc::pid_t) -> i32 {
    const LONGEST_PAUSE: Duration = Duration::from_millis(2);
    /// The time for which a killed child may take to end.
    const GRACE: Duration = Duration::from_millis(50);
    let (started, mut pause, mut is_killed) = (Instant::now(), Duration::from_micros(20), false);
    let mut status = 0;
    // SAFETY: the calls take numbers and a pointer to this frame; the child is not reaped, so the number is its own.
    while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::__WALL) } == 0 {
        if started.elapsed() > TIMEOUT && !is_killed {
            // SAFETY: as above.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            is_killed = true;
        }
        if started.elapsed() > TIMEOUT + GRACE {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    status
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn write(file: BorrowedFd, progress: &WriteProgress) {
        match rustix::io::write(file, b"text") {
            Ok(written) => progress.written.store(written, Relaxed),
            Err(errno) => progress.errno.store(errno.raw_os_error(), Relaxed),
        }
    }

    /// Returns the identity of a user without privilege; None if this test may not take it.
    fn nobody() -> Option<(WriterIdentity, WriterIdentity)> {
        let own = WriterIdentity::own()?;
        let other = WriterIdentity {
            user_ids: [65534; 4],
            group_ids: [65534; 4],
            groups: vec![60000],
            capabilities: 0,
            ..own.clone()
        };
        rustix::process::geteuid().is_root().then_some((other, own))
    }

    #[test]
    fn a_write_takes_the_privilege_of_a_set_user_id_file() {
        let Some((other, own)) = nobody() else { return };
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_permissions(PermissionsExt::from_mode(0o6777)).expect("a mode");
        let child = ChildCredentials::of(std::process::id(), other, &own).expect("credentials");
        let (written, result) = child.run(file.as_file().as_fd(), write);
        result.expect("it writes");
        let mode = file.as_file().metadata().expect("its mode").mode() & 0o7777;
        assert_eq!((written, mode), (4, 0o777));
    }

    #[test]
    fn a_socket_gets_the_other_user() {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
        let Some((other, own)) = nobody() else { return };
        let (one, two) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .expect("sockets");
        sockopt::set_socket_passcred(&two, true).expect("SO_PASSCRED");
        let child = ChildCredentials::of(std::process::id(), other, &own).expect("credentials");
        assert!(child.run(one.as_fd(), write).1.is_ok());
        let (mut data, mut space) =
            ([0; 8], [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))]);
        let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
        let flags = rustix::net::RecvFlags::empty();
        let mut vector = [io::IoSliceMut::new(&mut data)];
        rustix::net::recvmsg(&two, &mut vector, &mut control, flags).expect("a message");
        let sender = control.drain().find_map(|message| match message {
            rustix::net::RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.uid.as_raw()),
            _ => None,
        });
        assert_eq!(sender, Some(65534));
    }

    #[test]
    fn a_child_that_blocks_is_killed() {
        let Some(own) = WriterIdentity::own() else { return };
        let child = ChildCredentials::of(std::process::id(), own.clone(), &own).expect("credentials");
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let block = |file: BorrowedFd, progress: &WriteProgress| {
            progress.written.store(3, Relaxed);
            let _never = rustix::io::read(file, &mut [0; 1]);
        };
        let (written, result) = child.run(reader.as_fd(), block);
        assert_eq!((written, result.unwrap_err().raw_os_error()), (3, Some(libc::ETIMEDOUT)));
    }
}
