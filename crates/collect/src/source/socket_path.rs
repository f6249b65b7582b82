//! Names of sockets and FIFOs in the file system: created with their mode, removed at the end.

use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, fchmod, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};

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

/// Returns a socket that is bound to `path`, with this mode. Replaces the socket of a process that has ended.
///
/// # Errors
/// A process listens there, the name is no socket, or the directory does not allow it.
pub(crate) fn bind_socket(path: &Path, kind: SocketType, mode: u32) -> Result<(OwnedFd, OwnName), Error> {
    let name = path.display().to_string();
    let failed = |errno: Errno| {
        let advice = match errno {
            Errno::ADDRINUSE => "something else has this name: choose another one, or remove it",
            Errno::NOENT => "create the directory",
            _ => "choose another path, or change the permissions of its directory",
        };
        Error::call("bind", &name, &io_error(errno), advice)
    };
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
    Ok((socket, own))
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
