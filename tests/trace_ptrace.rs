//! `weir trace --engine ptrace`, which needs no privilege: findings in sampled programs, and offsets of files without
//! events from the kernel. And `--engine sample`: which figures it marks as estimated.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{disk_dir, text, weir};
use serde_json::Value;

/// Runs `weir trace --engine ptrace MORE… -- COMMAND…` in `dir` and returns the document. Panics if the command fails.
fn trace(dir: &Path, more: &[&str], command: &[&str]) -> Value {
    let options = [&["trace", "-q", "--engine", "ptrace", "--json", "t.json"], more, &["--"]].concat();
    let mut weir = weir(dir, &[&options, command].concat());
    let out = fs::File::create(dir.join("out")).expect("a file");
    let output = weir.env_remove("PYTHONUNBUFFERED").stdout(out).output().expect("weir starts");
    assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stderr));
    serde_json::from_slice(&fs::read(dir.join("t.json")).expect("t.json is written")).expect("it is JSON")
}

fn compile(dir: &Path, name: &str, source: &str) -> PathBuf {
    let (program, file) = (dir.join(name), dir.join(name).with_extension("c"));
    fs::write(&file, source).expect("the source");
    let made = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(&file).output().expect("cc starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    program
}

fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    document["findings"].as_array().expect("findings").iter().find(|finding| finding["id"] == id)
}

/// Overwrites an existing file from its start with records of a given size.
const RECORDS: &str = "#include <fcntl.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    static char record[8192];\n\
    int main(int count, char **words) { int size = atoi(words[2]), out = open(words[1], O_WRONLY);\n\
    for (int n = 0; n < 3000; n++) { if (write(out, record, size) != size) return 1; usleep(20); }\n\
    return 0; }\n";

#[test]
fn the_offset_of_a_file_is_known_without_a_seek() {
    let dir = disk_dir();
    let program = compile(dir.path(), "records", RECORDS);
    let program = program.to_str().expect("a name");
    for more in [&["--exact"][..], &[]] {
        for (size, unaligned) in [("3000", true), ("4096", false)] {
            fs::write(dir.path().join("image"), vec![b'x'; 20_000_000]).expect("a file");
            let seen = trace(dir.path(), more, &[program, "image", size]);
            let found = finding(&seen, "unaligned-writes");
            assert_eq!(found.is_some(), unaligned, "{more:?}: {size}: {}", seen["findings"]);
        }
    }
}

#[test]
fn pending_bytes_are_read_before_a_vfork() {
    let source = "#include <spawn.h>\n#include <stdio.h>\n#include <sys/wait.h>\nextern char **environ;\n\
        int main(void) { char *words[] = {\"echo\", \"from the child\", 0}; pid_t child;\n\
        puts(\"a heading\");\n\
        if (posix_spawnp(&child, \"echo\", 0, 0, words, environ)) return 1;\n\
        return waitpid(child, 0, 0) != child; }\n";
    let dir = disk_dir();
    let program = compile(dir.path(), "heading", source);
    let seen = trace(dir.path(), &[], &[program.to_str().expect("a name")]);
    let out = fs::read_to_string(dir.path().join("out")).expect("the output");
    assert_eq!(out, "from the child\na heading\n");
    assert!(finding(&seen, "mixed-order").is_some(), "{}", seen["findings"]);
}

/// Writes many small records in each of two forked children, more than a sampling window contains.
const FORKS: &str = "#include <fcntl.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    static char record[100];\n\
    int main(void) { int out = open(\"o\", O_WRONLY | O_CREAT | O_TRUNC, 0666);\n\
    for (int child = 0; child < 2; child++) { if (fork() == 0) {\n\
    for (int n = 0; n < 40000; n++) if (write(out, record, 100) != 100) return 1; return 0; } }\n\
    int status = 0; while (wait(&status) > 0) if (status) return 1; return 0; }\n";

#[test]
fn calls_of_forked_children_within_gaps_are_counted() {
    let dir = disk_dir();
    let program = compile(dir.path(), "forks", FORKS);
    let seen = trace(dir.path(), &[], &[program.to_str().expect("a name")]);
    let streams = seen["streams"].as_array().expect("streams").iter();
    let of_file = streams.filter(|stream| stream["path"].as_str().is_some_and(|path| path.ends_with("/o")));
    let sums: Vec<_> = of_file.map(|stream| (stream["calls"].as_u64(), stream["bytes"].as_u64())).collect();
    assert_eq!(sums, [(Some(40_000), Some(4_000_000)); 2], "{}", seen["streams"]);
}

/// Returns the report and the document of a shell command under the sample engine.
fn sampled(dir: &Path, line: &str) -> (String, Value) {
    let mut weir = weir(dir, &["trace", "--json", "s.json", "--engine", "sample", "--", "sh", "-c", line]);
    let output = weir.output().expect("weir starts");
    let report = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let document = fs::read(dir.join("s.json")).expect("it is written");
    (report, serde_json::from_slice(&document).expect("it is JSON"))
}

#[test]
fn the_sample_engine_reports_estimated_figures() {
    let dir = disk_dir();
    let line = "exec dd if=/dev/zero of=o bs=1 count=300000 status=none";
    let (report, seen) = sampled(dir.path(), line);
    let streams = seen["streams"].as_array().expect("streams");
    assert!(!streams.is_empty() && streams.iter().all(|one| one["estimated"] == true), "{}", seen["streams"]);
    for wrong in ["No stream was recorded", "* exact", "totals exact", "two bursts", "--exact sees it"] {
        assert!(!report.contains(wrong), "{wrong}: {report}");
    }
    let refused =
        common::weir(dir.path(), &["trace", "--engine", "sample", "--exact", "--", "true"]).output();
    let refused = refused.expect("weir starts");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--exact records every call"), "{}", text(&refused.stderr));
}

#[test]
fn the_sample_engine_sees_files_that_are_opened_late() {
    let dir = disk_dir();
    let line = "sleep 0.4; exec 3> late; for n in 1 2 3 4 5 6 7 8 9 10; do echo line >&3; sleep 0.1; done";
    let (_, seen) = sampled(dir.path(), line);
    let mut streams = seen["streams"].as_array().expect("streams").iter();
    let is_late = |one: &&Value| one["path"].as_str().is_some_and(|path| path.ends_with("/late"));
    let late = streams.find(is_late).unwrap_or_else(|| panic!("{seen:#}"));
    assert!(late["bytes"].as_u64() > Some(0) && late["bytes"].as_u64() <= Some(50), "{late}");
}

/// Its last threads have no exit stop if the process ends before them.
#[test]
fn a_process_of_short_threads_has_its_last_counters() {
    const PROGRAM: &str = "import os, threading\nfile = os.open('out', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n\
        def work():\n for _ in range(40): os.write(file, b'line\\n')\n sum(range(20000))\n\
        for _ in range(200):\n thread = threading.Thread(target=work)\n thread.start()\n thread.join()\n";
    if !common::has("python3") {
        return common::skip("a_process_of_short_threads_has_its_last_counters", "python3 is not installed");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("short.py"), PROGRAM).unwrap();
    for _ in 0..8 {
        let document = trace(dir.path(), &[], &["python3", "short.py"]);
        let process =
            document["processes"].as_array().unwrap().iter().max_by_key(|one| one["threads"].as_u64());
        let process = process.unwrap();
        assert!(process["io"]["write_calls"].as_u64() >= Some(8000), "{process}");
        let cpu_s = process["user_s"].as_f64().unwrap() + process["system_s"].as_f64().unwrap();
        assert!(cpu_s > 0.0, "{process}");
    }
}

/// Waits in four threads for events while the children of four others end, for three seconds. Its exit status is 1 if a wait failed.
const WAITS: &str = "#include <pthread.h>\n#include <sys/epoll.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    static volatile int failed, ends;\n\
    static void *waits(void *unused) { int set = epoll_create1(0); struct epoll_event event;\n\
    while (!ends) if (epoll_wait(set, &event, 1, 300) < 0) failed = 1; return unused; }\n\
    static void *forks(void *unused) { while (!ends) { int child = fork();\n\
    if (child == 0) { usleep(5000); _exit(0); } waitpid(child, 0, 0); } return unused; }\n\
    int main(void) { pthread_t threads[8];\n\
    for (int n = 0; n < 8; n++) pthread_create(&threads[n], 0, n < 4 ? waits : forks, 0);\n\
    usleep(3000000); ends = 1; for (int n = 0; n < 8; n++) pthread_join(threads[n], 0);\n\
    return failed; }\n";

#[cfg(target_arch = "x86_64")] // On aarch64 weir does not see that a call was interrupted.
#[test]
fn an_ignored_signal_that_another_thread_takes_interrupts_no_recorded_wait() {
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS);
    trace(dir.path(), &["--exact"], &[program.to_str().expect("a name")]);
}
