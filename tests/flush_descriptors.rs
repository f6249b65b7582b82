//! `weir peek` and `weir flush` on bytes for a closed descriptor, and for a terminal that stops background jobs; `weir flush` whose own
//! standard output takes no bytes.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs::{self, File, OpenOptions};
use std::process::Command;

use common::{KillOnDrop, WEIR, disk_dir, has, run, skip, text, wait_for, weir};
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

/// Keeps bytes for a file, and for standard output, which it closes.
const FILE_AND_CLOSED: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { setvbuf(stdout, 0, _IOFBF, 4096); printf(\"on closed\\n\");\n\
    fputs(\"in a file\\n\", fopen(\"log\", \"w\")); close(1);\n\
    fclose(fopen(\"ready\", \"w\")); for (;;) pause(); }\n";

#[test]
fn a_flush_that_cannot_print_says_so_and_names_what_is_pending() {
    for every in [false, true] {
        let dir = disk_dir();
        let Some(program) = compile(dir.path(), "file_and_closed", FILE_AND_CLOSED, &[]) else { return };
        let program = Command::new(program).current_dir(dir.path()).spawn().expect("the program");
        let mut program = KillOnDrop(program);
        wait_for("the program", || dir.path().join("ready").exists());
        let pid = program.0.id().to_string();
        let words = if every { &["flush", "--every", "50ms", &pid][..] } else { &["flush", &pid] };
        let mut command = weir(dir.path(), words);
        command.stdout(OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"));
        command.stderr(File::create(dir.path().join("errors")).expect("a file"));
        let mut flush = KillOnDrop(command.spawn().expect("the built binary starts"));
        let errors = || fs::read_to_string(dir.path().join("errors")).expect("a file");
        if every {
            wait_for("the pending bytes", || errors().contains("has closed descriptor 1"));
            program.0.kill().expect("it runs");
            program.0.wait().expect("its end");
        }
        assert_eq!(flush.0.wait().expect("its end").code(), Some(1), "{}", errors());
        assert!(errors().contains("weir: standard output: write: ENOSPC"), "{}", errors());
        assert!(errors().contains("the program has closed descriptor 1"), "{}", errors());
        assert_eq!(fs::read_to_string(dir.path().join("log")).expect("the file"), "in a file\n");
    }
}
