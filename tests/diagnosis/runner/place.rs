//! A private place for one program: a copy of its files, prepared and compiled, and what belongs beside it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt;
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
        place.give_away()?;
        Ok(place)
    }

    /// An empty directory with the run's data.
    pub fn of_ordinary(run: &Ordinary) -> Result<Self, String> {
        let place = Self::empty();
        if let Some(lines) = &run.prepare {
            place.shell(lines)?;
        }
        place.give_away()?;
        Ok(place)
    }

    /// To the user who runs the programs.
    fn give_away(&self) -> Result<(), String> {
        let Some(user) = user() else { return Ok(()) };
        give(self.0.path(), user).map_err(|error| format!("chown {}: {error}", self.0.path().display()))
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

/// The ordinary user as whom weir and the programs run, where that is asked for, by number.
pub fn user() -> Option<u32> {
    let user = std::env::var("WEIR_DIAGNOSIS_USER").ok()?;
    Some(user.parse().unwrap_or_else(|_| panic!("WEIR_DIAGNOSIS_USER={user}: not a user's number")))
}

/// A directory and all that is in it, or a file.
pub fn give(path: &Path, user: u32) -> std::io::Result<()> {
    lchown(path, Some(user), Some(user))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// The same command as that user, whose home is the same for all runs: weir keeps prices there.
pub fn as_user(mut command: Command) -> Command {
    if let Some(user) = user() {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("home-{user}"));
        fs::create_dir_all(&home).and_then(|()| give(&home, user)).expect("a home");
        command.uid(user).gid(user).env("HOME", &home).env("TMPDIR", &home);
    }
    command
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
