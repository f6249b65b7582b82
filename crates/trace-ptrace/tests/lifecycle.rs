//! The lifecycle of processes under the ptrace backend: exit statuses, signals, stops, children, threads.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_model::trace::{Exit, SnapshotMoment};
use weir_sys::{Error, proc};
use weir_trace_api::{RawEventKind, TraceOptions, TraceRoot};

use common::{command, compile, text, trace, trace_exact, trace_sampled, wait_until};

#[test]
fn exit_statuses_are_passed_on() {
    assert_eq!(trace_exact(&["true"]).report.exit, Some(Exit::Code(0)));
    assert_eq!(trace_sampled(&["sh", "-c", "exit 41"]).report.exit, Some(Exit::Code(41)));
}

#[test]
fn a_missing_command_is_reported_with_errno() {
    for (name, errno) in [("no-such-command-here", libc::ENOENT), ("/etc/passwd", libc::EACCES)] {
        match trace(command(&[name]), &TraceOptions::default()).map(|run| run.report) {
            Err(Error::Command { source, .. }) => assert_eq!(source.raw_os_error(), Some(errno)),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn death_by_a_signal_has_a_last_buffer_snapshot() {
    for (name, number) in [("KILL", libc::SIGKILL), ("TERM", libc::SIGTERM), ("ABRT", libc::SIGABRT)] {
        let run = trace_sampled(&["sh", "-c", &format!("ulimit -c 0; kill -{name} $$")]);
        assert_eq!(run.report.exit, Some(Exit::Signal(number)));
        assert_eq!(run.signals(), [number]);
        assert!(run.snapshots.iter().any(|snapshot| snapshot.1 == SnapshotMoment::Signal));
        assert!(run.exits()[0].2.is_some(), "counts are there at a SIG{name}");
    }
}

#[test]
fn signals_that_are_caught_are_no_deaths() {
    let run = trace_exact(&["sh", "-c", "trap 'exit 7' USR1; kill -USR1 $$; exit 1"]);
    assert_eq!(run.report.exit, Some(Exit::Code(7)));
    assert!(run.signals().is_empty());
}

#[test]
fn buffer_snapshots_come_at_fork_exec_and_exit() {
    let run = trace_exact(&["sh", "-c", "(true); exec true"]);
    // Where hardware breakpoints are allowed, there is one more at the start of each image.
    let snapshots = run.snapshots.iter().filter(|snapshot| snapshot.1 != SnapshotMoment::Sample);
    let mut moments: Vec<SnapshotMoment> = snapshots.map(|snapshot| snapshot.1).collect();
    // The shell tries execve(2) in every directory of PATH.
    moments.dedup();
    assert_eq!(
        moments,
        [SnapshotMoment::Fork, SnapshotMoment::Exit, SnapshotMoment::Exec, SnapshotMoment::Exit]
    );
    let (fork, child) = run
        .events
        .iter()
        .enumerate()
        .find_map(|(at, event)| match event.kind {
            RawEventKind::Fork { child, shares_files: false } => Some((at, child)),
            _ => None,
        })
        .expect("a fork");
    let first = run.events.iter().position(|event| event.pid == child);
    assert!(first.is_none_or(|first| first > fork), "no event of a child before its fork");
    assert_eq!(run.execs(), ["sh", "true"]);
}

#[test]
fn job_control_stops_and_continues_a_command() {
    let target = command(&["sh", "-c", "kill -STOP $$; exit 5"]);
    let pid = target.pid();
    let waker = std::thread::spawn(move || {
        // A group-stop of a tracee appears as "t (tracing stop)".
        let stopped = || proc::status(pid).is_some_and(|status| status.state.starts_with(['T', 't']));
        wait_until("the shell runs", || proc::label(pid).ends_with("(sh)"));
        wait_until("stopped", stopped);
        std::thread::sleep(Duration::from_millis(100));
        let still = stopped();
        // Repeated, because the stop may have been that of the attachment, before the shell's own.
        // SAFETY: sends a signal to a child of this test, which exists until the tracer thread has reaped it.
        wait_until("it ends", || unsafe { libc::kill(pid as i32, libc::SIGCONT) } != 0);
        still
    });
    let run = trace(target, &TraceOptions::default()).expect("traced");
    assert!(waker.join().expect("a state"), "it stays stopped until SIGCONT");
    assert_eq!(run.report.exit, Some(Exit::Code(5)));
}

#[test]
fn many_forks_are_traced() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            for (int n = 0; n < 1000; n++) {
                pid_t child = fork();
                if (child == 0) { write(-1, "", 0); _exit(n & 1); }
                if (child < 0) return 2;
                if (n & 1) { int status; if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 1) return 3; }
            }
            while (wait(0) > 0) ;
            return 0;
        }"#;
    let program = compile(dir.path(), "forks", source, &[]);
    let run = trace_sampled(&[text(&program)]);
    assert_eq!(run.report.exit, Some(Exit::Code(0)));
    assert_eq!(run.exits().len(), 1001);
    assert_eq!(run.exits().iter().filter(|exit| exit.1 == Exit::Code(1)).count(), 500);
}

#[test]
fn threads_and_an_exec_by_one_of_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"
        #include <pthread.h>
        #include <unistd.h>
        static int out;
        static void *work(void *last) {
            for (int n = 0; n < 50; n++) write(out, "x", 1);
            if (last) execlp("sh", "sh", "-c", "exit 9", (char *)0);
            for (;;) pause();
        }
        int main(void) {
            pthread_t thread;
            int ends[2];
            pipe(ends);
            out = ends[1];
            for (long n = 0; n < 4; n++) pthread_create(&thread, 0, work, (void *)(n == 3 ? 1L : 0L));
            for (;;) pause();
        }"#;
    let program = compile(dir.path(), "threads", source, &["-pthread"]);
    let run = trace_exact(&[text(&program)]);
    assert_eq!(run.report.exit, Some(Exit::Code(9)));
    assert_eq!(run.exits().len(), 1, "threads are no processes");
    assert_eq!(run.execs(), ["threads", "sh"]);
    assert!(run.calls().filter(|call| call.head == b"x").count() >= 50);
}

#[test]
fn descendants_that_still_run_are_detached() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("late");
    let script = format!("(sleep 0.5; echo done >{}) >/dev/null 2>&1 &", file.display());
    let began = Instant::now();
    let run = trace_sampled(&["sh", "-c", &script]);
    assert_eq!(run.report.exit, Some(Exit::Code(0)));
    assert!(!file.exists() || began.elapsed() > Duration::from_millis(500));
    wait_until("the child ends its work", || std::fs::read(&file).is_ok_and(|data| data == b"done\n"));
}

#[test]
fn the_limit_ends_the_trace_and_not_the_program() {
    let target = command(&["sleep", "1.5"]);
    let pid = target.pid();
    let options = TraceOptions { limit: Some(Duration::from_millis(350)), ..TraceOptions::default() };
    let run = trace(target, &options).expect("traced");
    assert_eq!(run.report.exit, None);
    // A loaded machine makes fewer.
    assert!((1..=4).contains(&run.ticks), "{} ticks in 350 ms", run.ticks);
    assert_eq!(proc::status(pid).expect("it lives").tracerpid, 0);
    let mut status = 0;
    // SAFETY: waits for a child of this test.
    unsafe { libc::waitpid(pid as i32, &mut status, 0) };
    assert_eq!(status, 0);
}

#[test]
fn the_stop_flag_detaches_an_attached_process() {
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep");
    let options = TraceOptions::default();
    let stop = options.stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        stop.store(true, Ordering::Relaxed);
    });
    let run =
        trace(TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(child.id())), &options)
            .expect("traced");
    stopper.join().expect("stopped");
    assert_eq!(run.report.exit, None);
    assert_eq!(proc::status(child.id()).expect("it lives").tracerpid, 0);
    child.kill().expect("killed");
    child.wait().expect("gone");
}
