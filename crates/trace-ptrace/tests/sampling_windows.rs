//! Bursts come again whatever a program does between them, and what it opens meanwhile is asked for.

mod common;

use weir_model::trace::{Exit, Op};
use weir_trace_api::RawEventKind;

use common::{Seen, cheaply, compile, text};

/// How many pauses were followed by a call of this kind.
fn bursts_with(seen: &Seen, op: Op) -> usize {
    let (mut bursts, mut fresh) = (0, false);
    for raw in &seen.raws {
        match &raw.kind {
            RawEventKind::GapEdge { ends: true, .. } => fresh = true,
            RawEventKind::Call(call) if call.op == op && std::mem::take(&mut fresh) => bursts += 1,
            _ => {}
        }
    }
    bursts
}

#[test]
fn one_that_sends_without_a_pause_is_caught_again() {
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
    let seen = cheaply(&[text(&program)]);
    assert_eq!(seen.ended.exit, Some(Exit::Code(0)), "nothing was broken off or came twice");
    assert!(seen.counts()[&Op::Sendto] < 150_000, "bursts: {}", seen.counts()[&Op::Sendto]);
    assert!(bursts_with(&seen, Op::Sendto) >= 2, "{} bursts", bursts_with(&seen, Op::Sendto));
}

#[test]
fn one_that_asks_and_waits_for_each_answer_is_caught_again() {
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
    let seen = cheaply(&[text(&program)]);
    assert_eq!(seen.ended.exit, Some(Exit::Code(0)));
    assert!(bursts_with(&seen, Op::Sendto) + bursts_with(&seen, Op::Recvfrom) >= 2);
}

#[test]
fn one_that_opens_file_after_file_is_glanced_at_and_others_are_not() {
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
    let glances = |words: &[&str]| {
        let seen = cheaply(words);
        assert_eq!(seen.ended.exit, Some(Exit::Code(0)));
        assert!(seen.ended.gap_ns > 0);
        // What the loader opens is forgotten with the first burst that is all the program's own.
        let pauses =
            seen.raws.iter().position(|raw| matches!(raw.kind, RawEventKind::GapEdge { ends: true, .. }));
        let later = &seen.raws[pauses.expect("a pause")..];
        later.iter().filter(|raw| matches!(raw.kind, RawEventKind::FdSnapshot)).count()
    };
    let file = text(&program);
    assert!(glances(&[file, file, "again"]) > 0);
    assert_eq!(glances(&[file, file]), 0);
}
