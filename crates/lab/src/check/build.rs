//! Builds an executable from a learner's file.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::ExerciseJudge;
use super::check_directory::private;
use crate::Error;

/// A built solution. Its temporary files are removed when it is dropped.
pub(super) struct Solution<'a> {
    /// The path of the executable.
    pub program: PathBuf,
    /// The compiler's command line; None if nothing was compiled.
    pub command: Option<String>,
    /// The compiler's error output; empty without warnings.
    pub warnings: String,
    /// The weir executable that traces the solution.
    pub weir: &'a Path,
    /// Tests stop soon after this flag is set.
    pub stop: &'a AtomicBool,
    _made: TempDir,
}

impl<'a> Solution<'a> {
    /// Compiles a C source; any other file is used as it is. The inner error is the compiler's output.
    pub fn build(path: &Path, judge: &'a ExerciseJudge) -> Result<Result<Solution<'a>, String>, Error> {
        let whole = fs::canonicalize(path).map_err(|source| failed(path, "open", source))?;
        let made = private()?;
        let started = |program, command, warnings, made| Solution {
            program,
            command,
            warnings,
            weir: &judge.weir,
            stop: judge.stop,
            _made: made,
        };
        if whole.extension().is_none_or(|extension| extension != "c") {
            return is_program(&whole).map(|()| Ok(started(whole, None, String::new(), made)));
        }
        let name = whole.file_stem().unwrap_or_default();
        let program = made.path().join(name);
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let mut command = Command::new(&compiler);
        let ran = command.args(["-O1", "-Wall", "-o"]).args([&program, &whole]).arg("-lm").output();
        let output = ran.map_err(|source| no_compiler(&compiler, source))?;
        let messages = String::from_utf8_lossy(&output.stderr).trim().to_string();
        if !output.status.success() {
            return Ok(Err(messages));
        }
        let typed = format!("{compiler} -O1 -Wall -o {} {} -lm", name.display(), path.display());
        Ok(Ok(started(program, Some(typed), messages, made)))
    }
}

fn is_program(path: &Path) -> Result<(), Error> {
    let meta = fs::metadata(path).map_err(|source| failed(path, "stat", source))?;
    if meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    let why = "is neither a C source (.c) nor a program or script that can be executed (chmod +x)";
    Err(failed(path, "execve", io::Error::new(io::ErrorKind::PermissionDenied, why)))
}

fn no_compiler(compiler: &str, source: io::Error) -> Error {
    let message = match source.kind() {
        io::ErrorKind::NotFound => "no C compiler found: install gcc, or set CC".into(),
        _ => source.to_string(),
    };
    Error::Compiler { command: compiler.into(), message }
}

fn failed(path: &Path, call: &'static str, source: io::Error) -> Error {
    Error::File { path: path.into(), call, source }
}
