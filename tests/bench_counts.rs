//! The call counts that each method reports, compared with strace(1).

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{WEIR, disk_dir, has, skip, text};
use serde_json::{Value, json};

const BYTES: u64 = 100_001; // not a multiple of any record size: the last record is short

fn job(dir: &Path, method: &str, workload: u32, record: u64) -> Value {
    // The form that serde gives an OsString.
    let path = |name: &str| json!({ "Unix": dir.join(name).as_os_str().as_bytes() });
    json!({
        "method": method, "in_path": path("in"), "out_path": path("out"), "bytes": BYTES, "record_bytes": record,
        "buffer_bytes": 0, "sync_every_bytes": 0, "workload": workload, "sync": 0, "mode": 0, "vector_records": 4,
        "queue_depth": 4, "registered": false, "advice": -1
    })
}

/// Runs one sample under strace and returns the outcome that weir reports and the lines of strace's log.
fn traced(dir: &Path, job: &Value) -> (Value, Vec<String>) {
    let log = dir.join("log");
    let mut child = Command::new("strace")
        .args(["-f", "-y", "-s", "0", "-o"])
        .arg(&log)
        .args([WEIR, "__bench-sample"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(job.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let outcome: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let _ = std::fs::remove_file(dir.join("out"));
    (outcome, std::fs::read_to_string(log).unwrap().lines().map(String::from).collect())
}

/// Counts the calls by name: those on the files `in` and `out`, and every io_uring_enter.
fn count_calls(lines: &[String], dir: &Path) -> BTreeMap<String, u64> {
    let ours = |line: &str| {
        ["in", "out"].iter().any(|name| line.contains(&format!("<{}>", dir.join(name).display())))
    };
    let mut counts = BTreeMap::new();
    for line in lines {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let Some((name, _)) = call.split_once('(') else { continue };
        if name == "io_uring_enter" || ours(line) {
            *counts.entry(name.to_string()).or_insert(0) += 1;
        }
    }
    counts
}

fn check(method: &str, workload: u32, record: u64) {
    let test = "counts_agree_with_strace";
    if !has("strace") {
        return skip(test, "needs strace");
    }
    // strace prints the canonical path of a descriptor's file.
    let dir = disk_dir();
    let dir = dir.path().canonicalize().unwrap();
    let text_line: Vec<u8> =
        (0..BYTES).map(|i| if i % 64 == 63 { b'\n' } else { b'a' + (i % 26) as u8 }).collect();
    std::fs::write(dir.join("in"), text_line).unwrap();
    let (outcome, lines) = traced(&dir, &job(&dir, method, workload, record));
    if let Some(why) = outcome["Cannot"].as_str() {
        return skip(&format!("{test} {method}"), why);
    }
    let measured = &outcome["Ok"];
    assert_eq!(measured["bytes_moved"], BYTES, "{method}: {outcome}");
    let counted = count_calls(&lines, &dir);
    let reported = measured["calls"].as_array().unwrap();
    assert!(!reported.is_empty(), "{method} reports no call");
    for call in reported {
        let (name, count) = (call[0].as_str().unwrap(), call[1].as_u64().unwrap());
        if [
            "read",
            "write",
            "pread64",
            "pwrite64",
            "readv",
            "writev",
            "preadv2",
            "pwritev2",
            "sendfile",
            "splice",
            "copy_file_range",
            "io_uring_enter",
        ]
        .contains(&name)
        {
            assert_eq!(
                counted.get(name).copied().unwrap_or(0),
                count,
                "{method} {workload} {record}: {name}; strace counts {counted:?}"
            );
        }
    }
    for name in
        ["read", "write", "pread64", "pwrite64", "readv", "writev", "sendfile", "splice", "copy_file_range"]
    {
        let calls: u64 =
            reported.iter().filter(|call| call[0] == name).filter_map(|call| call[1].as_u64()).sum();
        assert_eq!(
            calls,
            counted.get(name).copied().unwrap_or(0),
            "{method}: strace counts calls of {name} that weir does not report"
        );
    }
}

macro_rules! counts {
    ($($test:ident: $method:literal;)*) => {
        $(#[test]
        fn $test() {
            check($method, 0, 4096);
            if !["sendfile", "splice", "copy_file_range"].contains(&$method) {
                // O_DIRECT takes whole blocks only.
                check($method, 1, if $method == "direct" { 8192 } else { 1000 });
            }
        })*
    };
}

counts! {
    syscall: "syscall";
    pread_pwrite: "pread-pwrite";
    vector: "vector";
    stdio: "stdio";
    stdio_unlocked: "stdio-unlocked";
    stdio_char: "stdio-char";
    stdio_char_unlocked: "stdio-char-unlocked";
    libweir: "libweir";
    mmap: "mmap";
    direct: "direct";
    io_uring: "io_uring";
    sendfile: "sendfile";
    splice: "splice";
    copy_file_range: "copy_file_range";
    dontcache: "dontcache";
}
