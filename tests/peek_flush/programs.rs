//! Programs that leave bytes in their streams and wait for input.
#![allow(dead_code)] // not every test binary uses everything

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::programs::{self, PROGRAM, SOURCE, has_libcxx};
use crate::common::{disk_dir, has, skip, text};

/// A running program with a directory of its own; by default its standard output is the file `out` there. Killed on drop.
pub struct Program {
    child: Child,
    dir: tempfile::TempDir,
}

impl Program {
    /// Starts `command` and waits until it writes a byte to standard error.
    pub fn start(command: &mut Command) -> Program {
        let mut program = Program::start_silent(command);
        program.wait_for_byte();
        program
    }

    /// Does the same with `stdout` as its standard output.
    pub fn start_to(command: &mut Command, stdout: Stdio) -> Program {
        let mut program = Program::start_in(disk_dir(), command, stdout);
        program.wait_for_byte();
        program
    }

    /// Starts a command that writes nothing to standard error.
    pub fn start_silent(command: &mut Command) -> Program {
        let dir = disk_dir();
        let out = File::create(dir.path().join("out")).expect("a file");
        Program::start_in(dir, command, out.into())
    }

    fn start_in(dir: tempfile::TempDir, command: &mut Command, stdout: Stdio) -> Program {
        // Makes Python buffer its output, also where the environment says otherwise.
        let command = command.env_remove("PYTHONUNBUFFERED").env("PYTHONUTF8", "1").current_dir(dir.path());
        let command = command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
        // Closes the copy of `stdout` that the command has.
        command.stdout(Stdio::null());
        Program { child, dir }
    }

    pub fn wait_for_byte(&mut self) {
        let mut byte = [0];
        let got = self.child.stderr.as_mut().expect("stderr").read(&mut byte).expect("a byte");
        assert!(got == 1 && byte[0] == b'.', "the program did not start as expected: {byte:?}");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the contents of the file `out`.
    pub fn out(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).expect("its output")
    }

    pub fn close_stdin(&mut self) {
        self.child.stdin.take();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).expect("a number");
        rustix::process::kill_process(pid, signal).expect("the process exists");
    }

    /// Returns its status and the rest of its standard error.
    pub fn end_with_errors(&mut self) -> (Option<i32>, String) {
        let mut errors = String::new();
        self.child.stderr.take().expect("stderr").read_to_string(&mut errors).expect("text");
        (self.end(), errors)
    }

    /// Closes standard input, at which the program ends, and returns its status.
    pub fn end(&mut self) -> Option<i32> {
        self.close_stdin();
        self.child.wait().expect("the program ends").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the compilers and flags with which the C programs are built.
pub fn builds() -> [(&'static str, &'static [&'static str]); 3] {
    [("gcc", &[]), ("gcc", &["-static", "-s"]), ("musl-gcc", &["-static", "-s"])]
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peek_flush").join(name)
}

/// The kinds of C++ programs, with both libraries.
pub fn cpp_builds(test: &str) -> Vec<(&'static str, &'static [&'static str])> {
    let mut builds: Vec<(&str, &[&str])> = vec![("g++", &["-O2"]), ("g++", &["-O2", "-static", "-s"])];
    match has_libcxx() {
        true => builds.extend([
            ("clang++", &["-stdlib=libc++", "-O2"][..]),
            ("clang++", &["-stdlib=libc++", "-O2", "-static", "-s"]),
        ]),
        false => skip(test, "there is no clang++ with libc++"),
    }
    builds
}

/// Builds a program of this folder. Returns None, with `test` skipped, if the compiler is not installed.
pub fn built(test: &str, compiler: &str, flags: &[&str], name: &str) -> Option<PathBuf> {
    if !has(compiler) {
        skip(test, &format!("{compiler} is not installed"));
        return None;
    }
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{compiler}{}-{name}", flags.concat()));
    let program = file.with_extension("");
    let words = match compiler {
        "rustc" => [&["-O"], flags, &["-o", PROGRAM, SOURCE]].concat(),
        // The flags of go come before its file.
        "go" => [&["build"], flags, &["-o", PROGRAM, SOURCE]].concat(),
        _ => [&["-O1", "-o", PROGRAM, SOURCE], flags].concat(),
    };
    let output = programs::compile(compiler, &words, &source(name), &program).expect("a compiler");
    assert!(output.status.success(), "{compiler} {flags:?} {name}: {}", text(&output.stderr));
    Some(program)
}

/// Returns the command that runs a script of this folder.
pub fn interpreted(interpreter: &str, name: &str) -> Command {
    // Prefers the distribution's interpreter: others may lack symbols, or be a script that starts the real one.
    let system = Path::new("/usr/bin").join(interpreter);
    let mut command = Command::new(if system.exists() { system } else { interpreter.into() });
    command.arg(fs::canonicalize(source(name)).expect("the script"));
    command
}
