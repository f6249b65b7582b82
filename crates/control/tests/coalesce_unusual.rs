//! With gathered calls unusual programs behave as bare: signals, jumps, threads, forks, filters, errors.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{coalesced, directory, program};

/// The output, the contents of files, and the exit status.
type Effects = (String, Vec<Vec<u8>>, i32);

fn run(unusual: &Path, name: &str, gathered: bool, piped: bool) -> Effects {
    let dir = directory();
    let out = dir.path().join("out");
    let file =
        || if piped { None } else { Some(File::options().append(true).create(true).open(&out).unwrap()) };
    let mut command = Command::new(unusual);
    command.arg(name).current_dir(dir.path()).stdin(Stdio::null());
    let (mut from, to) = std::io::pipe().unwrap();
    command.stdout(file().map_or(to.try_clone().unwrap().into(), Stdio::from));
    command.stderr(file().map_or(to.into(), Stdio::from));
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut from).unwrap());
    let status = if gathered {
        coalesced(&mut command, Duration::from_millis(5), |_| {}).status
    } else {
        let status = command.status().unwrap();
        std::os::unix::process::ExitStatusExt::signal(&status)
            .map_or(status.code().unwrap_or(-1), |n| 128 + n)
    };
    drop(command);
    let piped_output = reader.join().unwrap();
    let output = if piped { piped_output } else { std::fs::read_to_string(&out).unwrap() };
    let files = ["limited", "m1"].map(|name| std::fs::read(dir.path().join(name)).unwrap_or_default()).into();
    (output, files, status)
}

fn compare(compiler: &str) {
    let unusual = program(compiler, "unusual");
    let names = String::from_utf8(Command::new(&unusual).output().unwrap().stdout).unwrap();
    assert!(names.lines().count() >= 20);
    for name in names.lines() {
        for piped in [false, true] {
            let (bare, ours) = (run(&unusual, name, false, piped), run(&unusual, name, true, piped));
            assert!(bare == ours, "{name}, piped {piped}: {} {:?} | {} {:?}", bare.2, bare.0, ours.2, ours.0);
        }
    }
}

#[test]
fn glibc() {
    compare("cc");
}

#[test]
fn musl() {
    compare("musl-gcc");
}
