//! Unusual programs bare and with their tiny calls gathered: signals, jumps, threads, forks, filters, errors.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{coalesced, directory, program};

/// What it printed, what it left in its files, and how it ended.
type Outcome = (String, Vec<Vec<u8>>, i32);

fn run(odd: &Path, name: &str, gathered: bool, piped: bool) -> Outcome {
    let dir = directory();
    let out = dir.path().join("out");
    let sink =
        || if piped { None } else { Some(File::options().append(true).create(true).open(&out).unwrap()) };
    let mut command = Command::new(odd);
    command.arg(name).current_dir(dir.path()).stdin(Stdio::null());
    let (mut from, to) = std::io::pipe().unwrap();
    command.stdout(sink().map_or(to.try_clone().unwrap().into(), Stdio::from));
    command.stderr(sink().map_or(to.into(), Stdio::from));
    let reader = std::thread::spawn(move || std::io::read_to_string(&mut from).unwrap());
    let status = if gathered {
        coalesced(&mut command, Duration::from_millis(5), |_| {}).status
    } else {
        let status = command.status().unwrap();
        std::os::unix::process::ExitStatusExt::signal(&status)
            .map_or(status.code().unwrap_or(-1), |n| 128 + n)
    };
    drop(command);
    let said = reader.join().unwrap();
    let said = if piped { said } else { std::fs::read_to_string(&out).unwrap() };
    let files = ["limited", "m1"].map(|name| std::fs::read(dir.path().join(name)).unwrap_or_default()).into();
    (said, files, status)
}

fn compare(compiler: &str) {
    let odd = program(compiler, "odd");
    let names = String::from_utf8(Command::new(&odd).output().unwrap().stdout).unwrap();
    assert!(names.lines().count() >= 20);
    for name in names.lines() {
        for piped in [false, true] {
            let (bare, ours) = (run(&odd, name, false, piped), run(&odd, name, true, piped));
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
