//! Single-steps a program that moves a file buffer of C++ from object to object. During the moves the test writes the pending
//! bytes ahead after each instruction. During the flush that follows, by an object that weir does not know, it reads the buffers
//! after each instruction. The output must stay the same.

use std::ffi::OsString;
use std::path::Path;

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::syscalls::SYSCALL_CODE;
use weir_walkers::{PendingBytes, join_pending};

use super::skip;
use super::write_ahead::{drain_stream, forget_purged, is_handing_over};
use crate::foreign_file::TargetThread;
use crate::rescue::single_step_test::{SteppedProgram, campaign, compile};
use crate::rescue::single_step_tracee::code_location;

/// The lines between the first two marks, and between the next two.
const LINES: [usize; 2] = [9, 12];

/// How the objects are found at each instruction of the moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// All objects are known.
    Always,
    /// As weir searches: objects at new addresses are found late.
    WhenDue,
}

fn build(folder: &Path, compiler: &str, flags: &[&str]) -> Option<OsString> {
    let built = folder.join("moves");
    compile(&[compiler, "-std=gnu++17", "-O2"], "moves.cc", flags, &built).then(|| built.into())
}

/// Reads the pending bytes, and forgets those that seem to be discarded.
fn read(stepped: &mut SteppedProgram) -> Vec<PendingBytes> {
    let (pid, tracees) = (stepped.pid, &mut stepped.supervisor.tracees);
    let pending = join_pending(tracees.pending(pid, pid));
    forget_purged(tracees, pid, pid, &pending);
    pending
}

/// Writes all pending bytes ahead. A thread inside a move has handed none over.
fn write_ahead(stepped: &mut SteppedProgram, search: Search) {
    let pid = stepped.pid;
    if search == Search::Always {
        stepped.supervisor.tracees.search_again(pid);
    }
    for one in read(stepped) {
        let tracees = &mut stepped.supervisor.tracees;
        if !is_handing_over(tracees, pid, &one) {
            drain_stream(tracees, pid, &TargetThread::new(pid), &one, one.early_len(), false);
        }
    }
}

/// Executes one instruction; of a system call also its entry and exit, at which bytes are skipped. Returns false at a mark.
fn step(stepped: &mut SteppedProgram) -> bool {
    let pid = stepped.pid;
    let next = ptrace::registers(pid).expect("a stopped tracee").rip;
    let instruction = ProcessMemory { pid }.bytes(next, SYSCALL_CODE.len());
    if instruction != SYSCALL_CODE {
        return stepped.step();
    }
    for is_entry in [true, false] {
        ptrace::resume(pid, true, 0);
        let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
        if libc::WSTOPSIG(stop.status) != libc::SIGTRAP | 0x80 {
            return false;
        }
        read(stepped);
        let tracees = &mut stepped.supervisor.tracees;
        let call = match is_entry {
            true => skip::at_entry(tracees, pid),
            false => tracees.threads.get_mut(&pid).expect("a thread").skipped_call.take(),
        };
        match call {
            Some(call) if is_entry => {
                tracees.threads.get_mut(&pid).expect("a thread").skipped_call = Some(call)
            }
            Some(call) => assert!(skip::at_exit(pid, &call)),
            None => {}
        }
    }
    true
}

fn line(number: usize) -> String {
    format!("{number} is the number of this line\n")
}

/// `make test` writes ahead at every 25th instruction of a move; `make test-all` at every one.
const QUICK_INTERVAL: u64 = 25;

/// Runs a program that writes `before` lines before its first move.
fn check(built: &OsString, before: usize, search: Search) {
    let folder = tempfile::tempdir().expect("a directory");
    let [moving, after] = LINES;
    let expected: String = (0..before + moving + after).map(line).collect();
    let words = [built.clone(), before.to_string().into(), after.to_string().into(), "hidden".into()];
    let mut stepped = SteppedProgram::start(words.to_vec(), folder.path(), false, (Vec::new(), Vec::new()));
    stepped.run_to_mark();
    let output = || std::fs::read(folder.path().join("output")).expect("the output");
    let interval = if campaign::is_quick() { QUICK_INTERVAL } else { 1 };
    while stepped.step() {
        if !stepped.steps.is_multiple_of(interval) {
            continue;
        }
        write_ahead(&mut stepped, search);
        let so_far = output();
        let is_right = expected.as_bytes().starts_with(&so_far);
        assert!(is_right, "{before} {search:?}: {} bytes at {}", so_far.len(), code_location(stepped.pid));
    }
    write_ahead(&mut stepped, Search::Always);
    let all_before: String = (0..before + moving).map(line).collect();
    assert_eq!(output(), all_before.as_bytes(), "all is written ahead");
    while step(&mut stepped) {
        read(&mut stepped);
    }
    stepped.supervisor.tracees.resume(stepped.pid, 0);
    while stepped.supervisor.exit.is_none() {
        if let Some(stop) = ptrace::wait().expect("a stop") {
            stepped.supervisor.on_stop(stop);
        }
    }
    let output = output();
    let is_right = output == expected.as_bytes();
    assert!(is_right, "{before} {search:?}: {} bytes instead of {}", output.len(), expected.len());
}

/// Lines before the first move: 20 leave all but the first line in the file buffer, 170 fill both buffers, and with 250 both fill
/// soon after the moves.
const BEFORE: [usize; 3] = [20, 170, 250];

fn check_moves(compiler: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(built) = build(folder.path(), compiler, flags) else { return };
    let all = BEFORE.map(|before| [(before, Search::WhenDue), (before, Search::Always)]).concat();
    let most = if campaign::is_quick() { 1 } else { all.len() };
    all.into_iter().rev().take(most).for_each(|(before, search)| check(&built, before, search));
}

#[test]
fn libcxx_moves() {
    check_moves("clang++", &["-stdlib=libc++"]);
}

#[test]
fn libcxx_moves_static() {
    check_moves("clang++", &["-stdlib=libc++", "-static", "-s"]);
}

#[test]
fn libstdcxx_moves() {
    check_moves("g++", &[]);
}

#[test]
fn libstdcxx_moves_static() {
    check_moves("g++", &["-static", "-s"]);
}

/// Instructions after each system call for which a kill is simulated.
const AFTER_CALL: u32 = 200;
/// Each check is a replay.
const CHECK_INTERVAL: u32 = 10;

/// Checks that a kill soon after a write of the FILE loses and doubles no byte, although some of its bytes were written ahead
/// with those of the file buffer.
fn check_kill_after_write(flags: &[&str]) {
    let folder = tempfile::tempdir().expect("a directory");
    let Some(built) = build(folder.path(), "clang++", flags) else { return };
    let (before, [moving, after]) = (250, LINES);
    let expected: String = (0..before + moving + after).map(line).collect();
    let words = [built, before.to_string().into(), after.to_string().into(), "visible".into()];
    let ends = vec![0, expected.len()];
    let mut stepped =
        SteppedProgram::start(words.to_vec(), folder.path(), false, (expected.into_bytes(), ends));
    stepped.run_to_mark();
    stepped.supervisor.tracees.resume(stepped.pid, 0);
    stepped.run_to_mark();
    write_ahead(&mut stepped, Search::Always);
    let (mut writes, mut left) = (0, 0);
    loop {
        let steps = stepped.steps;
        if !step(&mut stepped) {
            break;
        }
        if stepped.steps == steps {
            (writes, left) = (writes + 1, AFTER_CALL);
        } else if left > 0 {
            left -= 1;
            if left.is_multiple_of(CHECK_INTERVAL) {
                stepped.check("a kill after a call", 0);
            }
        }
    }
    stepped.assert_no_failure();
    assert!(writes > 0, "the FILE is written");
}

#[test]
fn libcxx_kill_after_write() {
    check_kill_after_write(&["-stdlib=libc++"]);
}

#[test]
fn libcxx_kill_after_write_static() {
    check_kill_after_write(&["-stdlib=libc++", "-static", "-s"]);
}
