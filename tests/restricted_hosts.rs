//! `weir doctor` and `weir run` without /proc, and in a user namespace: each sentence is true there.

mod common;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use common::{WEIR, disk_dir, for_nobody, has_private_mounts, is_root, skip, text};
use serde_json::Value;

const WITHOUT_PROC: [&str; 6] =
    ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];

/// Runs a command in `dir`. Returns its standard output and standard error.
fn run(dir: &Path, words: &[&str]) -> (String, String) {
    let output = Command::new(words[0]).args(&words[1..]).current_dir(dir).output().expect("it starts");
    (text(&output.stdout), text(&output.stderr))
}

/// Returns what weir doctor says of each ability: whether it was tried and works, and its sentences.
fn abilities(json: &str) -> Vec<(String, bool, bool, String)> {
    let document: Value = serde_json::from_str(json).expect("JSON");
    let rows = document["abilities"].as_array().expect("abilities");
    let of = |row: &Value| {
        let word = |name: &str| row[name].as_str().unwrap_or_default().to_string();
        let flag = |name: &str| row[name].as_bool().expect("a flag");
        (word("name"), flag("tried"), flag("works"), word("detail") + " → " + &word("advice"))
    };
    rows.iter().map(of).collect()
}

fn of<'a>(abilities: &'a [(String, bool, bool, String)], name: &str) -> &'a (String, bool, bool, String) {
    abilities.iter().find(|row| row.0 == name).expect("an ability")
}

#[test]
fn doctor_and_run_name_a_missing_proc() {
    if !has_private_mounts() {
        return skip("doctor_and_run_name_a_missing_proc", "needs root, to hide /proc");
    }
    let dir = disk_dir();
    let (json, _) = run(dir.path(), &[&WITHOUT_PROC[..], &[WEIR, "doctor", "--json", "-"]].concat());
    let abilities = abilities(&json);
    let (_, tried, works, said) = of(&abilities, "other-processes");
    assert!(!tried && !works && said.contains("not tried") && said.contains("mount -t proc"), "{said}");
    let (_, _, works, said) = of(&abilities, "proc");
    assert!(
        !works && said.contains("mount -t proc proc /proc") && !said.contains("only processes"),
        "{said}"
    );
    for name in ["ptrace", "open-files", "breakpoints"] {
        let (_, _, works, said) = of(&abilities, name);
        assert!(!works || said.contains("without /proc"), "{name}: {said}");
    }
    for option in ["--max-delay=10ms", "--rescue"] {
        let words = [&WITHOUT_PROC[..], &[WEIR, "run", option, "--", "echo", "x"]].concat();
        let (output, errors) = run(dir.path(), &words);
        assert_eq!(output, "x\n", "{errors}");
        assert!(errors.contains("/proc is not mounted") && errors.contains("mount -t proc"), "{errors}");
    }
}

/// weir distinguishes root of a user namespace from that of the machine: its capabilities reach only the processes of the namespace.
#[test]
fn doctor_and_run_know_a_user_namespace() {
    const NAME: &str = "doctor_and_run_know_a_user_namespace";
    if !is_root() {
        return skip(NAME, "needs root, to become another user");
    }
    let dir = for_nobody();
    let weir = dir.path().join("weir").display().to_string();
    let in_namespace = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("-r").arg(&weir).args(words).current_dir(dir.path()).env("HOME", dir.path());
        command.uid(12_345).gid(12_345).output().expect("unshare")
    };
    let output = in_namespace(&["doctor", "--json", "-"]);
    if text(&output.stderr).contains("unshare failed") {
        return skip(NAME, "users may make no user namespace");
    }
    let json = text(&output.stdout);
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&document["uid"], &document["user_namespace"]), (&0.into(), &true.into()));
    assert!(text(&in_namespace(&["doctor"]).stdout).contains("uid 0 of a user namespace"));
    let abilities = abilities(&json);
    let (_, _, works, said) = of(&abilities, "ebpf");
    assert!(!works && said.contains("run weir outside of it"), "{said}");
    let (_, _, works, said) = of(&abilities, "other-processes");
    assert!(!works || said.contains("those of this user namespace only"), "{said}");
    // All directories belong to users that the namespace has no number for.
    for option in ["-oL", "--coalesce"] {
        let said = text(&in_namespace(&["run", option, "--", "echo", "x"]).stderr);
        if said.contains("no directory") {
            assert!(said.contains("a user without a number in this user namespace"), "{said}");
            assert!(said.contains("weir run -- unshare -r COMMAND") && !said.contains("docker"), "{said}");
            let (_, _, works, said) = of(&abilities, "ptrace");
            assert!(!works || said.contains("not weir run") && !said.contains("--rescue"), "{said}");
        }
    }
}
