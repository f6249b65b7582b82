//! Signals, job control, and the death of weir itself.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use common::{BUILDS, children, compile, folder, supervised, text, until};

fn send(pid: u32, signal: i32) {
    // SAFETY: a signal to a process that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns whether no member of a process's group has a parent outside of the group in the same session (setpgid(2)).
fn is_orphaned(pid: u32) -> bool {
    // Of /proc/PID/stat behind the name: state, parent, process group, session.
    let numbers = |pid: u32| -> Option<(u32, u32, u32)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut words = stat.rsplit_once(") ")?.1.split(' ').skip(1).map(|word| word.parse().ok());
        Some((words.next()??, words.next()??, words.next()??))
    };
    let (_, group, session) = numbers(pid).expect("a process");
    let pids = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    !pids.filter_map(numbers).filter(|&(_, its_group, _)| its_group == group).any(|(parent, ..)| {
        numbers(parent).is_some_and(|(_, other, its_session)| other != group && its_session == session)
    })
}

/// Starts a command and waits for its first line. Returns weir and the command's process number.
fn start(options: &[&str], words: &[&str]) -> (Child, u32) {
    let mut command: Command = supervised(options, words);
    let reset_sighup = || {
        // SAFETY: signal(2) is async-signal-safe. Under nohup(1) the command would ignore SIGHUP.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe { command.pre_exec(reset_sighup) };
    let mut weir = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("weir starts");
    let mut line = String::new();
    BufReader::new(weir.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "pending\n");
    let children = children(weir.id());
    assert_eq!(children.len(), 1, "{children:?}");
    (weir, children[0])
}

#[test]
fn signals_to_weir_reach_the_command() {
    let folder = folder();
    let Some(program) = compile("supervise_signals", BUILDS[0], "ends.c", folder.path()) else { return };
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1] {
        let (mut weir, _) = start(&["--rescue"], &[text(&program), "wait"]);
        send(weir.id(), signal);
        assert_eq!(weir.wait().expect("its end").code(), Some(128 + signal));
    }
}

#[test]
fn a_stopped_command_stops_weir() {
    let folder = folder();
    let Some(program) = compile("supervise_signals", BUILDS[0], "ends.c", folder.path()) else { return };
    for signal in [libc::SIGSTOP, libc::SIGTSTP] {
        let (mut weir, pid) = start(&["--rescue", "--max-delay", "5"], &[text(&program), "wait"]);
        send(pid, signal);
        // SIGTSTP has no effect in an orphaned process group, in which the tests may run.
        if signal == libc::SIGSTOP || !is_orphaned(pid) {
            until("weir stops", || state(weir.id()) == Some('T'));
            assert!(matches!(state(pid), Some('T' | 't')), "{:?}", state(pid));
            send(weir.id(), libc::SIGCONT);
            until("both go on", || state(weir.id()) == Some('S') && state(pid) == Some('S'));
        }
        send(pid, libc::SIGTERM);
        assert_eq!(ended(&mut weir), Some(143));
    }
}

/// Waits for the end of weir, with a limit, and returns its exit status.
fn ended(weir: &mut Child) -> Option<i32> {
    let mut status = None;
    until("weir ends", || {
        status = weir.try_wait().expect("its state");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// A signal to the command alone: cpulimit(1) and supervisors stop and continue a program so.
#[test]
fn a_stopped_command_can_be_continued_or_killed_without_weir() {
    let folder = folder();
    let Some(program) = compile("supervise_signals", BUILDS[0], "ends.c", folder.path()) else { return };
    let (mut weir, pid) = start(&["--rescue", "--max-delay", "5"], &[text(&program), "wait"]);
    for _ in 0..3 {
        send(pid, libc::SIGSTOP);
        until("weir stops", || state(weir.id()) == Some('T'));
        assert_eq!(children(weir.id()).len(), 2, "the command and the process that watches it");
        send(pid, libc::SIGCONT);
        until("both go on", || state(weir.id()) == Some('S') && state(pid) == Some('S'));
        until("nothing watches the command", || children(weir.id()) == [pid]);
    }
    send(pid, libc::SIGSTOP);
    until("weir stops", || state(weir.id()) == Some('T'));
    send(pid, libc::SIGKILL);
    assert_eq!(ended(&mut weir), Some(137));
}

#[test]
fn a_command_outlives_weir() {
    let folder = folder();
    let Some(program) = compile("supervise_signals", BUILDS[0], "ends.c", folder.path()) else { return };
    for options in [&["--rescue"][..], &["--rescue", "--max-delay", "5"]] {
        let (mut weir, pid) = start(options, &[text(&program), "wait"]);
        send(weir.id(), libc::SIGKILL);
        weir.wait().expect("its end");
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(state(pid), Some('S'), "{options:?}");
        send(pid, libc::SIGTERM);
        until("it ends", || state(pid).is_none_or(|state| state == 'Z'));
    }
}

/// weir stops the program at each delay, and for each ignored signal. The program sees neither: its calls do not end, and
/// its timeouts pass.
#[test]
fn stops_neither_end_calls_nor_delay_timeouts() {
    let folder = folder();
    let Some(program) = compile("supervise_signals", BUILDS[0], "timeouts.c", folder.path()) else { return };
    for options in [&["--rescue"][..], &["--max-delay", "20"]] {
        let mut command = supervised(options, &[text(&program)]);
        let output = common::output(&mut command);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
