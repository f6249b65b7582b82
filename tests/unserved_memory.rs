//! A process whose stream buffer is in memory that no program serves (userfaultfd(2)) hangs every read of that memory.
//! weir says so, shows other processes, and ends.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::limited::{TIMEOUT, assert_no_hang, compile, limited};
use common::{KillOnDrop, disk_dir, skip, text, wait_until_let_go, weir};
use serde_json::Value;

/// The arguments of the program: its user is that of weir, or another one, which needs root.
fn users() -> &'static [&'static [&'static str]] {
    if common::is_root() { &[&[], &["65534"]] } else { &[&[]] }
}

/// Starts the program that has such memory; None if that is not permitted.
fn start_unserved(test: &str, dir: &Path, user: &[&str]) -> Option<KillOnDrop> {
    if !compile(dir, "unserved") {
        skip(test, "gcc does not build its program");
        return None;
    }
    let mut command = Command::new(dir.join("unserved"));
    let mut child: Child = command.args(user).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("a line");
    let running = KillOnDrop(child);
    if line == "ready\n" {
        return Some(running);
    }
    skip(test, "userfaultfd(2) is not permitted");
    None
}

/// Runs weir until it ends or TIMEOUT is over.
fn run_limited(dir: &Path, arguments: &[&str]) -> Output {
    let output = limited(dir, arguments).output().expect("timeout(1)");
    assert_no_hang(arguments, &output);
    output
}

#[test]
fn peek_and_flush_name_the_process() {
    let dir = disk_dir();
    for user in users() {
        let test = "peek_and_flush_name_the_process";
        let Some(process) = start_unserved(test, dir.path(), user) else { return };
        let pid = process.0.id().to_string();
        for verb in ["peek", "flush"] {
            let output = run_limited(dir.path(), &[verb, &pid]);
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{verb}: {errors}");
            assert!(
                errors.contains(&format!("process {pid} (unserved) does not answer")),
                "{verb}: {errors}"
            );
        }
        wait_until_let_go(process.0.id());
    }
}

#[test]
fn peek_shows_the_other_processes() {
    let dir = disk_dir();
    let Some(process) =
        start_unserved("peek_shows_the_other_processes", dir.path(), users().last().expect("a user"))
    else {
        return;
    };
    let mut grep = Command::new("grep");
    let grep = grep.arg("e").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("grep starts");
    let mut other = KillOnDrop(grep);
    other.0.stdin.as_mut().expect("a pipe").write_all(b"hello\n").expect("a line");
    let pids = [process.0.id(), other.0.id()].map(|pid| pid.to_string());
    let output = run_limited(dir.path(), &["peek", &pids[0], &pids[1]]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains(&format!("({})", pids[1])), "{}", text(&output.stdout));
}

#[test]
fn top_shows_all_others() {
    let dir = disk_dir();
    let Some(process) = start_unserved("top_shows_all_others", dir.path(), users().last().expect("a user"))
    else {
        return;
    };
    let pid = process.0.id();
    let mut grep = Command::new("grep");
    let grep = grep.arg("e").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("grep starts");
    let other = KillOnDrop(grep);
    let pids = [pid, other.0.id()].map(|pid| pid.to_string());
    let arguments = ["top", "--once", "--quiet", "--json", "-", "--pid", &pids[0], "--pid", &pids[1]];
    let output = run_limited(dir.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let processes = document["processes"].as_array().expect("processes");
    let one = processes.iter().find(|one| one["pid"] == pid).expect("the process");
    assert_eq!((&one["unanswered"], &one["waiting"]), (&true.into(), &Value::Null), "{one:#}");
    assert!(one["command"].as_str().is_some_and(|command| command.contains("unserved")), "{one:#}");
    assert!(document["unanswered"].as_u64().is_some_and(|number| number >= 1));
    let other = processes.iter().find(|one| one["pid"] == other.0.id()).expect("the other process");
    assert!(other["waiting"].is_array(), "its buffers are read: {other:#}");
    let output = run_limited(dir.path(), &["top", "--once", "--pid", &pid.to_string()]);
    let table = text(&output.stdout);
    assert!(
        table.contains(&format!("1 process did not answer, so its buffers are unknown: unserved {pid}")),
        "{table}"
    );
}

/// Starts `weir VERB OPTIONS… -- ./unserved`; None if the program cannot have such memory.
fn start_under(test: &str, dir: &Path, arguments: &[&str]) -> Option<(Child, String)> {
    start_command(test, dir, &[arguments, &["--", "./unserved"]].concat())
}

/// As [`start_under`], with the command in the arguments.
fn start_command(test: &str, dir: &Path, arguments: &[&str]) -> Option<(Child, String)> {
    drop(start_unserved(test, dir, &[])?);
    let (mut command, out) = (weir(dir, arguments), dir.join("out"));
    command.current_dir(dir);
    command.stdin(Stdio::piped()).stdout(std::fs::File::create(&out).expect("a file"));
    let weir = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut child = String::new();
    common::wait_for("the program is ready or stopped in its work", || {
        let children = format!("/proc/{0}/task/{0}/children", weir.id());
        child = std::fs::read_to_string(children).unwrap_or_default().trim().to_string();
        let comm = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        comm == "unserved\n"
            && (arguments[0] == "trace" || std::fs::read(&out).is_ok_and(|out| out == b"ready\n"))
    });
    Some((weir, child))
}

/// Waits until weir has ended, and fails if it hangs.
fn wait_for_end(weir: &mut Child) {
    let limit = Duration::from_secs(TIMEOUT.parse().expect("seconds"));
    let began = Instant::now();
    while weir.try_wait().expect("a child").is_none() {
        if began.elapsed() > limit {
            weir.kill().expect("a signal");
            panic!("weir hangs");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns weir's output when it has ended, and fails if it hangs.
fn output_of(mut weir: Child) -> Output {
    wait_for_end(&mut weir);
    weir.wait_with_output().expect("its output")
}

#[test]
fn run_detaches_and_passes_the_status_on() {
    let dir = disk_dir();
    for options in [&["run", "--max-delay", "20ms"][..], &["run", "--rescue"]] {
        let test = "run_detaches_and_passes_the_status_on";
        let Some((weir, child)) = start_under(test, dir.path(), options) else { return };
        if options[1] == "--max-delay" {
            wait_until_let_go(child.parse().expect("a process"));
        }
        assert!(Command::new("kill").args(["-KILL", &child]).status().expect("kill").success());
        let output = output_of(weir);
        let errors = text(&output.stderr);
        assert!(
            errors.contains(&format!("process {child} (unserved) does not answer")),
            "{options:?}: {errors}"
        );
        assert_eq!(output.status.code(), Some(137), "{options:?}: {errors}");
    }
}

/// Waits until a process that weir has started reads the memory of another one and does not come back. It does so for 2 s: a
/// test that got no processor then sees nothing, and goes on after 10 s. What weir prints at its end tells that it has read.
fn wait_for_read(weir: u32) {
    let read = if cfg!(target_arch = "x86_64") { "310 " } else { "270 " };
    let children_of = |tid: String| {
        let path = format!("/proc/{weir}/task/{tid}/children");
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let is_read = || {
        let threads = std::fs::read_dir(format!("/proc/{weir}/task")).expect("its threads");
        let names = threads.flatten().filter_map(|thread| thread.file_name().into_string().ok());
        let children: String = names.map(children_of).collect::<Vec<_>>().join(" ");
        children.split_whitespace().any(|child| {
            std::fs::read_to_string(format!("/proc/{child}/syscall")).is_ok_and(|call| call.starts_with(read))
        })
    };
    let began = Instant::now();
    while !is_read() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills weir and returns its standard error.
fn errors_after_kill(mut weir: std::process::Child) -> String {
    weir.kill().expect("it runs");
    let output = weir.wait_with_output().expect("its output");
    text(&output.stderr)
}

#[test]
fn the_others_are_drained_and_rescued() {
    let test = "the_others_are_drained_and_rescued";
    if !common::is_root() {
        return skip(test, "it needs root");
    }
    let dir = disk_dir();
    let Some(unserved) = start_unserved(test, dir.path(), &["65534"]) else { return };
    drop(unserved);
    assert!(compile(dir.path(), "late"));
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let file = dir.path().join("file");
    // It ends with the status of the program whose memory does not answer.
    let script = "exec 3<&0; ./unserved 65534 <&3 & first=$!; ./late file 65534 >late.out <fifo & wait $first; \
                  first=$?; wait; exit $first";
    let out = dir.path().join("late.out");
    for options in [&["run", "--max-delay", "20ms"][..], &["run", "--rescue"]] {
        let _ = std::fs::remove_file(&out);
        let mut command = weir(dir.path(), &[options, &["--", "sh", "-c", script]].concat());
        command.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut weir = command.spawn().expect("it starts");
        // It does not wait for the reader, which starts after weir has read the memory of the first program.
        let mut input = std::fs::File::options().read(true).write(true).open(&fifo).expect("a pipe");
        let mut line = String::new();
        let mut output = BufReader::new(weir.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        if options[1] == "--max-delay" {
            wait_for_read(weir.id());
        }
        input.write_all(b"\n").expect("it reads");
        common::wait_for("pending bytes", || {
            std::fs::read_to_string(&out).is_ok_and(|out| out.ends_with("pending\n"))
        });
        if options[1] == "--max-delay" {
            let is_written = || std::fs::read(&file).is_ok_and(|all| all == b"first ");
            assert!(common::comes_true(is_written), "nothing is written: {}", errors_after_kill(weir));
        }
        weir.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        let mut stderr = BufReader::new(weir.stderr.take().expect("a pipe"));
        if options[1] == "--rescue" {
            let find = Command::new("pgrep").args(["-g", "0", "-x", "late"]).output().expect("pgrep");
            for pid in text(&find.stdout).lines() {
                let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
                if directory == dir.path().canonicalize().expect("a directory") {
                    assert!(Command::new("kill").args(["-KILL", pid]).status().expect("kill").success());
                }
            }
        } else {
            input.write_all(b"\n").expect("it reads");
        }
        wait_for_end(&mut weir);
        drop(output);
        let mut errors = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut errors).expect("text");
        assert_eq!(weir.wait().expect("its status").code(), Some(7), "{options:?}: {errors}");
        assert_eq!(errors.matches("(unserved) does not answer").count(), 1, "{options:?}: {errors}");
        let expected = if options[1] == "--rescue" { "first " } else { "first second" };
        assert_eq!(text(&std::fs::read(&file).expect("its file")), expected, "{options:?}: {errors}");
    }
}

/// Memory of another user's process is read by a child, so weir itself never hangs and goes on with all other processes.
#[test]
fn a_stranger_does_not_end_the_work_of_weir() {
    let test = "a_stranger_does_not_end_the_work_of_weir";
    if !common::is_root() {
        return skip(test, "it needs root");
    }
    let dir = disk_dir();
    for options in [&["run", "--max-delay", "20ms"][..], &["run", "--rescue"]] {
        let command = [options, &["--", "./unserved", "65534"]].concat();
        let Some((mut weir, child)) = start_command(test, dir.path(), &command) else { return };
        common::wait_for("the process is of another user", || {
            std::fs::metadata(format!("/proc/{child}")).is_ok_and(|about| about.uid() == 65534)
        });
        // With --rescue weir reads when the command has ended. With --max-delay it may have no time for it then.
        if options[1] == "--max-delay" {
            wait_for_read(weir.id());
        }
        weir.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        let output = output_of(weir);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{options:?}: {errors}");
        assert!(
            errors.contains(&format!("process {child} (unserved) does not answer")),
            "{options:?}: {errors}"
        );
        assert!(!errors.contains("detaches from all processes"), "{options:?}: {errors}");
    }
}

#[test]
fn trace_ends_with_the_command() {
    let dir = disk_dir();
    for engine in ["ptrace", "auto"] {
        let arguments = ["trace", "--engine", engine];
        let Some((weir, child)) = start_under("trace_ends_with_the_command", dir.path(), &arguments) else {
            return;
        };
        std::thread::sleep(Duration::from_millis(300));
        assert!(Command::new("kill").args(["-TERM", &child]).status().expect("kill").success());
        let output = output_of(weir);
        assert_eq!(output.status.code(), Some(143), "{engine}: {}", text(&output.stderr));
    }
}

#[test]
fn the_output_of_a_terminal_is_copied_after_weir_has_detached() {
    let dir = disk_dir();
    let test = "the_output_of_a_terminal_is_copied_after_weir_has_detached";
    let options = ["run", "--pty", "--max-delay", "20ms"];
    let Some((mut weir, child)) = start_under(test, dir.path(), &options) else { return };
    wait_until_let_go(child.parse().expect("a process"));
    weir.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    let output = output_of(weir);
    let errors = text(&output.stderr);
    assert!(errors.contains(&format!("process {child} (unserved) does not answer")), "{errors}");
    assert_eq!(output.status.code(), Some(7), "{errors}");
    assert_eq!(std::fs::read(dir.path().join("out")).expect("its output"), b"ready\nagain\n");
}

#[test]
fn the_second_interrupt_ends_a_weir_that_has_detached() {
    let dir = disk_dir();
    let test = "the_second_interrupt_ends_a_weir_that_has_detached";
    let options = ["run", "--pty", "--max-delay", "20ms"];
    let Some((mut weir, child)) = start_under(test, dir.path(), &options) else { return };
    wait_until_let_go(child.parse().expect("a process"));
    let proc_file = |name: &str| {
        std::fs::read_to_string(format!("/proc/{}/{name}", weir.id())).expect("weir still waits")
    };
    let interrupt = || {
        assert!(Command::new("kill").args(["-INT", &weir.id().to_string()]).status().expect("kill").success())
    };
    common::wait_for("weir only waits", || proc_file("cmdline").contains("--weir-wait-for"));
    interrupt();
    let is_pending = |line: &str| line.starts_with("ShdPnd:") && !line.ends_with("0000000000000000");
    common::wait_for("the first signal arrives", || !proc_file("status").lines().any(is_pending));
    interrupt();
    let mut input = weir.stdin.take().expect("a pipe");
    wait_for_end(&mut weir);
    assert_eq!(weir.wait().expect("its status").code(), Some(130));
    input.write_all(b"\n").expect("the command still reads");
    let out = dir.path().join("out");
    common::wait_for("its output", || std::fs::read(&out).expect("output") == b"ready\nagain\n");
}
