//! `weir log status` and `weir log check`: screens and documents.

use std::io::Write;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::common::schema::assert_schema;
use crate::common::{disk_dir, run, text};
use crate::{Collector, lines_of, log_of};

#[test]
fn a_running_collector_says_what_it_does() {
    let dir = disk_dir();
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "unix:web.sock"]);
    let mut socket = UnixStream::connect(dir.path().join("web.sock")).expect("connected");
    socket.write_all(b"one\ntwo\nhalf").expect("sent");
    lines_of(&dir.path().join("out"), 2);
    let output = run(dir.path(), &["log", "status", "out", "--json", "-"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_schema(&document, "weir-log-1");
    assert_eq!(document["overflow"], "block");
    assert_eq!((&document["totals"]["records"], &document["connections"]), (&2.into(), &1.into()));
    let source = &document["sources"][0];
    assert_eq!(
        (&source["name"], &source["records"], &source["held_bytes"]),
        (&"web#1".into(), &2.into(), &4.into())
    );
    let screen = text(&run(dir.path(), &["log", "status", "out"]).stdout);
    assert!(screen.contains("out · weir log, process") && screen.contains("web#1"), "{screen}");
    assert_eq!(collector.stop(), 0);
    let output = run(dir.path(), &["log", "status", "out"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no weir log writes this file"), "{}", text(&output.stderr));
}

#[test]
fn a_run_can_leave_its_counts() {
    let dir = disk_dir();
    let output = log_of(dir.path(), &["-o", "out", "--json", "counts.json"], b"one\ntwo\n");
    assert!(output.status.success());
    let document: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("counts.json")).expect("a file"))
            .expect("JSON");
    assert_schema(&document, "weir-log-1");
    assert_eq!((&document["totals"]["records"], &document["log_bytes"]), (&2.into(), &8.into()));
}

#[test]
fn a_check_shows_where_a_log_is_damaged() {
    let dir = disk_dir();
    let log = "w1 #1 a\nw2 #1 b\nw1 #2 a\nw1 w2 #2 b\n#3 a\nw2 #4 b\nend";
    std::fs::write(dir.path().join("out"), log).expect("written");
    let pattern = r"(?<writer>w\d) #(?<number>\d+) [ab]";
    let output = run(dir.path(), &["log", "check", "out", "--pattern", pattern]);
    assert_eq!(output.status.code(), Some(1));
    let screen = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let verdict = "4 of 6 records are whole; 1 torn, 1 interleaved, 2 missing, 3 B behind the last record.";
    assert!(screen.ends_with(verdict), "{screen}");
    let output = run(dir.path(), &["log", "check", "out", "--pattern", pattern, "--json", "-"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_schema(&document, "weir-log-check-1");
    assert_eq!(document["bad"][0]["offset"], 24);
    assert_eq!(
        document["writers"][1],
        serde_json::json!({"name": "w2", "records": 2, "runs": 2, "missing": 2, "repeated": 0})
    );
    std::fs::write(dir.path().join("good"), "a\nb\n").expect("written");
    assert!(run(dir.path(), &["log", "check", "good"]).status.success());
    assert_eq!(run(dir.path(), &["log", "check", "none"]).status.code(), Some(1));
}

#[test]
fn metrics_are_in_a_file_and_behind_http() {
    let dir = disk_dir();
    // An address of this process only: no other one takes the port before the collector has it.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{middle}.{}", high + 1, low | 1);
    let free = std::net::TcpListener::bind((host.as_str(), 0)).expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let http = format!("http:{host}:{port}");
    let collector = Collector::start(
        dir.path(),
        &["-o", "out", "--listen", "unix:s", "--metrics", "metrics.prom", "--metrics", &http],
    );
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    socket.write_all(b"one\ntwo\nhalf").expect("sent");
    lines_of(&dir.path().join("out"), 2);
    let get = |request: &str| {
        let mut client = std::net::TcpStream::connect((host.as_str(), port)).expect("connected");
        client.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut client, &mut answer).expect("an answer");
        answer
    };
    let answer = get("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    for line in [
        "weir_log_records_total 2",
        "weir_log_connections 1",
        "weir_log_backlog_bytes 4",
        "weir_log_stalled 0",
    ] {
        assert!(body.lines().any(|other| other == line), "{line}: {body}");
    }
    assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(get("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    drop(socket);
    assert_eq!(collector.stop(), 0);
    let file = std::fs::read_to_string(dir.path().join("metrics.prom")).expect("the metrics");
    assert!(file.contains("\nweir_log_records_total 3\n"), "the end is in the file: {file}");
}
