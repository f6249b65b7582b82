//! `weir run` on programs with signal handlers and system-call filters, the end of a script by Ctrl-C, and ignored signals.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::{KillOnDrop, WEIR, disk_dir, is_root, run, skip, text, wait_for, with_signals};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Compiles a program of run_signals/ into `dir`.
fn compile(test: &str, name: &str, dir: &Path) -> bool {
    let is_compiled = common::programs::compile_c(&format!("run_signals/{name}"), &["-O1"], dir);
    if !is_compiled {
        skip(test, "it needs gcc");
    }
    is_compiled
}

#[test]
fn a_write_of_a_handler_takes_no_bytes_of_another_descriptor() {
    const TEST: &str = "a_write_of_a_handler_takes_no_bytes_of_another_descriptor";
    let dir = disk_dir();
    if !compile(TEST, "handler", dir.path()) {
        return;
    }
    let expected: String = (0..60_000).map(|i| format!("{i}\n")).collect();
    for way in ["call", "stream"].repeat(4) {
        let script = format!("exec ./handler {way} > numbers 2> alarms");
        let output = run(dir.path(), &["run", "-q", "--coalesce", "--", "sh", "-c", &script]);
        assert!(output.status.success(), "{way}: {}", text(&output.stderr));
        let numbers = fs::read_to_string(dir.path().join("numbers")).expect("the numbers");
        let alarms = fs::read_to_string(dir.path().join("alarms")).expect("the handler's bytes");
        assert_eq!(alarms.trim_matches('h'), "", "{way}");
        assert!(numbers == expected, "{way}: {} of {} bytes", numbers.len(), expected.len());
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_that_filters_its_calls_is_not_killed() {
    const TEST: &str = "a_program_that_filters_its_calls_is_not_killed";
    let dir = disk_dir();
    if !compile(TEST, "filter", dir.path()) {
        return;
    }
    fs::write(dir.path().join("in"), "x".repeat(1000)).expect("the input");
    for way in ["seccomp", "prctl"] {
        let script = format!("exec ./filter {way} < in > out");
        let output = run(dir.path(), &["run", "-q", "--coalesce", "--", "sh", "-c", &script]);
        let lines = fs::read_to_string(dir.path().join("out")).expect("the output");
        assert_eq!((output.status.code(), lines), (Some(3), "line\n".repeat(200)), "{way}");
    }
}

#[test]
fn bytes_ahead_do_not_move_the_position_of_an_appending_stream() {
    const TEST: &str = "bytes_ahead_do_not_move_the_position_of_an_appending_stream";
    let dir = disk_dir();
    if !compile(TEST, "append", dir.path()) {
        return;
    }
    for expected in [11, 22] {
        let output = run(dir.path(), &["run", "-q", "--max-delay=20ms", "--", "./append"]);
        assert_eq!(text(&output.stdout), format!("{expected}\n"), "{}", text(&output.stderr));
    }
    assert_eq!(fs::read_to_string(dir.path().join("log")).expect("the log"), "0123456789\n".repeat(2));
}

/// Sends SIGINT to a loop in the shell, as a terminal does, once `marker` is there. Returns the output of the loop.
fn interrupted_loop(dir: &Path, command: &str, marker: &Path) -> String {
    let script = format!("for i in 1 2 3; do {WEIR} {command}; echo after $?; done");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(dir).process_group(0);
    let child = bash.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("bash");
    let begin = Instant::now();
    while !marker.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{command} has not begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = rustix::process::Pid::from_raw(child.id() as i32).expect("a PID");
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).expect("kill");
    let output = child.wait_with_output().expect("bash");
    assert_eq!(output.status.signal(), Some(2), "{command}: {}", text(&output.stdout));
    text(&output.stdout)
}

#[test]
fn ctrl_c_ends_the_loop_around_weir() {
    for command in [
        "run -q -- sh -c ': > begun; sleep 20'",
        "run -q --rescue -- sh -c ': > begun; sleep 20'",
        "trace -o /dev/null -- sh -c ': > begun; sleep 20'",
    ] {
        let dir = disk_dir();
        assert_eq!(interrupted_loop(dir.path(), command, &dir.path().join("begun")), "");
    }
}

#[test]
fn a_command_that_handles_the_signal_does_not_end_the_loop() {
    let dir = disk_dir();
    let command = r#"run -q -- bash -c 'trap "exit 5" INT; : > begun; while :; do sleep 0.1; done'"#;
    let script = format!("{WEIR} {command}; echo after $?");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(dir.path()).process_group(0).stdout(Stdio::piped());
    let child = bash.spawn().expect("bash");
    while !dir.path().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = rustix::process::Pid::from_raw(child.id() as i32).expect("a PID");
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).expect("kill");
    assert_eq!(text(&child.wait_with_output().expect("bash").stdout), "after 5\n");
}

/// The signals that weir forwards.
const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];
/// Longer than weir holds a signal to find out whether it was sent to the process group.
const LONGER_THAN_HELD: Duration = Duration::from_millis(100);

/// The program report.c under weir, in a process group of its own.
struct Reporting {
    weir: Child,
    pid: Pid,
    lines: BufReader<ChildStdout>,
}

impl Reporting {
    fn start(dir: &Path, verb: &[&str]) -> Reporting {
        let mut command = Command::new(WEIR);
        command.args(verb).args(["--", "./report"]).current_dir(dir).process_group(0);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut weir = command.spawn().expect("weir");
        let mut lines = BufReader::new(weir.stdout.take().expect("a pipe"));
        assert_eq!(line(&mut lines), "ready", "{verb:?}");
        Reporting { pid: Pid::from_child(&weir), weir, lines }
    }

    /// Returns the signals that the program reports until the end of its input.
    fn rest(mut self) -> String {
        drop(self.weir.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("the output");
        self.weir.wait().expect("weir");
        rest
    }
}

fn line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).expect("the output");
    line.trim_end().to_string()
}

/// Sends each signal by `send` and returns what the program reports, which must begin with each of them.
fn reported(dir: &Path, verb: &[&str], send: impl Fn(Pid, Signal)) -> String {
    let mut program = Reporting::start(dir, verb);
    for signal in FORWARDED {
        send(program.pid, signal);
        assert_eq!(line(&mut program.lines), format!("{:02}", signal.as_raw()), "{verb:?}");
        std::thread::sleep(LONGER_THAN_HELD);
    }
    program.rest()
}

/// The verbs in which weir learns which signals its command gets: as its tracer, or from a witness.
fn verbs() -> Vec<Vec<&'static str>> {
    let engines = if is_root() { &["sample", "ptrace", "ebpf"][..] } else { &["sample", "ptrace"] };
    let mut verbs: Vec<_> = ["--rescue", "--max-delay=50ms", "--coalesce", "--pty", "--json=/dev/null"]
        .map(|option| vec!["run", "-q", option])
        .into();
    verbs.extend(engines.iter().map(|engine| vec!["trace", "-o", "/dev/null", "--engine", *engine]));
    verbs
}

#[test]
fn a_signal_to_the_process_group_reaches_the_command_once() {
    const TEST: &str = "a_signal_to_the_process_group_reaches_the_command_once";
    let dir = disk_dir();
    if !compile(TEST, "report", dir.path()) {
        return;
    }
    for verb in verbs() {
        let send = |weir, signal| {
            // A second signal merges with one that the command has not taken yet, so weir handles its own after that.
            kill_process(weir, Signal::STOP).expect("kill");
            kill_process_group(weir, signal).expect("kill");
            std::thread::sleep(Duration::from_millis(10));
            kill_process(weir, Signal::CONT).expect("kill");
        };
        assert_eq!(reported(dir.path(), &verb, send), "", "{verb:?}");
    }
}

#[test]
fn a_signal_to_weir_alone_reaches_the_command() {
    const TEST: &str = "a_signal_to_weir_alone_reaches_the_command";
    let dir = disk_dir();
    if !compile(TEST, "report", dir.path()) {
        return;
    }
    for verb in verbs() {
        let send = |weir, signal| kill_process(weir, signal).expect("kill");
        assert_eq!(reported(dir.path(), &verb, send), "", "{verb:?}");
        // Different signals do not merge, and none takes the place of another.
        let mut program = Reporting::start(dir.path(), &verb);
        FORWARDED.iter().for_each(|signal| kill_process(program.pid, *signal).expect("kill"));
        let mut lines: Vec<String> = FORWARDED.iter().map(|_| line(&mut program.lines)).collect();
        lines.sort();
        assert_eq!(lines, ["01", "02", "03", "10", "12", "15"], "{verb:?}");
        assert_eq!(program.rest(), "", "{verb:?}");
    }
}

/// Returns whether a process has a handler of a signal.
fn has_handler(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    let caught = caught.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    caught & 1 << (signal.as_raw() - 1) != 0
}

/// nohup(1) ignores SIGHUP for a command, and a shell ignores SIGINT for its background jobs.
#[test]
fn a_signal_that_is_ignored_at_the_start_does_not_end_weir() {
    let dir = disk_dir();
    let sleep = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("sleep starts");
    let sleep = KillOnDrop(sleep);
    let pid = sleep.0.id().to_string();
    for words in [
        &["flush", "--every", "50ms", &pid][..],
        &["trace", "-o", "/dev/null", "-p", &pid],
        &["bench", "write", "--method", "syscall", "--records", "64K", "--size", "1MB", "--precision", "0"],
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP INT; exec \"$@\"", "sh", WEIR]).args(words).current_dir(dir.path());
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut weir = KillOnDrop(with_signals(&mut command).spawn().expect("sh starts"));
        let group = Pid::from_child(&weir.0);
        // The process with the handlers is weir itself, or its worker.
        wait_for("a handler of SIGTERM", || {
            let processes = weir_sys::proc::with_descendants(weir.0.id());
            processes.into_iter().any(|process| has_handler(process, Signal::TERM))
        });
        for signal in [Signal::HUP, Signal::INT] {
            kill_process_group(group, signal).expect("kill");
        }
        std::thread::sleep(Duration::from_millis(500));
        assert!(weir.0.try_wait().expect("waitpid").is_none(), "{words:?}");
        kill_process(group, Signal::TERM).expect("kill");
        weir.0.wait().expect("its end");
    }
}
