//! Resolves a command: its file along PATH, the interpreters of its `#!` lines, and its ELF executable.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_sys::command::find;
use weir_sys::file_system::open_regular;

use crate::plan::executable::{self, ExecutableFacts};

/// The longest `#!` line that is read. The kernel's own limit is 256 bytes.
const MAX_LINE: u64 = 512;
/// The most interpreters that are followed. The kernel follows four, and each may be behind env(1).
const DEEP: usize = 8;

/// A command as execve(2) will find it.
#[derive(Debug, Clone, Default)]
pub struct ResolvedProgram {
    /// The command's file; None if PATH has no such file.
    pub path: Option<PathBuf>,
    /// The command as typed, then the file names of its interpreters, and last the ELF file's name. Symbolic links
    /// are resolved.
    pub names: Vec<String>,
    /// The first word of the command, as typed.
    pub word: String,
    /// How many of the names are those of scripts; the others are those of the ELF file.
    pub script_names: usize,
    /// The words after the command's name.
    pub arguments: Vec<OsString>,
    #[allow(missing_docs)]
    pub script: bool,
    /// For each `#!` line the number of names up to its script, and the words after the interpreter.
    pub line_options: Vec<(usize, Vec<OsString>)>,
    /// The ELF file that runs in the end; None if it cannot be read.
    pub executable: Option<ExecutableFacts>,
    /// Path of that file.
    pub executable_path: Option<PathBuf>,
    /// Set-user-ID, set-group-ID or with file capabilities: the loader ignores LD_PRELOAD, and a tracer without
    /// privilege would take the program's rights.
    pub privileged: bool,
}

impl ResolvedProgram {
    /// Resolves a command as execvp(3) does.
    pub fn of(command: &[OsString]) -> ResolvedProgram {
        let Some(name) = command.first() else { return ResolvedProgram::default() };
        let mut program = ResolvedProgram { arguments: command[1..].to_vec(), ..ResolvedProgram::default() };
        program.word = weir_model::text_of(name);
        program.names.push(base(Path::new(name)));
        program.path = find(name);
        let mut next = program.path.clone();
        for _ in 0..DEEP {
            let Some(path) = next.take() else { break };
            program.privileged |= privileged(&path);
            program.add_name(&path);
            match interpreter(&path) {
                Some((interpreter, options)) => {
                    program.script = true;
                    program.script_names = program.names.len();
                    program.names.push(base(Path::new(&interpreter)));
                    program.line_options.push((program.script_names, options));
                    next = find(&interpreter);
                }
                None => {
                    program.executable = executable::read(&path);
                    program.executable_path = Some(path);
                }
            }
        }
        program
    }

    /// Adds the name that a path has after its symbolic links are resolved.
    fn add_name(&mut self, path: &Path) {
        let real = base(&fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()));
        if self.names.last() != Some(&real) {
            self.names.push(real);
        }
    }

    /// Returns whether LD_PRELOAD works for the program.
    pub fn takes_library(&self) -> bool {
        let dynamic = |executable: &ExecutableFacts| executable.native && !executable.is_static;
        !self.privileged && self.executable.as_ref().is_none_or(dynamic)
    }

    /// Returns whether the executable is for another architecture or word size.
    pub fn is_foreign(&self) -> bool {
        self.executable.as_ref().is_some_and(|executable| !executable.native)
    }
}

fn base(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns the interpreter of a script, and the words after it. For `#!/usr/bin/env NAME` that is NAME.
fn interpreter(path: &Path) -> Option<(OsString, Vec<OsString>)> {
    let mut line = Vec::new();
    open_regular(path).ok()?.take(MAX_LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next()?;
    let by_env = first.ends_with(b"/env");
    let named = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    let word = if by_env { words.find(named).unwrap_or(first) } else { first };
    let word_of = |word| OsStr::from_bytes(word).to_os_string();
    Some((word_of(word), words.map(word_of).collect()))
}

/// Returns whether execve(2) gives the program other rights than weir has.
fn privileged(path: &Path) -> bool {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let Ok(metadata) = fs::metadata(path) else { return false };
    let owner = metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user.as_raw();
    let both = libc::S_ISGID | libc::S_IXGRP;
    let of_group = metadata.mode() & both == both && metadata.gid() != group.as_raw();
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
    fn interpreters_are_resolved_to_an_elf_file() {
        let dir = tempfile::tempdir().unwrap();
        let inner = script(dir.path(), "perl", "#!/usr/bin/env -S FOO=1 sh -e");
        let outer = script(dir.path(), "tool", &format!("#! {} -w", inner.to_string_lossy()));
        let program = ResolvedProgram::of(&[outer, "x".into()]);
        assert!(
            program.script
                && program
                    .executable
                    .as_ref()
                    .is_some_and(|executable| executable.native && !executable.is_static)
        );
        assert_eq!(
            (&program.names[..3], program.script_names),
            (&["tool", "perl", "sh"].map(String::from)[..], 2)
        );
        assert_eq!(program.arguments, ["x"]);
        assert_eq!(program.line_options, [(1, vec!["-w".into()]), (2, vec!["-e".into()])]);
    }

    #[test]
    fn a_missing_command_has_no_path() {
        let program = ResolvedProgram::of(&["weir-no-such-command".into()]);
        assert!(program.path.is_none() && program.executable.is_none() && !program.privileged);
        assert!(ResolvedProgram::of(&[]).names.is_empty());
    }

    #[test]
    fn resolution_of_a_recursive_script_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        let word = script(dir.path(), "loop", &format!("#!{}", path.display()));
        assert!(ResolvedProgram::of(&[word]).executable.is_none());
    }
}
