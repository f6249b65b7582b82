//! A process whose main thread has ended: /proc/PID shows neither its memory nor its descriptors, other threads use both.

mod common;
#[path = "peek_flush/programs.rs"]
mod programs;

use std::process::Command;

use common::{run, text};
use programs::{Program, built};
use rustix::process::Signal;

#[test]
fn its_bytes_are_seen_and_written_once() {
    let test = "its_bytes_are_seen_and_written_once";
    for flags in [&["-pthread"][..], &["-pthread", "-static", "-s"]] {
        let Some(path) = built(test, "gcc", flags, "worker.c") else { return };
        let mut program = Program::start(&mut Command::new(path));
        let pid = program.pid().to_string();
        let peek = text(&run(program.dir(), &["peek", &pid]).stdout);
        assert!(peek.contains("8 B") && peek.contains(r#""one\ntwo\n""#), "{flags:?}: {peek}");
        let flush = run(program.dir(), &["flush", &pid]);
        let said = text(&flush.stdout) + &text(&flush.stderr);
        assert!(flush.status.success() && said.contains("8 B written to descriptor 1"), "{flags:?}: {said}");
        assert_eq!(program.out(), "one\ntwo\n", "{flags:?}");
        assert_eq!(program.end(), Some(0), "{flags:?}");
        assert_eq!(program.out(), "one\ntwo\nthree\n", "{flags:?}");
    }
}

#[test]
fn trace_sees_what_it_holds() {
    let Some(path) = built("trace_sees_what_it_holds", "gcc", &["-pthread"], "worker.c") else { return };
    for engine in ["ebpf", "ptrace"] {
        if engine == "ebpf" && !common::is_root() {
            common::skip("trace_sees_what_it_holds", "eBPF needs root");
            continue;
        }
        let program = Program::start(&mut Command::new(&path));
        let pid = program.pid().to_string();
        let output = run(program.dir(), &["trace", "--engine", engine, "--time", "3s", "-p", &pid]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("stuck-output") && said.contains("8 bytes have been"), "{engine}: {said}");
        program.signal(Signal::KILL);
    }
}

#[test]
fn run_writes_what_it_holds() {
    let Some(path) = built("run_writes_what_it_holds", "gcc", &["-pthread"], "worker.c") else { return };
    let path = path.display().to_string();
    let started = |options: &[&str]| {
        let dir = common::disk_dir();
        Program::start(&mut common::weir(dir.path(), &[&["run", "-q"], options, &["--", &path]].concat()))
    };
    let mut delayed = started(&["--max-delay", "50ms"]);
    common::wait_for("the delayed lines", || delayed.out() == "one\ntwo\n");
    assert_eq!(delayed.end(), Some(0));
    assert_eq!(delayed.out(), "one\ntwo\nthree\n");
    let mut killed = started(&["--rescue"]);
    killed.signal(Signal::TERM);
    common::wait_for("the rescued lines", || !killed.out().is_empty());
    assert_eq!(killed.end(), Some(128 + 15));
    assert_eq!(killed.out(), "one\ntwo\n");
}
