//! The counts of the ptrace backend: equal to those of strace(1) call by call, and to those of the kernel in total.

mod common;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use weir_model::trace::{Exit, Op};

use common::{compile, skip, text, trace_exact, trace_filtered, trace_sampled};

/// A loop of one-byte reads and writes.
const ONE_BYTE_LOOP: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    int in = open("/dev/zero", O_RDONLY), out = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char byte;
    for (long n = count > 2 ? atol(words[2]) : 0; n > 0; n--)
        if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1) return 1;
    return 0;
}
"#;

/// Returns the counts of `strace -f -c` for the recorded calls, without strace's own execve(2).
fn strace(words: &[&str]) -> Option<BTreeMap<Op, u64>> {
    let dir = tempfile::tempdir().expect("a directory");
    let list = dir.path().join("list");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&list).args(words);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let list = std::fs::read_to_string(list).ok()?;
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let (calls, name) = (fields.next()?.parse().ok()?, fields.next()?);
        Some((Op::ALL.iter().copied().find(|op| op.name() == name)?, calls))
    };
    let mut counts: BTreeMap<Op, u64> = list.lines().filter_map(line).collect();
    *counts.get_mut(&Op::Execve)? -= 1;
    counts.retain(|_, calls| *calls > 0);
    Some(counts)
}

fn same_as_strace(name: &str, words: &[&str]) {
    let Some(expected) = strace(words) else { return skip(name, "strace is not here") };
    assert_eq!(trace_exact(words).counts(), expected, "{words:?}");
    assert_eq!(trace_filtered(words).counts(), expected, "with a filter: {words:?}");
}

#[test]
fn cat_is_counted_as_strace_counts_it() {
    // With a file as output, as the tests may have, cat copies in the kernel.
    let words = ["sh", "-c", "exec cat /etc/passwd /etc/hostname >/dev/null"];
    same_as_strace("cat_is_counted_as_strace_counts_it", &words);
}

#[test]
fn dd_is_counted_as_strace_counts_it() {
    let words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000", "status=none"];
    same_as_strace("dd_is_counted_as_strace_counts_it", &words);
    let counts = trace_exact(&words).counts();
    assert_eq!(counts[&Op::Write], 1000);
}

#[test]
fn a_pipeline_is_counted_as_strace_counts_it() {
    // The sleeps make the number of reads from each pipe independent of scheduling.
    let script = "cat /etc/passwd | { sleep 0.3; cat; } | { sleep 0.6; wc -c; }; (exit 3); true";
    same_as_strace("a_pipeline_is_counted_as_strace_counts_it", &["sh", "-c", script]);
}

#[test]
fn contents_and_paths_are_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let script = format!("echo hello there >{0}; mv {0} {1}", old.display(), new.display());
    let run = trace_exact(&["sh", "-c", &script]);
    let write = run.calls().find(|call| call.op == Op::Write).expect("a write");
    assert_eq!((write.head.as_slice(), write.tail, write.result), (&b"hello there\n"[..], Some(b'\n'), 12));
    let renamed =
        |call: &&weir_trace_api::RawCall| matches!(call.op, Op::Rename | Op::Renameat | Op::Renameat2);
    let rename = run.calls().find(renamed).expect("a rename");
    assert_eq!(rename.paths, [text(&old), text(&new)]);
}

#[test]
fn pieces_of_vectors_are_added_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <sys/uio.h>
        int main(void) {
            struct iovec v[3] = {{"", 0}, {"one ", 4}, {"two!", 4}};
            return writev(1, v, 3) != 8;
        }"#;
    let program = compile(dir.path(), "pieces", source, &[]);
    let run = trace_exact(&["sh", "-c", &format!("exec {} >/dev/null", program.display())]);
    let call = run.calls().find(|call| call.op == Op::Writev).expect("a writev");
    assert_eq!((call.requested_bytes, call.result), (Some(8), 8));
    assert_eq!((call.head.as_slice(), call.tail), (&b"one two!"[..], Some(b'!')));
}

#[test]
fn totals_of_a_busy_loop_are_exact_though_most_calls_are_not_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(dir.path(), "loop", ONE_BYTE_LOOP, &[]);
    let file = dir.path().join("file");
    let run = trace_sampled(&[text(&program), text(&file), "400000"]);
    let (pid, exit, io) = run.exits()[0];
    let io = io.expect("counts");
    assert_eq!(exit, Exit::Code(0));
    assert_eq!((io.write_calls, io.written_bytes), (400_000, 400_000));
    assert_eq!(run.emitted_totals(pid), io);
    assert!(run.report.observed_calls < 200_000, "sampled: {}", run.report.observed_calls);
    assert!(run.report.observed_calls > 50 && run.report.gap_ns > 0);
    assert_eq!(std::fs::metadata(file).expect("a file").len(), 400_000);
}

#[test]
fn exact_sees_every_call_of_a_busy_loop() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(dir.path(), "loop", ONE_BYTE_LOOP, &[]);
    let run = trace_exact(&[text(&program), text(&dir.path().join("file")), "5000"]);
    let (pid, _, io) = run.exits()[0];
    assert_eq!(run.counts()[&Op::Write], 5000);
    assert_eq!(Some(run.emitted_totals(pid)), io);
    assert_eq!(run.report.gap_ns, 0);
}

#[test]
fn counts_of_children_are_not_the_parents() {
    let script = "dd if=/dev/zero of=/dev/null bs=1 count=700 status=none; read line </etc/passwd; true";
    let run = trace_exact(&["sh", "-c", script]);
    let exits = run.exits();
    for (pid, _, io) in &exits {
        assert_eq!(Some(run.emitted_totals(*pid)), *io, "{pid} of {exits:?}");
    }
    assert!(exits.iter().any(|exit| exit.2.is_some_and(|io| io.write_calls == 700)));
}

#[test]
fn totals_of_threads_are_exact() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <fcntl.h>
        #include <pthread.h>
        #include <unistd.h>
        static int out;
        static void *work(void *none) {
            for (int n = 0; n < 50000; n++) if (write(out, "x", 1) != 1) _exit(1);
            return none;
        }
        int main(void) {
            pthread_t threads[3];
            out = open("/dev/null", O_WRONLY);
            for (int n = 0; n < 3; n++) pthread_create(&threads[n], 0, work, 0);
            for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
            return 0;
        }"#;
    let program = compile(dir.path(), "threads", source, &["-pthread"]);
    let run = trace_sampled(&[text(&program)]);
    let (pid, exit, io) = run.exits()[0];
    let io = io.expect("counts");
    assert_eq!((exit, io.write_calls, io.written_bytes), (Exit::Code(0), 150_000, 150_000));
    let totals = run.emitted_totals(pid);
    assert_eq!((totals.write_calls, totals.written_bytes), (150_000, 150_000));
    assert!(run.report.observed_calls < 100_000, "sampled: {}", run.report.observed_calls);
}
