//! The files of results: a name that cannot be written is wrong usage for every verb, before any work.

mod common;

use std::process::{Command, Stdio};

use common::{KillOnDrop, run, text};

/// The arguments, with FILE for a file that cannot be written and PID for a process, and the exit status. `run` and `trace` have
/// env(1)'s statuses, `copy` has those of cp(1).
const CASES: [(&str, i32); 24] = [
    ("peek --json FILE PID", 2),
    ("flush --json FILE PID", 2),
    ("top --once --interval 100ms --json FILE --pid PID", 2),
    ("run --json FILE -- touch ran", 125),
    ("run --html FILE -- touch ran", 125),
    ("trace --json FILE -- touch ran", 125),
    ("trace --output FILE -- touch ran", 125),
    ("trace --record FILE -- touch ran", 125),
    ("trace --timeline FILE -- touch ran", 125),
    ("trace --html FILE -- touch ran", 125),
    ("bench write --budget 1s --json FILE", 2),
    ("bench write --budget 1s --csv FILE", 2),
    ("bench write --budget 1s --markdown FILE", 2),
    ("bench write --budget 1s --html FILE", 2),
    ("lab doubled-at-fork --quick --json FILE", 2),
    ("lab doubled-at-fork --quick --html FILE", 2),
    ("lab check --as copy --json FILE /bin/true", 2),
    ("doctor --json FILE", 2),
    ("advise --yes --json FILE", 2),
    ("log --output ran --json FILE -- true", 2),
    ("log check --json FILE source", 2),
    ("log check --html FILE source", 2),
    ("copy --json FILE source ran", 1),
    ("copy --html FILE source ran", 1),
];

#[test]
fn a_file_that_cannot_be_written_is_wrong_usage_for_every_verb() {
    let dir = common::disk_dir();
    std::fs::write(dir.path().join("source"), "a line\n").expect("a file");
    let sleep = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("sleep starts");
    let process = KillOnDrop(sleep);
    let file = dir.path().join("missing/file").display().to_string();
    for (words, status) in CASES {
        let words = words.replace("FILE", &file).replace("PID", &process.0.id().to_string());
        let output = run(dir.path(), &words.split(' ').collect::<Vec<_>>());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words}: {errors}");
        assert!(errors.contains(&format!("{file}: open: ENOENT")), "{words}: {errors}");
        assert!(!dir.path().join("ran").exists(), "{words}: it fails before the work");
    }
}

/// Lines of bash with a closed descriptor, the exit status, and what the message names.
const CLOSED: [(&str, i32, &str); 14] = [
    ("weir copy source - >&-", 1, "standard output"),
    ("weir copy - ran <&-", 1, "standard input"),
    ("weir copy --json - source copied >&-", 1, "standard output"),
    ("weir copy --events - source copied >&-", 1, "standard output"),
    ("weir log -o - >&- <source", 1, "write standard output"),
    ("weir log -o logged <&-", 1, "open standard input"),
    ("weir log check source >&-", 1, "standard output"),
    ("weir bench write --size 64K --records 4K --rounds 1 >&-", 1, "standard output"),
    ("weir bench write --json - --rounds 1 >&-", 2, "standard output"),
    ("weir trace --json - -- touch ran >&-", 125, "standard output"),
    ("weir run --json - -- touch ran >&-", 125, "standard output"),
    ("weir doctor >&-", 1, "standard output"),
    ("weir top --once --interval 100ms >&-", 1, "standard output"),
    ("weir peek --json - $$ >&-", 2, "standard output"),
];

#[test]
fn a_closed_standard_descriptor_is_an_error_and_no_dev_null() {
    let dir = common::disk_dir();
    std::fs::write(dir.path().join("source"), "a line\n").expect("a file");
    for (line, status, name) in CLOSED {
        let script = format!("weir() {{ {} \"$@\"; }}; {line}", common::WEIR);
        let output =
            Command::new("bash").args(["-c", &script]).current_dir(dir.path()).output().expect("bash");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {errors}");
        assert!(errors.contains(name) && errors.contains("EBADF"), "{line}: {errors}");
        assert!(errors.contains("open"), "it says what to do: {line}: {errors}");
        assert!(!dir.path().join("ran").exists(), "{line}: nothing is made");
    }
    // A command still gets its descriptors closed.
    let script = format!("{} run -- bash -c 'echo text' >&-", common::WEIR);
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(text(&output.stderr).contains("Bad file descriptor"), "{}", text(&output.stderr));
}

#[test]
fn weir_report_reads_its_files_first() {
    let dir = common::disk_dir();
    let json = dir.path().join("run.json").display().to_string();
    assert!(run(dir.path(), &["run", "--json", &json, "--", "true"]).status.success());
    let file = dir.path().join("missing/file").display().to_string();
    let output = run(dir.path(), &["report", &json, "--output", &file]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(run(dir.path(), &["report", &file, "--output", "page.html"]).status.code(), Some(1));
}
