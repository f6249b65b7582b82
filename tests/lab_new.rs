//! `weir lab new`: the template runs without changes and is judged like the experiments in the binary.

mod common;

use std::fs;

use common::{disk_dir, names, run, text, weir};
use serde_json::Value;

#[test]
fn the_template_runs_without_changes() {
    let dir = disk_dir();
    let made = run(dir.path(), &["lab", "new", "mine"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stdout).contains("weir lab ./mine"), "{}", text(&made.stdout));
    let mut files = names(&dir.path().join("mine"));
    files.sort();
    assert_eq!(files, ["broken.c", "check.sh", "fixed.c", "lab.toml"]);
    for name in ["./mine", "mine", "mine/"] {
        let output = run(dir.path(), &["lab", name, "--json", "-"]);
        assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let row = &document["experiments"][0];
        assert_eq!((&row["name"], &row["agrees"]), (&"mine".into(), &true.into()), "{row}");
        assert!(row["outcomes"].as_array().is_some_and(|outcomes| outcomes.len() == 4), "{row}");
    }
    let source = run(dir.path(), &["lab", "./mine", "--source"]);
    assert!(text(&source.stdout).contains("_IONBF"), "{}", text(&source.stdout));
}

#[test]
fn a_wrong_expectation_is_reported() {
    let dir = disk_dir();
    assert!(run(dir.path(), &["lab", "new", "mine"]).status.success());
    let toml = dir.path().join("mine/lab.toml");
    let text_of = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, text_of.replace("\"1 write\"", "\"7 writes\"")).unwrap();
    let output = run(dir.path(), &["lab", "./mine"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("7 writes"), "{}", text(&output.stdout));
}

#[test]
fn an_existing_folder_is_not_changed() {
    let dir = disk_dir();
    fs::create_dir(dir.path().join("mine")).unwrap();
    let output = run(dir.path(), &["lab", "new", "mine"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there already"), "{}", text(&output.stderr));
    assert!(names(&dir.path().join("mine")).is_empty());
    let output = run(dir.path(), &["lab", "./mine"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("lab.toml"), "{}", text(&output.stderr));
}

#[test]
fn a_screen_that_cannot_be_written_is_an_error() {
    let dir = disk_dir();
    for arguments in [["lab", "new", "mine"].as_slice(), &["lab", "./mine"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = weir(dir.path(), arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("standard output"), "{arguments:?}: {}", text(&output.stderr));
    }
}
