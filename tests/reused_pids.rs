//! A process ends while weir knows it by its number, and another user's process gets the number: weir writes nothing of that one
//! and shows nothing of it.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, for_nobody, is_root, run, skip, text, wait_for};

/// The number of both processes, in a PID namespace of their own.
const PID: &str = "100";

/// The results of a run of weir.
struct Outcome {
    status: i32,
    /// Standard output, standard error, and the file "document".
    shown: String,
    /// The files of the processes.
    first: String,
    second: String,
}

impl Outcome {
    /// Asserts that weir succeeded and showed nothing of the second process.
    fn assert_second_not_shown(&self) {
        assert!(self.status == 0 && !self.shown.contains("second"), "{}: {}", self.status, self.shown);
    }
}

fn next(lines: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (lines.read_line(&mut line).expect("a line") > 0).then(|| line.trim_end().to_string())
}

fn read(dir: &Path, name: &str) -> String {
    fs::read(dir.join(name)).map(|bytes| text(&bytes)).unwrap_or_default()
}

/// Waits until weir knows the process: it does not look again for longer.
fn a_second_later(dir: &Path) -> bool {
    std::thread::sleep(std::time::Duration::from_secs(1));
    dir.join("errors").exists()
}

/// Runs weir, and gives the number of its process to another one when `is_due`. None if the system does not allow it.
fn swapped_during(test: &str, kind: &str, weir: &[&str], is_due: impl Fn(&Path) -> bool) -> Option<Outcome> {
    if !is_root() {
        skip(test, "it needs root");
        return None;
    }
    let dir = for_nobody();
    let dir = dir.path();
    fs::set_permissions(dir, Permissions::from_mode(0o777)).expect("a mode");
    assert!(compile_c("hostile/reused", &["-static"], dir), "gcc builds its program");
    let mut command = Command::new("./reused");
    command.args([kind, "timeout", "-s", "KILL", "60", "./weir"]).args(weir).current_dir(dir);
    command.env("XDG_STATE_HOME", dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = KillOnDrop(command.spawn().expect("it starts"));
    let mut lines = BufReader::new(process.0.stdout.take().expect("a pipe"));
    let Some(started) = next(&mut lines) else {
        let status = process.0.wait().expect("its end");
        assert_eq!(status.code(), Some(77), "{status}");
        skip(test, "the kernel does not give a process a chosen PID here");
        return None;
    };
    assert_eq!(started, "started");
    wait_for("the moment", || is_due(dir));
    process.0.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    assert_eq!(next(&mut lines).as_deref(), Some("swapped"));
    let status = next(&mut lines).expect("weir ends").parse().expect("a number");
    let shown = ["output", "errors", "document"].map(|name| read(dir, name)).concat();
    Some(Outcome { status, shown, first: read(dir, "out-first"), second: read(dir, "out-second") })
}

#[test]
fn a_repeated_flush_ends_with_its_process() {
    let weir = ["flush", "--every", "100ms", PID];
    // Not before the first flush has ended: weir then reports the process as gone.
    let is_due = |dir: &Path| read(dir, "output").contains("written to");
    let Some(outcome) = swapped_during("a_repeated_flush_ends_with_its_process", "file", &weir, is_due)
    else {
        return;
    };
    assert_eq!((outcome.first.as_str(), outcome.second.as_str()), ("first pending", ""), "{}", outcome.shown);
    outcome.assert_second_not_shown();
}

#[test]
fn a_flush_that_waits_for_a_reader_ends_with_its_process() {
    let test = "a_flush_that_waits_for_a_reader_ends_with_its_process";
    let weir = ["flush", "--wait", "50s", PID];
    let Some(outcome) = swapped_during(test, "full", &weir, a_second_later) else { return };
    assert_eq!(outcome.second, "", "{}", outcome.shown);
    assert_eq!(outcome.status, 1, "{}", outcome.shown);
    assert!(outcome.shown.contains("no process 100"), "{}", outcome.shown);
}

#[test]
fn top_shows_only_the_process_that_was_named() {
    let weir = ["top", "--once", "--interval", "3s", "--pid", PID, "--json", "document"];
    let Some(outcome) =
        swapped_during("top_shows_only_the_process_that_was_named", "file", &weir, a_second_later)
    else {
        return;
    };
    outcome.assert_second_not_shown();
}

#[test]
fn a_sampled_trace_ends_with_its_process() {
    let weir =
        ["trace", "--engine", "sample", "--time", "50s", "--pid", PID, "--json", "document", "--quiet"];
    let Some(outcome) =
        swapped_during("a_sampled_trace_ends_with_its_process", "file", &weir, a_second_later)
    else {
        return;
    };
    outcome.assert_second_not_shown();
}

#[test]
fn the_verbs_of_top_leave_another_process_with_the_number_alone() {
    let dir = common::disk_dir();
    let own = std::process::id().to_string();
    for verb in [&["peek"][..], &["flush"], &["trace", "--time", "100ms", "--pid"]] {
        let output = run(dir.path(), &[&[verb[0], "--start-ticks", "1"], &verb[1..], &[&own]].concat());
        let failed = if verb[0] == "trace" { 125 } else { 1 };
        assert_eq!(output.status.code(), Some(failed), "{verb:?}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains("no process") || said.contains("it has ended"), "{verb:?}: {said}");
    }
}

/// Fills its standard output, a pipe, and keeps four bytes in its buffer.
const WAITS: &str = "use Fcntl; fcntl(STDOUT, F_SETFL, O_NONBLOCK); 1 while syswrite STDOUT, 'x' x 4096; \
    fcntl(STDOUT, F_SETFL, 0); print 'kept'; print STDERR \"ready\\n\"; sleep 60";

/// It was said to be "no process", as one that never existed.
#[test]
fn a_process_that_ends_during_a_flush_is_said_to_have_ended() {
    let dir = common::disk_dir();
    let mut command = Command::new("perl");
    command.args(["-e", WAITS]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = KillOnDrop(command.spawn().expect("perl starts"));
    let mut lines = BufReader::new(process.0.stderr.take().expect("a pipe"));
    assert_eq!(next(&mut lines).as_deref(), Some("ready"));
    let pid = process.0.id().to_string();
    let mut command = common::weir(dir.path(), &["flush", "--wait", "50s", &pid]);
    let flush = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let parent = flush.id().to_string();
    // A child of weir writes the bytes; weir knows the process then.
    wait_for("its child", || {
        Command::new("pgrep").args(["-P", &parent]).output().expect("pgrep").status.success()
    });
    process.0.kill().expect("a signal");
    process.0.wait().expect("its end");
    let output = flush.wait_with_output().expect("weir ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let is_zombie = said.contains("is a zombie");
    assert!(is_zombie || said.contains(&format!("process {pid} has ended meanwhile")), "{said}");
}
