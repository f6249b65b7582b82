//! `weir trace` counts each call that moves bytes, with each flag that changes what it moves, as the program that makes the calls
//! says itself (trace_calls/calls.c): calls and bytes of each stream, with each engine. What moves bytes without a call is
//! named, and then no report says that every call was counted.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::{KillOnDrop, disk_dir, text, weir};
use serde_json::Value;
use trace::{compile, document, engines, finding, list, path, traced};

const CALLS: &str = include_str!("trace_calls/calls.c");
const OFFSETS: &str = include_str!("trace_calls/offsets.c");
const DIRECT: &str = include_str!("trace_calls/direct.c");
const REUSED: &str = include_str!("trace_calls/reused.c");
const THREADS: &str = include_str!("trace_calls/threads.c");
const WITHOUT_CALLS: &str = include_str!("trace_calls/without_calls.c");
/// The program's own descriptors begin here.
const FIRST_FD: i64 = 40;

/// Calls and bytes by descriptor and direction.
type Streams = BTreeMap<(i64, String), (u64, u64)>;

/// Returns the truth that the program printed.
fn truth(output: &str) -> Streams {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        ((number(0) as i64, words[1].to_owned()), (number(2), number(3)))
    };
    output.lines().map(line).collect()
}

/// Returns the streams of the program's own descriptors.
fn streams(document: &Value) -> Streams {
    let own = list(document, "streams").iter().filter(|stream| stream["fd"].as_i64() >= Some(FIRST_FD));
    let stream = |stream: &Value| {
        let number = |name: &str| stream[name].as_u64().expect("a number");
        let key =
            (stream["fd"].as_i64().expect("fd"), stream["direction"].as_str().expect("direction").to_owned());
        (key, (number("calls"), number("bytes")))
    };
    own.map(stream).collect()
}

/// Returns the differences between the truth and the streams, each in a line.
fn differences(truth: &Streams, counted: &Streams) -> Vec<String> {
    let keys = truth.keys().chain(counted.keys().filter(|key| !truth.contains_key(key)));
    let differs = keys.filter(|key| truth.get(key) != counted.get(key));
    differs.map(|key| format!("{key:?}: {:?}, truth {:?}", counted.get(key), truth.get(key))).collect()
}

/// Traces the program and compares. `variables`: those of weir.
fn compare(dir: &Path, program: &str, options: &[&str], variables: &[(&str, &str)]) {
    let arguments =
        [&["trace", "--quiet", "--exact", "--json", "t.json"], options, &["--", program]].concat();
    let output = weir(dir, &arguments).envs(variables.iter().copied()).output().expect("weir starts");
    assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
    let document = document(dir);
    let truth = truth(&text(&output.stdout));
    assert!(truth.len() >= 20, "{options:?}: {truth:?}");
    let wrong = differences(&truth, &streams(&document));
    assert!(wrong.is_empty(), "{options:?} {variables:?}:\n{}", wrong.join("\n"));
    assert_eq!(document["exact"], true, "{options:?}: {}", document["blind"]);
}

#[test]
fn each_call_and_flag_is_counted_as_it_moves_bytes() {
    let dir = disk_dir();
    let program = compile(dir.path(), "calls", CALLS, &[]).expect("a C compiler");
    for engine in engines() {
        compare(dir.path(), path(&program), &["--engine", engine], &[]);
    }
    compare(dir.path(), path(&program), &["--engine", "ptrace", "--seccomp"], &[]);
}

/// The BPF object for kernels before Linux 6.1 reads vectors and messages by other functions.
#[test]
fn the_object_for_older_kernels_counts_the_same() {
    if !engines().contains(&"ebpf") {
        return common::skip("the_object_for_older_kernels_counts_the_same", "it needs root");
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "calls", CALLS, &[]).expect("a C compiler");
    compare(dir.path(), path(&program), &["--engine", "ebpf"], &[("WEIR_EBPF_OLD", "1")]);
}

#[test]
fn what_moves_bytes_without_a_call_is_named() {
    let dir = disk_dir();
    let program = compile(dir.path(), "without", WITHOUT_CALLS, &[]).expect("a C compiler");
    for engine in engines() {
        for (way, name, is_exact) in
            [("aio", "aio", false), ("ring", "io_uring", false), ("mapping", "MAP_SHARED", true)]
        {
            let (output, document) =
                traced(dir.path(), &["--exact", "--engine", engine], &[path(&program), way]);
            match output.status.code() {
                Some(0) => {}
                Some(77) => continue, // the kernel does not permit the interface
                _ => panic!("{engine} {way}: {}", text(&output.stderr)),
            }
            let report = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(document["blind"].to_string().contains(name), "{engine} {way}: {}", document["blind"]);
            assert!(report.contains("not seen"), "{engine} {way}: {report}");
            assert_eq!(document["exact"], is_exact, "{engine} {way}");
            assert_eq!(report.contains("every call counted"), is_exact, "{engine} {way}: {report}");
        }
    }
}

/// Opens a file often while weir is stopped, as it can be for a moment on a busy machine, so that the ring buffer overflows.
const OPENS: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <unistd.h>\n\
    int main(void) { kill(getppid(), SIGSTOP);\n\
    for (int i = 0; i < 40000; i++) if (close(open(\"/dev/null\", O_RDONLY))) return 1;\n\
    kill(getppid(), SIGCONT); return 0; }\n";

#[test]
fn counts_of_calls_are_lower_limits_after_dropped_events() {
    if !engines().contains(&"ebpf") {
        return common::skip("counts_of_calls_are_lower_limits_after_dropped_events", "it needs root");
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "opens", OPENS, &[]).expect("a C compiler");
    let (output, document) = traced(dir.path(), &["--exact", "--engine", "ebpf"], &[path(&program)]);
    let report = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success(), "{report}");
    let opens = list(&document, "other_calls").iter().find(|one| one["call"] == "openat").expect("openat");
    let calls = opens["calls"].as_u64().expect("calls");
    assert!(calls < 40_000 && opens["exact"] == false && document["exact"] == false, "{opens}");
    let uncounted = document["overhead"]["uncounted_calls"].as_u64().expect("an upper limit");
    assert!(uncounted >= 40_000 - calls, "{uncounted} of {calls}");
    assert!(report.contains("calls not counted") && report.contains("other calls too low"), "{report}");
    assert!(!report.contains("every call counted") && !report.contains("totals exact"), "{report}");
}

#[test]
fn a_number_that_is_reused_while_it_is_closed_has_two_streams() {
    let dir = disk_dir();
    let program = compile(dir.path(), "reused", REUSED, &["-pthread"]).expect("a C compiler");
    for engine in engines() {
        for call in ["open", "fcntl", "socketpair"] {
            let (output, document) =
                traced(dir.path(), &["--quiet", "--exact", "--engine", engine], &[path(&program), call]);
            assert!(output.status.success(), "{engine} {call}: {}", text(&output.stderr));
            let sent: u64 = text(&output.stdout).trim().parse().expect("a number");
            let is_counted = |stream: &&Value| {
                let is_file = stream["path"].as_str().is_some_and(|path| path.ends_with("/new"));
                stream["direction"] == "out" && (is_file || stream["kind"] == "socket")
            };
            let counted = list(&document, "streams").iter().filter(is_counted);
            let mut bytes: Vec<u64> =
                counted.map(|stream| stream["bytes"].as_u64().expect("bytes")).collect();
            bytes.sort_unstable();
            assert_eq!(bytes, [4000, sent], "{engine} {call}");
        }
    }
}

/// Returns the document in a file.
fn read_json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON")
}

#[test]
fn a_call_has_the_offset_at_which_it_began() {
    let dir = disk_dir();
    let program = compile(dir.path(), "offsets", OFFSETS, &[]).expect("a C compiler");
    std::fs::write(dir.path().join("in"), [b'x'; 8192]).expect("a file");
    for engine in engines() {
        let options = ["--exact", "--engine", engine, "--timeline", "time.json", "--record", "r.json"];
        let (output, _) = traced(dir.path(), &options, &[path(&program)]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let time = read_json(&dir.path().join("time.json"));
        let positions = |call: &str| -> Vec<Option<u64>> {
            let is_own = |event: &&Value| {
                let path = event["args"]["path"].as_str().unwrap_or_default();
                event["name"] == call && !path.contains("/lib")
            };
            list(&time, "traceEvents")
                .iter()
                .filter(is_own)
                .map(|one| one["args"]["position"].as_u64())
                .collect()
        };
        assert_eq!(positions("read"), [Some(0), Some(3000), Some(4096)], "{engine}");
        if engine == "ebpf" {
            // Both streams of a call have an event.
            assert_eq!(positions("copy_file_range"), [Some(0), Some(0)]);
            assert_eq!(positions("sendfile"), [Some(4096), Some(0), Some(6144), Some(2048)]);
        }
        let recording = read_json(&dir.path().join("r.json"));
        let is_own =
            |stream: &&Value| stream["fd"].as_u64() > Some(2) && stream["in_kernel"].as_u64() > Some(0);
        let counts: Vec<_> = list(&recording, "flows").iter().filter(is_own).collect();
        assert_eq!(counts.len(), 4, "{engine}");
        for stream in counts {
            assert_eq!(
                (&stream["jumps"], &stream["again_bytes"]),
                (&0.into(), &0.into()),
                "{engine}: {stream}"
            );
        }
    }
}

#[test]
fn the_offset_of_a_failed_call_is_its_own() {
    let dir = disk_dir();
    let program = compile(dir.path(), "direct", DIRECT, &[]).expect("a C compiler");
    for engine in engines() {
        let (output, document) = traced(dir.path(), &["--exact", "--engine", engine], &[path(&program)]);
        if output.status.code() == Some(77) {
            return common::skip("the_offset_of_a_failed_call_is_its_own", "no O_DIRECT here");
        }
        assert!(finding(&document, "direct-misaligned").is_some(), "{engine}: {}", document["findings"]);
    }
}

/// The kernel counts calls by thread. weir reads the totals after the last call that it records, and before the first one.
#[test]
fn totals_of_an_attached_process_include_its_ended_threads() {
    let dir = disk_dir();
    let program = compile(dir.path(), "threads", THREADS, &["-pthread"]).expect("a C compiler");
    let running = KillOnDrop(Command::new(program).current_dir(&dir).spawn().expect("it starts"));
    common::wait_for("its first write", || dir.path().join("out").exists());
    for engine in engines() {
        let pid = running.0.id().to_string();
        let words = [
            "trace", "--quiet", "--exact", "--time", "500ms", "--json", "t.json", "--engine", engine,
            "--pid", &pid,
        ];
        let output = weir(dir.path(), &words).output().expect("weir starts");
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let document = document(dir.path());
        let writes = list(&document, "streams").iter().filter(|stream| stream["direction"] == "out");
        let calls: u64 = writes.map(|stream| stream["calls"].as_u64().expect("calls")).sum();
        let total = document["processes"][0]["io"]["write_calls"].as_u64().expect("a total");
        assert!(calls > 0 && total >= calls, "{engine}: {calls} calls, {total} in the totals");
    }
}
