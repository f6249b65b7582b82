//! The files that the collector writes itself. It does not follow them: each record would bring another one, until the disk is full.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::options::LogOptions;
use crate::sink::is_rotated_name;

/// The log, its rotated files, and the file of the positions.
#[derive(Debug)]
pub(super) struct OwnFiles {
    /// The absolute path of the log; None if it is standard output.
    log: Option<PathBuf>,
    /// The name of the log, if it is in the followed directory. Its rotated files are there, too.
    name: Option<OsString>,
    state: Option<PathBuf>,
    /// Device and inode of standard output, if the log goes there.
    stdout: Option<(u64, u64)>,
}

impl OwnFiles {
    /// `followed` is the absolute path of the followed files, whose last part may be a pattern.
    pub(super) fn of(options: &LogOptions, followed: &Path) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let log = options.output.as_ref().map(absolute);
        let stdout = match log {
            None => rustix::fs::fstat(std::io::stdout().as_fd()).ok().map(|stat| (stat.st_dev, stat.st_ino)),
            Some(_) => None,
        };
        let directory = |path: &Path| path.parent().and_then(identity);
        let is_beside = |log: &&PathBuf| directory(log).is_some_and(|one| directory(followed) == Some(one));
        let name = log.as_ref().filter(is_beside).and_then(|log| log.file_name()).map(OsStr::to_owned);
        Self { log, name, state: options.state.as_ref().map(absolute), stdout }
    }

    /// Returns whether a path leads to such a file, or is the name of a rotated log.
    pub(super) fn contain(&self, path: &Path) -> bool {
        let is_rotated = |log: &OsString| path.file_name().is_some_and(|name| is_rotated_name(log, name));
        self.name.as_ref().is_some_and(is_rotated)
            || identity(path).is_some_and(|identity| {
                let is_same = |own: &PathBuf| self::identity(own) == Some(identity);
                self.stdout == Some(identity) || self.log.iter().chain(&self.state).any(is_same)
            })
    }

    /// Returns whether a followed file that had this path and was renamed is a log of before.
    pub(super) fn had_path(&self, path: &Path) -> bool {
        self.name.as_deref().is_some_and(|log| path.file_name() == Some(log))
    }
}

/// Returns the device and inode that a path leads to.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}
