//! A private place for one program: a copy of its files, prepared and compiled, and what belongs beside it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::set::{Case, Ordinary, root};
use crate::common::disk_dir;

/// The directory, removed at the end.
pub struct Place(TempDir);

impl Place {
    /// Where the program runs.
    pub fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// A file outside of the program's sight.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn empty() -> Self {
        let place = Self(disk_dir());
        fs::create_dir(place.work()).expect("a directory in a new directory");
        place
    }

    /// A copy of the case's files, with its data made and its C compiled.
    pub fn of_case(case: &Case) -> Result<Self, String> {
        let place = Self::empty();
        for file in fs::read_dir(&case.dir).map_err(|error| format!("{}: {error}", case.dir.display()))? {
            let file = file.expect("an entry");
            fs::copy(file.path(), place.work().join(file.file_name())).expect("a copy");
        }
        if let Some(line) = &case.prepare {
            place.shell(line)?;
        }
        for program in ["broken", "fixed"] {
            if place.work().join(program).with_extension("c").exists() {
                place.shell(&format!("cc -O1 -o {program} {program}.c"))?;
            }
        }
        Ok(place)
    }

    /// An empty directory with the run's data.
    pub fn of_ordinary(run: &Ordinary) -> Result<Self, String> {
        let place = Self::empty();
        if let Some(lines) = &run.prepare {
            place.shell(lines)?;
        }
        Ok(place)
    }

    fn shell(&self, line: &str) -> Result<(), String> {
        let errors = self.beside("prepare.errors");
        let mut command = command(Path::new("sh"), &self.work());
        command.args(["-ec", line]).env("TOOLS", root().join("tools"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors).expect("a file"));
        let status = command.status().map_err(|error| format!("sh: {error}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("prepare `{line}`: {status}: {}", fs::read_to_string(errors).unwrap_or_default()))
    }
}

/// A command as the set wants it: the system's own programs before others' wrappers (pyenv's `python3` is a
/// shell script), and nothing in the environment that changes a program's buffering.
pub fn command(program: &Path, dir: &Path) -> Command {
    let mut path = OsString::from("/usr/bin:/bin:");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.current_dir(dir).env("PATH", path).env("LC_ALL", "C.UTF-8");
    for name in
        ["PYTHONUNBUFFERED", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "LD_PRELOAD", "MAKEFLAGS", "MAKELEVEL"]
    {
        command.env_remove(name);
    }
    command
}

/// The first of `needs` that is not here.
pub fn missing(needs: &[String]) -> Option<&str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]
        .into_iter()
        .chain(std::env::split_paths(&path))
        .collect();
    let here = |tool: &str| dirs.iter().any(|dir| dir.join(tool).is_file());
    needs.iter().map(String::as_str).find(|tool| !here(tool))
}
