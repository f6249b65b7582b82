//! `weir trace` looks in bursts: what a program opens, closes and moves between two of them is not credited to a stream that
//! it did not go through, no finding names a file that a descriptor stands for no more, and the totals stay exact.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{disk_dir, has, skip, text};
use serde_json::Value;
use trace::{compile, engines, finding, list, path, traced};

/// `weir trace --engine ENGINE -- COMMAND…` in `dir`, which must end with `status`.
fn trace(dir: &Path, engine: &str, command: &[&str], status: i32) -> Value {
    let (output, seen) = traced(dir, &["-q", "--engine", engine], command);
    assert_eq!(output.status.code(), Some(status), "{engine}: {command:?}: {}", text(&output.stderr));
    seen
}

fn streams(document: &Value) -> &Vec<Value> {
    list(document, "streams")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Calls and bytes of all streams of all processes that go this way.
fn sum(document: &Value, direction: &str) -> (u64, u64) {
    let here = streams(document).iter().filter(|stream| stream["direction"] == direction);
    here.fold((0, 0), |sum, stream| (sum.0 + number(&stream["calls"]), sum.1 + number(&stream["bytes"])))
}

/// Bytes by the last part of the path, of streams that are known.
fn by_file(document: &Value, direction: &str) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    let here =
        streams(document).iter().filter(|stream| stream["direction"] == direction && stream["fd"] != -1);
    for stream in here {
        let path = stream["path"].as_str().expect("a path");
        *bytes.entry(path.rsplit('/').next().unwrap_or(path).to_string()).or_default() +=
            number(&stream["bytes"]);
    }
    bytes
}

/// The files f0 … f399 are made, each by as many writes of a byte as its number and 50, and read again in twos.
const MANY: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { char name[16], two[2];\n\
    for (int i = 0; i < 400; i++) { sprintf(name, \"f%d\", i);\n\
    int out = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);\n\
    for (int n = 0; n < 50 + i; n++) if (write(out, \"x\", 1) != 1) return 1;\n\
    close(out); int in = open(name, O_RDONLY); while (read(in, two, 2) > 0) ; close(in); }\n\
    return 0; }\n";

#[test]
fn no_file_gets_what_went_through_another() {
    let dir = disk_dir();
    let program = compile(dir.path(), "many", MANY, &[]).expect("cc");
    for engine in engines() {
        let seen = trace(dir.path(), engine, &[path(&program)], 0);
        for direction in ["in", "out"] {
            for (file, bytes) in by_file(&seen, direction) {
                let Some(index) = file.strip_prefix('f').and_then(|index| index.parse::<u64>().ok()) else {
                    continue;
                };
                assert!(bytes <= 50 + index, "{engine}: {file}, {direction}: {bytes} of {}", 50 + index);
            }
        }
        let whole: u64 = (0..400).map(|index| 50 + index).sum();
        assert_eq!(sum(&seen, "out"), (whole, whole), "{engine}");
        let io = &seen["processes"][0]["io"];
        assert_eq!(sum(&seen, "in"), (number(&io["read_calls"]), number(&io["read_bytes"])), "{engine}");
        let unknown = streams(&seen).iter().any(|stream| stream["fd"] == -1);
        assert_eq!(
            seen["blind"].to_string().contains("through which streams"),
            unknown,
            "{engine}: {}",
            seen["blind"]
        );
    }
}

/// One descriptor stands for the first file for many calls, then for the second, which loses a line.
const REUSED: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { int out = open(\"first\", O_CREAT | O_WRONLY, 0600);\n\
    for (int n = 0; n < 300000; n++) if (write(out, \"x\", 1) != 1) return 1;\n\
    close(out); FILE *second = fopen(\"second\", \"w\");\n\
    if (fileno(second) != out) return 2; fputs(\"this is lost\\n\", second); _exit(3); }\n";

/// The finding of the lost line names the file that it was for.
fn assert_lost_second(engine: &str, seen: &Value) {
    let lost = finding(seen, "lost-at-exit").map(|finding| finding["path"].to_string());
    let named = lost.as_ref().is_some_and(|path| path.ends_with("/second\""));
    assert!(named, "{engine}: {lost:?}: {}", seen["findings"]);
}

#[test]
fn a_finding_does_not_name_what_a_descriptor_stood_for_before() {
    let dir = disk_dir();
    let program = compile(dir.path(), "reused", REUSED, &[]).expect("cc");
    for engine in engines() {
        let seen = trace(dir.path(), engine, &[path(&program)], 3);
        assert_lost_second(engine, &seen);
        assert_eq!(sum(&seen, "out"), (300_000, 300_000), "{engine}");
        assert_eq!(by_file(&seen, "out").keys().collect::<Vec<_>>(), ["first"], "{engine}");
    }
}

#[test]
fn a_runtimes_lost_line_is_of_the_file_that_it_was_for() {
    let name = "a_runtimes_lost_line_is_of_the_file_that_it_was_for";
    if !has("python3") {
        return skip(name, "python3 is not here");
    }
    let dir = disk_dir();
    let script = "import os\nf = open('first', 'wb', buffering=0)\nfor _ in range(100000): f.write(b'x')\n\
        fd = f.fileno(); f.close(); g = open('second', 'w')\nassert g.fileno() == fd\n\
        g.write('this is lost\\n'); os._exit(3)\n";
    for engine in engines() {
        let seen = trace(dir.path(), engine, &["python3", "-c", script], 3);
        assert_lost_second(engine, &seen);
    }
}

#[test]
fn what_children_move_that_nobody_looked_at_is_counted() {
    // Beside a program that makes very many calls there are pauses; children that live in one are seen by their totals.
    let source = "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        int main(void) { int null = open(\"/dev/null\", O_WRONLY); char line[32]; pid_t busy = fork();\n\
        if (!busy) for (;;) if (write(null, \"x\", 1) != 1) _exit(1);\n\
        for (int i = 0; i < 300; i++) { pid_t one = fork();\n\
        if (!one) { int n = sprintf(line, \"child %d\\n\", i); _exit(write(1, line, n) != n); }\n\
        if (waitpid(one, 0, 0) != one) return 1; usleep(500); }\n\
        kill(busy, SIGKILL); waitpid(busy, 0, 0); return 0; }\n";
    let dir = disk_dir();
    let program = compile(dir.path(), "children", source, &[]).expect("cc");
    for engine in engines() {
        let seen = trace(dir.path(), engine, &[path(&program)], 0);
        let processes = list(&seen, "processes");
        // The first is the parent, the second is busy.
        let children: Vec<u64> = processes.iter().skip(2).map(|one| number(&one["pid"])).collect();
        assert_eq!(children.len(), 300, "{engine}");
        let of_children =
            |stream: &&Value| children.contains(&number(&stream["pid"])) && stream["direction"] == "out";
        let written = streams(&seen).iter().filter(of_children);
        let sum =
            written.fold((0, 0), |sum, one| (sum.0 + number(&one["calls"]), sum.1 + number(&one["bytes"])));
        let lines: usize = (0..300).map(|index| format!("child {index}\n").len()).sum();
        assert_eq!(sum, (300, lines as u64), "{engine}");
        let elsewhere =
            streams(&seen).iter().filter(of_children).find(|one| one["fd"] != 1 && one["fd"] != -1);
        assert_eq!(elsewhere, None, "{engine}");
    }
}

#[test]
fn what_a_go_program_loses_at_its_end_is_seen() {
    let name = "what_a_go_program_loses_at_its_end_is_seen";
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go else { return skip(name, "go is not here") };
    let dir = disk_dir();
    let source = "package main\nimport (\"bufio\"; \"fmt\"; \"os\"; \"syscall\")\nvar keep *bufio.Writer\n\
        func main() { f, _ := os.Create(\"out\"); keep = bufio.NewWriter(f); fmt.Fprintln(keep, \"this is lost\")\n\
        switch os.Args[1] { case \"exit\": os.Exit(3)\n\
        case \"exec\": syscall.Exec(\"/bin/sh\", []string{\"sh\", \"-c\", \"exit 3\"}, nil)\n\
        default: keep.Flush(); os.Exit(3) } }\n";
    fs::write(dir.path().join("lost.go"), source).expect("the source");
    let mut build = Command::new(go);
    build
        .args(["build", "lost.go"])
        .current_dir(dir.path())
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", dir.path().join("cache"));
    let made = build.output().expect("go starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for engine in engines() {
        for (how, id) in [("exit", Some("lost-at-exit")), ("exec", Some("lost-at-exec")), ("flush", None)] {
            let seen = trace(dir.path(), engine, &["./lost", how], 3);
            let findings = list(&seen, "findings");
            let lost: Vec<(&str, bool)> = findings
                .iter()
                .map(|one| (one["id"].as_str().expect("an id"), one["path"].to_string().ends_with("/out\"")))
                .filter(|(id, _)| id.starts_with("lost-at"))
                .collect();
            let expected: Vec<(&str, bool)> = id.into_iter().map(|id| (id, true)).collect();
            assert_eq!(lost, expected, "{engine}: {how}: {findings:?}");
        }
    }
}

/// With each `read <&3` the shell gives the file another number and takes it back: at the moment of a look it may have none.
#[test]
fn what_a_shell_reads_by_a_number_of_its_own_each_time_is_known_over_pauses() {
    let script = ": > file; exec 3< file; i=0; \
        while [ $i -lt 300000 ]; do read -r line <&3; i=$((i + 1)); done";
    let dir = disk_dir();
    for engine in engines().into_iter().filter(|engine| *engine == "ebpf") {
        let seen = trace(dir.path(), engine, &["sh", "-c", script], 0);
        let reads = streams(&seen).iter().filter(|stream| stream["direction"] == "in");
        let (known, all) = reads.fold((0, 0), |(known, all), stream| {
            let calls = number(&stream["calls"]);
            let of_file = stream["path"].as_str().is_some_and(|path| path.ends_with("/file"));
            (known + if of_file { calls } else { 0 }, all + calls)
        });
        assert!(all >= 300_000, "{engine}: {all} of all");
        assert!(known * 3 >= all, "{engine}: {known} of {all}: {}", seen["blind"]);
        assert!(seen["overhead"]["unwatched_s"].as_f64() > Some(0.0), "{engine}: {}", seen["overhead"]);
    }
}
