//! `weir peek` and `weir flush` on bytes for a closed descriptor, and for a terminal that stops background jobs.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::process::Command;

use common::{WEIR, has, run, skip, text, wait_for};
use trace::{compile, path};

/// Keeps bytes for standard output, which it closes, and sleeps.
const CLOSED: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { setvbuf(stdout, 0, _IOFBF, 4096); printf(\"on closed\\n\"); close(1);\n\
    fclose(fopen(\"ready\", \"w\")); sleep(60); return 0; }\n";

#[test]
fn bytes_for_a_closed_descriptor_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "closed", CLOSED, &[]) else { return };
    let mut program = Command::new(program).current_dir(dir.path()).spawn().expect("the program");
    wait_for("the program", || dir.path().join("ready").exists());
    let pid = program.id().to_string();
    let (peek, flush) = (run(dir.path(), &["peek", &pid]), run(dir.path(), &["flush", &pid]));
    program.kill().expect("it runs");
    program.wait().expect("it ends");
    let screen = text(&peek.stdout);
    assert!(screen.contains("closed") && screen.contains("EBADF until it is open"), "{screen}");
    assert!(!screen.contains("weir flush"), "{screen}");
    let errors = text(&flush.stderr);
    assert!(errors.contains("the program has closed descriptor 1"), "{errors}");
    assert_eq!((text(&flush.stdout), flush.status.code()), (String::new(), Some(1)));
}

/// Keeps bytes for the terminal and waits.
const WAITS: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { setvbuf(stdout, 0, _IOFBF, 4096); printf(\"tty bytes\\n\");\n\
    fclose(fopen(\"ready\", \"w\")); for (;;) pause(); }\n";

#[test]
fn a_background_flush_to_a_terminal_that_stops_such_jobs_ends() {
    const TEST: &str = "a_background_flush_to_a_terminal_that_stops_such_jobs_ends";
    if !has("script") || !has("bash") {
        return skip(TEST, "it needs script and bash");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "waits", WAITS, &[]) else { return };
    // The result of the flush is there, or weir is stopped (state T).
    let commands = format!(
        "set -m; stty tostop; {} & P=$!; until [ -e ready ]; do sleep 0.05; done
        {WEIR} flush $P > flushed 2>&1 & W=$!
        until [ -s flushed ] || grep -q 'State:.T' /proc/$W/status; do sleep 0.05; done
        grep State /proc/$P/status > state; kill -9 $W $P\n",
        path(&program)
    );
    std::fs::write(dir.path().join("commands"), commands).expect("the script");
    let mut output = Command::new("timeout");
    output.args(["60", "script", "-qc", "bash --norc -i ./commands", "typescript"]).current_dir(dir.path());
    let output = output.stdin(std::process::Stdio::null()).output().expect("timeout");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    assert!(read("flushed").contains("10 B"), "{:?} {} {output:?}", read("flushed"), read("state"));
    assert!(read("state").contains("sleeping"), "{}", read("state"));
}
