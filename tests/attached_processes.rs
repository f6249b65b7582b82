//! A process to which weir attaches ends as alone while its children come and go: thousands of short ones, many at once, by
//! vfork(2), in namespaces.
//!
//! The long form, `make test-all`, has 10,000 short children and 2,000 processes at once.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{KillOnDrop, campaign, concurrent, disk_dir, is_root, run, text};

/// Verbs on a running process, whose PID follows.
const VERBS: [(&str, &[&str]); 7] = [
    ("ebpf", &["trace", "--quiet", "--time", "300ms", "--engine", "ebpf", "--pid"]),
    ("ptrace", &["trace", "--quiet", "--time", "300ms", "--engine", "ptrace", "--pid"]),
    ("sample", &["trace", "--quiet", "--time", "300ms", "--engine", "sample", "--pid"]),
    ("peek", &["peek"]),
    ("flush", &["flush"]),
    ("flush-children", &["flush", "--children"]),
    ("top", &["top", "--once", "--interval", "200ms", "--pid"]),
];

/// Modes of processes.c, and the counts of the short and of the long form.
const MODES: [(&str, [&str; 2]); 4] = [
    ("short", ["300", "10000"]),
    ("concurrent", ["60", "2000"]),
    ("vfork", ["60", "1000"]),
    ("namespaces", ["2", "30"]),
];

/// Starts the program with its output in a file.
fn start(dir: &Path, mode: &str, count: &str, name: &str) -> KillOnDrop {
    let file = |suffix: &str| fs::File::create(dir.join(format!("{name}.{suffix}"))).expect("a file");
    let mut command = Command::new(dir.join("processes"));
    command
        .args([mode, count])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("errors"));
    KillOnDrop(common::with_signals(&mut command).spawn().expect("it starts"))
}

/// Waits for the end of the program. Returns its status and its output.
fn end(dir: &Path, mut program: KillOnDrop, name: &str) -> (Option<i32>, String) {
    let mut status = None;
    common::wait_for(&format!("the end of {name}"), || {
        status = program.0.try_wait().expect("its status");
        status.is_some()
    });
    let read = |suffix: &str| fs::read(dir.join(format!("{name}.{suffix}"))).expect("its output");
    (status.and_then(|status| status.code()), text(&read("out")) + &text(&read("errors")))
}

#[test]
fn a_process_with_many_children_ends_as_alone() {
    let dir = disk_dir();
    let dir = dir.path();
    assert!(
        common::programs::compile_c("environments/processes", &["-pthread"], dir),
        "gcc builds processes.c"
    );
    let long = usize::from(campaign::is_full());
    let verbs: Vec<_> = VERBS.into_iter().filter(|(name, _)| *name != "ebpf" || is_root()).collect();
    let cells: Vec<_> = MODES.iter().flat_map(|mode| verbs.iter().map(move |verb| (mode, verb))).collect();
    let alone = MODES.map(|(mode, counts)| {
        let ended = end(dir, start(dir, mode, counts[long], mode), mode);
        assert_eq!(ended.0, Some(7), "{mode}: {}", ended.1);
        (mode, ended)
    });
    concurrent::for_each(2, &cells, |((mode, counts), (verb, words))| {
        let name = format!("{mode} {verb}");
        let program = start(dir, mode, counts[long], &name);
        let pid = program.0.id().to_string();
        let mut command = common::limited::limited(dir, &[words, &[pid.as_str()][..]].concat());
        let output = command.stdin(Stdio::null()).output().expect("timeout(1)");
        // The program may have ended before, and trace may pass its status on.
        let is_orderly = output.status.code().is_some_and(|status| [0, 1, 7, 125].contains(&status));
        assert!(is_orderly, "{name}: {:?} {}", output.status, text(&output.stderr));
        let wanted = &alone.iter().find(|(one, _)| one == mode).expect("its mode").1;
        assert_eq!(&end(dir, program, &name), wanted, "{name}: {}", text(&output.stderr));
    });
}

/// Waits for a timer of 20 ms in epoll_wait(2) and writes four bytes after each wait. An EINTR ends it with status 4.
const EVENT_LOOP: &str = "#include <stdlib.h>\n#include <sys/epoll.h>\n#include <sys/timerfd.h>\n#include <unistd.h>\n\
    int main(int argc, char **argv) { int set = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);\n\
    struct itimerspec every = {{0, 20000000}, {0, 20000000}}; struct epoll_event event = {.events = EPOLLIN};\n\
    timerfd_settime(timer, 0, &every, 0); epoll_ctl(set, EPOLL_CTL_ADD, timer, &event);\n\
    for (long n = 0, ticks; argc == 2; n++) { if (epoll_wait(set, &event, 1, atoi(argv[1])) < 0) return 4;\n\
    if (read(timer, &ticks, 8) != 8 || write(1, \"rec\\n\", 4) != 4) return 5; } return 6; }\n";

/// The process runs for microseconds between its waits, so weir has to stop it in one.
#[test]
fn the_calls_of_an_event_loop_are_recorded() {
    let dir = disk_dir();
    let program = trace::compile(dir.path(), "events", EVENT_LOOP, &[]).expect("cc");
    for timeout in ["-1", "100", "2000"] {
        let mut command = Command::new(&program);
        command.arg(timeout).stdout(fs::File::create(dir.path().join("out")).expect("a file"));
        let mut events = KillOnDrop(command.spawn().expect("it starts"));
        let pid = events.0.id().to_string();
        let output = run(
            dir.path(),
            &["trace", "-q", "--engine", "ptrace", "--time", "2s", "--json", "t.json", "--pid", &pid],
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document = fs::read_to_string(dir.path().join("t.json")).expect("the document");
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        let calls = |fd: i64| {
            let stream = document["streams"].as_array().expect("streams").iter().find(|one| one["fd"] == fd);
            stream.map_or(0, |stream| stream["calls"].as_u64().expect("a number"))
        };
        assert!(calls(1) >= 20 && calls(4) >= 20, "{timeout}: {}", document["streams"]);
        let status = events.0.try_wait().expect("its state");
        assert!(status.is_none(), "{timeout}: it ended: {status:?}");
    }
}

/// A shell that starts weir for its own PID is its parent.
#[test]
fn weir_does_not_trace_itself() {
    if !is_root() {
        return common::skip("weir_does_not_trace_itself", "the eBPF engine needs root");
    }
    let dir = disk_dir();
    let words = "\"$0\" trace -q --engine ebpf --time 300ms --json t.json --pid $$; exit $?";
    let mut shell = Command::new("sh");
    shell.current_dir(dir.path()).args(["-c", words, common::WEIR]).stdin(Stdio::null());
    let output = shell.output().expect("sh");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = fs::read_to_string(dir.path().join("t.json")).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let processes = document["processes"].as_array().expect("processes").iter();
    let names: Vec<&str> = processes.filter_map(|one| one["images"][0]["comm"].as_str()).collect();
    assert!(!names.contains(&"weir") && names.contains(&"sh"), "{names:?}");
}

/// Starts a hundred processes, to which weir attaches first, and then 300 that each write a file two seconds later.
const BEGINNERS: &str = "i=0; while [ $i -lt 100 ]; do sleep 30 & sleeps=\"$sleeps $!\"; i=$((i+1)); done\n\
    (i=0; while [ $i -lt 300 ]; do\n\
        (sleep 2; echo x > begun.$i) &\n\
        i=$((i+1)); [ $((i % 5)) -ne 0 ] || sleep 0.02\n\
    done; wait) &\n\
    echo > ready; wait $!; kill $sleeps; exit 0";

#[test]
fn processes_that_begin_while_weir_attaches_are_recorded() {
    if !is_root() {
        let test = "processes_that_begin_while_weir_attaches_are_recorded";
        return common::skip(test, "the eBPF engine needs root");
    }
    let dir = disk_dir();
    let mut shell = Command::new("sh");
    shell.current_dir(dir.path()).args(["-c", BEGINNERS]).stdin(Stdio::null()).stdout(Stdio::null());
    let shell = KillOnDrop(shell.spawn().expect("sh"));
    common::wait_for("the first processes", || dir.path().join("ready").exists());
    let pid = shell.0.id().to_string();
    let trace = ["trace", "-q", "--exact", "--engine", "ebpf", "--json", "t.json", "--pid", &pid];
    let output = run(dir.path(), &trace);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = trace::document(dir.path());
    let paths = trace::list(&document, "streams").iter().filter_map(|stream| stream["path"].as_str());
    let numbers = paths.filter_map(|path| path.rsplit_once("/begun.")?.1.parse::<u32>().ok());
    let mut begun: Vec<u32> = numbers.collect();
    begun.sort_unstable();
    // Those that wrote before weir attached are missing.
    let first = *begun.first().expect("a process is recorded");
    assert_eq!(begun, (first..300).collect::<Vec<_>>());
}

#[test]
fn a_process_that_is_blocked_in_one_call_has_a_stream() {
    let dir = disk_dir();
    let dir = dir.path();
    for (engine, ..) in &VERBS[..3] {
        if *engine == "ebpf" && !is_root() {
            continue;
        }
        let mut cat = Command::new("cat");
        let cat = KillOnDrop(cat.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat"));
        let pid = cat.0.id().to_string();
        let call = || fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        common::wait_for("cat's read(2)", || call().starts_with(&format!("{} 0x0 ", libc::SYS_read)));
        let output =
            run(dir, &["trace", "--json", "t.json", "--time", "300ms", "--engine", engine, "--pid", &pid]);
        let errors = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(errors.contains(&format!("cat ({pid}) was blocked in read(2) on fd 0 (pipe:[")), "{errors}");
        let document = trace::document(dir);
        let [stream] = &trace::list(&document, "streams")[..] else { panic!("{engine}: {document}") };
        assert_eq!(
            (&stream["fd"], &stream["calls"], &stream["direction"]),
            (&0.into(), &0.into(), &"in".into())
        );
    }
}
