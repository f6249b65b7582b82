//! When `weir trace` samples, it attributes no bytes of a gap to a wrong stream, no finding names a file that the
//! descriptor no longer refers to, and the totals are exact.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::programs::{self, PROGRAM, SOURCE};
use common::{disk_dir, has, is_root, skip, text};
use serde_json::Value;
use trace::{compile, engines, finding, list, path, traced};

/// Runs `weir trace --engine ENGINE -- COMMAND…` in `dir` and returns the document. Asserts the exit status.
fn trace(dir: &Path, engine: &str, command: &[&str], status: i32) -> Value {
    let (output, document) = traced(dir, &["-q", "--engine", engine], command);
    assert_eq!(output.status.code(), Some(status), "{engine}: {command:?}: {}", text(&output.stderr));
    document
}

fn streams(document: &Value) -> &Vec<Value> {
    list(document, "streams")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Returns the sums of calls and bytes of all streams of one direction.
fn sum(document: &Value, direction: &str) -> (u64, u64) {
    let here = streams(document).iter().filter(|stream| stream["direction"] == direction);
    here.fold((0, 0), |sum, stream| (sum.0 + number(&stream["calls"]), sum.1 + number(&stream["bytes"])))
}

/// Returns the bytes of the known streams of one direction by the last component of their path.
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

/// Writes the files f0 … f399, file N with N + 50 writes of a byte, and reads each again two bytes at a time.
const MANY: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { char name[16], two[2];\n\
    for (int i = 0; i < 400; i++) { sprintf(name, \"f%d\", i);\n\
    int out = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);\n\
    for (int n = 0; n < 50 + i; n++) if (write(out, \"x\", 1) != 1) return 1;\n\
    close(out); int in = open(name, O_RDONLY); while (read(in, two, 2) > 0) ; close(in); }\n\
    return 0; }\n";

#[test]
fn no_file_gets_the_bytes_of_another() {
    let dir = disk_dir();
    let program = compile(dir.path(), "many", MANY, &[]).expect("cc");
    for engine in engines() {
        let document = trace(dir.path(), engine, &[path(&program)], 0);
        for direction in ["in", "out"] {
            for (file, bytes) in by_file(&document, direction) {
                let Some(index) = file.strip_prefix('f').and_then(|index| index.parse::<u64>().ok()) else {
                    continue;
                };
                assert!(bytes <= 50 + index, "{engine}: {file}, {direction}: {bytes} of {}", 50 + index);
            }
        }
        let whole: u64 = (0..400).map(|index| 50 + index).sum();
        assert_eq!(sum(&document, "out"), (whole, whole), "{engine}");
        let io = &document["processes"][0]["io"];
        assert_eq!(sum(&document, "in"), (number(&io["read_calls"]), number(&io["read_bytes"])), "{engine}");
        let unknown = streams(&document).iter().any(|stream| stream["fd"] == -1);
        assert_eq!(
            document["blind"].to_string().contains("through which streams"),
            unknown,
            "{engine}: {}",
            document["blind"]
        );
    }
}

/// Writes to the first file with many calls, then reuses its descriptor for the second, which loses a line.
const REUSED: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { int out = open(\"first\", O_CREAT | O_WRONLY, 0600);\n\
    for (int n = 0; n < 300000; n++) if (write(out, \"x\", 1) != 1) return 1;\n\
    close(out); FILE *second = fopen(\"second\", \"w\");\n\
    if (fileno(second) != out) return 2; fputs(\"this is lost\\n\", second); _exit(3); }\n";

/// Asserts that the finding of the lost line names the second file.
fn assert_lost_second(engine: &str, document: &Value) {
    let lost = finding(document, "lost-at-exit").map(|finding| finding["path"].to_string());
    let named = lost.as_ref().is_some_and(|path| path.ends_with("/second\""));
    assert!(named, "{engine}: {lost:?}: {}", document["findings"]);
}

#[test]
fn a_finding_does_not_name_the_earlier_file_of_a_descriptor() {
    let dir = disk_dir();
    let program = compile(dir.path(), "reused", REUSED, &[]).expect("cc");
    for engine in engines() {
        let document = trace(dir.path(), engine, &[path(&program)], 3);
        assert_lost_second(engine, &document);
        assert_eq!(sum(&document, "out"), (300_000, 300_000), "{engine}");
        assert_eq!(by_file(&document, "out").keys().collect::<Vec<_>>(), ["first"], "{engine}");
    }
}

#[test]
fn a_lost_line_of_python_names_its_file() {
    let name = "a_lost_line_of_python_names_its_file";
    if !has("python3") {
        return skip(name, "python3 is not installed");
    }
    let dir = disk_dir();
    let script = "import os\nf = open('first', 'wb', buffering=0)\nfor _ in range(100000): f.write(b'x')\n\
        fd = f.fileno(); f.close(); g = open('second', 'w')\nassert g.fileno() == fd\n\
        g.write('this is lost\\n'); os._exit(3)\n";
    for engine in engines() {
        let document = trace(dir.path(), engine, &["python3", "-c", script], 3);
        assert_lost_second(engine, &document);
    }
}

#[test]
fn bytes_of_children_within_gaps_are_counted() {
    // The busy process causes sampling gaps. A child that lives within a gap is known by the totals in /proc only.
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
        let document = trace(dir.path(), engine, &[path(&program)], 0);
        let processes = list(&document, "processes");
        // The first process is the parent, the second is busy.
        let children: Vec<u64> = processes.iter().skip(2).map(|one| number(&one["pid"])).collect();
        assert_eq!(children.len(), 300, "{engine}");
        let is_of_child =
            |stream: &&Value| children.contains(&number(&stream["pid"])) && stream["direction"] == "out";
        let written = streams(&document).iter().filter(is_of_child);
        let sum =
            written.fold((0, 0), |sum, one| (sum.0 + number(&one["calls"]), sum.1 + number(&one["bytes"])));
        let lines: usize = (0..300).map(|index| format!("child {index}\n").len()).sum();
        assert_eq!(sum, (300, lines as u64), "{engine}");
        let elsewhere =
            streams(&document).iter().filter(is_of_child).find(|one| one["fd"] != 1 && one["fd"] != -1);
        assert_eq!(elsewhere, None, "{engine}");
    }
}

#[test]
fn bytes_that_a_go_program_loses_at_exit_are_found() {
    let name = "bytes_that_a_go_program_loses_at_exit_are_found";
    let go = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok());
    let Some(go) = go else { return skip(name, "go is not installed") };
    let dir = disk_dir();
    let source = "package main\nimport (\"bufio\"; \"fmt\"; \"os\"; \"syscall\")\nvar keep *bufio.Writer\n\
        func main() { f, _ := os.Create(\"out\"); keep = bufio.NewWriter(f); fmt.Fprintln(keep, \"this is lost\")\n\
        switch os.Args[1] { case \"exit\": os.Exit(3)\n\
        case \"exec\": syscall.Exec(\"/bin/sh\", []string{\"sh\", \"-c\", \"exit 3\"}, nil)\n\
        default: keep.Flush(); os.Exit(3) } }\n";
    fs::write(dir.path().join("lost.go"), source).expect("the source");
    let (file, program) = (dir.path().join("lost.go"), dir.path().join("lost"));
    let made = programs::compile(go, &["build", "-o", PROGRAM, SOURCE], &file, &program).expect("go starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for engine in engines() {
        for (how, id) in [("exit", Some("lost-at-exit")), ("exec", Some("lost-at-exec")), ("flush", None)] {
            let document = trace(dir.path(), engine, &["./lost", how], 3);
            let findings = list(&document, "findings");
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

/// For each `read <&3` the shell duplicates the descriptor and closes the copy, so an fd snapshot can miss the copy.
#[test]
fn reads_through_duplicated_descriptors_are_attributed_over_gaps() {
    let name = "reads_through_duplicated_descriptors_are_attributed_over_gaps";
    if !is_root() {
        return skip(name, "the engine ebpf needs root");
    }
    let script = ": > file; exec 3< file; i=0; \
        while [ $i -lt 300000 ]; do read -r line <&3; i=$((i + 1)); done";
    let dir = disk_dir();
    let document = trace(dir.path(), "ebpf", &["sh", "-c", script], 0);
    let reads = streams(&document).iter().filter(|stream| stream["direction"] == "in");
    let (known, all) = reads.fold((0, 0), |(known, all), stream| {
        let calls = number(&stream["calls"]);
        let of_file = stream["path"].as_str().is_some_and(|path| path.ends_with("/file"));
        (known + if of_file { calls } else { 0 }, all + calls)
    });
    assert!(all >= 300_000, "{all} calls");
    // All reads meet the end of the file, so no offset shows them. The calls of a gap are attributed only if the
    // process did the same in the windows before and after it, which is not so for each gap. At least a third is known.
    assert!(known * 3 >= all, "{known} of {all}: {}", document["blind"]);
    assert!(document["overhead"]["unwatched_s"].as_f64() > Some(0.0), "{}", document["overhead"]);
}

/// Writes 15,000 lines to a.log, then 600 times opens b.log, writes two bytes and closes it. With an argument it writes to standard
/// output in place of the second part, 20,000 lines.
const SHORT_LIVED_FILES: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    int main(int words, char **word) {\n\
        char line[32]; int a = open(\"a.log\", O_WRONLY | O_CREAT | O_TRUNC, 0644);\n\
        for (int i = 0; i < 15000; i++) if (write(a, line, sprintf(line, \"row %d\\n\", i)) < 0) return 1;\n\
        for (int i = 0; words > 1 && i < 20000; i++) if (write(1, \"line\\n\", 5) != 5) return 1;\n\
        for (int i = 0; words == 1 && i < 600; i++) {\n\
            int b = open(\"b.log\", O_WRONLY | O_CREAT | O_APPEND, 0644);\n\
            if (write(b, \"x\\n\", 2) != 2) return 1;\n\
            close(b); }\n\
        return 0; }\n";

/// A number that looks exact is exact, and one that is a least number is not above the truth.
#[test]
fn no_number_is_more_certain_than_its_attribution() {
    let dir = disk_dir();
    let program = compile(dir.path(), "files", SHORT_LIVED_FILES, &[]).expect("cc");
    for engine in engines() {
        for words in [&[][..], &["lines"]] {
            let _absent = fs::remove_file(dir.path().join("b.log"));
            let command = [&[path(&program)][..], words].concat();
            let document = trace(dir.path(), engine, &command, 0);
            for row in streams(&document).iter().filter(|row| row["direction"] == "out" && row["fd"] != -1) {
                let name = row["path"].as_str().expect("a path");
                let truth = match name.rsplit('/').next() {
                    Some("a.log") => 15_000,
                    Some("b.log") => 600,
                    _ => 20_000,
                };
                let calls = number(&row["calls"]);
                let may_differ = row["estimated"] == true && row["at_least"] != true;
                let is_least = row["at_least"] == true && calls <= truth;
                assert!(calls == truth || may_differ || is_least, "{engine} {words:?}: {row}");
            }
        }
    }
}

#[test]
fn a_rename_that_was_perhaps_not_recorded_is_named() {
    if !has("python3") {
        return skip("a_rename_that_was_perhaps_not_recorded_is_named", "python3 is not installed");
    }
    let script = "import os\nwith open('new', 'w', buffering=1) as f:\n    for i in range(60000): f.write(f'{i}\\n')\n\
        os.rename('new', 'rows')\n";
    let dir = disk_dir();
    fs::write(dir.path().join("rows.py"), script).expect("a script");
    for engine in engines() {
        fs::write(dir.path().join("rows"), "old\n").expect("a file");
        let document = trace(dir.path(), engine, &["python3", "rows.py"], 0);
        let is_named = list(&document, "blind").iter().any(|one| {
            one.as_str().is_some_and(|one| one.starts_with("opens, renames and syncs of python3"))
        });
        let is_found = finding(&document, "missing-sync-before-rename").is_some();
        assert!(is_named || is_found, "{engine}: {}", document["blind"]);
    }
}
