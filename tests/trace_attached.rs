//! `weir trace -p` on programs that run already: what they lose or double at their exit, fork(2) and execve(2), which engines and
//! runtimes see alike.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::programs::{self, PROGRAM, SOURCE};
use common::{KillOnDrop, disk_dir, has, is_root, skip, text, weir};
use serde_json::Value;
use trace::{document, finding, for_each_engine, list};

/// Waits in Python until weir has attached.
const PYTHON_WAITS: &str =
    "def wait():\n while not os.path.exists('go'): time.sleep(0.01)\nimport os, threading, time\n";

/// The interpreter, its option, a program, and what weir finds: the number of bytes that are lost or doubled.
const PROGRAMS: [(&[&str], &str, &str, &str, f64); 8] = [
    (
        &["/usr/bin/python3", "-c"],
        "f = open('lost.log', 'w'); f.write('x' * 70)\nwait(); os._exit(7)",
        "lost-at-exit",
        "lost_bytes",
        70.0,
    ),
    (
        &["/usr/bin/python3", "-c"],
        "print('pending'); wait()\nif os.fork(): os.wait()\nprint('after')",
        "doubled-at-fork",
        "doubled_bytes",
        8.0,
    ),
    (
        &["/usr/bin/python3", "-c"],
        "print('pending'); wait(); os.execv('/bin/true', ['true'])",
        "lost-at-exec",
        "lost_bytes",
        8.0,
    ),
    (
        &["/usr/bin/python3", "-c"],
        "def fork():\n wait()\n if os.fork(): os.wait()\n else: print('after', flush=True); os._exit(0)\n\
         print('pending'); t = threading.Thread(target=fork); t.start(); t.join()",
        "doubled-at-fork",
        "doubled_bytes",
        8.0,
    ),
    (
        &["/usr/bin/python3", "-c"],
        "def fork():\n wait()\n if os.fork(): os.wait()\n else: print('after', flush=True); os._exit(0)\n\
         print('pending'); threads = [threading.Thread(target=f) for f in [wait] * 30 + [fork]]\n\
         for t in threads: t.start()\nfor t in threads: t.join()",
        "doubled-at-fork",
        "doubled_bytes",
        8.0,
    ),
    (
        &["/usr/bin/python3", "-c"],
        "def execute():\n wait(); os.execv('/bin/true', ['true'])\n\
         print('pending'); t = threading.Thread(target=execute); t.start(); t.join()",
        "lost-at-exec",
        "lost_bytes",
        8.0,
    ),
    (
        &["perl", "-e"],
        "use POSIX; open F, '>', 'lost.log'; print F 'x' x 70; select(undef, undef, undef, 0.01) until -e 'go'; POSIX::_exit(7)",
        "lost-at-exit",
        "lost_bytes",
        70.0,
    ),
    (
        &["ruby", "-e"],
        "f = File.open('lost.log', 'w'); f.write('x' * 70); sleep 0.01 until File.exist?('go'); exit!(7)",
        "lost-at-exit",
        "lost_bytes",
        70.0,
    ),
];

/// Starts a program with its output in a file.
fn start(dir: &Path, interpreter: &[&str], program: &str) -> KillOnDrop {
    let out = fs::File::create(dir.join("out")).expect("a file");
    let mut command = Command::new(interpreter[0]);
    command.args(&interpreter[1..]).arg(program).current_dir(dir).env_remove("PYTHONUNBUFFERED");
    KillOnDrop(command.stdin(Stdio::null()).stdout(out).spawn().expect("it starts"))
}

/// Returns whether each thread of a process has a tracer.
fn is_traced(pid: u32) -> bool {
    let has_tracer = |task: fs::DirEntry| {
        fs::read_to_string(task.path().join("status")).is_ok_and(|text| !text.contains("TracerPid:\t0"))
    };
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.flatten().all(has_tracer))
}

/// Starts `weir trace -p` and waits until process `traced` has a tracer, at most 5 s. Then leaves it time for the first stop: weir sees
/// no call before that.
fn attach(dir: &Path, options: &[&str], program: &KillOnDrop, traced: u32) -> Child {
    let pid = program.0.id().to_string();
    let words = [&["trace", "--quiet", "--json", "t.json"], options, &["--pid", &pid]].concat();
    let weir = weir(dir, &words).stderr(Stdio::piped()).spawn().expect("weir starts");
    let end = Instant::now() + Duration::from_secs(5);
    while !is_traced(traced) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    weir
}

/// Lets the program go on, and returns the document at the end.
fn end(dir: &Path, weir: Child) -> Value {
    fs::write(dir.join("go"), "").expect("a file");
    let output = weir.wait_with_output().expect("weir ends");
    let _absent = fs::remove_file(dir.join("go"));
    assert!(dir.join("t.json").exists(), "{}", text(&output.stderr));
    document(dir)
}

/// Waits until a program sleeps, after it has written to its buffer.
fn wait_for_sleep(pid: u32) {
    let call = || fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    common::wait_for("its sleep", || ["nanosleep", "futex", "poll"].iter().any(|name| call().contains(name)));
}

#[test]
fn what_a_running_program_loses_or_doubles_is_found() {
    for_each_engine(|engine, dir| {
        for (interpreter, program, id, evidence, bytes) in PROGRAMS {
            if !has(interpreter[0]) {
                skip("what_a_running_program_loses_or_doubles_is_found", interpreter[0]);
                continue;
            }
            let waits = if interpreter[0].contains("python") { PYTHON_WAITS } else { "" };
            let program = start(dir, interpreter, &format!("{waits}{program}"));
            wait_for_sleep(program.0.id());
            let weir = attach(dir, &["--exact", "--engine", engine], &program, program.0.id());
            let document = end(dir, weir);
            let found = finding(&document, id).map(|one| one["evidence"][evidence].as_f64());
            assert_eq!(found, Some(Some(bytes)), "{engine} {interpreter:?} {id}: {document}");
        }
    });
}

#[test]
fn what_a_running_child_loses_is_found() {
    if !is_root() {
        return skip("what_a_running_child_loses_is_found", "the eBPF engine needs root");
    }
    let dir = disk_dir();
    let program = "f = open('lost.log', 'w')\nchild = os.fork()\n\
        if not child: f.write('x' * 70); wait(); os._exit(7)\n\
        open('child', 'w').write(str(child)); os.wait()";
    let program = start(dir.path(), &["/usr/bin/python3", "-c"], &format!("{PYTHON_WAITS}{program}"));
    let child = || fs::read_to_string(dir.path().join("child")).ok()?.parse::<u32>().ok();
    common::wait_for("the child", || child().is_some());
    let child = child().expect("its number");
    wait_for_sleep(child);
    let document = end(dir.path(), attach(dir.path(), &["--engine", "ebpf"], &program, child));
    let lost = finding(&document, "lost-at-exit").map(|one| one["evidence"]["lost_bytes"].as_f64());
    assert_eq!(lost, Some(Some(70.0)), "{document}");
}

#[test]
fn a_running_program_that_cannot_be_stopped_is_named() {
    let test = "a_running_program_that_cannot_be_stopped_is_named";
    if !is_root() || !has("strace") {
        return skip(test, "needs root for the eBPF engine, and strace as another tracer");
    }
    let dir = disk_dir();
    let program =
        format!("{PYTHON_WAITS}\nwhile not os.path.exists('go'): time.sleep(0.01); os.write(1, b'text')");
    let program = start(dir.path(), &["/usr/bin/python3", "-c"], &program);
    wait_for_sleep(program.0.id());
    let pid = program.0.id().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-o", "/dev/null", "-e", "trace=none", "-p", &pid]).stderr(Stdio::null());
    let _strace = KillOnDrop(strace.spawn().expect("strace"));
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    common::wait_for("strace", || !status().contains("TracerPid:\t0"));
    let weir = attach(dir.path(), &["--engine", "ebpf", "--time", "1s"], &program, program.0.id());
    std::thread::sleep(Duration::from_secs(1));
    let document = end(dir.path(), weir);
    let (verdict, blind) = (document["verdict"].to_string(), list(&document, "unreadable"));
    assert!(verdict.contains("Nothing wrong in what could be seen"), "{verdict}");
    let is_named = |one: &Value| one["buffers"].as_str().is_some_and(|name| name.contains("could not stop"));
    assert!(blind.iter().any(is_named), "{document}");
}

const GO: &str = r#"package main

import (
	"bufio"
	"os"
	"time"
)

func main() {
	file, _ := os.Create("lost.log")
	bufio.NewWriter(file).WriteString("these bytes are lost")
	for {
		if _, err := os.Stat("go"); err == nil {
			os.Exit(7)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
"#;

#[test]
fn a_running_go_program_that_cannot_be_stopped_is_named() {
    let test = "a_running_go_program_that_cannot_be_stopped_is_named";
    if !is_root() || !has("strace") || !has("go") {
        return skip(test, "needs root for the eBPF engine, strace as another tracer, and go");
    }
    let dir = disk_dir();
    let (source, program) = (dir.path().join("program.go"), dir.path().join("program"));
    fs::write(&source, GO).expect("the source");
    let built = programs::compile("go", &["build", "-o", PROGRAM, SOURCE], &source, &program).expect("go");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let program = KillOnDrop(Command::new(&program).current_dir(dir.path()).spawn().expect("it starts"));
    let pid = program.0.id();
    common::wait_for("its file", || dir.path().join("lost.log").exists());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", "trace=none", "-p", &pid.to_string()]).stderr(Stdio::null());
    let _strace = KillOnDrop(strace.spawn().expect("strace"));
    common::wait_for("strace", || is_traced(pid));
    let weir = attach(dir.path(), &["--engine", "ebpf", "--time", "1s"], &program, pid);
    std::thread::sleep(Duration::from_secs(1));
    let document = end(dir.path(), weir);
    let unreadable = list(&document, "unreadable");
    let is_named = |one: &Value| one["buffers"].as_str().is_some_and(|name| name.contains("could not stop"));
    assert!(unreadable.iter().any(is_named), "{document}");
}

/// Signals and job control reach the program, which runs on when weir ends.
#[test]
fn a_running_program_gets_its_signals_and_runs_on() {
    let program = "import signal\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n\
        wait()\nos.write(1, b'%d' % len(got)); os._exit(5)";
    for_each_engine(|engine, dir| {
        let mut program = start(dir, &["/usr/bin/python3", "-c"], &format!("{PYTHON_WAITS}{program}"));
        let pid = program.0.id();
        wait_for_sleep(pid);
        let weir = attach(dir, &["--engine", engine, "--time", "700ms"], &program, pid);
        for name in ["USR1", "STOP", "CONT", "USR1"] {
            let mut kill = Command::new("kill");
            assert!(kill.args(["-s", name, &pid.to_string()]).status().expect("kill").success());
            std::thread::sleep(Duration::from_millis(60));
        }
        weir.wait_with_output().expect("weir ends");
        common::wait_until_let_go(pid);
        fs::write(dir.join("go"), "").expect("a file");
        assert_eq!(program.0.wait().expect("its status").code(), Some(5), "{engine}");
        assert_eq!(fs::read_to_string(dir.join("out")).expect("its output"), "2", "{engine}");
    });
}
