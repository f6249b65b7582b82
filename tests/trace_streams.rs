//! `weir trace`: the identity of streams and files, calls that move no bytes, and consistent figures in the report.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{disk_dir, has, skip, text, weir};
use serde_json::Value;
use trace::{compile, engines, list, path, traced};

/// Runs `weir trace --exact --engine ENGINE MORE… -- sh -c SCRIPT` and returns standard error and the document. Panics if
/// the script fails.
fn trace(dir: &Path, engine: &str, more: &[&str], script: &str) -> (String, Value) {
    let options = [&["--exact", "--engine", engine], more].concat();
    let (output, document) = traced(dir, &options, &["sh", "-c", script]);
    assert!(output.status.success(), "{engine}: {script}: {}\n{}", output.status, text(&output.stderr));
    (text(&output.stderr), document)
}

#[test]
fn a_file_with_several_names_is_one_stream() {
    let dir = disk_dir();
    let script = "mkdir sub; echo one > real; ln -s real link; ln real hard; \
                  echo two >> link; echo three >> sub/../real; echo four >> hard; echo five > other";
    for engine in engines() {
        let (screen, document) = trace(dir.path(), engine, &["--all"], script);
        let out = |end: &str| {
            let streams = list(&document, "streams").iter();
            let is = |stream: &&Value| {
                stream["direction"] == "out" && stream["path"].as_str().unwrap().ends_with(end)
            };
            streams.filter(is).collect::<Vec<_>>()
        };
        let [real] = out("/real")[..] else { panic!("{engine}: {:?}", out("")) };
        assert_eq!(
            (&real["calls"], &real["openings"], &real["bytes"]),
            (&4.into(), &4.into(), &19.into()),
            "{engine}"
        );
        let also: Vec<&str> =
            real["also"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for name in ["/link", "/hard", "/sub/../real"] {
            assert!(also.iter().any(|known| known.ends_with(name)), "{engine}: {name}: {also:?}");
        }
        assert!(out("/link").is_empty() && out("/hard").is_empty(), "{engine}");
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(dir.path().join("real")).unwrap());
        assert_eq!(real["inode"]["ino"], inode, "{engine}");
        assert_eq!(
            (&out("/other")[0]["also"], &out("/other")[0]["openings"]),
            (&Value::Array(vec![]), &1.into())
        );
        assert!(screen.contains("one file: "), "{engine}: {screen}");
        for name in ["real", "link", "hard", "other"] {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
        fs::remove_dir(dir.path().join("sub")).unwrap();
    }
}

#[test]
fn files_that_reuse_an_inode_number_are_different() {
    let dir = disk_dir();
    let script = "for name in a b c d; do echo $name > $name; rm $name; done";
    for engine in engines() {
        let (_, document) = trace(dir.path(), engine, &[], script);
        let streams = list(&document, "streams").iter();
        let names: Vec<&str> = streams
            .filter(|stream| stream["direction"] == "out")
            .map(|stream| stream["path"].as_str().unwrap().rsplit('/').next().unwrap())
            .collect();
        assert_eq!(names, ["a", "b", "c", "d"], "{engine}");
    }
}

#[test]
fn mixed_order_is_found_through_two_names() {
    if !has("python3") {
        return skip("mixed_order_is_found_through_two_names", "python3 is not installed");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("log"), "").unwrap();
    std::os::unix::fs::symlink("log", dir.path().join("link")).unwrap();
    let program = "import os, time\nf = open('link', 'a')\nd = os.open('log', os.O_WRONLY | os.O_APPEND)\n\
                   f.write('begin\\n')\ntime.sleep(0.7)\nos.write(d, b'failed\\n')\ntime.sleep(0.7)\nf.write('end\\n')\n";
    fs::write(dir.path().join("two.py"), program).unwrap();
    for engine in engines() {
        let (screen, document) =
            trace(dir.path(), engine, &[], "exec env -u PYTHONUNBUFFERED python3 -S two.py");
        let found = list(&document, "findings").iter().find(|finding| finding["id"] == "mixed-order");
        let found = found.unwrap_or_else(|| panic!("{engine}: {screen}"));
        assert!(found["path"].as_str().unwrap().ends_with("/link"), "{engine}: {found}");
        let log = fs::canonicalize(dir.path().join("log")).unwrap();
        assert!(
            screen.contains("one file: ") && screen.contains(log.to_str().unwrap()),
            "{engine}: {screen}"
        );
    }
}

#[test]
fn the_first_image_of_the_command_is_the_command() {
    let dir = disk_dir();
    for engine in engines().into_iter().chain(["sample"]) {
        let arguments = ["trace", "-q", "--engine", engine, "--json", "t.json", "--timeline", "time.json"];
        // Each image lasts for so long that a sample of it is taken on a busy machine too.
        let command = ["sh", "-c", "sleep 0.5; exec sleep 1.5"];
        let output = weir(dir.path(), &[&arguments[..], &["--"], &command].concat()).output().unwrap();
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let read = |name: &str| -> Value {
            serde_json::from_slice(&fs::read(dir.path().join(name)).unwrap()).unwrap()
        };
        let (document, timeline) = (read("t.json"), read("time.json"));
        let images = |process: &Value| {
            let names =
                list(process, "images").iter().map(|image| image["comm"].as_str().unwrap().to_string());
            names.collect::<Vec<_>>()
        };
        let processes = list(&document, "processes");
        assert_eq!(images(&processes[0]), ["sh", "sleep"], "{engine}: {}", processes[0]);
        assert_eq!(processes[0]["images"][0]["argv"], serde_json::json!(command), "{engine}");
        // A forked child has its parent's image until its first execve(2).
        let child = &processes[1];
        assert_eq!(images(child).last().map(String::as_str), Some("sleep"), "{engine}: {child}");
        let events = timeline["traceEvents"].as_array().unwrap();
        let is_image = |event: &&Value| event["cat"] == "image";
        assert_eq!(events.iter().find(is_image).unwrap()["name"], "sh", "{engine}");
        assert!(!document.to_string().contains("\"comm\":\"weir\""), "{engine}");
        assert!(events.iter().all(|event| event["name"] != "weir"), "{engine}");
    }
}

/// Runs `script` under strace. Returns for each system call in the list `calls` how often it was made and how often it
/// failed.
fn strace(dir: &Path, calls: &str, script: &str) -> BTreeMap<String, (u64, u64)> {
    let arguments = ["-f", "-qq", "-e", &format!("trace={calls}"), "-e", "signal=none", "-o", "s.log"];
    let status = Command::new("strace").args(arguments).args(["sh", "-c", script]).current_dir(dir).status();
    assert!(status.expect("strace starts").success());
    let log = fs::read_to_string(dir.join("s.log")).expect("strace's log");
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(" = ")) {
        // `7 close(3) = 0`, or `7 <... close resumed>) = 0` if another process made a call meanwhile.
        let words = line.split_whitespace().skip(1).find(|word| *word != "<...");
        let call = words.unwrap().split('(').next().unwrap();
        let count = counts.entry(call.to_string()).or_default();
        count.0 += 1;
        count.1 += u64::from(line.contains(" = -1 "));
    }
    counts
}

#[test]
fn calls_that_move_no_bytes_are_counted_as_by_strace() {
    if !has("strace") {
        return skip("calls_that_move_no_bytes_are_counted_as_by_strace", "strace is not installed");
    }
    let dir = disk_dir();
    let calls = "openat,close,dup2,lseek,unlinkat,fsync,pipe2,renameat2";
    // Opens missing files, seeks in a pipe (ESPIPE), and runs a pipeline.
    let script = "for f in 1 2 3 4 5; do true < missing$f; done 2> errors; tail -c 1 errors > last; \
                  cat errors | tail -c 1 > last; dd if=errors of=copy conv=fsync status=none; rm copy last errors; true";
    let expected = strace(dir.path(), calls, script);
    for engine in engines() {
        let (screen, document) = trace(dir.path(), engine, &[], script);
        let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for one in list(&document, "other_calls") {
            assert_eq!(one["exact"], true, "{engine}: {one}");
            let count = counted.entry(one["call"].as_str().unwrap().to_string()).or_default();
            count.0 += one["calls"].as_u64().unwrap();
            count.1 += one["failed"].as_u64().unwrap();
            let errors = one["errors"].as_object().unwrap().values().map(|times| times.as_u64().unwrap());
            assert_eq!(errors.sum::<u64>(), one["failed"].as_u64().unwrap(), "{engine}: {one}");
        }
        for (call, count) in &expected {
            assert_eq!(counted.get(call), Some(count), "{engine}: {call}: {counted:?}");
        }
        let all: u64 = counted.values().map(|count| count.0).sum();
        assert!(screen.contains(&format!("{all} calls that move no bytes (")), "{engine}: {screen}");
        assert!(expected["openat"].1 >= 5 && expected["lseek"].1 >= 1, "{expected:?}");
    }
}

#[test]
fn each_of_many_seeks_is_counted() {
    if !has("python3") {
        return skip("each_of_many_seeks_is_counted", "python3 is not installed");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("in"), vec![b'x'; 1 << 16]).unwrap();
    let script = "python3 -S -c 'import os\nf = os.open(\"in\", os.O_RDWR)\nfor i in range(1000):\n  os.lseek(f, i, 0); os.read(f, 1); \
                  os.write(f, b\"y\")' ";
    let mut seeks = Vec::new();
    for engine in engines() {
        let (_, document) = trace(dir.path(), engine, &[], script);
        let of_python = list(&document, "other_calls").iter().filter(|one| one["call"] == "lseek");
        seeks.push(of_python.map(|one| one["calls"].as_u64().unwrap()).sum::<u64>());
    }
    // 1,000 by the loop; the others by the start of Python.
    assert!(seeks.iter().all(|&count| (1000..1100).contains(&count)), "{seeks:?}");
    assert!(seeks.windows(2).all(|pair| pair[0] == pair[1]), "the engines agree: {seeks:?}");
}

/// Reads 30 files by read(2), as a compiler does, then one through a stream to its end.
const READS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    char line[100], name[20];
    for (int i = 0; i < 30; i++) {
        sprintf(name, "plain%d", i);
        int fd = open(name, O_RDONLY);
        if (read(fd, line, sizeof line) != 6)
            return 1;
        close(fd);
    }
    FILE *stream = fopen("streamed", "r");
    while (fgets(line, sizeof line, stream))
        ;
    return fclose(stream);
}
"#;

#[test]
fn a_stream_after_many_files_without_one_is_found() {
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "reads", READS, &[]) else {
        return skip("a_stream_after_many_files_without_one_is_found", "there is no C compiler");
    };
    let names: Vec<String> = (0..30).map(|i| format!("plain{i}")).chain(["streamed".into()]).collect();
    for name in &names {
        fs::write(dir.path().join(name), "a\nb\nc\n").unwrap();
    }
    for engine in engines() {
        let (_, document) = trace(dir.path(), engine, &[], path(&program));
        let streams = list(&document, "streams");
        for name in &names {
            let is = |stream: &&Value| stream["path"].as_str().unwrap().ends_with(&format!("/{name}"));
            let stream = streams.iter().find(is).unwrap_or_else(|| panic!("{engine}: {name}"));
            let calls = if name == "streamed" { 2 } else { 1 };
            // ptrace reads buffers at writes and at exit, when this stream is closed.
            let is_known = name == "streamed" && engine == "ebpf";
            let size = if is_known { 4096.into() } else { Value::Null };
            assert_eq!(
                (&stream["calls"], &stream["bytes"], &stream["buffer_bytes"]),
                (&calls.into(), &6.into(), &size),
                "{engine}: {name}"
            );
        }
    }
}

/// Returns the number that follows the words `before`.
fn number_after(text: &str, before: &str) -> u64 {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {text}"));
    let digits: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    digits.replace(',', "").parse().unwrap_or_else(|_| panic!("{before}: {text}"))
}

#[test]
fn sentences_and_tables_agree() {
    let dir = disk_dir();
    for part in 0..9 {
        fs::create_dir_all(dir.path().join(format!("data/part{part}"))).unwrap();
        for number in 0..40 {
            fs::write(dir.path().join(format!("data/part{part}/file{number}")), "a line\nand one\n").unwrap();
        }
    }
    // grep opens every file twice.
    let script = "grep -c one -r data data > counts; for n in 1 2 3; do echo $n > again; done";
    for engine in engines() {
        let (screen, document) = trace(dir.path(), engine, &[], script);
        let streams = list(&document, "streams");
        let verdict = screen.lines().take(2).collect::<Vec<_>>().join(" ");
        assert_eq!(number_after(&verdict, "with the "), streams.len() as u64, "{engine}: {verdict}");
        assert!(streams.len() >= 360, "each file has its row: {}", streams.len());
        let again =
            streams.iter().find(|stream| stream["path"].as_str().unwrap().ends_with("/again")).unwrap();
        assert_eq!((&again["calls"], &again["openings"]), (&3.into(), &3.into()), "{engine}");

        // The rows of the first table, and the sums in the second.
        let mut lines = screen.lines().skip_while(|line| !line.trim_start().starts_with("process "));
        let rows = lines.by_ref().skip(1).take_while(|line| !line.starts_with("  time:")).count() as u64;
        let others = number_after(&screen, "  the ");
        let paths = streams.iter().map(|stream| stream["path"].as_str().unwrap());
        assert!(
            !paths.clone().any(|path| path.contains("/../")),
            "{engine}: {:?}",
            paths.collect::<Vec<_>>()
        );
        let startup = number_after(&screen, "start-up: ");
        assert_eq!(rows + others + startup, streams.len() as u64, "{engine}: {screen}");
        let all = screen.lines().find(|line| line.trim_start().starts_with("all of these")).expect("a sum");
        let figures: Vec<&str> = all.split_whitespace().skip(3).collect();
        assert_eq!(figures[0].replace(',', "").parse::<u64>().unwrap(), others, "{engine}: {screen}");
        let sums: u64 = screen
            .lines()
            .skip_while(|line| !line.trim_start().starts_with("the "))
            .skip(1)
            .take_while(|line| !line.trim_start().starts_with("all of these"))
            .map(|line| {
                let figures: Vec<&str> = line.split_whitespace().collect();
                let name = figures.iter().take_while(|word| word.parse::<u64>().is_err()).count();
                figures[name].replace(',', "").parse::<u64>().unwrap()
            })
            .sum();
        assert_eq!(sums, others, "{engine}: {screen}");
        assert!(screen.lines().any(|line| line.contains("/data/…")), "{engine}: {screen}");
    }
}

/// Makes small calls for half a second, then prints how many rounds and how many microseconds.
const LOOP: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    char bytes[8] = "abcdefg\n";
    int out = open("/dev/null", O_WRONLY), in = open("/dev/zero", O_RDONLY);
    struct timespec from, now;
    long rounds = 0, micros;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int bytes_each = 0; bytes_each < 4; bytes_each++)
            if (write(out, bytes, bytes_each) < 0 || read(in, bytes, bytes_each) < 0)
                return 1;
        rounds++;
        clock_gettime(CLOCK_MONOTONIC, &now);
        micros = (now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000;
    } while (micros < 500000);
    printf("%ld %ld\n", rounds, micros);
    fflush(stdout);
    usleep(300000);
    return 0;
}"#;

/// weir does not read the clock at every call of a fast loop. The sums and the time of the last call are still exact.
#[test]
fn a_fast_loop_has_exact_sums_and_an_exact_end() {
    let dir = disk_dir();
    let program = compile(dir.path(), "loop", LOOP, &[]).expect("a C compiler");
    for engine in engines() {
        let options = ["--exact", "--all", "--engine", engine, "--timeline", "time.json"];
        let (output, document) = traced(dir.path(), &options, &[path(&program)]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let printed: Vec<u64> =
            text(&output.stdout).split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [iterations, micros] = printed[..] else { panic!("{engine}: {printed:?}") };
        let timeline: Value =
            serde_json::from_slice(&fs::read(dir.path().join("time.json")).unwrap()).unwrap();
        for name in ["/dev/null", "/dev/zero"] {
            let stream = list(&document, "streams").iter().find(|stream| stream["path"] == name).unwrap();
            let sizes: Vec<u64> =
                stream["sizes"].as_object().unwrap().values().map(|calls| calls.as_u64().unwrap()).collect();
            assert_eq!(
                (stream["calls"].as_u64().unwrap(), stream["bytes"].as_u64().unwrap(), sizes),
                (4 * iterations, 6 * iterations, vec![iterations, iterations, 2 * iterations]),
                "{engine}: {stream}"
            );
            let ends = list(&timeline, "traceEvents")
                .iter()
                .filter(|event| event["cat"] == "stream" && event["name"].as_str().unwrap().ends_with(name));
            let at: Vec<f64> = ends.map(|event| event["ts"].as_f64().unwrap()).collect();
            let [began, ended] = at[..] else { panic!("{engine}: {name}: {at:?}") };
            // The program sleeps for 300 ms after the loop.
            let span = ended - began;
            assert!((span - micros as f64).abs() < 100e3, "{engine}: {name}: {span} of {micros} us");
        }
    }
}

/// Calls of a gap that belong to no known stream may be of any stream of their process, so no row beside them looks exact.
#[test]
fn a_row_beside_unknown_calls_is_no_exact_number() {
    const WRITES: u64 = 3000;
    let dir = disk_dir();
    let script = format!("rm -f out.txt; for i in $(seq {WRITES}); do echo $i >> out.txt; done");
    for engine in engines() {
        let (output, document) = traced(dir.path(), &["--engine", engine], &["bash", "-c", &script]);
        let (screen, streams) = (text(&output.stderr), list(&document, "streams"));
        let is_unknown = |stream: &&Value| stream["fd"] == -1 && stream["direction"] == "out";
        let unknown: Vec<&Value> = streams.iter().filter(is_unknown).collect();
        for row in streams.iter().filter(|row| row["direction"] == "out" && !unknown.is_empty()) {
            let beside = unknown.iter().any(|one| one["pid"] == row["pid"]);
            assert!(!beside || row["estimated"] == true && row["exact"] == false, "{engine}: {row}");
            assert!(row["at_least"] != true || beside && row["fd"] != -1, "{engine}: {row}");
        }
        let file = streams.iter().filter(|row| row["path"].as_str().unwrap().ends_with("/out.txt"));
        let calls: u64 = file.map(|row| row["calls"].as_u64().unwrap()).sum();
        let exact = screen.lines().filter(|line| line.contains('>') && line.contains('*')).count();
        assert!(calls == WRITES || exact == 0, "{engine}: {calls}\n{screen}");
    }
}
