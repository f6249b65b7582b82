//! Tracing does not change the behaviour of a program, with repeated attach and detach, or when weir is killed.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_sys::proc;
use weir_trace_api::{TraceOptions, TraceRoot};

use common::{compile, exact, text, trace, wait_until};

/// Threads that write lines, send bytes through a pipe and a socket, and wait for events and for a connection. Each exits
/// with its own status if a call fails with EINTR or returns a partial result, which would not happen untraced.
const STRICT_PROGRAM: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static int ends[2], sockets[2], patient;
static void *feed(void *none) {
    static char block[3000];
    struct timespec pause = {0, 300000};
    for (;;) {
        if (write(ends[1], block, sizeof block) != sizeof block) _exit(4);
        if (nanosleep(&pause, 0)) _exit(5);
    }
    return none;
}
static void *drain(void *none) {
    char block[1000];
    for (;;) if (read(ends[0], block, sizeof block) <= 0) _exit(6);
    return none;
}
static void *events(void *none) {
    struct epoll_event event;
    int set = epoll_create1(0);
    for (;;) if (epoll_wait(set, &event, 1, 3) != 0 && !(patient && errno == EINTR)) _exit(7);
    return none;
}
static void *send_bytes(void *none) {
    struct timespec pause = {0, 200000};
    for (int n = 0;; n++) {
        if (send(sockets[0], "x", 1, 0) != 1) _exit(9);
        if (n % 64 == 0 && nanosleep(&pause, 0)) _exit(10);
    }
    return none;
}
static void *receive(void *none) {
    char block[7];
    for (;;) if (recv(sockets[1], block, sizeof block, 0) <= 0) _exit(11);
    return none;
}
static void *listens(void *none) {
    struct sockaddr any = {AF_UNIX, ""};
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(own, &any, sizeof any.sa_family) || listen(own, 1)) _exit(12);
    accept(own, 0, 0);
    _exit(13);
    return none;
}
int main(int count, char **words) {
    pthread_t thread;
    char line[32];
    int out = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    patient = count > 3;
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 1;
    pthread_create(&thread, 0, send_bytes, 0);
    pthread_create(&thread, 0, receive, 0);
    pthread_create(&thread, 0, listens, 0);
    pthread_create(&thread, 0, feed, 0);
    pthread_create(&thread, 0, drain, 0);
    pthread_create(&thread, 0, events, 0);
    for (long n = 0;; n++) {
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(out, line, length) != length) _exit(3);
        if (n % 256 == 0 && access(words[2], F_OK) == 0) break;
        if (n % 64 == 0) { struct timespec pause = {0, 1000000}; if (nanosleep(&pause, 0)) _exit(8); }
    }
    return 0;
}
"#;

struct StrictProgram {
    child: Child,
    file: PathBuf,
    stop: PathBuf,
}

impl Drop for StrictProgram {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl StrictProgram {
    /// Starts the program. A `patient` one tolerates EINTR of epoll_wait(2), which the kernel returns if the tracer is
    /// killed while the thread is stopped at the entry of that call.
    fn start(dir: &Path, patient: bool) -> Self {
        let program = compile(dir, "program", STRICT_PROGRAM, &["-pthread"]);
        let (file, stop) = (dir.join("lines"), dir.join("stop"));
        let child = Command::new(program)
            .arg(&file)
            .arg(&stop)
            .args(patient.then_some("patient"))
            .spawn()
            .expect("it starts");
        wait_until("it writes", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        Self { child, file, stop }
    }

    fn assert_running(&mut self) {
        assert_eq!(self.child.try_wait().expect("a status"), None, "it was disturbed");
    }

    /// Ends the program and checks every line of its output.
    fn finish(mut self) {
        std::fs::write(&self.stop, "").expect("the file that stops it");
        wait_until("it ends", || self.child.try_wait().expect("a status").is_some());
        assert_eq!(self.child.wait().expect("a status").code(), Some(0));
        let lines = std::fs::read_to_string(&self.file).expect("its lines");
        let mut count = 0;
        for (number, line) in lines.lines().enumerate() {
            assert_eq!(line, number.to_string());
            count += 1;
        }
        assert!(count > 1000, "{count} lines");
    }
}

/// Returns the number of attachments: WEIR_ATTACH_ROUNDS, or 200.
fn rounds() -> usize {
    std::env::var("WEIR_ATTACH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200)
}

#[test]
fn repeated_attach_and_detach_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut program = StrictProgram::start(dir.path(), false);
    let (mut calls, mut round, began) = (0, 0, Instant::now());
    // Beside other load the program hardly runs while it is attached: then more rounds are needed.
    while round < rounds() || calls <= rounds() as u64 && began.elapsed() < Duration::from_secs(60) {
        let limit = Some(Duration::from_millis(3 + (round % 7) as u64));
        let options = TraceOptions { exact: round % 2 == 0, limit, ..TraceOptions::default() };
        let run = trace(
            TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(program.child.id())),
            &options,
        );
        program.assert_running();
        let run = run.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(run.report.exit, None);
        calls += run.report.observed_calls;
        round += 1;
        program.assert_running();
    }
    assert!(calls > rounds() as u64, "{calls} observed calls");
    assert_eq!(proc::status(program.child.id()).expect("it lives").tracerpid, 0);
    program.finish();
}

#[test]
fn threads_created_while_attached_are_traced() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <pthread.h>
        #include <unistd.h>
        static void *once(void *none) { write(-1, "thread", 6); return none; }
        int main(void) {
            for (int n = 0; n < 40; n++) {
                pthread_t thread;
                usleep(20000);
                pthread_create(&thread, 0, once, 0);
                pthread_join(thread, 0);
            }
            return 0;
        }"#;
    let program = compile(dir.path(), "births", source, &["-pthread"]);
    let mut child = Command::new(program).spawn().expect("it starts");
    let run =
        trace(TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(child.id())), &exact())
            .expect("attached");
    child.wait().ok();
    assert_eq!(run.report.exit, Some(weir_model::trace::Exit::Code(0)));
    let calls = run.events.iter().filter(|event| match &event.kind {
        weir_trace_api::RawEventKind::Call(call) => {
            call.op == weir_model::trace::Op::Write && event.tid != event.pid
        }
        _ => false,
    });
    assert!(calls.count() >= 30);
}

/// Starts the example that runs the backend in a process of its own, which can be killed.
fn weir(arguments: &[&str]) -> Child {
    let own = std::env::current_exe().expect("a path");
    let example = own.ancestors().nth(2).expect("the target directory").join("examples/raw_events");
    assert!(example.exists(), "cargo test -p weir-trace-ptrace builds {}", example.display());
    Command::new(example).args(arguments).stderr(Stdio::null()).spawn().expect("it starts")
}

#[test]
fn a_killed_weir_leaves_an_attached_program_unharmed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut program = StrictProgram::start(dir.path(), true);
    let process = format!("-p{}", program.child.id());
    for round in 0..30u64 {
        let mode = if round % 2 == 0 { "exact" } else { "-q" };
        let mut weir = weir(&["-q", mode, &process]);
        let traced = || proc::status(program.child.id()).is_some_and(|status| status.tracerpid > 0);
        wait_until("attached", traced);
        std::thread::sleep(Duration::from_micros(round * 777));
        weir.kill().expect("killed");
        weir.wait().expect("gone");
        program.assert_running();
    }
    program.finish();
}

#[test]
fn a_killed_weir_leaves_its_command_unharmed() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(int count, char **words) {
            int out = open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
            for (int n = 0; n < 60000 + count; n++) if (write(out, "x", 1) != 1) return 1;
            return close(open(words[2], O_WRONLY | O_CREAT, 0600));
        }"#;
    let program = compile(dir.path(), "writer", source, &[]);
    for round in 0..12u64 {
        let (file, done) = (dir.path().join(format!("file{round}")), dir.path().join(format!("done{round}")));
        let mode = if round % 2 == 0 { "exact" } else { "-q" };
        let mut weir = weir(&["-q", mode, text(&program), text(&file), text(&done)]);
        wait_until("it writes", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        std::thread::sleep(Duration::from_micros(round * 900));
        weir.kill().expect("killed");
        weir.wait().expect("gone");
        wait_until("it ends its work", || done.exists());
        assert_eq!(std::fs::metadata(&file).expect("a file").len(), 60_003);
    }
}

/// Without a tracer an ignored signal is not delivered: it ends no call, and delays no timeout.
#[test]
fn ignored_signals_end_no_call() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <sys/epoll.h>
        #include <unistd.h>
        static pthread_t waiting;
        static void *urge(void *none) {
            for (;;) if (usleep(5000) || pthread_kill(waiting, SIGURG)) _exit(2);
            return none;
        }
        int main(void) {
            struct epoll_event event;
            pthread_t thread;
            int set = epoll_create1(0);
            waiting = pthread_self();
            pthread_create(&thread, 0, urge, 0);
            for (int n = 0; n < 10; n++) if (epoll_wait(set, &event, 1, 50) != 0) _exit(1);
            _exit(0);
        }"#;
    let program = compile(dir.path(), "urged", source, &["-pthread"]);
    for options in [exact(), TraceOptions::default()] {
        let options = TraceOptions { limit: Some(Duration::from_secs(30)), ..options };
        let run = trace(common::command(&[text(&program)]), &options).expect("a run");
        assert_eq!(run.exits().first().map(|(_, exit, _)| *exit), Some(weir_model::trace::Exit::Code(0)));
    }
}
