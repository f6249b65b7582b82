//! A private directory for one program: a copy of its files, prepared and compiled, and files that the program does not see.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::lchown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::set::{LabelledCase, OrdinaryRun, root};
use crate::common::disk_dir;

/// A temporary directory. It is removed on drop.
#[derive(Debug)]
pub struct Workspace(TempDir);

impl Workspace {
    /// Returns the directory in which the program runs.
    pub fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    /// Returns the path of a file outside of that directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn empty() -> Self {
        let workspace = Self(disk_dir());
        fs::create_dir(workspace.work()).expect("a directory in a new directory");
        workspace
    }

    /// Copies a case's files and compiles its programs: those in C, and by the line `build`.
    pub fn compiled(dir: &Path, build: Option<&str>) -> Result<Self, String> {
        let workspace = Self::empty();
        workspace.copy_all(dir)?;
        if let Some(line) = build {
            workspace.shell(line)?;
        }
        for program in ["broken", "fixed"] {
            if workspace.work().join(program).with_extension("c").exists() {
                workspace.shell(&format!("cc -O1 -o {program} {program}.c"))?;
            }
        }
        Ok(workspace)
    }

    /// Copies a case's files and programs and prepares its data.
    pub fn of_case(case: &LabelledCase) -> Result<Self, String> {
        let workspace = Self::empty();
        workspace.copy_all(&case.built()?.work())?;
        if let Some(line) = &case.prepare {
            workspace.shell(line)?;
        }
        workspace.chown_to_user()?;
        Ok(workspace)
    }

    /// Copies the contents of a directory by cp(1): a program that this process itself writes may still be open in a child that
    /// another thread has just forked, and then cannot be executed.
    fn copy_all(&self, from: &Path) -> Result<(), String> {
        let copied = Command::new("cp").arg("-R").arg(from.join(".")).arg(self.work()).status();
        let copied = copied.map_err(|error| format!("cp: {error}"))?;
        copied.success().then_some(()).ok_or_else(|| format!("cp {}: {copied}", from.display()))
    }

    /// Makes an empty directory and prepares a run's data there.
    pub fn of_ordinary(run: &OrdinaryRun) -> Result<Self, String> {
        let workspace = Self::empty();
        if let Some(lines) = &run.prepare {
            workspace.shell(lines)?;
        }
        workspace.chown_to_user()?;
        Ok(workspace)
    }

    /// Changes the owner to the user who runs the programs, if one is set.
    fn chown_to_user(&self) -> Result<(), String> {
        let Some(user) = user() else { return Ok(()) };
        chown_all(self.0.path(), user).map_err(|error| format!("chown {}: {error}", self.0.path().display()))
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

/// Returns the user ID in WEIR_DIAGNOSIS_USER, under which weir and the programs run.
pub fn user() -> Option<u32> {
    let user = std::env::var("WEIR_DIAGNOSIS_USER").ok()?;
    Some(user.parse().unwrap_or_else(|_| panic!("WEIR_DIAGNOSIS_USER={user}: not a user ID")))
}

/// Changes the owner of a file, or of a directory with all its contents.
pub fn chown_all(path: &Path, user: u32) -> std::io::Result<()> {
    lchown(path, Some(user), Some(user))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path)? {
            chown_all(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// Returns the command so that it runs as that user. The home directory is the same for all runs, because weir keeps prices
/// there.
pub fn run_as_user(mut command: Command) -> Command {
    if let Some(user) = user() {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("home-{user}"));
        fs::create_dir_all(&home).and_then(|()| chown_all(&home, user)).expect("a home");
        command.uid(user).gid(user).env("HOME", &home).env("TMPDIR", &home);
    }
    command
}

/// Returns a command with the environment of the set: the system's own programs come first in PATH (pyenv's `python3` is a
/// shell script), and no variable changes a program's buffering.
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

/// Returns the first command of `needs` that is not installed.
pub fn missing(needs: &[String]) -> Option<&str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]
        .into_iter()
        .chain(std::env::split_paths(&path))
        .collect();
    let here = |tool: &str| dirs.iter().any(|dir| dir.join(tool).is_file());
    needs.iter().map(String::as_str).find(|tool| !here(tool))
}
