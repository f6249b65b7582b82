//! A limit of weir's own process (getrlimit(2)) that is too low: weir says in one sentence which limit it is and how to raise it,
//! and the command either runs as alone or not at all.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{KillOnDrop, WEIR, has_private_mounts, is_root, skip, text, wait_for};

/// The program's own exit status.
const STATUS: i32 = 7;
/// A user that has no other process, so that a limit of processes counts only those of a test.
const USER: &str = "60177";

/// The verbs that start a program. A user without root has no eBPF.
const VERBS: [(&str, &[&str]); 8] = [
    ("trace", &["trace", "--quiet", "--"]),
    ("ptrace", &["trace", "--quiet", "--engine", "ptrace", "--"]),
    ("sample", &["trace", "--quiet", "--engine", "sample", "--"]),
    ("modes", &["run", "--quiet", "-oL", "--"]),
    ("max-delay", &["run", "--quiet", "--max-delay", "5ms", "--"]),
    ("rescue", &["run", "--quiet", "--rescue", "--fix-fork", "--"]),
    ("coalesce", &["run", "--quiet", "--coalesce", "--"]),
    ("pty", &["run", "--quiet", "--pty", "--"]),
];

/// Makes a directory that every user can reach, with weir and the program.
fn shared_dir() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("weir-test-").tempdir_in("/var/tmp").expect("/var/tmp");
    let built = common::programs::compile_c("environments/processes", &["-pthread"], dir.path());
    assert!(built, "gcc builds processes.c");
    common::programs::copy_program(WEIR, &dir.path().join("weir"));
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
    dir
}

/// Runs the words of a command, and ends it after a minute.
fn run(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).args(words).current_dir(dir).stdin(Stdio::null());
    command.env("HOME", dir).env("TMPDIR", dir).env_remove("XDG_STATE_HOME").env_remove("RUST_BACKTRACE");
    let output = command.output().expect("timeout(1)");
    let is_orderly = output.status.code().is_some_and(|status| status < 124 || status == 125);
    assert!(is_orderly, "{words:?} hangs or crashes: {:?} {}", output.status, text(&output.stderr));
    output
}

/// Asserts that the command has run as alone, or not at all, with a sentence that has `advice`. Returns whether it has run.
fn assert_whole(cell: &str, got: &Output, alone: &Output, advice: &str) -> bool {
    let errors = text(&got.stderr);
    if got.status.code() == Some(125) {
        let is_sentence = errors.starts_with("weir: ") && errors.contains(advice);
        assert!(is_sentence && got.stdout.is_empty(), "{cell}: {errors}");
        return false;
    }
    assert_eq!(got.status.code(), alone.status.code(), "{cell}: {errors}");
    assert_eq!(text(&got.stdout), text(&alone.stdout), "{cell}: {errors}");
    true
}

/// Starts a program with bytes in a buffer, which waits.
fn waiting(dir: &Path) -> KillOnDrop {
    let mut command = Command::new("gawk");
    command.args([r#"BEGIN { printf "pending" > "out"; print "ready"; fflush("/dev/stdout"); getline }"#]);
    command
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(fs::File::create(dir.join("ready")).expect("a file"));
    let process = KillOnDrop(command.spawn().expect("gawk"));
    wait_for("the program", || fs::read(dir.join("ready")).is_ok_and(|ready| ready == b"ready\n"));
    process
}

#[test]
fn a_limit_that_is_too_low_for_each_verb_is_named() {
    let dir = common::disk_dir();
    let process = waiting(dir.path());
    let pid = process.0.id().to_string();
    fs::write(dir.path().join("from"), "x").expect("a file");
    let verbs: &[(&[&str], i32)] = &[
        (&["run", "--", "sh", "-c", "echo ran > ran"], 125),
        (&["trace", "--", "sh", "-c", "echo ran > ran"], 125),
        (&["peek", &pid], 1),
        (&["flush", &pid], 1),
        (&["top", "--once"], 1),
        (&["log", "-o", "ran", "--", "echo", "ran"], 1),
        (&["copy", "from", "ran"], 1),
        (&["doctor"], 1),
    ];
    for (limit, sentence, command) in [
        ("--stack=65536", "the limit of the stack is 64 KiB, and weir needs ", "(ulimit -s 8192)"),
        ("--data=5000000", "the limit of data is 4882 KiB, and weir needs 14336", "(ulimit -d unlimited)"),
        ("--nofile=6:6", "the limit of open files is 6, of which 3 are free", "(ulimit -n 1024)"),
    ] {
        for (words, status) in verbs {
            let output = run(dir.path(), &[&["prlimit", limit, WEIR], *words].concat());
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(*status), "{limit} {words:?}: {errors}");
            let is_named = errors.starts_with(&format!("weir: {sentence}")) && errors.contains(command);
            assert!(is_named && errors.lines().count() == 1, "{limit} {words:?}: {errors}");
            assert!(output.stdout.is_empty() && !dir.path().join("ran").exists(), "{limit} {words:?}");
        }
    }
}

#[test]
fn a_command_without_room_for_processes_runs_whole_or_not() {
    const TEST: &str = "a_command_without_room_for_processes_runs_whole_or_not";
    if !is_root() {
        return skip(TEST, "only root can be another user");
    }
    let dir = shared_dir();
    let user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "prlimit"];
    let mut refused = 0;
    for most in 0..=6 {
        let limit = format!("--nproc={most}:{most}");
        let prefix = [&user[..], &[limit.as_str()]].concat();
        let program = ["./processes", "lines", "100"];
        let alone = run(dir.path(), &[&prefix[..], &program].concat());
        assert_eq!(alone.status.code(), Some(STATUS), "{}", text(&alone.stderr));
        for (verb, words) in VERBS {
            let got = run(dir.path(), &[&prefix[..], &["./weir"], words, &program].concat());
            let has_run = assert_whole(&format!("{verb} {limit}"), &got, &alone, "(ulimit -u)");
            refused += u32::from(!has_run);
        }
        let log =
            [&prefix[..], &["./weir", "log", "--quiet", "-o", "log", "--", "./processes", "lines", "100"]];
        let log = run(dir.path(), &log.concat());
        let kept = fs::read(dir.path().join("log")).unwrap_or_default();
        let has_run = log.status.code() == Some(STATUS) && kept.ends_with(&alone.stdout);
        let has_refused = log.status.code() == Some(1) && text(&log.stderr).contains("-u)");
        assert!(
            has_run || has_refused && !kept.ends_with(b"line 99\n"),
            "log {limit}: {}",
            text(&log.stderr)
        );
        let _absent = fs::remove_file(dir.path().join("log"));
    }
    assert!(refused > 0, "no limit was too low");
}

#[test]
fn a_process_is_not_blamed_for_the_limit_of_processes() {
    const TEST: &str = "a_process_is_not_blamed_for_the_limit_of_processes";
    if !is_root() {
        return skip(TEST, "only root can be another user");
    }
    let dir = shared_dir();
    let user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "prlimit", "--nproc=1:1"];
    let own = std::process::id().to_string();
    for verb in ["peek", "flush"] {
        let output = run(dir.path(), &[&user[..], &["./weir", verb, &own]].concat());
        let errors = text(&output.stderr);
        let is_right = errors.contains("(ulimit -u)") && !errors.contains("does not answer");
        assert!(is_right && output.status.code() == Some(1), "{verb}: {errors}");
    }
}

#[test]
fn a_command_with_little_memory_runs_whole_or_not() {
    let dir = shared_dir();
    let alone = run(dir.path(), &["./processes", "lines", "100"]);
    let mut ran = 0;
    for limit in ["--data=13000000", "--data=20000000", "--as=104857600"] {
        for (verb, words) in VERBS {
            let got = run(
                dir.path(),
                &[&["prlimit", limit, "./weir"], words, &["./processes", "lines", "100"]].concat(),
            );
            ran += u32::from(assert_whole(&format!("{verb} {limit}"), &got, &alone, "ulimit -"));
        }
    }
    assert!(ran > 0, "every limit was too low");
}

/// SIGXFSZ ends the program; weir itself ignores it, gets EFBIG, and reports what it has not written.
#[test]
fn the_limit_of_the_file_size_ends_the_program_and_not_weir() {
    let dir = shared_dir();
    let limit = ["prlimit", "--fsize=8192:8192"];
    let program = ["sh", "-c", "./processes lines 10; head -c 20000 /dev/zero > big; echo $?; exit 3"];
    let alone = run(dir.path(), &[&limit[..], &program].concat());
    assert_eq!(alone.status.code(), Some(3));
    assert!(text(&alone.stdout).ends_with("\n153\n"), "{}", text(&alone.stdout));
    for (verb, words) in VERBS.iter().filter(|(verb, _)| *verb != "coalesce") {
        let got = run(dir.path(), &[&limit[..], &["./weir"], *words, &program].concat());
        assert!(assert_whole(verb, &got, &alone, ""), "{verb}: {}", text(&got.stderr));
    }
    let log = run(dir.path(), &[&limit[..], &["./weir", "log", "-o", "log", "--"], &program].concat());
    assert_eq!(log.status.code(), Some(3), "{}", text(&log.stderr));
    let kept = fs::read_to_string(dir.path().join("log")).expect("the log");
    // The shell's message comes through another pipe, so it can be before or after this line.
    assert!(kept.contains("\n153\n"), "{kept}");
    // As on a full device weir keeps the records and tries again: prlimit(1) can raise the limit.
    let prefix = [&limit[..], &["timeout", "-s", "TERM", "--preserve-status", "2"]].concat();
    let log = run(dir.path(), &[&prefix[..], &["./weir", "log", "-o", "full", "--", "seq", "5000"]].concat());
    let errors = text(&log.stderr);
    let is_said = errors.contains("prlimit --pid ") && errors.contains("are accepted but not in the log");
    assert!(log.status.code() == Some(1) && is_said, "{:?} {errors}", log.status);
    let kept = fs::read_to_string(dir.path().join("full")).expect("the log");
    let all: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert!(kept.len() == 8192 && all.starts_with(&kept), "{} bytes", kept.len());
    fs::write(dir.path().join("from"), vec![b'x'; 20_000]).expect("a file");
    let copy = run(dir.path(), &[&limit[..], &["./weir", "copy", "from", "to"]].concat());
    let errors = text(&copy.stderr);
    assert!(copy.status.code() == Some(1) && errors.contains("ulimit -f"), "{:?} {errors}", copy.status);
}

/// weir needs a descriptor at the end of each sampling gap, and has used all of them for the processes.
#[test]
fn the_limit_of_open_files_costs_no_recording() {
    const TEST: &str = "the_limit_of_open_files_costs_no_recording";
    if !is_root() || !common::has("python3") {
        return skip(TEST, "needs root and python3");
    }
    let dir = common::disk_dir();
    let program = "import time\nfor _ in range(60): open('/dev/null').close(); time.sleep(0.02)";
    let script = format!("for i in $(seq 40); do python3 -S -c \"{program}\" & done; wait; exit {STATUS}");
    let options = ["--engine", "ebpf", "--json", "t.json"];
    let prefix = ["env", "WEIR_EBPF_CALL_NS=2000000", "prlimit", "--nofile=80:80", WEIR, "trace"];
    let output = run(dir.path(), &[&prefix[..], &options, &["--", "sh", "-c", &script]].concat());
    let errors = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(STATUS), "{errors}");
    let document = fs::read_to_string(dir.path().join("t.json")).expect("a document");
    assert!(document.contains("python3"), "{document}");
    let is_said = errors.contains("could not be attached again");
    assert!(!is_said || errors.contains("ulimit -n"), "{errors}");
}

#[test]
fn without_proc_no_process_is_said_to_have_ended() {
    const TEST: &str = "without_proc_no_process_is_said_to_have_ended";
    if !has_private_mounts() {
        return skip(TEST, "a mount namespace needs root");
    }
    let dir = common::disk_dir();
    let process = waiting(dir.path());
    let pid = process.0.id().to_string();
    let prefix = ["unshare", "-m", "sh", "-c", r#"mount -t tmpfs none /proc && exec "$@""#, "sh", WEIR];
    for words in [
        &["peek", &pid][..],
        &["flush", &pid],
        &["top", "--once", "--pid", &pid],
        &["top", "--once"],
        &["trace", "-p", &pid],
    ] {
        let output = run(dir.path(), &[&prefix[..], words].concat());
        let errors = text(&output.stderr);
        assert!(errors.contains("/proc is not mounted here"), "{words:?}: {errors}");
        assert!([Some(1), Some(125)].contains(&output.status.code()), "{words:?}: {errors}");
    }
    assert_eq!(fs::read(dir.path().join("out")).expect("its file"), b"");
}
