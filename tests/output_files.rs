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
