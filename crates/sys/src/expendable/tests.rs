//! Children that block, work for long, end, or lose their parent.

use std::io::{Read, Write};

use super::*;

const LIMITS: Limits = Limits { blocked: Duration::from_millis(100), total: None };

fn block() {
    // SAFETY: pause(2) takes nothing.
    unsafe { libc::pause() };
}

#[test]
fn requests_are_answered_one_by_one() {
    let mut count = 0u8;
    let serve = |request: &[u8], _: &AtomicBool| {
        count += 1;
        [request, &[count]].concat()
    };
    let mut child = ExpendableChild::start(Rights::All, serve).expect("a child");
    assert_eq!(child.ask(b"a", LIMITS, None), Ok(b"a\x01".to_vec()));
    let long = vec![7; 1 << 20];
    let answer = child.ask(&long, LIMITS, None).expect("an answer");
    assert_eq!((answer.len(), answer.last()), (long.len() + 1, Some(&2)));
}

#[test]
fn a_child_that_blocks_is_abandoned() {
    let blocked = answer_of(Rights::All, |_| (block(), vec![1]).1, LIMITS, None);
    assert_eq!(blocked, Err(NoAnswer::Blocked));
}

#[test]
fn a_child_that_works_is_late_but_not_blocked() {
    let limits = Limits { total: Some(Duration::from_millis(300)), ..LIMITS };
    let late = answer_of(
        Rights::All,
        |_| loop {
            std::hint::black_box(());
        },
        limits,
        None,
    );
    assert_eq!(late, Err(NoAnswer::Late));
}

#[test]
fn a_child_that_panics_or_ends_is_noticed() {
    // The child reads its debug information for the backtrace, which can take long beside other load.
    let patient = Limits { blocked: Duration::from_secs(20), ..LIMITS };
    assert_eq!(answer_of(Rights::All, |_| panic!("in the child"), patient, None), Err(NoAnswer::Ended));
}

#[test]
fn a_stop_reaches_the_child() {
    let work = |stop: &AtomicBool| {
        while !stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        vec![1]
    };
    assert_eq!(answer_of(Rights::All, work, LIMITS, Some(&AtomicBool::new(true))), Ok(vec![1]));
}

#[test]
fn critical_work_is_not_killed() {
    let work = |_: &AtomicBool| {
        critical(|| std::thread::sleep(5 * LIMITS.blocked));
        vec![1]
    };
    assert_eq!(answer_of(Rights::All, work, LIMITS, None), Ok(vec![1]));
}

/// Kills the parent of a child, whose other thread is in the middle of critical work or before it. Returns the bytes that this
/// work wrote to a pipe.
fn bytes_after_death_of_parent(begins_work: bool) -> Vec<u8> {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the process ends by _exit, and makes no use of locks that other threads may hold.
    let parent = unsafe { libc::fork() };
    if parent == 0 {
        let path = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
        let serve = |_: &[u8], _: &AtomicBool| {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(&path).expect("the pipe");
            let (sender, ended) = std::sync::mpsc::channel::<()>();
            let mut write = move |parts: [&[u8]; 2]| {
                pipe.write_all(parts[0]).expect("written");
                std::thread::sleep(2 * LIMITS.blocked);
                pipe.write_all(parts[1]).expect("written");
            };
            let start = || {
                std::thread::spawn(move || {
                    match begins_work {
                        true => critical(|| write([b"a", b"b"])),
                        false => write([b"a", b"b"]),
                    }
                    std::thread::sleep(Duration::from_secs(60));
                    drop(sender);
                });
                // The other thread works before this one waits.
                std::thread::sleep(LIMITS.blocked / 2);
            };
            watch_parent(start, |limit| match ended.recv_timeout(limit) {
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => None,
                _ => Some(()),
            });
            Vec::new()
        };
        let mut child = ExpendableChild::start(Rights::All, serve).expect("a child");
        let _killed = child.ask(&[], Limits { blocked: Duration::from_secs(60), total: None }, None);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let mut bytes = vec![0];
    reader.read_exact(&mut bytes).expect("the first part");
    // SAFETY: the process is not reaped, so the number is its own.
    unsafe {
        libc::kill(parent, libc::SIGKILL);
        libc::waitpid(parent, null_mut(), 0);
    }
    reader.read_to_end(&mut bytes).expect("the end of the child");
    bytes
}

#[test]
fn critical_work_of_another_thread_survives_the_parent() {
    assert_eq!(bytes_after_death_of_parent(true), b"ab");
    assert_eq!(bytes_after_death_of_parent(false), b"a", "other work does not");
}

#[test]
fn a_child_keeps_no_descriptor_open() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let child = ExpendableChild::start(Rights::All, |_, _| Vec::new()).expect("a child");
    let mut child = child;
    assert_eq!(child.ask(&[], LIMITS, None), Ok(Vec::new()));
    drop(writer);
    let mut all = Vec::new();
    assert_eq!(reader.read_to_end(&mut all).expect("its end"), 0);
}
