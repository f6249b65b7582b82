//! The end of `weir run` while a process that the command has started runs on, with bytes that weir has written early: weir ends when
//! the process does not write them a second time.

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{KillOnDrop, WEIR, disk_dir, has, run, skip, text, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// A program of Python as run_departure/computes.c.
const PYTHON: &str = "import sys, time\n\
    print('begin')\n\
    open('begun', 'w').close()\n\
    end = time.monotonic() + 4\n\
    while time.monotonic() < end: pass\n\
    print('\\nend')\n";

fn compile(test: &str, options: &[&str], dir: &Path) -> bool {
    let is_compiled = common::programs::compile_c("run_departure/computes", options, dir);
    if !is_compiled {
        skip(test, "it needs gcc and the static glibc");
    }
    is_compiled
}

fn read(path: &Path) -> String {
    text(&fs::read(path).unwrap_or_default())
}

/// Returns what a program wrote before weir ended, and in all. The program is a background process of the command.
fn written(dir: &Path, program: &str) -> (String, String) {
    let _absent = fs::remove_file(dir.join("begun"));
    let script = format!("{program} > out 2> /dev/null & until [ -e begun ]; do sleep 0.05; done; sleep 0.3");
    let output = run(dir, &["run", "-q", "--max-delay=20ms", "--", "sh", "-c", &script]);
    assert!(output.status.success() && output.stderr.is_empty(), "{program}: {}", text(&output.stderr));
    let at_end = read(&dir.join("out"));
    wait_for("the end of the program", || read(&dir.join("out")).ends_with("end\n"));
    (at_end, read(&dir.join("out")))
}

#[test]
fn weir_ends_while_a_descendant_computes() {
    const TEST: &str = "weir_ends_while_a_descendant_computes";
    let dir = disk_dir();
    let dir = dir.path();
    if !compile(TEST, &["-O1"], dir) {
        return;
    }
    let letters: String = (0..1000).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
    for (program, between) in [("./computes", ""), ("./computes puts", letters.as_str())] {
        let (at_end, all) = written(dir, program);
        assert!(at_end.starts_with("begin\n") && !at_end.contains("end"), "{program}: {at_end}");
        assert_eq!(all, format!("begin\n{between}\nend\n"), "{program}");
    }
    if has("python3") {
        fs::write(dir.join("computes.py"), PYTHON).expect("a program");
        let (at_end, all) = written(dir, "python3 computes.py");
        assert_eq!((at_end.as_str(), all.as_str()), ("begin\n", "begin\n\nend\n"), "Python");
    }
}

/// Kills the program that a test has left.
struct LeftProgram(Pid);

impl Drop for LeftProgram {
    fn drop(&mut self) {
        let _ended = kill_process(self.0, Signal::KILL);
    }
}

/// Starts a command with a static program that computes: weir cannot tell whether it is inside of a stream. Returns weir and the program.
fn started(dir: &Path) -> (KillOnDrop, LeftProgram) {
    let script =
        "./computes long > out & echo $! > pid; until [ -e begun ]; do sleep 0.05; done; sleep 1; exit 7";
    let mut weir = Command::new(WEIR);
    weir.args(["run", "--max-delay=20ms", "--", "sh", "-c", script]).current_dir(dir);
    let said = File::create(dir.join("said")).expect("a file");
    let weir = weir.stdin(Stdio::null()).stderr(said).spawn().expect("weir");
    let pid = || read(&dir.join("pid")).trim().parse().ok().and_then(Pid::from_raw);
    wait_for("the program", || pid().is_some());
    (KillOnDrop(weir), LeftProgram(pid().expect("a PID")))
}

#[test]
fn the_second_signal_ends_weir_after_its_command() {
    const TEST: &str = "the_second_signal_ends_weir_after_its_command";
    let dir = disk_dir();
    let dir = dir.path();
    if !compile(TEST, &["-O1", "-static"], dir) {
        return;
    }
    let (mut weir, program) = started(dir);
    let said = || read(&dir.join("said"));
    wait_for("a sentence", || said().contains("weir stays until"));
    assert!(said().contains("computes") && said().contains("the second Ctrl-C or SIGTERM"), "{}", said());
    assert_eq!(read(&dir.join("out")), "begin\n", "it is written early");
    let signal = |weir: &Child| kill_process(Pid::from_child(weir), Signal::TERM).expect("kill");
    signal(&weir.0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(weir.0.try_wait().expect("weir").is_none(), "the first signal doubles nothing");
    signal(&weir.0);
    wait_for("the end of weir", || weir.0.try_wait().expect("weir").is_some());
    assert_eq!(weir.0.wait().expect("weir").code(), Some(7), "the status of the command");
    assert!(said().contains("6 bytes that were written early will be written twice"), "{}", said());
    drop(program);
    let mut out = String::new();
    File::open(dir.join("out")).and_then(|mut file| file.read_to_string(&mut out)).expect("the output");
    assert_eq!(out, "begin\n");
}

fn compile_gathers(test: &str, dir: &Path) -> bool {
    let is_compiled =
        cfg!(target_arch = "x86_64") && common::programs::compile_c("run_departure/gathers", &["-O1"], dir);
    if !is_compiled {
        skip(test, "it needs gcc and x86-64");
    }
    is_compiled
}

/// The delay is longer than the test: only the end of weir writes the bytes.
const GATHER: [&str; 5] = ["run", "-q", "--coalesce", "--max-delay=60s", "--"];

#[test]
fn gathered_bytes_are_written_when_weir_ends() {
    const TEST: &str = "gathered_bytes_are_written_when_weir_ends";
    let dir = disk_dir();
    let dir = dir.path();
    if !compile_gathers(TEST, dir) {
        return;
    }
    let script = "./gathers > out 2> /dev/null & echo $! > pid; \
        until [ \"$(head -c 1 note | od -An -tu1)\" = '   1' ]; do sleep 0.01; done";
    let output = run(dir, &[&GATHER[..], &["sh", "-c", script]].concat());
    let pid = read(&dir.join("pid")).trim().parse().ok().and_then(Pid::from_raw);
    let _program = LeftProgram(pid.expect("a PID"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(read(&dir.join("out")), "x".repeat(100), "the program computes");
    let note = File::options().read(true).write(true).open(dir.join("note")).expect("the note");
    note.write_all_at(&[1], 1).expect("a write");
    wait_for("more bytes", || fs::read(dir.join("note")).is_ok_and(|note| note[2] == 1));
    assert_eq!(read(&dir.join("out")), "x".repeat(100) + &"y".repeat(50), "it gathers no more");
}

/// timeout kills its process group, and so itself: the command ends before weir sees that its child is killed.
#[test]
fn gathered_bytes_of_a_process_that_is_killed_with_the_command_are_written() {
    const TEST: &str = "gathered_bytes_of_a_process_that_is_killed_with_the_command_are_written";
    let dir = disk_dir();
    let dir = dir.path();
    if !compile_gathers(TEST, dir) {
        return;
    }
    for _ in 0..6 {
        let script = "exec timeout -s KILL 0.2 ./gathers count > out";
        let output = run(dir, &[&GATHER[..], &["sh", "-c", script]].concat());
        let note = fs::read(dir.join("note")).expect("the note");
        let accepted = u64::from_ne_bytes(note[..8].try_into().expect("8 bytes"));
        let extra = read(&dir.join("out")).len() as i64 - accepted as i64;
        assert!((0..=1).contains(&extra), "{extra} of {accepted} bytes: {}", text(&output.stderr));
    }
}
