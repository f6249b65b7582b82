//! The names of a file that is copied: where the source is, and where the copy will be.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use crate::file_stat::FileStat;

/// A directory that is copied, open in the source and in the target. Files in it are reached through these descriptors, so
/// that a directory that is replaced by a symbolic link leads nowhere else.
#[derive(Debug)]
pub(crate) struct DirPair {
    pub source: OwnedFd,
    pub target: OwnedFd,
    pub source_path: PathBuf,
    pub target_path: PathBuf,
    pub source_stat: FileStat,
    /// The state of the target after its creation; new files inherit its group if it has the set-group-ID bit.
    pub target_stat: FileStat,
    /// weir made the target directory.
    pub is_new: bool,
    /// The target directory has a default ACL, which new files inherit.
    pub has_default_acl: bool,
    pub parent: Option<Arc<DirPair>>,
}

/// A file in a directory pair, or an operand of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// None for an operand, whose names are paths.
    pub dir: Option<&'a Arc<DirPair>>,
    pub source: &'a CStr,
    pub target: &'a CStr,
}

impl<'a> Entry<'a> {
    pub fn source_dir(&self) -> BorrowedFd<'a> {
        self.dir.map_or(CWD, |dir| dir.source.as_fd())
    }

    pub fn target_dir(&self) -> BorrowedFd<'a> {
        self.dir.map_or(CWD, |dir| dir.target.as_fd())
    }

    /// Returns the device of the target's directory; None for an operand.
    pub fn target_dev(&self) -> Option<u64> {
        self.dir.map(|dir| dir.target_stat.dev)
    }

    /// Returns the path of the source, for messages.
    pub fn source_path(&self) -> PathBuf {
        joined(self.dir.map(|dir| dir.source_path.as_path()), self.source)
    }

    /// Returns the path of the target, for messages.
    pub fn target_path(&self) -> PathBuf {
        joined(self.dir.map(|dir| dir.target_path.as_path()), self.target)
    }

    /// Returns whether the entry is an operand.
    pub fn is_operand(&self) -> bool {
        self.dir.is_none()
    }

    pub fn source_stat(&self, follow: bool) -> Result<FileStat, Errno> {
        stat_in(self.source_dir(), self.source, follow)
    }

    pub fn target_stat(&self, follow: bool) -> Result<FileStat, Errno> {
        stat_in(self.target_dir(), self.target, follow)
    }

    /// Returns the same entry with another name of the target.
    pub fn with_target(self, target: &'a CStr) -> Self {
        Self { target, ..self }
    }
}

fn stat_in(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<FileStat, Errno> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    statat(dir, name, flags).map(FileStat::from)
}

fn joined(dir: Option<&Path>, name: &CStr) -> PathBuf {
    let name = OsStr::from_bytes(name.to_bytes());
    dir.map_or_else(|| name.into(), |dir| dir.join(name))
}
