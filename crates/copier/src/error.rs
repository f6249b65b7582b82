//! The error of a copy.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::io::Errno;
use weir_sys::errno_text;

use crate::quote::quote;

/// An error of one file. Its message names the file, the call, errno and a remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CopyError {
    /// A system call failed.
    #[error("{}: {call}: {}{}", quote(.path.as_os_str().as_bytes()), errno_text(.source), advice(.path, call, *.creates, .source))]
    Call {
        path: PathBuf,
        call: &'static str,
        /// The call was to create `path`, as the target of a copy.
        creates: bool,
        source: io::Error,
    },
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
        Self::Call { path: path.into(), call, creates: false, source: source.into() }
    }

    /// Returns the error of a system call that was to create `path`.
    pub fn creation(path: impl Into<PathBuf>, call: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Call { path: path.into(), call, creates: true, source: source.into() }
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

    /// As [`Self::on`], for a call that creates `path`.
    fn on_creation(self, path: impl AsRef<Path>, call: &'static str) -> CopyResult<T>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, path: impl AsRef<Path>, call: &'static str) -> CopyResult<T> {
        self.map_err(|error| CopyError::call(path.as_ref(), call, error))
    }

    fn on_creation(self, path: impl AsRef<Path>, call: &'static str) -> CopyResult<T> {
        self.map_err(|error| CopyError::creation(path.as_ref(), call, error))
    }
}

/// File systems of the kernel in which no program creates a file, by their magic numbers in statfs(2): proc, sysfs, cgroup,
/// cgroup2, debugfs, tracefs, securityfs.
const WITHOUT_NEW_FILES: [u64; 7] =
    [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163, 0x7363_6673];

/// Returns a remedy for common errors; empty for others. `creates` is true for a call that creates a target.
fn advice(path: &Path, call: &str, creates: bool, error: &io::Error) -> String {
    let Some(errno) = Errno::from_io_error(error) else { return String::new() };
    // stat(2) comes first for a source. The other calls that miss a directory are those that make a target in it.
    let parent = path.parent().filter(|parent| call != "stat" && !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if errno == Errno::NOENT && !parent.exists() => {
            let parent = quote(parent.as_os_str().as_bytes());
            format!(" – its directory does not exist: create it: mkdir -p {parent}")
        }
        _ if errno == Errno::NOTDIR => no_directory(path, creates),
        _ if creates && takes_no_files(path, call, errno) => {
            " – its directory takes no new files: it was removed, or its file system is one of the kernel's, such as \
             /proc: choose another target"
                .into()
        }
        _ if creates && errno == Errno::ISDIR => {
            " – it is a directory: leave -T out, or choose another target".into()
        }
        _ => remedy(errno).into(),
    }
}

/// Returns whether no file can be created beside `path`, whose directory exists: it is of procfs or the like, or was removed.
fn takes_no_files(path: &Path, call: &str, errno: Errno) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let kind = || statfs(parent).map_or(0, |found| found.f_type as u64 & 0xffff_ffff);
    match errno {
        Errno::NOENT => true,
        // Directories are made in some of these file systems.
        Errno::ACCESS | Errno::PERM => call != "mkdir" && WITHOUT_NEW_FILES.contains(&kind()),
        _ => false,
    }
}

/// Returns the remedy for a path of which a part is no directory, and names that part.
fn no_directory(path: &Path, creates: bool) -> String {
    let is_other = |part: &Path| part.metadata().is_ok_and(|found| !found.is_dir());
    let name = |part: &Path| quote(part.as_os_str().as_bytes());
    let trimmed = crate::session::without_slashes(path);
    if path.as_os_str().as_bytes().ends_with(b"/") && is_other(&trimmed) {
        return format!(" – {} is no directory: leave the slash out", name(&trimmed));
    }
    match trimmed.ancestors().skip(1).find(|part| is_other(part)) {
        Some(part) if creates => {
            let part = name(part);
            format!(" – {part} is no directory, so that nothing can be made in it: choose another target")
        }
        Some(part) => format!(" – {} is no directory: check the name", name(part)),
        None => String::new(),
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
