//! A process to which weir attaches ends as alone while its children come and go: thousands of short ones, many at once, by
//! vfork(2), in namespaces.
//!
//! The long form, `make test-all`, has 10,000 short children and 2,000 processes at once.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{KillOnDrop, campaign, concurrent, disk_dir, is_root, text};

/// Verbs on a running process, whose PID follows.
const VERBS: [(&str, &[&str]); 7] = [
    ("ebpf", &["trace", "--quiet", "--time", "300ms", "--engine", "ebpf", "--pid"]),
    ("ptrace", &["trace", "--quiet", "--time", "300ms", "--engine", "ptrace", "--pid"]),
    ("sample", &["trace", "--quiet", "--time", "300ms", "--engine", "sample", "--pid"]),
    ("peek", &["peek"]),
    ("flush", &["flush"]),
    ("flush-children", &["flush", "--children"]),
    ("top", &["top", "--once", "--interval", "200ms", "--pid"]),
];

/// Modes of processes.c, and the counts of the short and of the long form.
const MODES: [(&str, [&str; 2]); 4] = [
    ("short", ["300", "10000"]),
    ("concurrent", ["60", "2000"]),
    ("vfork", ["60", "1000"]),
    ("namespaces", ["2", "30"]),
];

/// Starts the program with its output in a file.
fn start(dir: &Path, mode: &str, count: &str, name: &str) -> KillOnDrop {
    let file = |suffix: &str| fs::File::create(dir.join(format!("{name}.{suffix}"))).expect("a file");
    let mut command = Command::new(dir.join("processes"));
    command
        .args([mode, count])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("errors"));
    KillOnDrop(common::with_signals(&mut command).spawn().expect("it starts"))
}

/// Waits for the end of the program. Returns its status and its output.
fn end(dir: &Path, mut program: KillOnDrop, name: &str) -> (Option<i32>, String) {
    let mut status = None;
    common::wait_for(&format!("the end of {name}"), || {
        status = program.0.try_wait().expect("its status");
        status.is_some()
    });
    let read = |suffix: &str| fs::read(dir.join(format!("{name}.{suffix}"))).expect("its output");
    (status.and_then(|status| status.code()), text(&read("out")) + &text(&read("errors")))
}

#[test]
fn a_process_with_many_children_ends_as_alone() {
    let dir = disk_dir();
    let dir = dir.path();
    assert!(
        common::programs::compile_c("surroundings/processes", &["-pthread"], dir),
        "gcc builds processes.c"
    );
    let long = usize::from(campaign::is_full());
    let verbs: Vec<_> = VERBS.into_iter().filter(|(name, _)| *name != "ebpf" || is_root()).collect();
    let cells: Vec<_> = MODES.iter().flat_map(|mode| verbs.iter().map(move |verb| (mode, verb))).collect();
    let alone = MODES.map(|(mode, counts)| {
        let ended = end(dir, start(dir, mode, counts[long], mode), mode);
        assert_eq!(ended.0, Some(7), "{mode}: {}", ended.1);
        (mode, ended)
    });
    concurrent::for_each(2, &cells, |((mode, counts), (verb, words))| {
        let name = format!("{mode} {verb}");
        let program = start(dir, mode, counts[long], &name);
        let pid = program.0.id().to_string();
        let mut command = common::limited::limited(dir, &[words, &[pid.as_str()][..]].concat());
        let output = command.stdin(Stdio::null()).output().expect("timeout(1)");
        // The program may have ended before, and trace may pass its status on.
        let is_orderly = output.status.code().is_some_and(|status| [0, 1, 7, 125].contains(&status));
        assert!(is_orderly, "{name}: {:?} {}", output.status, text(&output.stderr));
        let wanted = &alone.iter().find(|(one, _)| one == mode).expect("its mode").1;
        assert_eq!(&end(dir, program, &name), wanted, "{name}: {}", text(&output.stderr));
    });
}
