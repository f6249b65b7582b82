//! Names of sockets and FIFOs in the file system: created with their mode, removed at the end.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, lstat, open, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::error::{Error, io_error};

/// A name that weir has created. Dropping it removes the name, if it still leads to the same file.
#[derive(Debug)]
pub(crate) struct OwnName {
    path: PathBuf,
    identity: (u64, u64),
}

impl OwnName {
    /// Returns the name of a file that was just created.
    pub(super) fn of_new(path: &Path) -> Option<Self> {
        let stat = lstat(path).ok()?;
        Some(Self { path: std::path::absolute(path).ok()?, identity: (stat.st_dev, stat.st_ino) })
    }
}

impl Drop for OwnName {
    fn drop(&mut self) {
        if lstat(&self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity) {
            let _ = unlink(&self.path);
        }
    }
}

/// The length of the queue of connections. The kernel caps it (net.core.somaxconn).
pub(super) const BACKLOG: i32 = 4096;
/// How long another process may hold the lock of the directory: every user may lock a directory that is readable.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);

/// Returns a socket that is bound to `path`, with this mode, and listens if its kind has connections. Replaces the socket of a
/// process that has ended. Until it listens, its directory is locked: the name of a socket that does not listen yet would look
/// stale to another weir, which would remove it.
///
/// # Errors
/// A process listens there, the name is no socket, or the directory does not allow it.
pub(crate) fn bind_socket(path: &Path, kind: SocketType, mode: u32) -> Result<(OwnedFd, OwnName), Error> {
    let name = crate::error::shown(path);
    let failed = |errno: Errno| {
        let advice = match errno {
            Errno::ADDRINUSE => "something else has this name: choose another one, or remove it",
            Errno::NOENT => "create the directory",
            _ => "choose another path, or change the permissions of its directory",
        };
        Error::call("bind", &name, &io_error(errno), advice)
    };
    let _lock = lock_directory(path);
    let address = SocketAddrUnix::new(path).map_err(|_| {
        Error::text(format!(
            "bind {name}: the path is longer than the 107 bytes of a socket address; use a shorter one"
        ))
    })?;
    let new_socket =
        || socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None);
    let socket = new_socket().map_err(failed)?;
    // The name gets the mode of the socket, less the umask, so that it is never wider.
    fchmod(&socket, Mode::from_raw_mode(mode)).map_err(failed)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_stale(path, kind, &address) => {
            unlink(path).map_err(failed)?;
            bind(&socket, &address).map_err(failed)?;
        }
        result => result.map_err(failed)?,
    }
    let own = OwnName::of_new(path).ok_or_else(|| failed(Errno::NOENT))?;
    if rustix::fs::chmod(path, Mode::from_raw_mode(mode)).is_err() {
        return Err(Error::text(format!("chmod {name}: the socket cannot get mode {mode:o}")));
    }
    if kind != SocketType::DGRAM {
        listen(&socket, BACKLOG)
            .map_err(|errno| Error::call("listen", &name, &io_error(errno), "choose another path"))?;
    }
    Ok((socket, own))
}

/// Locks the directory of `path` until the result is dropped. Returns None if that is not possible: the lock keeps off other
/// weirs only, and a weir without it works as before.
fn lock_directory(path: &Path) -> Option<OwnedFd> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(parent, flags, Mode::empty()).ok()?;
    let end = Instant::now() + MAX_LOCK_WAIT;
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(directory),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => sleep(Duration::from_millis(5)),
            Err(_) => return None,
        }
    }
}

/// Returns whether the name is a socket of this user, and no process has it open.
fn is_stale(path: &Path, kind: SocketType, address: &SocketAddrUnix) -> bool {
    let Ok(stat) = lstat(path) else { return false };
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    if !own || FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return false;
    }
    let Ok(probe) =
        socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
    else {
        return false;
    };
    connect(&probe, address) == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn one_of_two_replaces_a_stale_socket_and_listens() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        for _ in 0..300 {
            drop(UnixListener::bind(&path).expect("a socket that will be stale"));
            let barrier = Barrier::new(2);
            let bind = || {
                barrier.wait();
                bind_socket(&path, SocketType::STREAM, 0o600)
            };
            let results = std::thread::scope(|scope| {
                [scope.spawn(bind), scope.spawn(bind)].map(|thread| thread.join().expect("it ends"))
            });
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
            UnixStream::connect(&path).expect("the one listens");
            drop(results);
            assert!(lstat(&path).is_err(), "its name is removed");
        }
    }

    #[test]
    fn a_locked_directory_is_waited_for_with_a_limit() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let _lock = lock_directory(&path).expect("a lock");
        assert!(lock_directory(&path).is_none());
        bind_socket(&path, SocketType::STREAM, 0o600).expect("a socket");
    }
}
