//! The error of a delayed write reaches the program by the right descriptor, or the user by weir. A session belongs to one process.

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{coalesced, directory, prepare, program};
use weir_control::coalesce::Arena;
use weir_control::plan::request::CoalesceScope;
use weir_control::preload::PreloadConfig;

/// Returns what the program prints, and whether weir gets an error that the program has not got.
fn run(dir: &Path, how: &str) -> (String, bool) {
    let (from, to) = std::io::pipe().unwrap();
    let mut command = Command::new(program("cc", "late_errors"));
    command.arg(how).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
    let run = coalesced(&mut command, Duration::from_secs(3600), |_| {});
    drop(command);
    assert_eq!(run.status, 0, "{how}");
    let unreported = run.drained.iter().filter_map(|drained| drained.unreported.as_ref());
    let unreported: Vec<_> = unreported.map(|error| error.raw_os_error()).collect();
    assert!(unreported.iter().all(|error| *error == Some(libc::EFBIG)), "{unreported:?}");
    (std::io::read_to_string(from).unwrap(), !unreported.is_empty())
}

#[test]
fn another_file_gets_no_error() {
    for (how, printed, unreported) in [
        ("close", format!("close {}, write 5, close 0", libc::EFBIG), false),
        ("dup2", "write 5, close 0".into(), true),
        ("dup3", "write 5, close 0".into(), true),
        ("close_range", "write 5, close 0".into(), true),
        ("raw", "write 5, close 0".into(), true),
    ] {
        let dir = directory();
        assert_eq!(run(dir.path(), how), (printed, unreported), "{how}");
        assert_eq!(std::fs::read(dir.path().join("first")).unwrap(), [b'x'; 30], "{how}");
        assert_eq!(std::fs::read(dir.path().join("other")).unwrap(), b"first", "{how}");
    }
}

#[test]
fn every_error_is_reported() {
    let dir = directory();
    assert_eq!(run(dir.path(), "many"), ("6 errors".into(), false));
    assert_eq!(run(dir.path(), "stream"), (format!("fclose {}", libc::EFBIG), false));
    assert_eq!(run(dir.path(), "exit"), (String::new(), true));
}

#[test]
fn a_child_of_vfork_prepares_no_session_of_its_parent() {
    let dir = directory();
    let out = dir.path().join("out");
    let mut command = Command::new(program("cc", "late_errors"));
    command.arg("vfork").stdin(Stdio::null()).stdout(File::create(&out).unwrap());
    assert_eq!(coalesced(&mut command, Duration::from_secs(3600), |_| {}).status, 0);
    assert_eq!(std::fs::read(&out).unwrap(), [b'x'; 80]);
}

/// The process finds its region locked, as if weir's timer wrote the bytes from before an exec.
#[test]
fn a_process_waits_for_the_lock_of_its_region() {
    const OWNERS: u64 = 16;
    const REGION: u64 = 4096;
    const LOCK: u64 = REGION + 16;
    let dir = directory();
    let (out, arena) = (dir.path().join("out"), Arena::create(Duration::from_secs(3600)).unwrap());
    let memory = File::options().read(true).write(true).open(arena.path()).unwrap();
    let mut command = Command::new(program("cc", "late_errors"));
    let coalesce = Some((CoalesceScope::All, arena.path()));
    prepare(&mut command, &PreloadConfig { coalesce, ..PreloadConfig::default() });
    command.arg("awaits").stdin(Stdio::piped()).stdout(File::create(&out).unwrap());
    let mut child = command.spawn().unwrap();
    let own = std::process::id().to_ne_bytes();
    memory.write_all_at(&child.id().to_ne_bytes(), OWNERS).unwrap();
    memory.write_all_at(&own, LOCK).unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"g").unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        let (mut head, mut lock) = ([0; 8], [0; 4]);
        memory.read_exact_at(&mut head, REGION).unwrap();
        memory.read_exact_at(&mut lock, LOCK).unwrap();
        assert!(head == [0; 8] && lock == own, "the process has changed a locked region");
        std::thread::sleep(Duration::from_millis(1));
    }
    memory.write_all_at(&[0; 4], LOCK).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read(&out).unwrap(), [b'x'; 40]);
}
