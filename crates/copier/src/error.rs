//! The error of a copy.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use weir_sys::errno_text;

use crate::quote::quote;

/// An error of one file. Its message names the file, the call, errno and a remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CopyError {
    /// A system call failed.
    #[error("{}: {call}: {}{}", quote(.path.as_os_str().as_bytes()), errno_text(.source), advice(.path, call, .source))]
    Call { path: PathBuf, call: &'static str, source: io::Error },
    /// weir does not do it, for the reason that the text says.
    #[error("{0}")]
    Refused(String),
    /// Ctrl-C, or a stop that another signal requests.
    #[error("interrupted")]
    Interrupted,
}

/// The result of a step of a copy.
pub type CopyResult<T> = Result<T, CopyError>;

impl CopyError {
    /// Returns the error of a system call on `path`.
    pub fn call(path: impl Into<PathBuf>, call: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Call { path: path.into(), call, source: source.into() }
    }

    /// Returns errno, if a system call failed.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Call { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Adds the path and the name of the call to the error of a system call.
pub(crate) trait OnPath<T> {
    fn on(self, path: impl AsRef<Path>, call: &'static str) -> CopyResult<T>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, path: impl AsRef<Path>, call: &'static str) -> CopyResult<T> {
        self.map_err(|error| CopyError::call(path.as_ref(), call, error))
    }
}

/// Returns a remedy for common errors; empty for others.
fn advice(path: &Path, call: &str, error: &io::Error) -> String {
    let Some(errno) = Errno::from_io_error(error) else { return String::new() };
    // stat(2) comes first for a source. The other calls that miss a directory are those that make a target in it.
    let parent = path.parent().filter(|parent| call != "stat" && !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if errno == Errno::NOENT && !parent.exists() => {
            let parent = quote(parent.as_os_str().as_bytes());
            format!(" – its directory does not exist: create it: mkdir -p {parent}")
        }
        _ => remedy(errno).into(),
    }
}

fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => " – free space on the target's file system, or choose another target",
        Errno::DQUOT => " – your quota is used up: remove files, or choose another target",
        Errno::FBIG => " – the file system or 'ulimit -f' does not permit such a large file",
        Errno::ACCESS => " – you lack the permission: see 'ls -ld', or run weir as its owner",
        Errno::PERM => " – the owner, an attribute (lsattr) or a missing capability forbids it",
        Errno::ROFS => " – the file system is mounted read-only, or became so after an I/O error: see dmesg",
        Errno::IO => " – the device failed: see dmesg; the copy is not to be trusted",
        Errno::NAMETOOLONG => " – the file system of the target permits no such long name",
        Errno::MFILE | Errno::NFILE => " – too many open files: raise 'ulimit -n'",
        Errno::LOOP => " – too many symbolic links, or the name became a symbolic link while weir copied it",
        Errno::TXTBSY => " – the target is a program that runs: use --atomic or --remove-destination",
        Errno::NOKEY => " – ENOKEY: the directory is encrypted and locked: unlock it first (fscrypt unlock)",
        Errno::OVERFLOW => {
            " – this mount or user namespace has no number for an owner: see /proc/self/uid_map"
        }
        Errno::NOENT => " – no such file: check the name",
        Errno::BADF => " – the descriptor is closed: open it, such as with <FILE or >FILE",
        _ => "",
    }
}
