//! The private directory in which one requirement is tested.

use std::fs;
use std::io;
use std::path::PathBuf;

use tempfile::TempDir;

use super::build::Solution;
use super::run::SolutionRun;
use super::{CheckFailure, wrong};
use crate::Error;

/// A private directory with the working directory of a solution and, beside it, the files of its standard streams.
/// Removed when dropped.
pub(super) struct CheckDirectory<'a> {
    root: TempDir,
    pub solution: &'a Solution<'a>,
}

impl<'a> CheckDirectory<'a> {
    pub fn new(solution: &'a Solution<'a>) -> Result<CheckDirectory<'a>, Error> {
        let dir = CheckDirectory { root: private()?, solution };
        let here = dir.path();
        fs::create_dir(&here).map_err(|source| Error::File { path: here, call: "mkdir", source })?;
        Ok(dir)
    }

    /// Returns the solution's working directory.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("here")
    }

    /// Returns a path outside the solution's working directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file into the working directory.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.path().join(name);
        fs::write(&path, bytes).map_err(|source| Error::File { path, call: "write", source })
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &str) {
        let _there = fs::remove_file(self.path().join(name));
    }

    /// Makes a symbolic link `name` to the device `to`.
    pub fn link(&self, name: &str, to: &str) -> Result<(), Error> {
        let path = self.path().join(name);
        std::os::unix::fs::symlink(to, &path).map_err(|source| Error::File { path, call: "symlink", source })
    }

    /// Makes a subdirectory of the working directory.
    pub fn directory(&self, name: &str) -> Result<(), Error> {
        let path = self.path().join(name);
        fs::create_dir(&path).map_err(|source| Error::File { path, call: "mkdir", source })
    }

    /// Returns the bytes of a file that the solution must have made. A missing file is the solution's failure.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, CheckFailure> {
        match fs::read(self.path().join(name)) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => wrong(format!("{name} does not exist")),
            Err(source) => Err(self.read_error(name, source).into()),
        }
    }

    /// Returns the bytes of a file that the solution may make later; none if it does not exist yet.
    pub fn get_if_made(&self, name: &str) -> Result<Vec<u8>, Error> {
        match fs::read(self.path().join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|source| self.read_error(name, source)),
        }
    }

    fn read_error(&self, name: &str, source: io::Error) -> Error {
        Error::File { path: self.path().join(name), call: "open", source }
    }

    /// Prepares a run of the solution with these arguments.
    pub fn run<'p>(&'p self, arguments: &[&str]) -> SolutionRun<'p> {
        SolutionRun::new(self, arguments)
    }
}

/// Makes a temporary directory with mode 0700.
pub(super) fn private() -> Result<TempDir, Error> {
    let made = tempfile::Builder::new().prefix("weir-check-").tempdir();
    made.map_err(|source| Error::File { path: std::env::temp_dir(), call: "mkdir", source })
}
