//! A process changes its credentials while `weir flush` stops it and writes: weir writes with no right that the process has lost,
//! and a set-user-ID program gets its privilege.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, as_nobody, for_nobody, is_root, run, skip, text, with_standard_streams};

const NOBODY: u32 = 65534;

/// Returns the number of rounds: WEIR_ROUNDS, else enough for a fault that shows in most rounds.
fn rounds() -> u64 {
    std::env::var("WEIR_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(24)
}

/// Returns a directory of the user nobody with weir and the program; None without root.
fn folder(test: &str) -> Option<tempfile::TempDir> {
    if !is_root() {
        skip(test, "it needs root");
        return None;
    }
    let dir = for_nobody();
    assert!(compile_c("hostile/credentials", &[], dir.path()), "gcc builds its program");
    Some(dir)
}

/// Makes an empty file that everybody can write.
fn file(dir: &Path, mode: u32) -> String {
    let path = dir.join("file");
    fs::write(&path, "").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
    path.display().to_string()
}

struct Program {
    process: KillOnDrop,
    lines: BufReader<ChildStdout>,
}

impl Program {
    fn start(dir: &Path, user: u32, arguments: &[&str]) -> Program {
        let mut command = Command::new("./credentials");
        command.args(arguments).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let command = with_standard_streams(command.uid(user).gid(user));
        let mut process = KillOnDrop(command.spawn().expect("it starts"));
        let lines = BufReader::new(process.0.stdout.take().expect("a pipe"));
        let mut program = Program { process, lines };
        assert_eq!(program.next(), "ready");
        program
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim_end().to_string()
    }

    fn pid(&self) -> String {
        self.process.0.id().to_string()
    }

    fn end(mut self) {
        self.process.0.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        assert_eq!(self.process.0.wait().expect("its end").code(), Some(0));
    }
}

/// Returns a time in µs at which the process changes its credentials, spread over the time that a flush takes.
fn moment(round: u64) -> String {
    (round * 7919 % 120_000).to_string()
}

#[test]
fn a_right_that_the_process_has_lost_is_not_used() {
    let Some(dir) = folder("a_right_that_the_process_has_lost_is_not_used") else { return };
    let (mut late, mut all) = (0, 0);
    for round in 0..rounds() {
        let path = file(dir.path(), 0o6777);
        let mut program = Program::start(dir.path(), 0, &["drop", &moment(round), &path]);
        let output = run(dir.path(), &["flush", &program.pid()]);
        let was_unwritten = program.next() == "unwritten";
        assert!(output.status.success(), "round {round}: {}", text(&output.stderr));
        let mode = fs::metadata(&path).expect("its metadata").mode() & 0o7777;
        assert_eq!(fs::read_to_string(&path).expect("text"), "payload", "round {round}");
        // A write after the change is that of the user nobody, which takes these bits.
        assert!(!was_unwritten || mode == 0o777, "round {round}: {mode:o}");
        (late, all) = (late + u64::from(was_unwritten), all + 1);
        program.end();
    }
    assert!(late > 0, "no write came after the change in {all} rounds");
}

fn assert_told(output: &Output, what: &str) {
    let said = text(&output.stderr);
    let is_clear = output.status.success() && said.is_empty()
        || said.contains("it belongs to user 0")
        || said.contains("it belongs to another user")
        || said.contains("executes another program")
        || said.contains("it has just executed another program")
        || said.contains("no process")
        || said.contains("has ended meanwhile");
    assert!(is_clear, "{what}: {}: {said}", output.status);
}

/// Makes the set-user-ID program of root that `credentials` executes. Returns its path.
fn set_user_id_program(dir: &Path) -> PathBuf {
    let privileged = dir.join("privileged");
    fs::copy(dir.join("credentials"), &privileged).expect("a copy");
    fs::set_permissions(&privileged, Permissions::from_mode(0o4755)).expect("a mode");
    privileged
}

#[test]
fn a_set_user_id_program_gets_its_privilege() {
    const TEST: &str = "a_set_user_id_program_gets_its_privilege";
    let Some(dir) = folder(TEST) else { return };
    set_user_id_program(dir.path());
    let path = file(dir.path(), 0o666);
    let mut alone = Program::start(dir.path(), NOBODY, &["execute", "0", &path]);
    if alone.next() != "0" {
        return skip(TEST, "/var/tmp is mounted with nosuid");
    }
    alone.end();
    let mut lost = Vec::new();
    for round in 0..rounds() {
        let path = file(dir.path(), 0o666);
        let mut program = Program::start(dir.path(), NOBODY, &["execute", &moment(round), &path]);
        let output =
            as_nobody(dir.path(), &["flush", "--wait", "1s", &program.pid()]).output().expect("weir");
        if program.next() != "0" {
            lost.push(round);
        }
        assert_told(&output, &format!("round {round}"));
        let written = fs::read_to_string(&path).expect("text");
        assert!(written == "payload" || written.is_empty(), "round {round}: {written}");
        program.end();
    }
    // A thread can call execve(2) between the attach and its stop. Its owner can do the same with strace(1).
    assert!(
        lost.len() as u64 * 6 <= rounds(),
        "it ran without its privilege in rounds {lost:?} of {}",
        rounds()
    );
}

#[test]
fn a_set_user_id_program_lends_no_right_to_the_bytes_of_its_caller() {
    const TEST: &str = "a_set_user_id_program_lends_no_right_to_the_bytes_of_its_caller";
    let Some(dir) = folder(TEST) else { return };
    let privileged = set_user_id_program(dir.path());
    let (mut written, mut executed) = (0, 0);
    for round in 0..rounds() {
        // A write with the rights of the program keeps these bits, and one of its caller takes them.
        let path = file(dir.path(), 0o6777);
        let mut program = Program::start(dir.path(), NOBODY, &["sleep", &moment(round), &path]);
        let output = run(dir.path(), &["flush", "--wait", "1s", &program.pid()]);
        let user = program.next();
        if round == 0 && user != "0" && fs::metadata(&privileged).expect("its metadata").mode() & 0o4000 != 0
        {
            return skip(TEST, "/var/tmp is mounted with nosuid");
        }
        assert_eq!(user, "0", "round {round}: root's weir takes no privilege: {}", text(&output.stderr));
        let content = fs::read_to_string(&path).expect("text");
        let mode = fs::metadata(&path).expect("its metadata").mode() & 0o7777;
        match content.as_str() {
            "" => executed += 1,
            "payload" => {
                assert_eq!(mode, 0o777, "round {round}: {mode:o}: {}", text(&output.stderr));
                written += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
        program.end();
    }
    assert!(written > 0 && executed > 0, "{written} writes came before the execve(2), {executed} after it");
}
