//! The directories in which a running process may have been started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{foreign_reads, living_thread, proc};

/// The most bytes of an environment that are read.
const MAX_ENVIRONMENT_BYTES: u64 = 256 << 10;

/// Returns the directories in which a process may have been started, besides its own: that of its parent, and those that a
/// shell named in its environment.
pub fn start_directories(pid: u32) -> Vec<PathBuf> {
    let parent = proc::status(pid).and_then(|status| u32::try_from(status.ppid).ok());
    let of_parent = parent.filter(|&parent| parent > 1).and_then(proc::directory);
    let environment = |tid: u32| {
        let path = format!("/proc/{tid}/environ");
        let text = foreign_reads::beginning(Path::new(&path), MAX_ENVIRONMENT_BYTES).ok();
        text.filter(|text| !text.is_empty())
    };
    let environment = living_thread::or_by_other(pid, environment).unwrap_or_default();
    of_parent.into_iter().chain(of_shell(&environment)).collect()
}

/// Returns the absolute paths of the variables in which a shell notes its directory and the one before.
fn of_shell(environment: &[u8]) -> impl Iterator<Item = PathBuf> {
    let variables = environment.split(|&byte| byte == 0);
    let paths = variables.filter_map(|variable| {
        let value = variable.strip_prefix(b"PWD=").or_else(|| variable.strip_prefix(b"OLDPWD="))?;
        value.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(value)))
    });
    paths.take(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_names_two_directories() {
        let found: Vec<PathBuf> = of_shell(b"A=PWD=/x\0OLDPWD=/b c\0PWD=/a\0PWDX=/y\0").collect();
        assert_eq!(found, [Path::new("/b c"), Path::new("/a")]);
        assert_eq!(of_shell(b"PWD=relative\0").count(), 0);
        let own = start_directories(std::process::id());
        assert!(own.iter().all(|directory| directory.is_absolute()), "{own:?}");
    }
}
