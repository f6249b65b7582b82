//! Tiny calls that glibc's stdio makes are gathered too: the bytes are the same, and few calls reach the kernel.

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{coalesced, directory, program};

const CALLS: u64 = 5000;
/// So long that no byte is written because of its age.
const LONG: Duration = Duration::from_secs(600);

/// Runs `stdio HOW` and returns its output file and exit status.
fn run_to_file(how: &str, gathered: bool) -> (Vec<u8>, i32) {
    let room = directory();
    let path = room.path().join("out");
    // The file has bytes already: a stream must not assume that its file is empty.
    std::fs::write(&path, "before\n").unwrap();
    let out = File::options().write(true).open(&path).unwrap();
    rustix::fs::seek(&out, rustix::fs::SeekFrom::End(0)).unwrap();
    let mut command = Command::new(program("cc", "stdio"));
    command.args([how, &CALLS.to_string()]).env("LC_ALL", "C.UTF-8").stdout(out);
    let status = if gathered {
        coalesced(&mut command, LONG, |_| {}).status
    } else {
        let status = command.status().unwrap();
        std::os::unix::process::ExitStatusExt::signal(&status)
            .map_or(status.code().unwrap_or(-1), |number| 128 + number)
    };
    (std::fs::read(&path).unwrap(), status)
}

#[test]
fn every_kind_of_stdio_call_writes_the_same_bytes() {
    for how in [
        "unbuffered",
        "lines",
        "flushed",
        "wide",
        "vector",
        "killed",
        "forks",
        "vforks",
        "execs",
        "mixed",
        "seeks",
        "tells",
    ] {
        let (bare, ours) = (run_to_file(how, false), run_to_file(how, true));
        assert_eq!(bare.1, ours.1, "{how}: status");
        assert!(bare.0.len() > 5000, "{how}: {} bytes", bare.0.len());
        assert!(bare.0 == ours.0, "{how}: {} bytes bare, {} gathered", bare.0.len(), ours.0.len());
    }
}

/// Returns the number of write calls of a process by the kernel's count.
fn kernel_write_calls(command: &mut Command) -> u64 {
    let (mut most, write_calls) = (0, |pid: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("syscw: "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    });
    let run = coalesced(command, LONG, |pid| most = write_calls(pid).max(most));
    assert_eq!(run.status, 0, "{command:?}");
    most
}

#[test]
#[cfg(target_arch = "x86_64")]
fn few_calls_reach_the_kernel() {
    for how in ["unbuffered", "lines", "flushed", "wide", "vector"] {
        let room = directory();
        let mut command = Command::new(program("cc", "stdio"));
        command.args([how, "3000000"]).env("LC_ALL", "C.UTF-8");
        command.stdout(File::create(room.path().join("out")).unwrap());
        let calls = kernel_write_calls(&mut command);
        assert!((1..3000).contains(&calls), "{how}: {calls} calls");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn reads_of_a_device_do_not_end_the_gathering() {
    let room = directory();
    let out = room.path().join("out");
    let mut command = Command::new("dd");
    command
        .args(["if=/dev/zero", "bs=1", "count=1000000", "status=none"])
        .stdout(File::create(&out).unwrap());
    let calls = kernel_write_calls(&mut command);
    assert!((1..1000).contains(&calls), "{calls} calls");
    let file = File::open(&out).unwrap();
    let mut bytes = vec![1; 1_000_001];
    assert_eq!(
        (file.read_at(&mut bytes, 0).unwrap(), bytes[..1_000_000].iter().all(|&byte| byte == 0)),
        (1_000_000, true)
    );
}

#[test]
fn the_program_gets_the_error_of_a_full_device() {
    let mut command = Command::new(program("cc", "stdio"));
    command
        .args(["flushed", "100"])
        .stdout(File::options().write(true).open(Path::new("/dev/full")).unwrap());
    assert_eq!(coalesced(&mut command, LONG, |_| {}).status, 1);
}
