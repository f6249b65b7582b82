//! weir where a seccomp filter forbids pidfd_getfd(2) and kcmp(2), as in a container of Docker: bytes for inherited files and for pipes
//! still go where they belong, and weir says what it cannot reach.

mod common;

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::programs::compile_c;
use common::{WEIR, disk_dir, is_root, names, skip, text, wait_for, weir};

const LINE: &str = "a line\n";

/// Compiles the programs; false without a compiler.
fn prepare(test: &str, dir: &Path) -> bool {
    let is_ready = ["docker_profile", "prints"]
        .iter()
        .all(|name| compile_c(&format!("forbidden_calls/{name}"), &[], dir));
    if !is_ready {
        skip(test, "no gcc with the kernel's headers");
    }
    is_ready
}

/// Returns a command in the profile.
fn restricted(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(dir.join("docker_profile"));
    command.args(words).current_dir(dir);
    command
}

/// Asserts that the line is what a program, which runs on, has written to its pipe.
fn assert_line_comes(child: &mut Child) {
    let mut line = [0; LINE.len()];
    child.stdout.take().expect("a pipe").read_exact(&mut line).expect("the line");
    assert_eq!(text(&line), LINE);
}

/// Ends a command whose program waits, and returns what it wrote to standard error.
fn end(mut child: Child) -> String {
    Command::new("pkill").args(["-KILL", "-P", &child.id().to_string()]).status().expect("pkill");
    let mut errors = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    child.wait().expect("it has ended");
    errors
}

#[test]
fn pending_bytes_are_written_early_to_a_pipe_and_a_file() {
    let dir = disk_dir();
    if !prepare("pending_bytes_are_written_early_to_a_pipe_and_a_file", dir.path()) {
        return;
    }
    let command = |out: Stdio, how: &[&str]| {
        let words = [&[WEIR, "run", "--max-delay", "20ms", "--", "./prints", "-"], how].concat();
        restricted(dir.path(), &words).stdout(out).stderr(Stdio::piped()).spawn().expect("weir starts")
    };
    for how in [&[][..], &["receive"], &["eventfd"], &["timerfd"], &["signalfd"], &["inotify"]] {
        let mut child = command(Stdio::piped(), how);
        assert_line_comes(&mut child);
        let errors = end(child);
        assert!(errors.contains("out of reach in this C program: files and sockets"), "{errors}");
        assert!(errors.contains("pidfd_getfd") && !errors.contains("not written early"), "{errors}");
    }

    let path = dir.path().join("out");
    let child = command(File::create(&path).expect("a file").into(), &[]);
    let read = || std::fs::read_to_string(&path).expect("the file");
    wait_for("the line in the file", || !read().is_empty());
    let errors = end(child);
    assert_eq!(read(), LINE);
    assert!(!errors.contains("not written early"), "{errors}");
}

#[test]
fn an_unprivileged_user_writes_early_to_a_pipe_of_root() {
    let (test, dir) = ("an_unprivileged_user_writes_early_to_a_pipe_of_root", disk_dir());
    if !prepare(test, dir.path()) {
        return;
    }
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("an own directory");
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", WEIR];
    // Such a user cannot open root's pipe anew.
    if !restricted(dir.path(), &[&user[..], &["--version"]].concat())
        .output()
        .is_ok_and(|it| it.status.success())
    {
        return skip(test, "weir cannot run as another user here");
    }
    let words = [&user[..], &["run", "--max-delay", "20ms", "--", "./prints", "-"]].concat();
    let mut command = restricted(dir.path(), &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    assert_line_comes(&mut child);
    let errors = end(child);
    assert!(!errors.contains("not written early"), "{errors}");
}

#[test]
fn a_receive_with_a_timeout_never_fails_with_eintr() {
    let dir = disk_dir();
    if !prepare("a_receive_with_a_timeout_never_fails_with_eintr", dir.path()) {
        return;
    }
    let words = [WEIR, "run", "--max-delay", "5ms", "--", "./prints", "-", "timed"];
    let output = restricted(dir.path(), &words).output().expect("weir starts");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), LINE));
}

#[test]
fn the_bytes_of_a_killed_program_go_to_its_pipe_or_are_saved() {
    let dir = disk_dir();
    if !prepare("the_bytes_of_a_killed_program_go_to_its_pipe_or_are_saved", dir.path()) {
        return;
    }
    let run = |out: &str| {
        let words = [WEIR, "run", "--rescue", "--", "./prints", out, "kill"];
        restricted(dir.path(), &words).output().expect("weir starts")
    };
    let output = run("-");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), (LINE, Some(137)));
    assert!(text(&output.stderr).contains("rescued 7 B"), "{}", text(&output.stderr));

    let output = run("own");
    let errors = text(&output.stderr);
    assert!(errors.contains("saved 7 B") && errors.contains("--cap-add SYS_PTRACE"), "{errors}");
    assert_eq!(std::fs::read_to_string(dir.path().join("own")).expect("a file"), "");
    let saved = names(dir.path()).into_iter().find(|name| name.ends_with(".bin")).expect("a saved file");
    assert_eq!(std::fs::read_to_string(dir.path().join(saved)).expect("text"), LINE);
}

#[test]
fn gathered_bytes_of_a_killed_program_are_written() {
    let dir = disk_dir();
    if !prepare("gathered_bytes_of_a_killed_program_are_written", dir.path()) {
        return;
    }
    let digits = "0123456789".repeat(10);
    std::fs::write(dir.path().join("in"), &digits).expect("a file");
    let input = File::open(dir.path().join("in")).expect("the file");
    let words = [WEIR, "run", "--coalesce", "--max-delay", "60s", "--", "./prints", "-", "copy"];
    let output = restricted(dir.path(), &words).stdin(input).output().expect("weir starts");
    let errors = text(&output.stderr);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), (&digits[..50], Some(142)), "{errors}");
    assert!(errors.contains("has read bytes ahead") && errors.contains("EPERM"), "{errors}");
}

#[test]
fn flush_writes_to_a_pipe_and_names_the_filter_for_a_file() {
    let dir = disk_dir();
    if !prepare("flush_writes_to_a_pipe_and_names_the_filter_for_a_file", dir.path()) {
        return;
    }
    let start = |out: &str| {
        let mut command = restricted(dir.path(), &["./prints", out]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    };
    let flush = |child: &Child| {
        let pid = child.id().to_string();
        let peek = || weir(dir.path(), &["peek", &pid]).output().expect("weir starts");
        wait_for("a pending line", || text(&peek().stdout).contains("7 B"));
        restricted(dir.path(), &[WEIR, "flush", &pid]).output().expect("weir starts")
    };
    let mut child = start("-");
    let output = flush(&child);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_line_comes(&mut child);
    child.kill().and_then(|()| child.wait()).expect("it ends");

    let mut child = start("own");
    let output = flush(&child);
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success() && shown.contains("pidfd_getfd: EPERM"), "{shown}");
    assert!(shown.contains("--cap-add SYS_PTRACE"), "{shown}");
    child.kill().and_then(|()| child.wait()).expect("it ends");
}

#[test]
fn root_without_the_capability_to_trace_reads_its_own_processes() {
    let (test, dir) = ("root_without_the_capability_to_trace_reads_its_own_processes", disk_dir());
    if !prepare(test, dir.path()) {
        return;
    }
    let container = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all"];
    let within = |words: &[&str]| restricted(dir.path(), &[&container[..], words].concat());
    if !is_root() || !within(&["true"]).output().is_ok_and(|output| output.status.success()) {
        return skip(test, "it needs root and setpriv");
    }
    let mut child = within(&["./prints", "-"]).stdout(Stdio::piped()).spawn().expect("the program starts");
    let pid = child.id().to_string();
    let peek = || within(&[WEIR, "peek", &pid]).output().expect("weir starts");
    wait_for("a pending line", || text(&peek().stdout).contains("7 B"));
    let top = within(&[WEIR, "top", "--once", "--json", "-"]).output().expect("weir starts");
    let top: serde_json::Value = serde_json::from_slice(&top.stdout).expect("a document");
    let processes = top["processes"].as_array().expect("processes");
    let one = processes.iter().find(|one| one["pid"] == child.id()).expect("the process");
    assert_eq!(one["pending_bytes"], 7, "{one}");
    child.kill().and_then(|()| child.wait()).expect("it ends");
}

#[test]
fn bytes_that_nobody_takes_are_not_called_rescued() {
    let (test, dir) = ("bytes_that_nobody_takes_are_not_called_rescued", disk_dir());
    if !prepare(test, dir.path()) {
        return;
    }
    let script = "mount -t tmpfs -o size=16k none full || exit 9\n\
                  head -c 20000 /dev/zero > full/fill 2> /dev/null; cd full\n\
                  TMPDIR=$PWD exec \"$1\" run --rescue -- ../prints - kill > out";
    std::fs::create_dir(dir.path().join("full")).expect("a directory");
    let words = ["-m", "sh", "-c", script, "sh", WEIR];
    let output = Command::new("unshare").args(words).current_dir(dir.path()).output().expect("unshare");
    if output.status.code() == Some(9) || output.status.code() == Some(1) {
        return skip(test, "it needs root and mount namespaces");
    }
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(137), "{errors}");
    assert!(errors.contains("7 bytes of process") && errors.contains("are lost: ENOSPC"), "{errors}");
    assert!(!errors.contains("rescued"), "{errors}");
}

#[test]
fn as_process_1_weir_rescues_what_runs_on_after_the_command() {
    let (test, dir) = ("as_process_1_weir_rescues_what_runs_on_after_the_command", disk_dir());
    if !prepare(test, dir.path()) {
        return;
    }
    let words = ["--pid", "--fork", "--mount-proc", WEIR, "run", "--rescue", "--", "sh", "-c"];
    let script = "./prints - & while ! grep -q pause /proc/$!/wchan /proc/$!/syscall && ! grep -q '^34 ' /proc/$!/syscall\n\
                  do sleep 0.05; done 2> /dev/null; exit 3";
    let output =
        Command::new("unshare").args(words).arg(script).current_dir(dir.path()).output().expect("unshare");
    if output.status.code() == Some(1) {
        return skip(test, "it needs root and PID namespaces");
    }
    let errors = text(&output.stderr);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), (LINE, Some(3)), "{errors}");
    assert!(errors.contains("rescued 7 B of prints") && !errors.contains("on after the command"), "{errors}");
}

#[test]
fn doctor_says_what_the_filter_forbids() {
    let dir = disk_dir();
    if !prepare("doctor_says_what_the_filter_forbids", dir.path()) {
        return;
    }
    let output = restricted(dir.path(), &[WEIR, "doctor", "--json", "-"]).output().expect("weir starts");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let abilities = document["abilities"].as_array().expect("abilities");
    let one = abilities.iter().find(|one| one["name"] == "open-files").expect("the ability");
    assert_eq!(one["works"], false, "{one}");
    assert!(one["advice"].as_str().is_some_and(|advice| advice.contains("SYS_PTRACE")), "{one}");
}
