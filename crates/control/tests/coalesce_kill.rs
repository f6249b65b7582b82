//! A kill at any moment loses and doubles no byte that write(2) has accepted, and returns read-ahead bytes.

mod support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use support::{coalesced, directory, prepare, program};
use weir_control::coalesce::Arena;
use weir_control::plan::request::CoalesceScope;
use weir_control::preload::PreloadConfig;

/// Bytes that weir wrote after kills, in all tests.
static DRAINED: AtomicU64 = AtomicU64::new(0);
const NEVER: Duration = Duration::from_secs(3600);

/// Returns the lines "0\n1\n2\n…", cut after `n` bytes.
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
    // SAFETY: a signal to a child that has not been reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Runs count.c with gathered calls, kills it after `after`, and returns the number of bytes that write(2) accepted.
fn run_and_kill(
    count: &std::path::Path,
    dir: &std::path::Path,
    sink: Stdio,
    after: Duration,
    delay: Duration,
) -> u64 {
    let note = dir.join("accepted");
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&note).unwrap();
    file.set_len(4096).unwrap();
    let begun = Instant::now();
    let run = coalesced(Command::new(count).arg(&note).stdout(sink), delay, |pid| {
        if begun.elapsed() > after {
            kill(pid)
        }
    });
    assert_eq!(run.status, 128 + libc::SIGKILL);
    DRAINED.fetch_add(run.drained.iter().map(|drained| drained.written).sum::<u64>(), Relaxed);
    let mut accepted = [0; 8];
    (&file).read_exact(&mut accepted).unwrap();
    u64::from_ne_bytes(accepted)
}

/// Checks that the output has all accepted bytes, and at most one more, whose write the kill interrupted.
fn check(got: &[u8], accepted: u64) {
    let extra = got.len() as i64 - accepted as i64;
    assert!((0..=1).contains(&extra), "{accepted} bytes were accepted, the output has {}", got.len());
    assert!(got == lines(got.len()), "not the bytes that were written");
}

#[test]
fn a_kill_at_any_moment_loses_nothing_in_a_file() {
    let (dir, count) = (directory(), program("cc", "count"));
    for round in 0..60 {
        let out = dir.path().join("out");
        let sink = File::create(&out).unwrap().into();
        let delay = if round % 2 == 0 { NEVER } else { Duration::from_micros(300) };
        let accepted =
            run_and_kill(&count, dir.path(), sink, Duration::from_micros(2500 + 137 * round), delay);
        check(&std::fs::read(&out).unwrap(), accepted);
    }
    assert!(DRAINED.load(Relaxed) > 0, "no kill met gathered bytes");
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
        let accepted =
            run_and_kill(&count, dir.path(), to.into(), Duration::from_micros(2500 + 171 * round), NEVER);
        check(&reader.join().unwrap(), accepted);
    }
}

/// Waits for a stop of the child, and returns the status of waitpid(2).
fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the call fills `status`.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, libc::__WALL) }, pid);
    status
}

/// Continues a stopped child to its next stop by this ptrace(2) request, and returns the status of waitpid(2).
fn resume(pid: i32, request: libc::c_uint) -> i32 {
    // SAFETY: the request takes numbers, and the tracee is stopped.
    assert_eq!(unsafe { libc::ptrace(request, pid, 0, 0) }, 0);
    wait(pid)
}

fn registers(pid: i32) -> libc::user_regs_struct {
    // SAFETY: zero is a valid value of every field, and PTRACE_GETREGS fills the struct.
    unsafe {
        let mut registers = std::mem::zeroed();
        assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers), 0);
        registers
    }
}

/// Runs a program with gathered calls up to its second call of `number` that moves many bytes, then `steps`
/// instructions further, kills it there, and drains its region.
fn kill_after_call(command: &mut Command, number: i64, steps: usize) {
    let mut arena = Arena::create(NEVER).unwrap();
    let config =
        PreloadConfig { coalesce: Some((CoalesceScope::All, arena.path())), ..PreloadConfig::default() };
    prepare(command, &config);
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        })
    };
    let pid = command.spawn().unwrap().id() as i32;
    assert!(libc::WIFSTOPPED(wait(pid)), "the stop at exec");
    // SAFETY: the request takes numbers, and the tracee is stopped.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, libc::PTRACE_O_TRACEEXIT) };
    let mut calls = 0;
    while calls < 2 {
        resume(pid, libc::PTRACE_SYSCALL);
        resume(pid, libc::PTRACE_SYSCALL);
        let now = registers(pid);
        calls += usize::from(now.orig_rax as i64 == number && now.rax as i64 >= 1000 && now.rdi < 2);
    }
    for _ in 0..steps {
        resume(pid, libc::PTRACE_SINGLESTEP);
    }
    kill(pid);
    assert_eq!(wait(pid) >> 16, libc::PTRACE_EVENT_EXIT, "the exit stop");
    let drained = arena.drain(pid as u32);
    assert!(drained.unreturned.is_none(), "{drained:?}");
    assert_eq!(libc::WTERMSIG(resume(pid, libc::PTRACE_CONT)), libc::SIGKILL);
}

/// The kernel has made the call, and the process has not noted it. After the first instruction the registers show no
/// system call any more: an interrupt or a trap has stopped the process.
#[test]
fn a_kill_behind_a_flush_doubles_nothing() {
    let (dir, count) = (directory(), program("cc", "count"));
    let note = dir.path().join("accepted");
    for steps in 0..6 {
        std::fs::write(&note, [0; 4096]).unwrap();
        let (mut from, to) = std::io::pipe().unwrap();
        kill_after_call(Command::new(&count).arg(&note).stdout(to), libc::SYS_write, steps);
        let (mut got, accepted) = (Vec::new(), std::fs::read(&note).unwrap());
        from.read_to_end(&mut got).unwrap();
        check(&got, u64::from_ne_bytes(accepted[..8].try_into().unwrap()));
        assert!(got.len() > 2000, "two blocks");
    }
}

/// The same for a read.
#[test]
fn a_kill_behind_a_read_ahead_returns_it() {
    let (dir, copy) = (directory(), program("cc", "copy"));
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::write(&input, lines(3_000_000)).unwrap();
    for steps in 0..6 {
        let mut file = File::open(&input).unwrap();
        let mut command = Command::new(&copy);
        command.stdin(file.try_clone().unwrap()).stdout(File::create(&out).unwrap());
        kill_after_call(&mut command, libc::SYS_read, steps);
        let (got, at) = (std::fs::read(&out).unwrap(), file.stream_position().unwrap());
        assert!(got == lines(got.len()) && got.len() > 500, "{} bytes", got.len());
        assert_eq!(at, got.len() as u64, "after {steps} instructions");
    }
}

#[test]
fn bytes_that_a_full_pipe_refuses_are_returned_to_the_caller() {
    let (dir, spin) = (directory(), program("cc", "spin"));
    let (from, mut to) = std::io::pipe().unwrap();
    let note = dir.path().join("computes");
    std::fs::write(&note, [0; 4096]).unwrap();
    let mut full = false;
    let mut command = Command::new(&spin);
    let run = coalesced(command.arg(&note).stdout(to.try_clone().unwrap()), NEVER, |pid| {
        if std::fs::read(&note).unwrap()[0] == 1 && !full {
            rustix::io::ioctl_fionbio(&to, true).unwrap();
            while to.write(&[b'-'; 4096]).is_ok() || to.write(b"-").is_ok() {}
            full = true;
            kill(pid)
        }
    });
    rustix::io::ioctl_fionbio(&from, true).unwrap();
    let mut in_pipe = Vec::new();
    let _ = (&from).read_to_end(&mut in_pipe);
    let direct = in_pipe.iter().filter(|byte| **byte == b'x').count();
    let left = run.drained.into_iter().find_map(|drained| drained.left).expect("the pipe is full");
    assert_eq!((left.fd, left.why.raw_os_error()), (1, Some(libc::EAGAIN)));
    assert!(
        left.bytes.len() > 50 && left.bytes == vec![b'x'; 100 - direct],
        "{direct} were written directly"
    );
}

#[test]
fn a_kill_returns_read_ahead_bytes() {
    let (dir, copy) = (directory(), program("cc", "copy"));
    let input = dir.path().join("in");
    std::fs::write(&input, lines(3_000_000)).unwrap();
    for round in 0..40 {
        let (mut file, out) = (File::open(&input).unwrap(), dir.path().join("out"));
        let begun = Instant::now();
        let mut command = Command::new(&copy);
        command.stdin(file.try_clone().unwrap()).stdout(File::create(&out).unwrap());
        let run = coalesced(&mut command, NEVER, |pid| {
            if begun.elapsed() > Duration::from_micros(1500 + 211 * round) {
                kill(pid)
            }
        });
        let (got, at) = (std::fs::read(&out).unwrap(), file.stream_position().unwrap());
        assert!(got == lines(got.len()));
        assert!(at - got.len() as u64 <= 1, "{} bytes were copied, the offset is {at}", got.len());
        assert!(run.status == 0 || run.status == 137);
    }
}

#[test]
fn a_tick_writes_the_bytes_of_a_busy_program() {
    let (dir, count) = (directory(), program("cc", "spin"));
    let out = dir.path().join("out");
    let (begun, mut seen) = (Instant::now(), None);
    let mut command = Command::new(&count);
    let run = coalesced(command.stdout(File::create(&out).unwrap()), Duration::from_millis(20), |pid| {
        if seen.is_none() && std::fs::read(&out).unwrap() == vec![b'x'; 100] {
            seen = Some(begun.elapsed());
            kill(pid);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no byte was written");
    });
    assert!(run.ticked > 0 && seen.is_some());
    assert_eq!(std::fs::read(&out).unwrap(), vec![b'x'; 100], "a byte was written twice");
}
