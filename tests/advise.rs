//! `weir advise`: the built binary answers questions from measured prices, asks on a terminal, and refuses bad input.

mod common;
#[path = "common/session.rs"]
mod session;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::schema::assert_schema;
use common::{as_nobody, disk_dir, for_nobody, is_root, programs, run, skip, text, weir};
use serde_json::{Value, json};
use session::Session;

/// Returns the cache directory that all tests share, with measured prices: each measurement takes seconds.
fn cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advise-cache");
        let dir = disk_dir();
        let output = weir(dir.path(), &["advise", "-y", "-q"]).env("XDG_CACHE_HOME", &cache).output();
        let output = output.expect("the built binary starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        cache
    })
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = weir(dir, &[&["advise"], arguments].concat());
    command.env("XDG_CACHE_HOME", cache());
    command
}

fn advise(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("the built binary starts")
}

/// Returns the document of a question, which must obey its schema.
fn document(dir: &Path, arguments: &[&str]) -> Value {
    let output = advise(dir, &[arguments, &["-y", "--json", "-"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
    assert_schema(&document, "weir-advise-1");
    assert_eq!(document["choices"].as_array().unwrap().len(), 3);
    document
}

#[test]
fn described_cases_get_what_a_practitioner_chooses() {
    let dir = disk_dir();
    let first = |arguments: &str| {
        let document = document(dir.path(), &arguments.split(' ').collect::<Vec<_>>());
        assert!(
            document["choices"][1]["why_not"].is_string() && document["choices"][2]["why_not"].is_string()
        );
        document["choices"][0].clone()
    };
    let bulk = first("--record-bytes 100 --rate 1000000 --loss buffer --latency 60s");
    assert_eq!((&bulk["mode"], &bulk["sync"]), (&json!("full"), &json!("none")), "{}", bulk["name"]);
    assert!(bulk["buffer_bytes"].as_u64().unwrap() >= 16_384);
    let safe = first("--record-bytes 200 --rate 5 --loss none --latency 1s --medium ssd");
    assert_eq!(safe["predicted"]["at_risk_power_bytes"], 0, "{}", safe["name"]);
    assert_ne!(safe["sync"], "none");
    let second = first("--record-bytes 80 --rate 10 --loss second --latency 1s --medium ssd");
    assert!(second["predicted"]["latency_s"].as_f64().unwrap() <= 1.0, "{}", second["name"]);
    assert!(second["predicted"]["at_risk_power_bytes"].as_u64().unwrap() <= 800, "{}", second["name"]);
    let prompt = first("--record-bytes 20 --rate 1 --loss buffer --latency 5ms");
    assert_eq!((&prompt["mode"], &prompt["sync"]), (&json!("none"), &json!("none")), "{}", prompt["name"]);
    let card = first("--record-bytes 40 --rate 0.2 --loss second --latency 1s --medium sd");
    assert!(card["predicted"]["flash_bytes_per_day"].as_f64().unwrap() > 0.0);
    let python = first("--record-bytes 100 --rate 1000000 --loss buffer --latency 60s --lang python");
    assert_eq!(python["method"], "stdio", "libweir is a C library");
}

#[test]
fn the_screen_has_the_answer_the_reasons_and_the_program() {
    let dir = disk_dir();
    let output = advise(dir.path(), &["-y", "--rate", "100000", "--loss", "buffer", "--lang", "python"]);
    let screen = text(&output.stdout);
    assert!(
        output.status.success() && screen.starts_with("advise · 100 B records · 100,000 a second"),
        "{screen}"
    );
    for part in
        ["Why not 2", "Why not 3", "a kill loses", "a power cut loses", "write(2) of 64 B", "def record(self"]
    {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let program = text(&advise(dir.path(), &["-y", "--loss", "none", "--code", "go"]).stdout);
    assert!(program.starts_with("// Appends") && program.contains("package main"), "{program}");
    assert!(advise(dir.path(), &["-y", "-q"]).stdout.is_empty());
}

#[test]
fn each_method_has_its_own_program_or_a_sentence() {
    let dir = disk_dir();
    let program = |arguments: &[&str]| advise(dir.path(), &[&["-y", "--code"], arguments].concat());
    for (method, code) in [
        ("syscall", "write_all("),
        ("stdio", "fwrite("),
        ("libweir", "weir_putrec("),
        ("mmap", "MAP_SHARED"),
        ("direct", "O_DIRECT"),
        ("io-uring", "io_uring_prep_write("),
        ("in-kernel", "copy_file_range("),
    ] {
        let output = program(&["--method", method]);
        assert!(output.status.success(), "{method}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(code), "{method}: {}", text(&output.stdout));
    }
    for (key, method, why) in
        [("node", "mmap", "Node.js cannot map files"), ("python", "libweir", "libweir is a C library")]
    {
        let output = program(&[key, "--method", method]);
        assert_eq!(output.status.code(), Some(1), "{key} {method}");
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    assert_eq!(advise(dir.path(), &["-y", "--method", "mmap"]).status.code(), Some(2), "without --code");
    let document = document(dir.path(), &[]);
    let others = document["others"].as_array().unwrap();
    let of = |method: &str| others.iter().find(|other| other["method"] == method).unwrap()["code"].clone();
    assert!(of("direct")["go"].as_str().unwrap().contains("syscall.O_DIRECT"));
    assert!(of("io-uring")["python"].is_null() && of("mmap")["python"].is_string());
}

#[test]
fn a_question_that_no_way_holds_fails_and_shows_the_nearest() {
    let dir = disk_dir();
    let output = advise(dir.path(), &["-y", "--rate", "1e8", "--loss", "none", "--json", "a.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no way holds all limits"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("No way holds all limits here"), "{}", text(&output.stdout));
    let document: Value = serde_json::from_slice(&fs::read(dir.path().join("a.json")).unwrap()).unwrap();
    assert_schema(&document, "weir-advise-1");
    assert_eq!(document["choices"][0]["holds"], false);
}

#[test]
fn prices_are_kept_and_measured_again_on_request() {
    let dir = disk_dir();
    let prices = |arguments: &[&str]| document(dir.path(), arguments)["prices"].clone();
    // Prices of a busy machine are measured again as soon as it is quiet.
    let are_kept = |first: &Value, again: &Value| {
        first["cpu_wait_share"].as_f64().is_some_and(|share| share > 0.2) || first == again
    };
    let first = prices(&[]);
    assert!(are_kept(&first, &prices(&["--rate", "5"])), "from the cache");
    assert!(first["fdatasync"]["elapsed_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(common::names(dir.path()), Vec::<String>::new(), "nothing is left in the directory");
    // A cache of its own: the other tests run at the same time.
    let own = disk_dir();
    let ask = |arguments: &[&str]| {
        let mut command = weir(dir.path(), &[&["advise", "-y", "--json", "-"], arguments].concat());
        let output = command.env("XDG_CACHE_HOME", own.path()).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
        document["prices"].clone()
    };
    let measured = ask(&[]);
    assert!(own.path().join("weir/advise.json").exists());
    assert!(are_kept(&measured, &ask(&[])), "from the cache");
    assert_ne!(ask(&["--recalibrate"]), measured);
}

#[test]
fn without_a_terminal_missing_answers_are_named() {
    let dir = disk_dir();
    let output = run(dir.path(), &["advise", "--rate", "10", "--loss", "none"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("give --record-bytes, --latency, or -y"), "{message}");
    assert!(!message.contains("--rate,") && !message.contains("--loss,"), "{message}");
}

#[test]
fn bad_input_is_named() {
    let dir = disk_dir();
    fs::write(dir.path().join("file"), "text").unwrap();
    fs::write(dir.path().join("other.json"), r#"{"schema":"weir-bench/1"}"#).unwrap();
    fs::write(dir.path().join("future.json"), r#"{"schema":"weir-trace/9"}"#).unwrap();
    fs::write(dir.path().join("cut.json"), r#"{"schema":"weir-trace/1","comm"#).unwrap();
    fs::write(dir.path().join("strange.json"), r#"{"schema":"weir-trace/1"}"#).unwrap();
    let cases: [(&[&str], i32, &str); 18] = [
        (&["--rate", "NaN"], 2, "NaN"),
        (&["--rate", "0"], 2, "0"),
        (&["--rate", "-1"], 2, "-1"),
        (&["--rate", "1e300"], 2, "1e300"),
        (&["--record-bytes", "0"], 2, "0 bytes"),
        (&["--record-bytes", "2G"], 2, "1 GiB"),
        (&["--latency", "soon"], 2, "soon"),
        (&["--latency", "0"], 2, "0"),
        (&["--loss", "some"], 2, "some"),
        (&["--sharers", "0"], 2, "0"),
        (&["--lang", "cobol"], 2, "cobol"),
        (&["--dir", "/no/such"], 1, "/no/such: stat: ENOENT"),
        (&["--dir", "file"], 1, "not a directory"),
        (&["--for", "other.json"], 1, "other.json: its schema is \"weir-bench/1\""),
        (&["--for", "future.json"], 1, "weir-trace/9"),
        (&["--for", "cut.json"], 1, "cut.json: not JSON"),
        (&["--for", "strange.json"], 1, "strange.json: missing field"),
        (&["--explain", "flux"], 2, "no 'flux'"),
    ];
    for (arguments, status, message) in cases {
        let output = advise(dir.path(), &[&["-y"], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    if !common::is_root() {
        let output = run(Path::new("/"), &["advise", "-y", "--recalibrate", "--dir", "/"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        return;
    }
    let output = run(Path::new("/"), &["advise", "-y", "--recalibrate", "--dir", "/proc"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("/proc"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("--size"), "weir advise has no such option");
}

/// The larger syncs filled the file system for a moment, so that other programs could not write there.
#[test]
fn a_directory_with_little_room_is_not_filled() {
    let test = "a_directory_with_little_room_is_not_filled";
    if !common::has_private_mounts() || !common::has("strace") {
        return skip(test, "needs root, private mounts (unshare -m) and strace");
    }
    let dir = disk_dir();
    fs::create_dir(dir.path().join("small")).unwrap();
    let on_small = |size: &str| {
        let script = format!(
            "mount -t tmpfs -o size={size} none small || exit 9
             exec strace -f -o calls -e trace=write \"$1\" advise -y --recalibrate --dir small --json document"
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script, "sh", common::WEIR]).current_dir(dir.path());
        command.env("XDG_CACHE_HOME", dir.path().join("cache")).output().expect("unshare starts")
    };
    let output = on_small("12m");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("small: not enough space: 17 MiB needed, 12 MiB free"), "{said}");
    let output = on_small("20m");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let calls = text(&fs::read(dir.path().join("calls")).expect("a list of calls"));
    assert_eq!(calls.lines().find(|line| line.contains("ENOSPC")), None);
}

#[test]
fn terms_are_explained_with_their_man_page() {
    let dir = disk_dir();
    for (term, page) in
        [("fsync", "man 2 fsync"), ("O_DSYNC", "man 2 open"), ("page cache", "page_cache.rst")]
    {
        let output = run(dir.path(), &["advise", "--explain", term]);
        assert!(
            output.status.success() && text(&output.stdout).contains(page),
            "{term}: {}",
            text(&output.stdout)
        );
    }
}

#[test]
fn on_a_terminal_weir_asks_with_a_default_for_each_question() {
    let dir = disk_dir();
    let mut session = Session::start(command(dir.path(), &["--rate", "20", "--lang", "shell"]), 80, 40);
    session.until("the first question", |screen| screen.contains("Bytes of a record"));
    session.keys("10x\r");
    session.until("an error", |screen| screen.contains("is not a unit"));
    session.keys("\r");
    session.until("the loss", |screen| screen.contains("power cut may lose"));
    session.keys("\r");
    session.until("the latency", |screen| screen.contains("must see a record within"));
    session.keys("\r");
    session.until("the writers", |screen| screen.contains("that write the file"));
    session.keys("\r");
    session.until("the medium", |screen| screen.contains("The file is on"));
    session.keys("\r");
    session.until("the answer", |screen| screen.contains("#!/bin/sh") || screen.contains("printf '%s"));
    assert!(session.end().success());
}

#[test]
fn a_dialogue_that_is_interrupted_restores_the_terminal() {
    let dir = disk_dir();
    let arguments = ["--rate", "20", "--record-bytes", "9", "--lang", "c"];
    let mut session = Session::start(command(dir.path(), &arguments), 80, 40);
    session.until("the first question", |screen| screen.contains("power cut may lose"));
    session.keys("\u{3}");
    assert_eq!(session.end().signal(), Some(2), "{}", session.text());
    session.until("the cursor", |_| session.is_restored());
}

#[test]
fn a_trace_answers_what_the_program_does() {
    let dir = disk_dir();
    let script = "i=0; while [ $i -lt 3000 ]; do echo 123456789; i=$((i+1)); done > out";
    let traced = run(dir.path(), &["trace", "-q", "--exact", "--json", "t.json", "--", "sh", "-c", script]);
    if !dir.path().join("t.json").exists() {
        return skip("a_trace_answers_what_the_program_does", &text(&traced.stderr));
    }
    let document = document(dir.path(), &["--for", "t.json", "--loss", "buffer", "--latency", "1s"]);
    assert_eq!(
        (&document["question"]["record_bytes"], &document["question"]["sharers"]),
        (&json!(10), &json!(1))
    );
    assert_eq!(document["question"]["lang"], "shell");
    assert_eq!(document["traced"]["calls"], 3000);
    assert!(document["traced"]["path"].as_str().unwrap().ends_with("/out"), "{}", document["traced"]);
    let mut synced: Value = serde_json::from_slice(&fs::read(dir.path().join("t.json")).unwrap()).unwrap();
    for stream in synced["streams"].as_array_mut().unwrap() {
        stream["syncs"] = json!(1500);
    }
    fs::write(dir.path().join("synced.json"), synced.to_string()).unwrap();
    let document = self::document(dir.path(), &["--for", "synced.json", "--rate", "5", "--latency", "1s"]);
    assert_eq!(document["question"]["loss"], "none", "a program that syncs wants its records durable");
    let screen = text(&advise(dir.path(), &["-y", "--for", "t.json"]).stdout);
    assert!(screen.contains("3,000 calls"), "{screen}");
    let none = run(dir.path(), &["trace", "-q", "--json", "none.json", "--", "true"]);
    assert!(none.status.success());
    let output = advise(dir.path(), &["-y", "--for", "none.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no stream that writes a file"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("goes to a file in daily use"), "true(1) writes nothing");
    run(dir.path(), &["trace", "-q", "--json", "pipe.json", "--", "echo", "x"]);
    let output = advise(dir.path(), &["-y", "--for", "pipe.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("output of echo goes to a file"), "{}", text(&output.stderr));
}

#[test]
fn a_program_is_traced_first() {
    let dir = disk_dir();
    let script = "i=0; while [ $i -lt 500 ]; do echo 1234567; i=$((i+1)); done > out";
    let output = advise(dir.path(), &["-y", "-q", "--json", "a.json", "--for", "sh", "--", "-c", script]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&fs::read(dir.path().join("a.json")).unwrap()).unwrap();
    assert_schema(&document, "weir-advise-1");
    assert_eq!(document["traced"]["calls"], 500);
    let output = advise(dir.path(), &["-y", "--for", "./no-such-program"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no-such-program"), "{}", text(&output.stderr));
}

#[test]
fn a_program_that_cannot_be_read_is_no_trace() {
    if !is_root() {
        return skip("a_program_that_cannot_be_read_is_no_trace", "needs root to run weir as another user");
    }
    let dir = for_nobody();
    programs::copy_program("/bin/true", &dir.path().join("program"));
    fs::write(dir.path().join("t.json"), "{}").unwrap();
    for (name, mode) in [("program", 0o711), ("t.json", 0o600)] {
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (name, status, message) in
        [("./program", 2, "the program's own output would mix"), ("./t.json", 1, "give a trace or a program")]
    {
        let output = as_nobody(dir.path(), &["advise", "-y", "--json", "-", "--for", name]).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
    }
}
