//! `weir lab` on another architecture and without root: the aarch64 assembly of max-min-calls, and the user nobody.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{as_nobody, disk_dir, for_nobody, has, is_root, names, skip, text};
use serde_json::Value;

const COMPILER: &str = "aarch64-linux-gnu-gcc";

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/max-min-calls").join(name)
}

fn run_successfully(command: &mut Command) -> std::process::Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    output
}

/// Assembles a version of max-min-calls with the experiment's own flags.
fn assemble(version: &str, into: &Path) -> PathBuf {
    let program = into.join(version);
    let flags = ["-O1", "-nostdlib", "-static", "-x", "assembler-with-cpp"];
    run_successfully(
        Command::new(COMPILER).args(flags).arg("-o").arg(&program).arg(source(&format!("{version}.S"))),
    );
    program
}

#[test]
fn the_aarch64_assembly_makes_the_same_calls() {
    let test = "the_aarch64_assembly_makes_the_same_calls";
    if !has(COMPILER) {
        return skip(test, "no aarch64-linux-gnu-gcc");
    }
    let dir = disk_dir();
    let programs =
        [("broken", 9999), ("fixed", 1)].map(|(version, calls)| (assemble(version, dir.path()), calls));
    let Some(emulator) = ["qemu-aarch64-static", "qemu-aarch64"].into_iter().find(|name| has(name)) else {
        return skip(test, "assembled, but not run: no qemu-aarch64");
    };
    for (program, calls) in programs {
        let output = run_successfully(Command::new(emulator).arg("-strace").arg(&program));
        assert_eq!(output.stdout, [b'x'; 9999], "{program:?}");
        let writes = text(&output.stderr).lines().filter(|line| line.contains("write(1,")).count();
        assert_eq!(writes, calls, "{program:?}");
    }
}

#[test]
fn experiments_agree_without_root() {
    if !is_root() {
        return skip("experiments_agree_without_root", "needs root, to become one");
    }
    let dir = for_nobody();
    for name in ["doubled-at-fork", "one-byte-writes", "lost-at-kill", "eaten-stdin", "max-min-calls", "tail"]
    {
        let output = as_nobody(dir.path(), &["lab", name, "--quick", "--json", "-"]).output().unwrap();
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{name}: {shown}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(document["experiments"][0]["agrees"], true, "{name}: {shown}");
    }
    let root_only = as_nobody(dir.path(), &["lab", "power-cut", "--quick"]).output().unwrap();
    assert!(root_only.status.success() && text(&root_only.stdout).contains("needs root"), "{root_only:?}");
    assert_eq!(names(&dir.path().join("tmp")), [""; 0], "left behind");
    let list = text(&as_nobody(dir.path(), &["lab"]).output().unwrap().stdout);
    let marked = (list.matches(" yes* ").count(), list.matches(" –* ").count());
    assert_eq!(marked, (6, 1), "{list}"); // quick runs, one of which needs root
    let mut kept = names(&dir.path().join(".local/state/weir/lab"));
    kept.sort();
    assert_eq!(kept.first().map(String::as_str), Some("doubled-at-fork.json"), "{kept:?}");
    assert_eq!(kept.len(), 7);
}
