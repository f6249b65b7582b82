//! `weir trace` says which place in a program wrote last what waits in its buffer, with each engine and of each kind of
//! program.

#[path = "common/call_sites.rs"]
mod call_sites;
mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use call_sites::{can_watch, finding, line, own};
use common::{disk_dir, has, is_root, skip, text, weir};
use serde_json::Value;
use trace::{compile, compile_by, engines, path};

/// One function writes, another waits; then the bytes are lost.
const WAITS: &str = r#"#include <stdio.h>
#include <unistd.h>

static void __attribute__((noinline)) report(int number)
{
    printf("ready %d.", number); /* writes */
}

static void __attribute__((noinline)) idle(void)
{
    sleep(2);
}

int main(void)
{
    report(7); /* calls */
    idle();
    _exit(3);
}
"#;

/// The same in a loop that is longer than anybody watches.
const LOOPS: &str = r#"#include <stdio.h>
#include <unistd.h>

static void __attribute__((noinline)) count(int most)
{
    for (int i = 0; i < most; i++)
        printf("%d\n", i); /* writes */
}

int main(void)
{
    count(100001);
    sleep(2);
    _exit(3);
}
"#;

/// A log of its own, with a line now and then.
const LOGS: &str = r#"#include <stdio.h>
#include <unistd.h>

static void __attribute__((noinline)) note(FILE *log, int number)
{
    fprintf(log, "step %d\n", number); /* writes */
}

int main(void)
{
    FILE *log = fopen("log", "w");
    for (int i = 0; i < 6; i++) {
        note(log, i);
        usleep(300000);
    }
    fputs("last\n", log); /* last */
    sleep(2);
    _exit(3);
}
"#;

#[test]
fn with_debug_information_it_is_function_file_and_line() {
    if !can_watch("with_debug_information_it_is_function_file_and_line") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    for engine in engines() {
        for id in ["stuck-output", "lost-at-exit"] {
            let found = finding(dir.path(), engine, &[path(&program)], id);
            let frames = own(&found);
            let said = |frame: &Value| (frame["function"].clone(), frame["line"].clone());
            assert_eq!(
                said(frames[0]),
                ("report".into(), line(WAITS, "writes").into()),
                "{engine}: {found:#}"
            );
            assert_eq!(said(frames[1]), ("main".into(), line(WAITS, "calls").into()), "{engine}: {found:#}");
            assert!(frames[0]["file"].as_str().is_some_and(|file| file.ends_with("waits.c")));
            assert_eq!(found["wrote"]["last"], true, "{engine}: {found:#}");
            let sentence = format!(
                "last written by report() at waits.c:{}, called from main() at waits.c:{}.",
                line(WAITS, "writes"),
                line(WAITS, "calls")
            );
            assert!(found["why"].as_str().is_some_and(|why| why.ends_with(&sentence)), "{engine}: {found:#}");
        }
    }
}

#[test]
fn the_report_says_it() {
    if !can_watch("the_report_says_it") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    let output = weir(dir.path(), &["trace", "--", path(&program)]).output().expect("weir");
    let report = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence =
        format!("last written by report() at waits.c:{}, called from main()", line(WAITS, "writes"));
    assert!(report.contains(&sentence), "{report}");
}

#[test]
fn without_lines_it_is_the_function() {
    if !can_watch("without_lines_it_is_the_function") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS, &[]).expect("cc");
    for engine in engines() {
        let found = finding(dir.path(), engine, &[path(&program)], "stuck-output");
        let why = found["why"].as_str().expect("a sentence");
        assert!(
            why.ends_with("last written by report() in waits, called from main() in waits."),
            "{engine}: {why}"
        );
    }
}

#[test]
fn without_any_names_it_is_the_address() {
    if !can_watch("without_any_names_it_is_the_address") {
        return;
    }
    let dir = disk_dir();
    let full = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    let bare = dir.path().join("bare");
    let strip = Command::new("strip").arg("-o").arg(&bare).arg(&full).status().expect("strip");
    assert!(strip.success());
    for engine in engines() {
        let found = finding(dir.path(), engine, &[path(&bare)], "stuck-output");
        let frames = own(&found);
        assert!(frames.len() >= 2 && frames.iter().all(|frame| frame["function"].is_null()), "{found:#}");
        // The address means the same in the file that has names.
        for (frame, function) in frames.iter().zip(["report", "main"]) {
            let address = format!("{:#x}", frame["offset"].as_u64().expect("an address"));
            let named = Command::new("addr2line").args(["-f", "-e"]).arg(&full).arg(&address).output();
            let named = named.expect("addr2line");
            assert!(
                text(&named.stdout).starts_with(function),
                "{engine}: {address}: {}",
                text(&named.stdout)
            );
        }
        let why = found["why"].as_str().expect("a sentence");
        assert!(why.contains("last written by bare+0x"), "{why}");
    }
}

#[test]
fn it_is_known_of_a_static_program() {
    let name = "it_is_known_of_a_static_program";
    if !can_watch(name) {
        return;
    }
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "waits", WAITS, &["-g", "-static"]) else {
        return skip(name, "cc makes no static programs");
    };
    is_at_writes(dir.path(), &program);
}

/// musl has no unwind tables: who called it cannot be told, and nothing is made up.
#[test]
fn of_a_musl_program_nothing_untrue_is_said() {
    let name = "of_a_musl_program_nothing_untrue_is_said";
    if !can_watch(name) {
        return;
    }
    let dir = disk_dir();
    for flags in [&["-g"][..], &["-g", "-static"]] {
        let Some(program) = compile_by("musl-gcc", dir.path(), "waits", WAITS, flags) else {
            return skip(name, "no musl-gcc");
        };
        for engine in engines() {
            let found = finding(dir.path(), engine, &[path(&program)], "stuck-output");
            let frames = found["wrote"]["frames"].as_array().expect("a place in the library");
            assert!(frames[0]["library"] == true, "{engine} {flags:?}: {found:#}");
            let right = ["report", "main"].map(Value::from);
            let own: Vec<&Value> = own(&found).into_iter().map(|frame| &frame["function"]).collect();
            assert!(
                own.is_empty() || own == right.iter().collect::<Vec<_>>(),
                "{engine} {flags:?}: {found:#}"
            );
        }
    }
}

fn is_at_writes(dir: &Path, program: &Path) {
    for engine in engines() {
        let found = finding(dir, engine, &[path(program)], "stuck-output");
        let frames = own(&found);
        assert_eq!(frames[0]["function"], "report", "{engine}: {found:#}");
        assert_eq!(frames[0]["line"], line(WAITS, "writes"), "{engine}: {found:#}");
        assert_eq!(frames[1]["function"], "main", "{engine}: {found:#}");
    }
}

#[test]
fn a_loop_is_not_watched_to_its_end_and_that_is_said() {
    if !can_watch("a_loop_is_not_watched_to_its_end_and_that_is_said") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "loops", LOOPS, &["-g"]).expect("cc");
    for engine in engines() {
        let found = finding(dir.path(), engine, &[path(&program)], "stuck-output");
        assert_eq!(found["wrote"]["last"], false, "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["function"], "count", "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["line"], line(LOOPS, "writes"), "{engine}: {found:#}");
        let why = found["why"].as_str().expect("a sentence");
        assert!(why.contains("not every write was seen") && !why.contains("last written"), "{why}");
    }
}

#[test]
fn a_log_file_is_watched_once_something_waits_in_it() {
    if !can_watch("a_log_file_is_watched_once_something_waits_in_it") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "logs", LOGS, &["-g"]).expect("cc");
    for engine in engines() {
        let found = finding(dir.path(), engine, &[path(&program)], "lost-at-exit");
        assert!(found["path"].as_str().is_some_and(|path| path.ends_with("/log")), "{found:#}");
        assert_eq!(own(&found)[0]["function"], "main", "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["line"], line(LOGS, "/* last"), "{engine}: {found:#}");
        assert_eq!(found["wrote"]["last"], true, "{engine}: {found:#}");
    }
}

/// Rust, Go: a writer of the language's own.
const RUST: &str = r#"use std::{fs::File, io::{BufWriter, Write}, thread::sleep, time::Duration};

#[inline(never)]
fn report(out: &mut BufWriter<File>) {
    for step in 0..6 {
        writeln!(out, "step {step}").unwrap();
        sleep(Duration::from_millis(300));
    }
}

fn main() {
    let mut out = BufWriter::new(File::create("log").unwrap());
    report(&mut out); // calls
    sleep(Duration::from_secs(2));
}
"#;
const GO: &str = r#"package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

//go:noinline
func report(out *bufio.Writer) {
	for step := 0; step < 6; step++ {
		fmt.Fprintf(out, "step %d\n", step)
		time.Sleep(300 * time.Millisecond)
	}
}

func main() {
	file, _ := os.Create("log")
	report(bufio.NewWriter(file))
	time.Sleep(2 * time.Second)
}
"#;

#[test]
fn it_is_known_of_a_rust_program() {
    let name = "it_is_known_of_a_rust_program";
    if !has("rustc") || !can_watch(name) {
        return skip(name, "needs rustc and watchpoints");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("demo.rs"), RUST).expect("the source");
    let rustc = Command::new("rustc").args(["-g", "-O", "demo.rs"]).current_dir(dir.path()).output();
    assert!(rustc.is_ok_and(|made| made.status.success()), "rustc");
    for engine in engines() {
        let found = finding(dir.path(), engine, &["./demo"], "stuck-output");
        let functions: Vec<&str> =
            own(&found).iter().filter_map(|frame| frame["function"].as_str()).collect();
        assert_eq!(functions[..2], ["demo::report", "demo::main"], "{engine}: {found:#}");
        assert_eq!(own(&found)[1]["line"], line(RUST, "// calls"), "{engine}: {found:#}");
    }
}

#[test]
fn it_is_known_of_a_go_program() {
    let name = "it_is_known_of_a_go_program";
    if !has("go") || !can_watch(name) {
        return skip(name, "needs go and watchpoints");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("demo.go"), GO).expect("the source");
    let mut go = Command::new("go");
    go.args(["build", "-o", "demo", "demo.go"]).current_dir(dir.path()).env("GOFLAGS", "-mod=mod");
    let made = go.env("GOCACHE", dir.path().join("cache")).output().expect("go");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for engine in engines() {
        let found = finding(dir.path(), engine, &["./demo"], "stuck-output");
        let functions: Vec<&str> =
            own(&found).iter().filter_map(|frame| frame["function"].as_str()).collect();
        assert_eq!(functions, ["main.report", "main.main"], "{engine}: {found:#}");
    }
}

#[test]
fn it_is_known_of_what_a_shell_starts() {
    if !can_watch("it_is_known_of_what_a_shell_starts") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    let command = format!("{}; true", path(&program));
    // With eBPF the program may have written before its beginning is told of.
    let found = finding(dir.path(), "ptrace", &["sh", "-c", &command], "stuck-output");
    assert_eq!(own(&found)[0]["function"], "report", "{found:#}");
}

#[test]
fn who_has_no_privilege_reads_it_too() {
    let name = "who_has_no_privilege_reads_it_too";
    if !is_root() || !has("setpriv") || !can_watch(name) {
        return skip(name, "needs root, setpriv and watchpoints");
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse().is_ok_and(|level: i32| level > 2) {
        return skip(name, "perf_event_paranoid is above 2");
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("its mode");
    let program = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    let binary = dir.path().join("weir");
    fs::copy(common::WEIR, &binary).expect("a copy that everybody may execute");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&binary);
    command.args(["trace", "-q", "--json", "-", "--"]).arg(&program).current_dir(dir.path());
    let output = command
        .env("XDG_STATE_HOME", dir.path())
        .env("XDG_CACHE_HOME", dir.path())
        .output()
        .expect("setpriv");
    let written = text(&output.stdout);
    let why = format!("last written by report() at waits.c:{}", line(WAITS, "writes"));
    assert!(written.contains(&why), "{written}\n{}", text(&output.stderr));
}
