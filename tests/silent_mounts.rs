//! The working directory, root or executable of a process is in a FUSE mount whose server has stopped. weir observes the
//! process or says that it does not answer, and ends. It uses no such directory of its own environment. It also ends if the command sleeps in a call that no signal ends.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use common::limited::{self, TIMEOUT, assert_no_hang, limited};
use common::{KillOnDrop, skip, text, wait_until_let_go, weir};

/// The parts of a process that are in the mount.
const PARTS: [&str; 3] = ["cwd", "root", "exe"];

/// Builds the program, if this machine permits it. Returns a directory for its mount.
fn built(test: &str) -> Option<tempfile::TempDir> {
    limited::built(test, "silent_mount", |dir| start(dir, "cwd").is_some())
}

/// Starts the program; None if it is not permitted.
fn start(dir: &Path, part: &str) -> Option<KillOnDrop> {
    let mut program = Command::new(dir.join("silent_mount"));
    program.current_dir(dir).arg(dir.join("mount")).arg(part).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("it starts");
    let is_ready = wait_for_line(&mut child, "ready\n");
    let running = KillOnDrop(child);
    is_ready.then_some(running)
}

fn wait_for_line(child: &mut Child, expected: &str) -> bool {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    line == expected
}

/// Returns the engines that work here.
fn engines() -> &'static [&'static str] {
    if common::is_root() { &["ptrace", "sample", "ebpf"] } else { &["ptrace", "sample"] }
}

/// Calls `test` with each part of a process, at the same time.
fn for_each_part(name: &str, test: impl Fn(&Path, &str) + Sync) {
    std::thread::scope(|threads| {
        for part in PARTS {
            let Some(dir) = built(name) else { return };
            let test = &test;
            threads.spawn(move || test(dir.path(), part));
        }
    });
}

#[test]
fn a_command_runs_to_its_end() {
    for_each_part("a_command_runs_to_its_end", |dir, part| {
        let mount = dir.join("mount").display().to_string();
        let traces = engines().iter().map(|engine| vec!["trace", "--engine", engine]);
        let runs = [vec!["run", "--max-delay", "20ms"], vec!["run", "--rescue"], vec!["run", "--fix-fork"]];
        for options in runs.into_iter().chain(traces) {
            let arguments = [&options[..], &["--", "./silent_mount", &mount, part]].concat();
            let mut weir = limited(dir, &arguments).spawn().expect("timeout(1)");
            assert!(wait_for_line(&mut weir, "ready\n"), "{arguments:?}");
            weir.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
            let output = weir.wait_with_output().expect("its output");
            assert_eq!(output.status.code(), Some(7), "{arguments:?}: {}", text(&output.stderr));
            assert_eq!(text(&output.stdout), "again\n", "{arguments:?}");
        }
    });
}

#[test]
fn a_running_process_is_observed_or_named() {
    for_each_part("a_running_process_is_observed_or_named", |dir, part| {
        let traces =
            engines().iter().map(|engine| vec!["trace", "--engine", engine, "--time", "200ms", "--pid"]);
        let others = [vec!["peek"], vec!["flush"], vec!["top", "--once", "-i", "200ms", "--pid"]];
        for options in traces.chain(others) {
            let process = start(dir, part).expect("it could start before");
            let pid = process.0.id().to_string();
            let arguments = [&options[..], &[&pid]].concat();
            let output = limited(dir, &arguments).output().expect("timeout(1)");
            assert_no_hang(&arguments, &output);
            let said = text(&output.stdout) + &text(&output.stderr);
            let names_it = said.contains("does not answer") || said.contains("did not answer");
            let shows = output.status.success();
            assert!(shows || names_it, "{arguments:?} {part}: {said}");
            if part == "cwd" && options[0] != "trace" {
                assert!(shows && said.contains("8 B"), "the directory is not needed: {arguments:?}: {said}");
            }
            wait_until_let_go(process.0.id());
        }
    });
}

/// Starts weir in a process group of its own with a command that no signal ends. Returns weir when the command sleeps.
fn start_unkillable(dir: &Path, options: &[&str]) -> Child {
    let mount = dir.join("mount").display().to_string();
    let mut command = weir(dir, &[options, &["--", "./silent_mount", &mount, "read"]].concat());
    common::with_signals(&mut command).current_dir(dir).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut weir = command.spawn().expect("it starts");
    assert!(wait_for_line(&mut weir, "ready\n"), "{options:?}");
    weir
}

/// Sends a signal to the group of weir, as a terminal does.
fn send(weir: &Child, signal: &str) {
    let group = format!("-{}", weir.id());
    assert!(Command::new("kill").args(["-s", signal, "--", &group]).status().expect("kill").success());
}

/// Asserts that weir ends with this status and a sentence, though its command sleeps on. Ends the command.
fn assert_leaves(dir: &Path, mut weir: Child, options: &[&str], status: i32) {
    let mut errors = String::new();
    let mut stderr = weir.stderr.take().expect("a pipe");
    common::wait_for("weir ends", || weir.try_wait().expect("a child").is_some());
    assert_eq!(weir.wait().expect("its status").code(), Some(status), "{options:?}");
    let own = dir.join("silent_mount").canonicalize().expect("a path");
    let processes = || {
        let find = Command::new("pgrep").args(["-x", "silent_mount"]).output().expect("pgrep");
        let pids = text(&find.stdout).lines().map(str::to_owned).collect::<Vec<_>>();
        let is_own =
            |pid: &String| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == own);
        pids.into_iter().filter(is_own).collect::<Vec<_>>()
    };
    let sleeps = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains("State:\tD") && status.contains("TracerPid:\t0")
    };
    common::wait_for("the command still sleeps, untraced", || processes().iter().any(sleeps));
    // One of them is the server, without which the command ends.
    for pid in processes() {
        Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
    }
    std::io::Read::read_to_string(&mut stderr, &mut errors).expect("text");
    assert!(
        errors.contains("(silent_mount) sleeps in read, and no signal ends that"),
        "{options:?}: {errors}"
    );
}

#[test]
fn the_second_interrupt_ends_weir_before_a_command_that_no_signal_ends() {
    let test = "the_second_interrupt_ends_weir_before_a_command_that_no_signal_ends";
    let Some(_dir) = built(test) else { return };
    let runs = ["--max-delay=20ms", "--rescue", "--fix-fork", "--pty", "--coalesce"]
        .map(|option| vec!["run", option]);
    let traces = engines().iter().map(|engine| vec!["trace", "--engine", engine]);
    let all: Vec<_> = runs.into_iter().chain(traces).collect();
    std::thread::scope(|threads| {
        for options in &all {
            threads.spawn(move || {
                let dir = built(test).expect("it could start before");
                let weir = start_unkillable(dir.path(), options);
                send(&weir, "INT");
                // The first one is the business of the command.
                common::wait_for("it arrives", || {
                    let status = std::fs::read_to_string(format!("/proc/{}/status", weir.id()));
                    !status.expect("weir goes on").contains("ShdPnd:\t0000000000000002")
                });
                send(&weir, "INT");
                assert_leaves(dir.path(), weir, options, 130);
            });
        }
    });
}

#[test]
fn one_sigterm_ends_weir_before_a_command_that_no_signal_ends() {
    let test = "one_sigterm_ends_weir_before_a_command_that_no_signal_ends";
    let Some(dir) = built(test) else { return };
    let options = ["run", "--max-delay", "20ms"];
    let weir = start_unkillable(dir.path(), &options);
    send(&weir, "TERM");
    assert_leaves(dir.path(), weir, &options, 143);
}

/// Runs weir with such a mount of user 65534 in the environment of weir itself, which root may ask.
fn run_in_silence(dir: &Path, variables: &[&str], options: &[&str], arguments: &[&str]) -> Output {
    let mount = dir.join("mount").display().to_string();
    let weir = weir(dir, arguments);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", TIMEOUT, "./silent_mount", &mount]).args(options).arg(weir.get_program());
    command.args(weir.get_args()).current_dir(dir).stdin(Stdio::null());
    for name in variables {
        command.env(name, &mount);
    }
    let output = command.output().expect("timeout(1)");
    let status = output.status.code();
    assert!(status.is_some(), "{variables:?} {options:?} {arguments:?} hangs: {}", text(&output.stderr));
    output
}

#[test]
fn directories_of_weir_that_another_user_serves_are_left_alone() {
    let test = "directories_of_weir_that_another_user_serves_are_left_alone";
    if !common::is_root() {
        return skip(test, "it needs root");
    }
    let Some(dir) = built(test) else { return };
    let variables =
        ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "HOME"];
    let own = std::process::id().to_string();
    // The commands ask nothing about their working directory.
    let cases: [(&[&str], i32); 9] = [
        (&["trace", "--json", "-", "--", "true"], 0),
        (&["trace", "--engine", "ptrace", "--", "true"], 0),
        (&["run", "--rescue", "--", "true"], 0),
        (&["run", "-oL", "--max-delay", "20ms", "--coalesce", "--", "true"], 0),
        (&["peek", &own], 0),
        (&["top", "--once", "-i", "100ms", "--pid", &own], 0),
        (&["advise", "-y"], 1),
        (&["bench", "write", "--budget", "1s"], 1),
        (&["lab", "doubled-at-fork", "--quick"], 1),
    ];
    let check = |arguments: &[&str], status: i32| {
        for (variables, options) in [(&variables[..], &[][..]), (&[], &["--cwd"])] {
            let output = run_in_silence(dir.path(), variables, options, arguments);
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{options:?} {arguments:?}: {errors}");
            let has_sentence = errors.contains("another user serves it");
            assert_eq!(has_sentence, status == 1, "{options:?} {arguments:?}: {errors}");
        }
    };
    let check = &check;
    std::thread::scope(|threads| {
        for (arguments, status) in &cases {
            threads.spawn(move || check(arguments, *status));
        }
    });
}
