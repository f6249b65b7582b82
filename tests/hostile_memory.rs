//! A process that claims gigabytes of pending bytes does not make weir read them.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, disk_dir, skip, text, weir};
use serde_json::Value;

/// The address space that weir may use, far less than the process claims.
const SPACE: &str = "--as=800000000";

/// Starts the program; None without glibc.
fn start(test: &str, dir: &Path) -> Option<KillOnDrop> {
    if !compile_c("hostile/claims", &[], dir) {
        skip(test, "gcc does not build its program");
        return None;
    }
    let mut child = Command::new(dir.join("claims")).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    Some(KillOnDrop(child))
}

fn run_limited(dir: &Path, arguments: &[&str]) -> Output {
    let weir = weir(dir, arguments);
    let mut command = Command::new("prlimit");
    command.arg(SPACE).arg(weir.get_program()).args(weir.get_args()).current_dir(dir);
    command.output().expect("prlimit(1)")
}

#[test]
fn peek_reads_what_it_shows() {
    let dir = disk_dir();
    let Some(process) = start("peek_reads_what_it_shows", dir.path()) else { return };
    let pid = process.0.id().to_string();
    for (arguments, shown) in [(&["peek"][..], 4 * 256), (&["peek", "--full", "--limit", "1M"], 1 << 20)] {
        let output = run_limited(dir.path(), &[arguments, &["--json", "-", &pid]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let streams = document["processes"][0]["streams"].as_array().expect("streams");
        let sum = |field: &str| streams.iter().filter_map(|stream| stream[field].as_u64()).sum::<u64>();
        assert_eq!(
            (sum("pending_bytes"), sum("preview_bytes")),
            (4 * ((1000 << 20) - 1), shown),
            "{arguments:?}"
        );
    }
}

#[test]
fn flush_leaves_out_what_exceeds_its_limit() {
    let dir = disk_dir();
    let Some(process) = start("flush_leaves_out_what_exceeds_its_limit", dir.path()) else { return };
    let output = run_limited(dir.path(), &["flush", "--wait", "100ms", &process.0.id().to_string()]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("more than 48 MiB are pending in the process: see --limit"), "{errors}");
}
