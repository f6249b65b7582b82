//! The library that `weir run` loads into programs (native/preload), and the words it is configured with.

pub mod install;

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::plan::request::CoalesceScope;

/// The shared object itself, for this machine; loads into programs of glibc and musl.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libweir-run.so"));

/// The environment variable that the library reads.
pub const VARIABLE: &str = "WEIR_RUN";

/// What the library shall do; native/preload/config.h says what each line means.
#[derive(Clone, Debug, Default)]
pub struct PreloadConfig {
    /// Modes of stdin, stdout and stderr: `none`, `line`, `full` or `full:BYTES`.
    pub standard: [Option<String>; 3],
    /// A pattern of paths and the mode of streams that are opened on them.
    pub files: Vec<(String, String)>,
    /// The program's own setvbuf does not undo these modes.
    pub force: bool,
    /// stdio and write(2) on one descriptor stay in order.
    pub order: bool,
    /// stdio's own bytes are out before exec.
    pub exec_flush: bool,
    /// Device and inode of a standard input that is the command's alone.
    pub private_stdin: Option<(u64, u64)>,
    /// The command's process, or its parent: whom `private_stdin` does not touch.
    pub first: Option<u32>,
    /// What is gathered, and in which arena (see [`crate::coalesce::Arena::path`]).
    pub coalesce: Option<(CoalesceScope, PathBuf)>,
}

impl PreloadConfig {
    /// The value of [`VARIABLE`] for a library that lies at `library`.
    pub fn value(&self, library: &Path) -> String {
        let mut text = format!("lib={}\n", library.display());
        let mut line =
            |key: &str, value: &str| writeln!(text, "{key}={value}").expect("a String takes everything");
        for (name, mode) in ["stdin", "stdout", "stderr"].iter().zip(&self.standard) {
            mode.iter().for_each(|mode| line(name, mode));
        }
        self.files.iter().for_each(|(glob, mode)| line("file", &format!("{glob}={mode}")));
        for (key, wish) in [("force", self.force), ("order", self.order), ("exec-flush", self.exec_flush)] {
            if wish {
                line(key, "1");
            }
        }
        if let Some((dev, ino)) = self.private_stdin {
            line("stdin-private", &format!("{dev}:{ino}"));
        }
        self.first.iter().for_each(|pid| line("first", &pid.to_string()));
        if let Some((which, arena)) = &self.coalesce {
            line("coalesce", if *which == CoalesceScope::All { "all" } else { "files" });
            line("arena", &arena.display().to_string());
        }
        text
    }

    /// The two variables that a command needs in its environment; `preload` is the LD_PRELOAD that it has already.
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
    fn wishes_become_lines() {
        let wishes = PreloadConfig {
            standard: [None, Some("line".into()), Some("full:100".into())],
            files: vec![("*.log".into(), "none".into())],
            force: true,
            private_stdin: Some((3, 4)),
            coalesce: Some((CoalesceScope::Files, "/proc/1/fd/5".into())),
            ..PreloadConfig::default()
        };
        let want = "lib=/l.so\nstdout=line\nstderr=full:100\nfile=*.log=none\nforce=1\nstdin-private=3:4\n\
                    coalesce=files\narena=/proc/1/fd/5\n";
        assert_eq!(wishes.value(Path::new("/l.so")), want);
    }

    #[test]
    fn an_own_preload_stays_behind_ours() {
        let [(_, list), _] = PreloadConfig::default().environment(Path::new("/l.so"), Some("/own.so".into()));
        assert_eq!(list, "/l.so:/own.so");
    }
}
