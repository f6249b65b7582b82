//! A process whose main thread has ended: /proc/PID shows neither its memory nor its descriptors, other threads use both.

mod common;
#[path = "peek_flush/programs.rs"]
mod programs;
#[path = "common/trace.rs"]
mod trace;

use std::process::Command;

use common::{run, text};
use programs::{Program, built};
use rustix::process::Signal;

#[test]
fn its_bytes_are_seen_and_written_once() {
    let test = "its_bytes_are_seen_and_written_once";
    for flags in [&["-pthread"][..], &["-pthread", "-static", "-s"]] {
        let Some(path) = built(test, "gcc", flags, "worker.c") else { return };
        let mut program = Program::start(&mut Command::new(path));
        let pid = program.pid().to_string();
        let peek = text(&run(program.dir(), &["peek", &pid]).stdout);
        assert!(peek.contains("8 B") && peek.contains(r#""one\ntwo\n""#), "{flags:?}: {peek}");
        let flush = run(program.dir(), &["flush", &pid]);
        let said = text(&flush.stdout) + &text(&flush.stderr);
        assert!(flush.status.success() && said.contains("8 B written to descriptor 1"), "{flags:?}: {said}");
        assert_eq!(program.out(), "one\ntwo\n", "{flags:?}");
        assert_eq!(program.end(), Some(0), "{flags:?}");
        assert_eq!(program.out(), "one\ntwo\nthree\n", "{flags:?}");
    }
}

#[test]
fn trace_sees_what_it_holds() {
    let Some(path) = built("trace_sees_what_it_holds", "gcc", &["-pthread"], "worker.c") else { return };
    for engine in ["ebpf", "ptrace"] {
        if engine == "ebpf" && !common::is_root() {
            common::skip("trace_sees_what_it_holds", "eBPF needs root");
            continue;
        }
        let program = Program::start(&mut Command::new(&path));
        let pid = program.pid().to_string();
        let output = run(program.dir(), &["trace", "--engine", engine, "--time", "3s", "-p", &pid]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("stuck-output") && said.contains("8 bytes have been"), "{engine}: {said}");
        program.signal(Signal::KILL);
    }
}

#[test]
fn run_writes_what_it_holds() {
    let Some(path) = built("run_writes_what_it_holds", "gcc", &["-pthread"], "worker.c") else { return };
    let path = path.display().to_string();
    let started = |options: &[&str]| {
        let dir = common::disk_dir();
        Program::start(&mut common::weir(dir.path(), &[&["run", "-q"], options, &["--", &path]].concat()))
    };
    let mut delayed = started(&["--max-delay", "50ms"]);
    common::wait_for("the delayed lines", || delayed.out() == "one\ntwo\n");
    assert_eq!(delayed.end(), Some(0));
    assert_eq!(delayed.out(), "one\ntwo\nthree\n");
    let mut killed = started(&["--rescue"]);
    killed.signal(Signal::TERM);
    common::wait_for("the rescued lines", || !killed.out().is_empty());
    assert_eq!(killed.end(), Some(128 + 15));
    assert_eq!(killed.out(), "one\ntwo\n");
}

/// Prints without a newline, at which musl would flush, and ends its main thread. The other thread prints the rest, and ends as the
/// argument says: `r`eturns to musl, which flushes, or ends the `p`rocess or only itself, the last `t`hread, without a flush.
const LAST_THREAD: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
    static void *rest(void *how) {\n\
        usleep(200000);\n\
        printf(\"second half\");\n\
        if (*(char *)how == 'p') _exit(0);\n\
        if (*(char *)how == 't') syscall(SYS_exit, 0);\n\
        return NULL; }\n\
    int main(int words, char **word) {\n\
        pthread_t thread;\n\
        printf(\"first half \");\n\
        if (words < 2 || pthread_create(&thread, NULL, rest, word[1])) return 1;\n\
        pthread_exit(NULL); }\n";

#[test]
fn trace_reads_the_buffers_at_the_end_of_the_last_thread() {
    const TEST: &str = "trace_reads_the_buffers_at_the_end_of_the_last_thread";
    trace::for_each_engine(|engine, dir| {
        let Some(program) = trace::compile_by("musl-gcc", dir, "last", LAST_THREAD, &["-static"]) else {
            return common::skip(TEST, "there is no musl-gcc");
        };
        let verdict = |how: &str| trace::verdict(engine, dir, &[trace::path(&program), how]).0;
        let flushed = verdict("r");
        assert!(flushed.starts_with("Nothing is wrong with "), "{engine}: {flushed}");
        for how in ["p", "t"] {
            let lost = verdict(how);
            assert!(lost.contains("22 bytes"), "{engine} {how}: {lost}");
        }
    });
}
