//! The library that `weir run` loads into programs (native/preload), and its configuration.

mod checked_directory;
pub mod install;

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::plan::request::CoalesceScope;

/// The shared object for this machine. It loads into programs of glibc and musl.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libweir-run.so"));

/// The environment variable that holds the library's configuration.
pub const VARIABLE: &str = "WEIR_RUN";

/// The most patterns of files in a configuration: MAX_FILES of native/preload/config.h.
pub const MAX_FILES: usize = 16;
/// The longest value of [`VARIABLE`]: CONFIG_BYTES of native/preload/config.h, without the final NUL.
const MAX_VALUE_BYTES: usize = 8191;
/// The longest path of the library: PATH_BYTES of native/preload/config.h, without the final NUL.
const MAX_PATH_BYTES: usize = 1023;

/// The library cannot take a configuration.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The number of patterns.
    #[error("{0} patterns of --file: weir run takes at most {MAX_FILES}; use wider patterns")]
    Files(usize),
    /// The bytes of the value, to which only patterns contribute without limit.
    #[error(
        "the settings for the command have {0} bytes, at most {MAX_VALUE_BYTES} are possible; use shorter patterns of --file"
    )]
    Value(usize),
    /// The path of the library that is too long.
    #[error(
        "{}: the path of weir's library is longer than {MAX_PATH_BYTES} bytes; set XDG_CACHE_HOME to a directory with a shorter path",
        .0.display()
    )]
    Path(PathBuf),
}

/// The library's configuration. native/preload/config.h defines its lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreloadConfig {
    /// Modes of stdin, stdout and stderr: `none`, `line`, `full` or `full:BYTES`.
    pub standard: [Option<String>; 3],
    /// A glob of paths and the mode of streams that the program opens on them.
    pub files: Vec<(String, String)>,
    /// The modes hold even if the program calls setvbuf(3).
    pub force: bool,
    /// Keep the program's order of stdio and write(2) on one descriptor.
    pub order: bool,
    /// Flush stdio before execve(2).
    pub exec_flush: bool,
    /// Device and inode of a standard input that children must not read.
    pub private_stdin: Option<(u64, u64)>,
    /// The command's parent: its children may read `private_stdin`.
    pub first_pid: Option<u32>,
    /// The calls to gather, and the arena's [path](crate::coalesce::Arena::path).
    pub coalesce: Option<(CoalesceScope, PathBuf)>,
}

impl PreloadConfig {
    /// Returns the value of [`VARIABLE`]. `library` is the library's path.
    pub fn value(&self, library: &Path) -> String {
        let mut text = format!("lib={}\n", library.display());
        let mut line =
            |key: &str, value: &str| writeln!(text, "{key}={value}").expect("a String takes everything");
        for (name, mode) in ["stdin", "stdout", "stderr"].iter().zip(&self.standard) {
            mode.iter().for_each(|mode| line(name, mode));
        }
        self.files.iter().for_each(|(glob, mode)| line("file", &format!("{glob}={mode}")));
        for (key, enabled) in [("force", self.force), ("order", self.order), ("exec-flush", self.exec_flush)]
        {
            if enabled {
                line(key, "1");
            }
        }
        if let Some((dev, ino)) = self.private_stdin {
            line("stdin-private", &format!("{dev}:{ino}"));
        }
        self.first_pid.iter().for_each(|pid| line("first", &pid.to_string()));
        if let Some((scope, arena)) = &self.coalesce {
            line("coalesce", if *scope == CoalesceScope::All { "all" } else { "files" });
            line("arena", &arena.display().to_string());
        }
        text
    }

    /// Checks the limits of native/preload/config.h: beyond them the library ignores patterns, or does nothing at all.
    ///
    /// # Errors
    /// The first limit that is exceeded.
    pub fn check(&self, library: &Path) -> Result<(), ConfigError> {
        let value_bytes = self.value(library).len();
        if self.files.len() > MAX_FILES {
            Err(ConfigError::Files(self.files.len()))
        } else if library.as_os_str().len() > MAX_PATH_BYTES {
            Err(ConfigError::Path(library.into()))
        } else if value_bytes > MAX_VALUE_BYTES {
            Err(ConfigError::Value(value_bytes))
        } else {
            Ok(())
        }
    }

    /// Returns the two variables to set for the command. `preload` is the present LD_PRELOAD.
    pub fn environment(&self, library: &Path, preload: Option<OsString>) -> [(&'static str, OsString); 2] {
        let mut list = library.as_os_str().to_owned();
        if let Some(other) = preload.filter(|other| !other.as_bytes().is_empty()) {
            list.push(":");
            list.push(other);
        }
        [("LD_PRELOAD", list), (VARIABLE, self.value(library).into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_one_line_per_setting() {
        let config = PreloadConfig {
            standard: [None, Some("line".into()), Some("full:100".into())],
            files: vec![("*.log".into(), "none".into())],
            force: true,
            private_stdin: Some((3, 4)),
            coalesce: Some((CoalesceScope::Files, "/proc/1/fd/5".into())),
            ..PreloadConfig::default()
        };
        let want = "lib=/l.so\nstdout=line\nstderr=full:100\nfile=*.log=none\nforce=1\nstdin-private=3:4\n\
                    coalesce=files\narena=/proc/1/fd/5\n";
        assert_eq!(config.value(Path::new("/l.so")), want);
    }

    #[test]
    fn a_configuration_that_the_library_cannot_take_is_refused() {
        let with = |count: usize, bytes: usize| PreloadConfig {
            files: vec![("x".repeat(bytes), "line".into()); count],
            ..PreloadConfig::default()
        };
        let check = |config: &PreloadConfig| config.check(Path::new("/l.so"));
        assert_eq!(check(&with(16, 100)), Ok(()));
        assert_eq!(check(&with(17, 1)), Err(ConfigError::Files(17)));
        let rest = with(1, 0).value(Path::new("/l.so")).len();
        assert_eq!(check(&with(1, 8191 - rest)), Ok(()));
        assert_eq!(check(&with(1, 8192 - rest)), Err(ConfigError::Value(8192)));
        let long = PathBuf::from(format!("/{}", "x".repeat(1023)));
        assert_eq!(with(1, 1).check(&long), Err(ConfigError::Path(long.clone())));
    }

    #[test]
    fn the_limits_are_those_of_the_library() {
        let header = include_str!("../../../../native/preload/config.h");
        let limits = format!(
            "MAX_FILES = {MAX_FILES}, CONFIG_BYTES = {}, PATH_BYTES = {} }}",
            MAX_VALUE_BYTES + 1,
            MAX_PATH_BYTES + 1
        );
        assert!(header.contains(&limits), "{limits}");
    }

    #[test]
    fn a_preload_of_the_user_comes_after_the_library() {
        let [(_, list), _] = PreloadConfig::default().environment(Path::new("/l.so"), Some("/own.so".into()));
        assert_eq!(list, "/l.so:/own.so");
    }
}
