//! The files that the collector writes itself. It does not follow them: each record would bring another one, until the disk is full.

use std::ffi::OsStr;
use std::fs::Metadata;
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
    state: Option<PathBuf>,
    /// Device and inode of standard output, if the log goes there.
    stdout: Option<(u64, u64)>,
}

impl OwnFiles {
    pub(super) fn of(options: &LogOptions) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let log = options.output.as_ref().map(absolute);
        let stdout = match log {
            None => rustix::fs::fstat(std::io::stdout().as_fd()).ok().map(|stat| (stat.st_dev, stat.st_ino)),
            Some(_) => None,
        };
        Self { log, state: options.state.as_ref().map(absolute), stdout }
    }

    /// Returns whether a path leads to such a file, or is the name of a rotated log.
    pub(super) fn contain(&self, path: &Path) -> bool {
        self.has_rotated_name(path)
            || identity(path).is_some_and(|identity| {
                let is_same = |own: &PathBuf| self::identity(own) == Some(identity);
                self.stdout == Some(identity) || self.log.iter().chain(&self.state).any(is_same)
            })
    }

    /// Returns whether a file that had this path and was renamed is a log of before.
    pub(super) fn had_path(&self, path: &Path) -> bool {
        let Some(log) = &self.log else { return false };
        path.file_name() == log.file_name() && is_same_directory(path, log)
    }

    fn has_rotated_name(&self, path: &Path) -> bool {
        let Some(log) = &self.log else { return false };
        let own: &OsStr = log.file_name().unwrap_or_default();
        path.file_name().is_some_and(|name| is_rotated_name(own, name)) && is_same_directory(path, log)
    }
}

fn is_same_directory(a: &Path, b: &Path) -> bool {
    let directory = |path: &Path| path.parent().and_then(identity);
    directory(a).is_some_and(|one| directory(b) == Some(one))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().as_ref().map(|about: &Metadata| (about.dev(), about.ino()))
}
