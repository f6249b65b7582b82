//! A kill at any moment loses and doubles nothing of what write(2) had promised, and gives read-ahead back.

mod support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use support::{coalesced, directory, program};

/// Bytes that only a drain brought out, in all tests.
static HELD: AtomicU64 = AtomicU64::new(0);
const NEVER: Duration = Duration::from_secs(3600);

/// The lines "0\n1\n2\n…", cut after `n` bytes.
fn lines(n: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0.. {
        if text.len() >= n {
            break;
        }
        text.extend_from_slice(format!("{line}\n").as_bytes());
    }
    text.truncate(n);
    text
}

fn kill(pid: i32) {
    // SAFETY: a child of this test that has not been waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Runs count under the arena until `after` has passed, kills it; returns what was promised.
fn killed(
    count: &std::path::Path,
    dir: &std::path::Path,
    sink: Stdio,
    after: Duration,
    delay: Duration,
) -> u64 {
    let note = dir.join("promised");
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&note).unwrap();
    file.set_len(4096).unwrap();
    let begun = Instant::now();
    let followed = coalesced(Command::new(count).arg(&note).stdout(sink), delay, |pid| {
        if begun.elapsed() > after {
            kill(pid)
        }
    });
    assert_eq!(followed.status, 128 + libc::SIGKILL);
    HELD.fetch_add(followed.drained.iter().map(|drained| drained.written).sum::<u64>(), Relaxed);
    let mut promised = [0; 8];
    (&file).read_exact(&mut promised).unwrap();
    u64::from_ne_bytes(promised)
}

/// The byte whose write was under way may be there; all promised ones must, and nothing else.
fn check(got: &[u8], promised: u64) {
    let extra = got.len() as i64 - promised as i64;
    assert!((0..=1).contains(&extra), "{promised} bytes were promised, {} are there", got.len());
    assert!(got == lines(got.len()), "not the bytes that were written");
}

#[test]
fn a_kill_at_any_moment_loses_nothing_in_a_file() {
    let (dir, count) = (directory(), program("cc", "count"));
    for round in 0..60 {
        let out = dir.path().join("out");
        let sink = File::create(&out).unwrap().into();
        let delay = if round % 2 == 0 { NEVER } else { Duration::from_micros(300) };
        let promised = killed(&count, dir.path(), sink, Duration::from_micros(2500 + 137 * round), delay);
        check(&std::fs::read(&out).unwrap(), promised);
    }
    assert!(HELD.load(Relaxed) > 0, "no kill met gathered bytes");
}

#[test]
fn a_kill_at_any_moment_loses_nothing_in_a_pipe() {
    let (dir, count) = (directory(), program("cc", "count"));
    for round in 0..40 {
        let (mut from, to) = std::io::pipe().unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all).unwrap()
        });
        let promised =
            killed(&count, dir.path(), to.into(), Duration::from_micros(2500 + 171 * round), NEVER);
        check(&reader.join().unwrap(), promised);
    }
}

#[test]
fn a_pipe_that_others_have_filled_leaves_the_rest_to_the_caller() {
    let spin = program("cc", "spin");
    let (from, mut to) = std::io::pipe().unwrap();
    let begun = Instant::now();
    let mut full = false;
    let followed = coalesced(Command::new(&spin).stdout(to.try_clone().unwrap()), NEVER, |pid| {
        if begun.elapsed() > Duration::from_millis(300) && !full {
            rustix::io::ioctl_fionbio(&to, true).unwrap();
            while to.write(&[b'-'; 4096]).is_ok() || to.write(b"-").is_ok() {}
            full = true;
            kill(pid)
        }
    });
    rustix::io::ioctl_fionbio(&from, true).unwrap();
    let mut there = Vec::new();
    let _ = (&from).read_to_end(&mut there);
    let direct = there.iter().filter(|byte| **byte == b'x').count();
    let left = followed.drained.into_iter().find_map(|drained| drained.left).expect("the pipe is full");
    assert_eq!((left.fd, left.why.raw_os_error()), (1, Some(libc::EAGAIN)));
    assert!(left.bytes.len() > 50 && left.bytes == vec![b'x'; 100 - direct], "{direct} came through");
}

#[test]
fn a_kill_gives_back_what_was_read_ahead() {
    let (dir, copy) = (directory(), program("cc", "copy"));
    let input = dir.path().join("in");
    std::fs::write(&input, lines(3_000_000)).unwrap();
    for round in 0..40 {
        let (mut file, out) = (File::open(&input).unwrap(), dir.path().join("out"));
        let begun = Instant::now();
        let mut command = Command::new(&copy);
        command.stdin(file.try_clone().unwrap()).stdout(File::create(&out).unwrap());
        let followed = coalesced(&mut command, NEVER, |pid| {
            if begun.elapsed() > Duration::from_micros(1500 + 211 * round) {
                kill(pid)
            }
        });
        let (got, at) = (std::fs::read(&out).unwrap(), file.stream_position().unwrap());
        assert!(got == lines(got.len()));
        assert!(at - got.len() as u64 <= 1, "{} bytes were copied, the offset is {at}", got.len());
        assert!(followed.status == 0 || followed.status == 137);
    }
}

#[test]
fn a_tick_brings_out_what_a_busy_program_holds() {
    let (dir, count) = (directory(), program("cc", "spin"));
    let out = dir.path().join("out");
    let (begun, mut seen) = (Instant::now(), None);
    let mut command = Command::new(&count);
    let followed = coalesced(command.stdout(File::create(&out).unwrap()), Duration::from_millis(20), |pid| {
        if seen.is_none() && std::fs::read(&out).unwrap() == vec![b'x'; 100] {
            seen = Some(begun.elapsed());
            kill(pid);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing came out");
    });
    assert!(followed.ticked > 0 && seen.is_some());
    assert_eq!(std::fs::read(&out).unwrap(), vec![b'x'; 100], "and nothing twice");
}
