//! Findings of `weir trace` about renamed files: their severity, and whether the directory was synced.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use common::{disk_dir, has, is_root, skip, text, weir};
use serde_json::Value;
use trace::engines;

/// Runs `weir trace --exact -- sh -c SCRIPT` and returns the findings about renames: id, severity and file name.
fn rename_findings(dir: &Path, engine: &str, script: &str) -> Vec<(String, String, String)> {
    let arguments =
        ["trace", "-q", "--exact", "--engine", engine, "--json", "t.json", "--", "sh", "-c", script];
    let output = weir(dir, &arguments).output().expect("weir starts");
    assert!(output.status.success(), "{engine}: {script}: {}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&fs::read(dir.join("t.json")).unwrap()).unwrap();
    let string = |value: &Value| value.as_str().expect("a string").to_string();
    let findings = document["findings"].as_array().expect("findings").iter();
    let mut found: Vec<_> = findings
        .filter(|one| one["id"].as_str().is_some_and(|id| id.starts_with("missing-")))
        .map(|one| {
            let path = string(&one["path"]);
            let name = path.rsplit('/').next().unwrap_or_default().to_string();
            (string(&one["id"]), string(&one["severity"]), name)
        })
        .collect();
    found.sort();
    found
}

fn only(id: &str, severity: &str, name: &str) -> Vec<(String, String, String)> {
    vec![(id.into(), severity.into(), name.into())]
}

#[test]
fn a_new_file_is_info_and_a_replaced_file_a_warning() {
    let dir = disk_dir();
    let id = "missing-sync-before-rename";
    for engine in engines() {
        fs::write(dir.path().join("old"), "what was there\n").unwrap();
        let _ = fs::remove_file(dir.path().join("fresh"));
        assert_eq!(
            rename_findings(dir.path(), engine, "echo a > new; mv new fresh"),
            only(id, "info", "fresh"),
            "{engine}"
        );
        assert_eq!(
            rename_findings(dir.path(), engine, "echo a > new; mv new old"),
            only(id, "warn", "old"),
            "{engine}"
        );
        // A name that is not UTF-8: é in Latin-1. The shell looks for no target, which mv would.
        fs::write(dir.path().join(OsStr::from_bytes(b"caf\xe9")), "what was there\n").unwrap();
        let script = r#"echo a > new; perl -e 'rename("new", "caf\xe9") or die'"#;
        if has("perl") {
            let found = rename_findings(dir.path(), engine, script);
            assert_eq!(found[0].1, "warn", "{engine}: {found:?}");
        }
        // The program itself looks up the target before it renames.
        fs::create_dir_all(dir.path().join("sub")).unwrap();
        let _ = fs::remove_file(dir.path().join("sub/name"));
        let script = "cd sub; { read x < name; } 2> /dev/null; echo a > new; mv new name";
        assert_eq!(rename_findings(dir.path(), engine, script), only(id, "info", "name"), "{engine}");
        assert_eq!(
            rename_findings(dir.path(), engine, script),
            only(id, "warn", "name"),
            "{engine}: the target exists now"
        );
    }
}

#[test]
fn files_of_a_build_are_one_hint() {
    if !has("python3") {
        return skip("files_of_a_build_are_one_hint", "python3 is not installed");
    }
    for engine in engines() {
        let dir = disk_dir();
        let id = "missing-sync-before-rename";
        // The first run creates the files; the second replaces files that can be made again from their sources.
        for text in ["x = 1\n", "x = 2\nprint('a longer one')\n"] {
            fs::create_dir_all(dir.path().join("p")).unwrap();
            for number in 0..4 {
                fs::write(dir.path().join(format!("p/m{number}.py")), text.repeat(40)).unwrap();
            }
            let seen = rename_findings(dir.path(), engine, "python3 -m compileall -q -f p");
            assert_eq!(seen.len(), 1, "{engine}: {text}: {seen:?}");
            let (found, severity, name) = &seen[0];
            assert_eq!((found.as_str(), severity.as_str()), (id, "info"), "{engine}: {text}");
            assert!(name.starts_with("m0.") && name.ends_with(".pyc"), "{name}");
        }
    }
}

#[test]
fn a_directory_is_recognized_by_each_of_its_paths() {
    if !has("sync") {
        return skip("a_directory_is_recognized_by_each_of_its_paths", "sync is not installed");
    }
    let dir = disk_dir();
    fs::create_dir(dir.path().join("d")).unwrap();
    std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
    let atomic_replace = "echo 1 > d/new; sync d/new; mv d/new d/name; ";
    for engine in engines() {
        for sync_command in
            ["sync d", "sync link", "sync link/.", "cd d; sync .", "cd link; sync ../d", "sync -f d"]
        {
            let found = rename_findings(dir.path(), engine, &format!("{atomic_replace}{sync_command}"));
            assert_eq!(found, [], "{engine}: {sync_command}");
        }
        for sync_command in ["true", "sync .", "sync d/name"] {
            let found = rename_findings(dir.path(), engine, &format!("{atomic_replace}{sync_command}"));
            assert_eq!(found, only("missing-dir-sync", "warn", "name"), "{engine}: {sync_command}");
        }
    }
}

#[test]
fn a_directory_is_recognized_by_a_bind_mount() {
    let name = "a_directory_is_recognized_by_a_bind_mount";
    if !is_root() || !has("unshare") || !has("mount") {
        return skip(name, "needs root, unshare and mount");
    }
    let dir = disk_dir();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    let script =
        "unshare -m sh -ec 'mount --bind d other; echo 1 > d/new; sync d/new; mv d/new d/name; sync other'";
    for engine in engines() {
        assert_eq!(rename_findings(dir.path(), engine, script), [], "{engine}");
    }
}

#[test]
fn a_directory_that_is_synced_a_hundred_times_has_no_finding() {
    if !has("python3") {
        return skip("a_directory_that_is_synced_a_hundred_times_has_no_finding", "python3 is not installed");
    }
    let dir = disk_dir();
    let source = "import os\nd = os.open('.', os.O_RDONLY)\nfor i in range(100):\n    f = open('new', 'w'); f.write('x')\n    \
                  f.flush(); os.fsync(f.fileno()); f.close(); os.rename('new', 'name'); os.fsync(d)\n";
    fs::write(dir.path().join("save.py"), source).unwrap();
    for engine in engines() {
        assert_eq!(rename_findings(dir.path(), engine, "python3 save.py"), [], "{engine}");
    }
}
