//! The private directory in which one requirement is tried.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::build::Solution;
use super::run::Run;
use super::{Wrong, wrong};
use crate::Error;

/// Where a solution runs: `here` is its working directory, beside it lie its standard streams.
pub(super) struct Place<'a> {
    root: TempDir,
    /// What is tried.
    pub solution: &'a Solution<'a>,
}

impl<'a> Place<'a> {
    pub fn new(solution: &'a Solution<'a>) -> Result<Place<'a>, Error> {
        let place = Place { root: private()?, solution };
        let here = place.here();
        fs::create_dir(&here).map_err(|source| Error::File { path: here, call: "mkdir", source })?;
        Ok(place)
    }

    /// The working directory.
    pub fn here(&self) -> PathBuf {
        self.root.path().join("here")
    }

    /// A path that the solution does not see.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Puts a file in.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.here().join(name);
        fs::write(&path, bytes).map_err(|source| Error::File { path, call: "write", source })
    }

    /// Takes a file away, if there is one.
    pub fn remove(&self, name: &str) {
        let _there = fs::remove_file(self.here().join(name));
    }

    /// Makes a name stand for a device.
    pub fn link(&self, name: &str, to: &str) -> Result<(), Error> {
        let path = self.here().join(name);
        std::os::unix::fs::symlink(to, &path).map_err(|source| Error::File { path, call: "symlink", source })
    }

    /// Makes a directory.
    pub fn directory(&self, name: &str) -> Result<(), Error> {
        let path = self.here().join(name);
        fs::create_dir(&path).map_err(|source| Error::File { path, call: "mkdir", source })
    }

    /// What a file holds that the solution should have made.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, Wrong> {
        match fs::read(self.here().join(name)) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => wrong(format!("there is no {name}")),
            Err(source) => Err(Error::File { path: Path::new(name).into(), call: "open", source }.into()),
        }
    }

    /// What a file holds now; nothing where there is none.
    pub fn now(&self, name: &str) -> Vec<u8> {
        fs::read(self.here().join(name)).unwrap_or_default()
    }

    /// A start of the solution with these arguments.
    pub fn run<'p>(&'p self, arguments: &[&str]) -> Run<'p> {
        Run::new(self, arguments)
    }
}

/// A directory that only this user can look into.
pub(super) fn private() -> Result<TempDir, Error> {
    let made = tempfile::Builder::new().prefix("weir-check-").tempdir();
    made.map_err(|source| Error::File { path: std::env::temp_dir(), call: "mkdir", source })
}
