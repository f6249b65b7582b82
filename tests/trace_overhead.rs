//! The overhead of `weir trace`: it samples programs that make very many calls, and sleeps while a program sleeps.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::{comes_true, disk_dir, has, is_root, skip, weir};
use trace::{compile, path, traced};

/// Four processes that open, read and close a file and try to open a missing one, as fast as they can.
const STORM: &str = r#"
#include <fcntl.h>
#include <unistd.h>
#include <sys/wait.h>
int main(void)
{
    char text[64];
    for (int i = 0; i < 4; i++)
        if (!fork()) {
            for (int n = 0; n < 40000; n++) {
                int file = open("/etc/passwd", O_RDONLY);
                if (file < 0 || read(file, text, sizeof text) < 0 || close(file) < 0)
                    _exit(1);
                if (open("/nowhere/at/all", O_RDONLY) >= 0)
                    _exit(1);
            }
            _exit(0);
        }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad |= status;
    return bad != 0;
}
"#;

#[test]
fn several_processes_that_open_files_very_fast_are_sampled() {
    let name = "several_processes_that_open_files_very_fast_are_sampled";
    if !is_root() {
        return skip(name, "needs root");
    }
    let dir = disk_dir();
    let Some(storm) = compile(dir.path(), "storm", STORM, &[]) else {
        return skip(name, "there is no C compiler");
    };
    for options in [&["-q", "--engine", "ebpf"][..], &["-q", "--engine", "ebpf", "--exact"]] {
        let (output, seen) = traced(dir.path(), options, &[path(&storm)]);
        assert!(output.status.success(), "{output:?}");
        let of = |name: &str| seen["overhead"][name].as_u64().unwrap();
        let (calls, lost) = (of("seen_calls"), of("lost_events"));
        if options.contains(&"--exact") {
            // With --exact every call is counted; lost events are reported.
            assert!(calls >= 4 * 40_000 * 4, "{calls} calls seen of all");
        } else {
            // A call has two to three events. Without sampling weir would count nearly all calls and lose four of five
            // events.
            assert!(calls < 4 * 40_000 * 2 && lost <= calls, "{lost} events lost, {calls} calls seen");
        }
    }
}

/// Leaves processes behind that run until the file "end" exists, or the folder of the program does not. Two open a file as fast as they can. One stops weir for most of the
/// time, so that it is slower than these two.
const REMAINS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static int ends(void) { return access("end", F_OK) == 0 || access("remains", F_OK) != 0; }
int main(void)
{
    pid_t weir = getppid();
    for (int i = 0; i < 2; i++)
        if (!fork()) {
            while (!ends())
                for (int n = 0; n < 1000; n++)
                    close(open("/dev/null", O_RDONLY));
            _exit(0);
        }
    if (!fork()) {
        while (!ends() && kill(weir, SIGSTOP) == 0) {
            usleep(20000);
            kill(weir, SIGCONT);
            usleep(2000);
        }
        _exit(0);
    }
    usleep(300000);
    return 7;
}
"#;

#[test]
fn weir_ends_with_the_command_while_other_processes_make_calls() {
    let name = "weir_ends_with_the_command_while_other_processes_make_calls";
    if !is_root() {
        return skip(name, "needs root");
    }
    let dir = disk_dir();
    let Some(remains) = compile(dir.path(), "remains", REMAINS, &[]) else {
        return skip(name, "there is no C compiler");
    };
    let command = ["trace", "-q", "--exact", "--engine", "ebpf", "--", path(&remains)];
    let mut weir = weir(dir.path(), &command);
    let mut weir = weir.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("weir starts");
    let has_ended = comes_true(|| weir.try_wait().expect("weir is a child").is_some());
    fs::write(dir.path().join("end"), "").expect("a file");
    // The output ends with the last of these processes.
    let status = weir.wait_with_output().expect("weir ends").status;
    assert!(has_ended && status.code() == Some(7), "{has_ended}: {status}");
}

/// Returns the number of voluntary context switches of all threads of a process.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("weir runs");
    let of_thread = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.flatten().map(of_thread).sum()
}

#[test]
fn weir_sleeps_while_an_interpreter_does() {
    if !is_root() || !has("python3") {
        return skip("weir_sleeps_while_an_interpreter_does", "needs root and python3");
    }
    let dir = disk_dir();
    let script = "import time; open('here', 'w').close(); time.sleep(4)";
    let command = ["trace", "-q", "--engine", "ebpf", "--", "python3", "-c", script];
    let mut weir = weir(dir.path(), &command).stdin(Stdio::null()).spawn().expect("weir starts");
    let start = Instant::now();
    while !dir.path().join("here").exists() && start.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(500));
    let (before, since) = (sleeps(weir.id()), Instant::now());
    thread::sleep(Duration::from_secs(2));
    let each_second = (sleeps(weir.id()) - before) as f64 / since.elapsed().as_secs_f64();
    assert!(weir.wait().expect("weir ends").success());
    // One buffer snapshot every 20 ms makes 50 wakeups. A wakeup for each stop would make a thousand.
    assert!(each_second < 300.0, "weir wakes up {each_second:.0} times a second");
}
