//! Programs that leave bytes in their streams and wait.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{disk_dir, has, skip};

/// A program with its own folder, where its standard output is the file `out`; killed at the end.
pub struct Program {
    child: Child,
    dir: tempfile::TempDir,
}

impl Program {
    /// Starts it and waits until it says a byte on its stderr.
    pub fn start(command: &mut Command) -> Program {
        let mut program = Program::start_silent(command);
        program.wait_for_byte();
        program
    }

    /// The same with another standard output.
    pub fn start_to(command: &mut Command, stdout: Stdio) -> Program {
        let mut program = Program::start_in(disk_dir(), command, stdout);
        program.wait_for_byte();
        program
    }

    /// Starts one that says nothing.
    pub fn start_silent(command: &mut Command) -> Program {
        let dir = disk_dir();
        let out = File::create(dir.path().join("out")).expect("a file");
        Program::start_in(dir, command, out.into())
    }

    fn start_in(dir: tempfile::TempDir, command: &mut Command, stdout: Stdio) -> Program {
        // Python must buffer, whatever is set here.
        let command = command.env_remove("PYTHONUNBUFFERED").env("PYTHONUTF8", "1").current_dir(dir.path());
        let command = command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
        // The command holds the descriptors that it was given.
        command.stdout(Stdio::null());
        Program { child, dir }
    }

    pub fn wait_for_byte(&mut self) {
        let mut byte = [0];
        let got = self.child.stderr.as_mut().expect("stderr").read(&mut byte).expect("a byte");
        assert!(got == 1 && byte[0] == b'.', "the program did not begin well: {byte:?}");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What it has written.
    pub fn out(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).expect("its output")
    }

    pub fn close_stdin(&mut self) {
        self.child.stdin.take();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).expect("a number");
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    /// Lets it go to its end; its status.
    pub fn end(&mut self) -> Option<i32> {
        self.close_stdin();
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The ways in which C programs are built.
pub fn builds() -> [(&'static str, &'static [&'static str]); 3] {
    [("gcc", &[]), ("gcc", &["-static", "-s"]), ("musl-gcc", &["-static", "-s"])]
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peek_flush").join(name)
}

/// A built program of this folder; None where there is no such compiler.
pub fn built(test: &str, compiler: &str, flags: &[&str], name: &str) -> Option<PathBuf> {
    if !has(compiler) {
        skip(test, &format!("there is no {compiler}"));
        return None;
    }
    let place =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{compiler}{}-{name}", flags.concat()));
    let program = place.with_extension("");
    let mut command = Command::new(compiler);
    let option = if compiler == "rustc" { "-O" } else { "-O1" };
    command.arg(option).args(["-o".as_ref(), program.as_os_str()]).arg(source(name)).args(flags);
    assert!(command.status().expect("a compiler").success(), "{compiler} {flags:?} {name}");
    Some(program)
}

/// A script of this folder.
pub fn interpreted(interpreter: &str, name: &str) -> Command {
    // Debian's: others may have no symbols, or be a script that starts another.
    let system = Path::new("/usr/bin").join(interpreter);
    let mut command = Command::new(if system.exists() { system } else { interpreter.into() });
    command.arg(fs::canonicalize(source(name)).expect("the script"));
    command
}
