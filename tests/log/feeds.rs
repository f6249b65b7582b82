//! A log in JSON feeds another collector, which follows its files: an OpenTelemetry collector with a receiver for files
//! (`make otelcol`, or $WEIR_OTELCOL). Each record arrives there once, also those of rotated files.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Collector;
use crate::common::{KillOnDrop, disk_dir, skip, wait_for};

const RECORDS: usize = 3000;

fn otel_collector() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../otel/otelcol");
    let path = std::env::var_os("WEIR_OTELCOL").map_or(built, PathBuf::from);
    path.exists().then_some(path)
}

fn configuration(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "receivers:
  filelog:
    include: [ '{dir}/out.json*' ]
    start_at: beginning
    poll_interval: 50ms
    operators:
      - type: json_parser
exporters:
  file:
    path: '{dir}/received'
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    logs:
      receivers: [filelog]
      exporters: [file]
"
    )
}

/// Returns how often each text arrived.
fn received(dir: &Path) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let content = std::fs::read_to_string(dir.join("received")).unwrap_or_default();
    // The last line may be unfinished.
    for batch in content.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let scopes = batch["resourceLogs"].as_array().into_iter().flatten();
        let scopes = scopes.flat_map(|resource| resource["scopeLogs"].as_array().into_iter().flatten());
        for record in scopes.flat_map(|scope| scope["logRecords"].as_array().into_iter().flatten()) {
            let mut attributes = record["attributes"].as_array().into_iter().flatten();
            let text = attributes.find(|attribute| attribute["key"] == "text").expect("the field text");
            *counts.entry(text["value"]["stringValue"].as_str().expect("a text").to_owned()).or_default() +=
                1;
        }
    }
    counts
}

#[test]
fn an_opentelemetry_collector_gets_each_record_once() {
    let Some(program) = otel_collector() else {
        return skip(
            "an_opentelemetry_collector_gets_each_record_once",
            "there is no OpenTelemetry collector (make otelcol)",
        );
    };
    let dir = disk_dir();
    std::fs::write(dir.path().join("config.yaml"), configuration(dir.path())).expect("written");
    let collector = Collector::start(
        dir.path(),
        &[
            "-o", "out.json", "--format", "json", "--stamp", "iso-ms", "--listen", "unix:s", "--rotate",
            "100K",
        ],
    );
    let otel = Command::new(program)
        .args(["--config", "config.yaml"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(dir.path().join("otel.log")).expect("a file"))
        .spawn()
        .expect("the collector starts");
    let _otel = KillOnDrop(otel);
    let text = |number: usize| format!("record {number} \"quoted\" \u{e9}\t");
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    for number in 0..RECORDS {
        socket.write_all(format!("{}\n", text(number)).as_bytes()).expect("sent");
        if number % 500 == 499 {
            // It looks at the files at intervals: a file that is rotated twice within one is followed all the same.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    wait_for("all records", || received(dir.path()).len() == RECORDS);
    let counts = received(dir.path());
    assert!((0..RECORDS).all(|number| counts.get(&text(number)) == Some(&1)), "each record once");
    let rotated = dir.path().read_dir().expect("read").flatten();
    let rotated = rotated.filter(|entry| entry.file_name().to_string_lossy().ends_with(".safe")).count();
    assert!(rotated >= 2, "{rotated} rotations");
    assert_eq!(collector.stop(), 0);
}
