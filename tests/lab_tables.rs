//! `weir lab`: published tables compared with ours, and the results of earlier runs in the list.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::schema::assert_schema;
use common::{disk_dir, has, names, run, skip, text, weir};
use serde_json::Value;

/// Runs one experiment with --quick and returns its entry of the document.
fn quick(name: &str) -> Value {
    let dir = disk_dir();
    let output = run(dir.path(), &["lab", name, "--quick", "--json", "-"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_schema(&document, "weir-lab-1");
    assert_eq!(document["quick"], true);
    document["experiments"][0].clone()
}

/// Returns the published figure and ours of a row of a table.
fn published_and_ours(experiment: &Value, table: &str, row: &str, figure: &str) -> (f64, f64) {
    let tables = experiment["tables"].as_array().expect("tables");
    let table = tables.iter().find(|one| one["id"] == table).expect("the table");
    let mut rows = table["rows"].as_array().expect("rows").iter();
    let found = rows.find(|one| one["row"] == row && one["figure"] == figure).expect("the row");
    assert!(found["runs"].as_u64().is_some_and(|runs| runs > 0), "{found}");
    (found["published"].as_f64().expect("the published figure"), found["ours"].as_f64().expect("our figure"))
}

#[test]
fn times_of_the_lab_are_compared_with_published_ones() {
    let experiment = quick("one-byte-writes");
    let slow = published_and_ours(&experiment, "writers-100k", "unbuffered_writer", "elapsed");
    let fast = published_and_ours(&experiment, "writers-100k", "buffered_writer", "elapsed");
    assert_eq!((slow.0, fast.0), (1.532, 0.005));
    assert!(slow.1 > 0.0 && fast.1 > 0.0, "{slow:?} {fast:?}");
    let experiment = quick("max-min-calls");
    let (published, ours) = published_and_ours(&experiment, "maxcalls-mincalls", "maxcalls", "elapsed");
    assert!(published == 18.898 && ours > 0.1, "1,000 starts with 9,999 calls each: {ours} s");
}

#[test]
fn counts_of_the_tracer_are_compared_with_published_ones() {
    let experiment = quick("translate");
    assert_eq!(published_and_ours(&experiment, "tr2b-tr2u", "tr2u, file", "writes"), (5e6, 5e6));
    let (published, ours) = published_and_ours(&experiment, "tr2b-tr2u", "tr2b, file", "writes");
    assert!(published == 611.0 && (500.0..2000.0).contains(&ours), "{ours}");
}

#[test]
fn measurements_of_weir_bench_are_compared_with_published_ones() {
    let experiment = quick("sync-writes");
    let none = published_and_ours(&experiment, "tlpi-13-3-none", "4 KiB", "elapsed");
    let sync = published_and_ours(&experiment, "tlpi-13-3-sync", "4 KiB", "elapsed");
    assert_eq!((none.0, sync.0), (0.01, 0.34));
    assert!(none.1 > 0.0 && sync.1 > none.1, "{none:?} {sync:?}");
    let page = text(&run(disk_dir().path(), &["lab", "one-byte-writes", "--quick"]).stdout);
    for part in ["Published beside ours: writers-100k", "theirs", "ours", "unbuffered_writer"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn each_published_table_belongs_to_one_experiment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let published = fs::read(root.join("crates/bench/published/published.json")).unwrap();
    let published: Value = serde_json::from_slice(&published).unwrap();
    let labs: Vec<String> = names(&root.join("lab"))
        .into_iter()
        .filter_map(|name| fs::read_to_string(root.join("lab").join(name).join("lab.toml")).ok())
        .collect();
    for table in published["tables"].as_array().expect("tables") {
        let id = table["id"].as_str().expect("an id");
        let named = |text: &&String| {
            text.lines().any(|line| line.starts_with("published = ") && line.contains(&format!("\"{id}\"")))
        };
        assert_eq!(labs.iter().filter(named).count(), 1, "{id}");
    }
}

#[test]
fn the_list_shows_earlier_runs_with_their_age() {
    let dir = disk_dir();
    let state = dir.path().join("state");
    let lab = |arguments: &[&str]| {
        let output = weir(dir.path(), arguments).env("XDG_STATE_HOME", &state).output().unwrap();
        text(&output.stdout)
    };
    assert!(!lab(&["lab"]).contains("agreed"), "no experiment was run yet");
    assert!(!state.exists(), "the list alone writes no state");
    lab(&["lab", "lost-at-kill", "--quick"]);
    assert_eq!(names(&state.join("weir/lab")), ["lost-at-kill.json"]);
    let line = |list: &str| {
        list.lines().find(|line| line.contains("lost-at-kill")).expect("the experiment").to_string()
    };
    let list = lab(&["lab"]);
    assert!(
        list.contains("s ago") && line(&list).contains(" yes* ") && list.contains("* a quick run"),
        "{list}"
    );
    let kept = state.join("weir/lab/lost-at-kill.json");
    let mut earlier: Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    earlier["at_s"] = (earlier["at_s"].as_u64().unwrap() - 3 * 86_400).into();
    earlier["agrees"] = false.into();
    earlier["quick"] = false.into();
    fs::write(&kept, earlier.to_string()).unwrap();
    let list = lab(&["lab"]);
    assert!(
        line(&list).contains(" NO ") && list.contains("3 days ago") && !list.contains("* a quick run"),
        "{list}"
    );
}

#[test]
fn an_unwritable_state_directory_is_no_error() {
    let dir = disk_dir();
    fs::write(dir.path().join("state"), "a file").unwrap();
    let mut command = weir(dir.path(), &["lab", "lost-at-kill", "--quick"]);
    let output =
        command.env("XDG_STATE_HOME", dir.path().join("state")).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(dir.path().join("state")).unwrap(), "a file");
}

#[test]
fn a_verdict_of_a_check_comes_from_an_interval() {
    let dir = disk_dir();
    let options = ["--method", "syscall", "--records", "1,65536", "--size", "100000", "--rounds", "5"];
    run(dir.path(), &[&["bench", "copy", "--quiet", "--json", "copy.json"], &options[..]].concat());
    let verdict = |first: &str, second: &str| {
        let output = run(dir.path(), &["lab-tool", "faster", "copy.json", first, second]);
        text(&output.stdout).split('\t').next().unwrap_or("").to_string()
    };
    assert_eq!(verdict("record_bytes=1 method=syscall", "record_bytes=65536"), "second");
    assert_eq!(verdict("record_bytes=65536", "record_bytes=1"), "first");
    assert_eq!(verdict("record_bytes=1", "record_bytes=1"), "tie");
    let missing = run(dir.path(), &["lab-tool", "faster", "copy.json", "record_bytes=2", "record_bytes=1"]);
    assert!(!missing.status.success() && text(&missing.stderr).contains("no row record_bytes=2"));
}

#[test]
fn records_in_one_piece_are_found_by_each_writers_offset() {
    if !has("cc") {
        return skip("records_in_one_piece_are_found_by_each_writers_offset", "no C compiler");
    }
    let dir = disk_dir();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/many-writers-large/runs.c");
    let counter = dir.path().join("runs");
    assert!(Command::new("cc").arg("-o").arg(&counter).arg(source).status().unwrap().success());
    let counts = |runs: &[(u8, usize)]| {
        let bytes: Vec<u8> = runs.iter().flat_map(|&(letter, count)| vec![letter; count]).collect();
        fs::write(dir.path().join("letters"), bytes).unwrap();
        let letters = fs::File::open(dir.path().join("letters")).unwrap();
        let output = Command::new(&counter).stdin(letters).output().unwrap();
        text(&output.stdout).split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!(counts(&[(b'a', 9999), (b'b', 2 * 9999)]), [0, 0, 3]);
    // The edges of the runs are inside of records: the second record of a is in one piece, the others are torn.
    let torn = [(b'a', 5000), (b'b', 5000), (b'a', 9999 + 4999 + 4999), (b'b', 4999), (b'a', 5000)];
    assert_eq!(counts(&torn)[2], 1);
}
