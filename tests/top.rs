//! `weir top`: one table for scripts (--once), and the live screen on a terminal.

mod common;
#[path = "peek_flush/programs.rs"]
mod programs;
#[path = "common/session.rs"]
mod session;

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::schema::assert_schema;
use common::{WEIR, disk_dir, is_root, names, run, skip, text, wait_for, weir};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use session::Session;

/// A child process. Killed on drop.
struct Running(Child);

impl Running {
    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts dd with one byte per call, without end.
fn start_bytewise_dd() -> Running {
    let mut command = Command::new("dd");
    Running(command.args(["if=/dev/zero", "of=/dev/null", "bs=1", "status=none"]).spawn().expect("dd starts"))
}

/// Starts a grep that has "hello\n" in its output buffer and waits for more input.
fn start_pending_grep() -> Running {
    let mut command = Command::new("grep");
    let mut child =
        command.arg("e").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("grep starts");
    child.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    Running(child)
}

fn top_once(dir: &Path, arguments: &[&str]) -> Value {
    let output = run(dir, &[&["top", "--once", "--quiet", "--json", "-"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_schema(&document, "weir-top-1");
    document
}

fn process(document: &Value, pid: u32) -> Value {
    let processes = document["processes"].as_array().expect("processes");
    processes.iter().find(|one| one["pid"] == pid).unwrap_or_else(|| panic!("{pid}: {document:#}")).clone()
}

/// Without the right to start a thread no counters are read, which is no lack of time.
#[test]
fn a_limit_of_threads_is_reported() {
    let dir = if is_root() { common::for_nobody() } else { disk_dir() };
    let weir = match is_root() {
        true => common::as_nobody(dir.path(), &["top", "--once", "-i", "100ms"]),
        false => weir(dir.path(), &["top", "--once", "-i", "100ms"]),
    };
    let mut command = Command::new("prlimit");
    command.arg("--nproc=0:0").arg(weir.get_program()).args(weir.get_args()).current_dir(dir.path());
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().expect("prlimit(1)");
    let said = text(&output.stdout) + &text(&output.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("processes were not read: no thread could be started"), "{said}");
    assert!(!said.contains("no time left"), "{said}");
}

#[test]
fn tiny_calls_and_pending_bytes_are_listed() {
    let (dir, writer, holder) = (disk_dir(), start_bytewise_dd(), start_pending_grep());
    let document = top_once(dir.path(), &[]);
    let row = process(&document, writer.pid());
    assert!(row["tiny_calls_s"].as_f64().unwrap() > 0.0, "{row:#}");
    assert!((0.9..1.1).contains(&row["bytes_per_call"].as_f64().unwrap()), "{row:#}");
    assert_eq!((&row["comm"], &row["foreign"]), (&"dd".into(), &false.into()));
    let tiny = |one: &Value| one["tiny_calls_s"].as_f64().unwrap();
    let processes = document["processes"].as_array().unwrap();
    assert!(processes.windows(2).all(|pair| tiny(&pair[0]) >= tiny(&pair[1])), "the most tiny calls first");
    // A sample of all processes of a busy machine has no time for some of them.
    let row = process(&top_once(dir.path(), &["--pid", &holder.pid().to_string()]), holder.pid());
    assert_eq!((&row["pending_bytes"], &row["command"]), (&6.into(), &"grep e".into()));
    let stream = &row["waiting"][0];
    assert_eq!((&stream["fd"], &stream["preview"]), (&1.into(), &"hello\n".into()));
    assert_eq!((&stream["walker"], &stream["from_before"]), (&"glibc".into(), &true.into()));
    assert!(stream["path"].as_str().unwrap().starts_with("pipe:["), "{stream:#}");
    assert!(stream["waits_s"].as_f64().unwrap() >= 0.9, "{stream:#}");
}

#[test]
fn processes_are_selected_sorted_and_filtered() {
    let (dir, writer, holder) = (disk_dir(), start_bytewise_dd(), start_pending_grep());
    let pids = format!("{},{}", writer.pid(), holder.pid());
    let with = |more: &[&str]| top_once(dir.path(), &[&["--pid", &pids, "-i", "200ms"], more].concat());
    let order = |document: &Value| {
        let processes = document["processes"].as_array().unwrap();
        processes.iter().map(|one| one["pid"].as_u64().unwrap() as u32).collect::<Vec<_>>()
    };
    assert_eq!(order(&with(&[])), [writer.pid(), holder.pid()]);
    assert_eq!(order(&with(&["--sort", "pending"])), [holder.pid(), writer.pid()]);
    let first = with(&["--sort", "age", "-n", "1"]);
    assert_eq!((order(&first), &first["found"]), (vec![holder.pid()], &2.into()));
    let filtered = with(&["--filter", "GREP"]);
    assert_eq!((order(&filtered), &filtered["filter"]), (vec![holder.pid()], &"GREP".into()));
}

#[test]
fn without_a_terminal_one_table_is_printed() {
    let (dir, writer, holder) = (disk_dir(), start_bytewise_dd(), start_pending_grep());
    let pids = format!("{},{}", writer.pid(), holder.pid());
    let output = run(dir.path(), &["top", "--pid", &pids, "--json", "t.json", "-i", "300ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stderr),
        "weir: standard output is not a terminal: printing one table, as with --once\n"
    );
    let table = text(&output.stdout);
    assert!(table.starts_with("top · 2 processes · ") && !table.contains('\u{1b}'), "{table}");
    let row = |pid: u32| {
        let pid = pid.to_string();
        table
            .lines()
            .find(|line| line.split_whitespace().next() == Some(&pid))
            .unwrap_or_else(|| panic!("{table}"))
    };
    let of_dd = row(writer.pid()).to_string() + " "; // the line ends with the last cell
    assert!(of_dd.contains(" dd ") && of_dd.contains(" 1 B "), "{table}");
    assert!(row(holder.pid()).contains(" 6 B ") && row(holder.pid()).contains("fd 1 pipe"), "{table}");
    let written = std::fs::read_to_string(dir.path().join("t.json")).unwrap();
    assert_schema(&serde_json::from_str(&written).unwrap(), "weir-top-1");
}

#[test]
fn other_users_processes_are_marked() {
    let test = "other_users_processes_are_marked";
    if !is_root() {
        return skip(test, "needs root");
    }
    let (dir, holder) = (tempfile::tempdir().unwrap(), start_pending_grep());
    let program = dir.path().join("weir");
    common::programs::copy_program(WEIR, &program);
    assert!(Command::new("chmod").arg("755").arg(dir.path()).arg(&program).status().unwrap().success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).current_dir("/");
    command.args(["top", "--once", "-q", "--json", "-", "-i", "200ms", "--pid", &holder.pid().to_string()]);
    let output = command.output().expect("setpriv starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_schema(&document, "weir-top-1");
    let row = process(&document, holder.pid());
    assert_eq!((&row["foreign"], &row["uid"]), (&true.into(), &0.into()));
    assert!(row["reads"].is_null() && row["pending_bytes"].is_null(), "{row:#}");
    assert!(row["system_share"].is_number(), "any user may read the times: {row:#}");
}

#[test]
fn wrong_usage_is_explained() {
    let dir = disk_dir();
    for (arguments, status, words) in [
        (&["top", "--once", "--pid", "4194305"][..], 1, "no process 4194305"),
        (&["top", "--once", "--pid", "0"], 2, "0"),
        (&["top", "--once", "--interval", "1ms"], 2, "at least 100ms"),
        (&["top", "--once", "--interval", "soon"], 2, "is not a duration"),
        (&["top", "--once", "--sort", "luck"], 2, "luck"),
        (&["top", "--once", "--rows", "0"], 2, "0"),
        (&["top", "--once", "--quiet"], 2, "--json"),
        (&["top", "--once", "--json", "no/such/file"], 2, "no/such/file: open: ENOENT"),
        (&["top", "file"], 2, "file"),
    ] {
        let output = run(dir.path(), arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    assert!(names(dir.path()).is_empty());
}

/// Starts the live screen of some processes, with further arguments, on a terminal of `size`.
fn live(dir: &Path, pids: &[u32], more: &[&str], size: (u16, u16)) -> Session {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut command = weir(dir, &["top", "-i", "300ms", "--pid", &pids.join(",")]);
    command.args(more);
    Session::start(command, size.0, size.1)
}

#[test]
fn keys_drive_the_live_screen() {
    let (dir, writer, mut holder) = (disk_dir(), start_bytewise_dd(), start_pending_grep());
    let pids = [writer.pid(), holder.pid()];
    let mut screen = live(dir.path(), &pids, &["--json", "t.json"], (80, 24));
    let line = |text: &str, pid: u32| {
        text.lines().position(|line| line.trim_start().starts_with(&format!("{pid} ")))
    };
    screen.until("both are there", |text| {
        text.contains(" tiny · ")
            && text.contains("6 B")
            && text.contains("grep e")
            && text.contains("q quit")
    });
    assert!(!screen.is_restored(), "it has the alternate screen");
    screen.until("the most tiny calls first", |text| line(text, pids[0]) < line(text, pids[1]));
    screen.keys("<<");
    screen
        .until("sorted by age", |text| text.contains("by age") && line(text, pids[1]) < line(text, pids[0]));
    screen.keys("?");
    screen.until("the help", |text| text.contains("weir flush: write its pending bytes now; asks first"));
    screen.keys("x/grep\r");
    screen.until("only one", |text| text.contains("only \"grep\"") && line(text, pids[0]).is_none());
    screen.until("what it holds", |text| {
        text.contains(r#"fd 1 pipe: 6 B pending for >"#) && text.contains(r#""hello\n""#)
    });
    screen.keys(" ");
    screen.until("a pause", |text| text.starts_with("weir top") && text.contains("paused"));
    screen.keys(" p");
    screen.until("another verb has the screen", |text| text.contains("Press any key to go back."));
    screen.keys("x");
    screen.until("the list again", |text| text.contains("q quit") && text.contains("grep e"));
    screen.keys("f");
    screen.until("a question", |text| {
        text.contains(&format!("Write the pending bytes of grep {} now?", pids[1]))
    });
    screen.keys("n");
    screen.until("a no", |text| text.contains("nothing was flushed"));
    screen.keys("fy");
    let mut bytes = [0; 6];
    holder.0.stdout.as_mut().unwrap().read_exact(&mut bytes).expect("they come");
    assert_eq!(&bytes, b"hello\n");
    screen.until("flush has ended", |text| text.contains("Press any key to go back."));
    screen.keys("x");
    screen.until("nothing waits any more", |text| text.contains("no pending bytes in its buffers"));
    screen.keys("q");
    assert_eq!(screen.end().code(), Some(0));
    screen.until("the terminal is as it was", |_| screen.is_restored());
    let written: Value = serde_json::from_slice(&std::fs::read(dir.path().join("t.json")).unwrap()).unwrap();
    assert_schema(&written, "weir-top-1");
    assert_eq!(written["processes"].as_array().unwrap().len(), 1, "the filter of the last screen applies");
}

#[test]
fn keys_and_signals_end_it_and_restore_the_terminal() {
    let (dir, holder) = (disk_dir(), start_pending_grep());
    for (keys, signal, status) in [
        ("q", None, Some(0)),
        ("\u{3}", None, Some(0)),
        ("", Some(Signal::TERM), Some(143)),
        ("", Some(Signal::HUP), Some(129)),
        ("", Some(Signal::INT), Some(130)),
    ] {
        let mut screen = live(dir.path(), &[holder.pid()], &[], (120, 40));
        screen.until("it is there", |text| text.contains("grep e") && text.contains("TINY/s"));
        screen.keys(keys);
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&screen.child), signal).unwrap();
        }
        let ended = screen.end();
        assert_eq!((ended.code(), ended.signal()), (status, None), "{keys:?} {signal:?}");
        screen.until("the terminal is as it was", |_| screen.is_restored());
    }
}

#[test]
fn a_closed_terminal_ends_it() {
    let (dir, holder) = (disk_dir(), start_pending_grep());
    for keys in ["", "?", "f", "/"] {
        let mut screen = live(dir.path(), &[holder.pid()], &[], (80, 24));
        screen.until("it is there", |text| text.contains("grep e") && text.contains("TINY/s"));
        screen.keys(keys);
        screen.close();
        let ended = screen.end();
        assert!(matches!(ended.code(), Some(1 | 129)), "{keys:?}: {ended}");
    }
}

/// A terminal that takes no output, as after Ctrl-S.
#[test]
fn a_signal_ends_it_on_a_stopped_terminal() {
    let (dir, holder) = (disk_dir(), start_pending_grep());
    let mut screen = live(dir.path(), &[holder.pid()], &[], (80, 24));
    screen.until("it is there", |text| text.contains("grep e") && text.contains("TINY/s"));
    screen.stop_output();
    let pid = screen.child.id();
    let write = if cfg!(target_arch = "x86_64") { "1 " } else { "64 " };
    wait_for("a blocked write", || {
        std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with(write))
    });
    kill_process(Pid::from_child(&screen.child), Signal::TERM).unwrap();
    assert_eq!(screen.end().code(), Some(143));
}

#[test]
fn the_terminal_is_restored_while_it_is_stopped() {
    let (dir, holder) = (disk_dir(), start_pending_grep());
    let mut screen = live(dir.path(), &[holder.pid()], &[], (80, 24));
    screen.until("it is there", |text| text.contains("grep e"));
    screen.keys("\u{1a}");
    screen.until("it is stopped", |_| screen.is_restored());
    kill_process(Pid::from_child(&screen.child), Signal::CONT).unwrap();
    screen.until("it goes on", |text| !screen.is_restored() && text.contains("grep e"));
    screen.resize(120, 40);
    screen.until("more columns", |text| text.contains("USR%") && text.contains("grep e"));
    screen.resize(60, 12);
    screen.until("fewer of all, but the one that sorts", |text| {
        text.contains("grep e")
            && text.contains("q quit")
            && text.contains("TINY/s")
            && !text.contains("SYS%")
    });
    screen.keys("q");
    assert_eq!(screen.end().code(), Some(0));
}

#[test]
fn the_live_screen_refuses_json_on_standard_output() {
    let dir = disk_dir();
    let mut screen = Session::start(weir(dir.path(), &["top", "--json", "-"]), 80, 24);
    assert_eq!(screen.end().code(), Some(2));
    screen.until("it says why", |text| text.contains("--json - needs --once"));
    assert!(screen.is_restored());
}

/// /proc/PID shows no memory of such a process.
#[test]
fn a_process_whose_main_thread_has_ended_is_shown() {
    let test = "a_process_whose_main_thread_has_ended_is_shown";
    let Some(path) = programs::built(test, "gcc", &["-pthread"], "worker.c") else { return };
    let program = programs::Program::start(&mut Command::new(&path));
    // A sample on a busy machine leaves processes out.
    wait_for("its pending bytes", || {
        let output = run(program.dir(), &["top", "--once", "--json", "-"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let shown = document["processes"].as_array().expect("processes");
        let own = shown.iter().find(|one| one["pid"] == program.pid()).expect("a running process");
        assert_eq!(own["command"], path.display().to_string());
        own["pending_bytes"] == 8
    });
}
