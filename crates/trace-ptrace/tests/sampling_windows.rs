//! Sampling windows recur whatever a program does in the gaps, and gaps have fd snapshots for programs that open many files.

mod common;

use weir_model::trace::{Exit, Op};
use weir_trace_api::RawEventKind;

use common::{TraceRun, compile, text, trace_sampled};

/// Returns the number of gaps that a call of this operation followed.
fn windows_with(run: &TraceRun, op: Op) -> usize {
    let (mut windows, mut is_new) = (0, false);
    for event in &run.events {
        match &event.kind {
            RawEventKind::GapEdge { ends: true, .. } => is_new = true,
            RawEventKind::Call(call) if call.op == op && std::mem::take(&mut is_new) => windows += 1,
            _ => {}
        }
    }
    windows
}

#[test]
fn a_program_that_sends_all_the_time_is_sampled_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <sys/socket.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static char block[65536];
        int main(void) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
            if (fork() == 0) {
                long sum = 0, got;
                close(ends[0]);
                while ((got = recv(ends[1], block, sizeof block, 0)) > 0) sum += got;
                _exit(got < 0 || sum != 300000 ? 3 : 0);
            }
            close(ends[1]);
            for (int n = 0; n < 300000; n++) if (send(ends[0], "x", 1, 0) != 1) return 2;
            close(ends[0]);
            int status;
            return wait(&status) < 0 || status != 0;
        }"#;
    let program = compile(dir.path(), "sends", source, &[]);
    let run = trace_sampled(&[text(&program)]);
    assert_eq!(run.report.exit, Some(Exit::Code(0)), "no call was cut short or repeated");
    assert!(run.counts()[&Op::Sendto] < 150_000, "sampled: {}", run.counts()[&Op::Sendto]);
    assert!(windows_with(&run, Op::Sendto) >= 2, "{} windows", windows_with(&run, Op::Sendto));
}

#[test]
fn a_program_that_waits_for_each_answer_is_sampled_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <sys/socket.h>
        #include <unistd.h>
        int main(void) {
            int ends[2];
            char byte;
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
            if (fork() == 0) {
                close(ends[0]);
                while (read(ends[1], &byte, 1) == 1) if (write(ends[1], "a", 1) != 1) _exit(3);
                _exit(0);
            }
            close(ends[1]);
            for (int n = 0; n < 60000; n++)
                if (send(ends[0], "q", 1, 0) != 1 || recv(ends[0], &byte, 1, 0) != 1 || byte != 'a') return 2;
            return 0;
        }"#;
    let program = compile(dir.path(), "asks", source, &[]);
    let run = trace_sampled(&[text(&program)]);
    assert_eq!(run.report.exit, Some(Exit::Code(0)));
    assert!(windows_with(&run, Op::Sendto) + windows_with(&run, Op::Recvfrom) >= 2);
}

#[test]
fn only_programs_that_open_many_files_have_fd_snapshots() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <fcntl.h>
        #include <unistd.h>
        int main(int count, char **words) {
            char byte;
            int in = open(words[1], O_RDONLY);
            for (int n = 0; n < 200000; n++) {
                if (count > 2) { close(in); in = open(words[1], O_RDONLY); }
                if (pread(in, &byte, 1, 0) != 1) return 1;
            }
            return 0;
        }"#;
    let program = compile(dir.path(), "opens", source, &[]);
    let fd_snapshots = |words: &[&str]| {
        let run = trace_sampled(words);
        assert_eq!(run.report.exit, Some(Exit::Code(0)));
        assert!(run.report.gap_ns > 0);
        // The files that the loader opens do not count after the first complete sampling window.
        let first_gap_end = run
            .events
            .iter()
            .position(|event| matches!(event.kind, RawEventKind::GapEdge { ends: true, .. }));
        let later = &run.events[first_gap_end.expect("a gap")..];
        later.iter().filter(|event| matches!(event.kind, RawEventKind::FdSnapshot)).count()
    };
    let file = text(&program);
    assert!(fd_snapshots(&[file, file, "again"]) > 0);
    assert_eq!(fd_snapshots(&[file, file]), 0);
}
