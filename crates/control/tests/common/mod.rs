//! Helpers of the supervisor's tests: programs, and runs under the example `supervise`.
#![allow(dead_code)] // not every test binary uses everything

#[path = "../../../../tests/common/programs.rs"]
pub mod programs;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use programs::{PROGRAM, SOURCE};

/// A way to build a C program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    pub name: &'static str,
    pub compiler: &'static str,
    pub flags: &'static [&'static str],
}

/// The kinds of C programs that the supervisor must work for.
pub const BUILDS: [Build; 5] = [
    Build { name: "glibc", compiler: "gcc", flags: &[] },
    Build { name: "static", compiler: "gcc", flags: &["-static"] },
    Build { name: "stripped", compiler: "gcc", flags: &["-static", "-s"] },
    Build { name: "musl", compiler: "musl-gcc", flags: &[] },
    Build { name: "musl-stripped", compiler: "musl-gcc", flags: &["-static", "-s"] },
];

/// Makes a directory for one test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Compiles tests/programs/`source`, in C, C++, Rust, Go or OCaml. Without the compiler it notes the skipped test and returns None.
pub fn compile(test: &str, build: Build, source: &str, folder: &Path) -> Option<PathBuf> {
    let (stem, language) = source.split_once('.').expect("a file name");
    let flags: &[&str] = match language {
        "c" => &["-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"],
        "cc" => &["-std=gnu++17", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"],
        _ => &["--edition=2024", "-g", "-o"],
    };
    let program = folder.join(format!("{stem}-{}", build.name));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let words = match language {
        "go" => [&["build"], build.flags, &["-o", PROGRAM, SOURCE]].concat(),
        "ml" => [build.flags, &["-o", PROGRAM, SOURCE]].concat(),
        _ => [flags, &[PROGRAM, SOURCE], build.flags].concat(),
    };
    match programs::compile(build.compiler, &words, &file, &program) {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{build:?} {source}: {errors}");
        }
        Err(why) => {
            skip(test, &format!("{}: {why}", build.compiler));
            return None;
        }
    }
    Some(program)
}

/// The kinds of C++ programs that the supervisor must work for.
pub const CPP_BUILDS: [Build; 3] = [
    Build { name: "libstdc++", compiler: "g++", flags: &[] },
    Build { name: "libstdc++-static", compiler: "g++", flags: &["-static"] },
    Build { name: "libstdc++-stripped", compiler: "g++", flags: &["-static", "-s"] },
];

/// The kinds of C++ programs with libc++.
pub const LIBCXX_BUILDS: [Build; 2] = [
    Build { name: "libc++", compiler: "clang++", flags: &["-stdlib=libc++"] },
    Build { name: "libc++-stripped", compiler: "clang++", flags: &["-stdlib=libc++", "-static", "-s"] },
];

/// The kinds of Rust programs that the supervisor must work for.
pub const RUST_BUILDS: [Build; 2] = [
    Build { name: "rust", compiler: "rustc", flags: &["-O"] },
    Build {
        name: "rust-abort",
        compiler: "rustc",
        flags: &["-O", "-Cpanic=abort", "-Clto=fat", "-Ccodegen-units=1"],
    },
];

/// The kinds of Go programs that the supervisor must work for.
pub const GO_BUILDS: [Build; 2] = [
    Build { name: "go", compiler: "go", flags: &[] },
    Build { name: "go-stripped", compiler: "go", flags: &["-ldflags=-s -w", "-buildmode=pie"] },
];

/// The kinds of OCaml programs that the supervisor must work for.
pub const OCAML_BUILDS: [Build; 2] = [
    Build {
        name: "ocaml",
        compiler: "ocamlopt",
        flags: &["-I", "+unix", "-I", "+threads", "unix.cmxa", "threads.cmxa"],
    },
    Build {
        name: "ocaml-bytecode",
        compiler: "ocamlc",
        flags: &["-I", "+unix", "-I", "+threads", "unix.cma", "threads.cma"],
    },
];

/// Notes a test that this machine cannot run in the file $WEIR_SKIPS.
pub fn skip(test: &str, why: &str) {
    let Some(path) = std::env::var_os("WEIR_SKIPS") else { return };
    let mut file =
        std::fs::OpenOptions::new().create(true).append(true).open(path).expect("the list of skips");
    writeln!(file, "{test}: {why}").expect("a line");
}

/// Returns the path of the example `supervise`, which cargo builds before the tests.
pub fn supervisor() -> PathBuf {
    let test = std::env::current_exe().expect("this program's path");
    let target = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    target.join("examples/supervise")
}

/// Returns a command that runs under the supervisor with these options.
pub fn supervised<S: AsRef<OsStr>>(options: &[&str], command: &[S]) -> Command {
    let mut run = Command::new(supervisor());
    run.args(options).arg("--").args(command).env_remove("PYTHONUNBUFFERED");
    run
}

/// Returns the same command without the supervisor.
pub fn bare<S: AsRef<OsStr>>(command: &[S]) -> Command {
    let mut run = Command::new(&command[0]);
    run.args(&command[1..]).env_remove("PYTHONUNBUFFERED");
    run
}

/// Runs a command and returns its output. Kills it after a minute.
pub fn output(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (sender, receiver) = std::sync::mpsc::channel();
    let pid = child.id();
    std::thread::spawn(move || {
        let late = receiver.recv_timeout(Duration::from_secs(60)).is_err();
        if late {
            // SAFETY: a signal to a child that has not been waited for.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        late
    });
    let mut out = child.stdout.take().expect("a pipe");
    let mut err = child.stderr.take().expect("a pipe");
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut err, &mut text).map(|_| text)
    });
    let mut stdout = Vec::new();
    std::io::Read::read_to_end(&mut out, &mut stdout).expect("its output");
    let status = child.wait().expect("its end");
    let _done = sender.send(());
    Output { status, stdout, stderr: errors.join().expect("a thread").expect("its errors") }
}

/// Waits until a condition is true; fails after 20 s.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// Fails with the first difference instead of all bytes.
pub fn assert_same(what: &str, wanted: &[u8], got: &[u8]) {
    if wanted == got {
        return;
    }
    let at = wanted.iter().zip(got).take_while(|(one, other)| one == other).count();
    let near = |bytes: &[u8]| {
        let from = at.saturating_sub(40);
        String::from_utf8_lossy(&bytes[from.min(bytes.len())..(at + 40).min(bytes.len())]).into_owned()
    };
    let (wanted_near, got_near) = (near(wanted), near(got));
    panic!(
        "{what}: {} bytes wanted, {} got, different from {at} on:\n{wanted_near:?}\n{got_near:?}",
        wanted.len(),
        got.len()
    );
}

/// Returns the path of the interpreter, because python3 may be a wrapper that chooses a version.
pub fn python() -> String {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print(sys.executable)"]).env_remove("PYTHONUNBUFFERED");
    let printed = command.output().expect("python3 runs").stdout;
    String::from_utf8(printed).expect("a path").trim().to_string()
}

/// Returns the process that weir started.
pub fn command_of(weir: &std::process::Child) -> Option<u32> {
    children(weir.id()).first().copied()
}

/// Returns the children of all threads of a process; none if it is gone.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let numbers =
        |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>();
    lists.flat_map(numbers).collect()
}
