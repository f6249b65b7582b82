//! What a command is: found along PATH, its `#!` lines followed, its ELF file looked at.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_sys::command::find;

use crate::plan::executable::{self, ExecutableFacts};

/// A `#!` line is read so far; the kernel's own limit is 256.
const LINE_MOST: u64 = 512;
/// Scripts that are run by scripts: the kernel follows four, and env(1) may stand between.
const DEEP: usize = 8;

/// A command, seen before it is run.
#[derive(Debug, Clone, Default)]
pub struct ResolvedProgram {
    /// The file that execve(2) will be given; None: there is none of this name.
    pub path: Option<PathBuf>,
    /// Names by which the program and those that will interpret it go: as typed first, the last one that of the
    /// ELF file, behind symbolic links.
    pub names: Vec<String>,
    /// The words behind the command's name.
    pub arguments: Vec<OsString>,
    /// It is a script.
    pub script: bool,
    /// What is known of the ELF file at the end; None: it cannot be read.
    pub elf: Option<ExecutableFacts>,
    /// Set-user-ID, set-group-ID or with capabilities that weir's user has not: the loader ignores LD_PRELOAD,
    /// and a tracer would take the program's rights away.
    pub privileged: bool,
}

impl ResolvedProgram {
    /// Looks at a command as execvp(3) will find it.
    pub fn of(command: &[OsString]) -> ResolvedProgram {
        let Some(name) = command.first() else { return ResolvedProgram::default() };
        let mut program = ResolvedProgram { arguments: command[1..].to_vec(), ..ResolvedProgram::default() };
        program.names.push(base(Path::new(name)));
        program.path = find(name);
        let mut next = program.path.clone();
        for _ in 0..DEEP {
            let Some(path) = next.take() else { break };
            program.privileged |= privileged(&path);
            program.name(&path);
            match interpreter(&path) {
                Some(interpreter) => {
                    program.script = true;
                    program.names.push(base(Path::new(&interpreter)));
                    next = find(&interpreter);
                }
                None => program.elf = executable::read(&path),
            }
        }
        program
    }

    /// Adds the name that is behind symbolic links, when it is another.
    fn name(&mut self, path: &Path) {
        let real = base(&fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()));
        if self.names.last() != Some(&real) {
            self.names.push(real);
        }
    }

    /// Whether a library can be loaded into it from outside.
    pub fn takes_library(&self) -> bool {
        !self.privileged && self.elf.as_ref().is_none_or(|elf| elf.native && !elf.is_static)
    }
}

fn base(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What the `#!` line names: for `env` the command behind it.
fn interpreter(path: &Path) -> Option<OsString> {
    let mut line = Vec::new();
    File::open(path).ok()?.take(LINE_MOST).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next()?;
    let by_env = first.ends_with(b"/env");
    let named = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    let word = if by_env { words.find(named).unwrap_or(first) } else { first };
    Some(OsStr::from_bytes(word).to_os_string())
}

/// Whether execve(2) changes the rights of weir's user.
fn privileged(path: &Path) -> bool {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let Ok(about) = fs::metadata(path) else { return false };
    let owner = about.mode() & libc::S_ISUID != 0 && about.uid() != user.as_raw();
    let both = libc::S_ISGID | libc::S_IXGRP;
    let of_group = about.mode() & both == both && about.gid() != group.as_raw();
    let mut value = [0u8; 64];
    let mut capabilities = || rustix::fs::getxattr(path, c"security.capability", &mut value).is_ok();
    owner || of_group || !user.is_root() && capabilities()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, name: &str, line: &str) -> OsString {
        let path = dir.join(name);
        fs::write(&path, format!("{line}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    #[test]
    fn interpreters_are_followed_down_to_the_elf_file() {
        let dir = tempfile::tempdir().unwrap();
        let inner = script(dir.path(), "perl", "#!/usr/bin/env -S FOO=1 sh -e");
        let outer = script(dir.path(), "tool", &format!("#! {} -w", inner.to_string_lossy()));
        let program = ResolvedProgram::of(&[outer, "x".into()]);
        assert!(program.script && program.elf.is_some_and(|elf| elf.native && !elf.is_static));
        assert_eq!(program.names[..3], ["tool", "perl", "sh"]);
        assert_eq!(program.arguments, ["x"]);
    }

    #[test]
    fn what_is_not_there_has_no_path() {
        let program = ResolvedProgram::of(&["weir-no-such-command".into()]);
        assert!(program.path.is_none() && program.elf.is_none() && !program.privileged);
        assert!(ResolvedProgram::of(&[]).names.is_empty());
    }

    #[test]
    fn a_script_that_names_itself_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        let word = script(dir.path(), "loop", &format!("#!{}", path.display()));
        assert!(ResolvedProgram::of(&[word]).elf.is_none());
    }
}
