//! `weir trace` reports the call site that last wrote to a buffer with pending bytes, with each engine and for each kind
//! of program.

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
use common::programs::{self, PROGRAM, SOURCE};
use common::{disk_dir, has, is_root, skip, text, weir};
use serde_json::Value;
use trace::{compile, compile_by, engines, for_each_engine, path};

/// One function writes, another sleeps; then the bytes are lost.
const WAITS: &str = r#"#include <stdio.h>
#include <unistd.h>

static void __attribute__((noinline)) report(int number)
{
    printf("ready %d.", number); /* writes */
}

static void __attribute__((noinline)) idle(void)
{
    sleep(3);
}

int main(void)
{
    report(7); /* calls */
    idle();
    _exit(3);
}
"#;

/// Writes in a loop that outlasts the watchpoint.
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

/// Writes a line to a log file every 300 ms.
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

/// Returns [`WAITS`] with a sleep before it writes, for tests of the words "last written". weir removes the watchpoints of a busy program,
/// and beside other load a program can look busy while it starts.
fn settled() -> String {
    WAITS.replace("report(7);", "sleep(1), report(7);")
}

#[test]
fn with_debug_information_the_call_site_has_function_file_and_line() {
    if !can_watch("with_debug_information_the_call_site_has_function_file_and_line") {
        return;
    }
    for_each_engine(|engine, dir| {
        let program = compile(dir, "waits", &settled(), &["-g"]).expect("cc");
        for id in ["stuck-output", "lost-at-exit"] {
            let found = finding(dir, engine, &[path(&program)], id);
            let frames = own(&found);
            let function_and_line = |frame: &Value| (frame["function"].clone(), frame["line"].clone());
            assert_eq!(
                function_and_line(frames[0]),
                ("report".into(), line(WAITS, "writes").into()),
                "{engine}: {found:#}"
            );
            assert_eq!(
                function_and_line(frames[1]),
                ("main".into(), line(WAITS, "calls").into()),
                "{engine}: {found:#}"
            );
            assert!(frames[0]["file"].as_str().is_some_and(|file| file.ends_with("waits.c")));
            assert_eq!(found["wrote"]["last"], true, "{engine}: {found:#}");
            let sentence = format!(
                "last written by report() at waits.c:{}, called from main() at waits.c:{}.",
                line(WAITS, "writes"),
                line(WAITS, "calls")
            );
            assert!(found["why"].as_str().is_some_and(|why| why.ends_with(&sentence)), "{engine}: {found:#}");
        }
    });
}

#[test]
fn the_report_names_the_call_site() {
    if !can_watch("the_report_names_the_call_site") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", &settled(), &["-g"]).expect("cc");
    let output = weir(dir.path(), &["trace", "--", path(&program)]).output().expect("weir");
    let report = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence =
        format!("last written by report() at waits.c:{}, called from main()", line(WAITS, "writes"));
    assert!(report.contains(&sentence), "{report}");
}

#[test]
fn without_line_numbers_the_call_site_is_the_function() {
    if !can_watch("without_line_numbers_the_call_site_is_the_function") {
        return;
    }
    for_each_engine(|engine, dir| {
        let program = compile(dir, "waits", &settled(), &[]).expect("cc");
        let found = finding(dir, engine, &[path(&program)], "stuck-output");
        let why = found["why"].as_str().expect("a sentence");
        assert!(
            why.ends_with("last written by report() in waits, called from main() in waits."),
            "{engine}: {why}"
        );
    });
}

#[test]
fn without_symbols_the_call_site_is_the_address() {
    if !can_watch("without_symbols_the_call_site_is_the_address") {
        return;
    }
    for_each_engine(|engine, dir| {
        let full = compile(dir, "waits", &settled(), &["-g"]).expect("cc");
        let bare = dir.join("bare");
        let strip = Command::new("strip").arg("-o").arg(&bare).arg(&full).status().expect("strip");
        assert!(strip.success());
        let found = finding(dir, engine, &[path(&bare)], "stuck-output");
        let frames = own(&found);
        assert!(frames.len() >= 2 && frames.iter().all(|frame| frame["function"].is_null()), "{found:#}");
        // The unstripped program has the same addresses.
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
    });
}

#[test]
fn a_static_program_has_a_call_site() {
    let name = "a_static_program_has_a_call_site";
    if !can_watch(name) {
        return;
    }
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "waits", WAITS, &["-g", "-static"]) else {
        return skip(name, "cc makes no static programs");
    };
    assert_call_site(dir.path(), &program);
}

/// musl has no unwind tables, so its callers are unknown. weir reports either no caller or the right ones.
#[test]
fn a_musl_program_has_no_wrong_call_site() {
    let name = "a_musl_program_has_no_wrong_call_site";
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
            let frames = found["wrote"]["frames"].as_array().expect("a call site in the library");
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

fn assert_call_site(dir: &Path, program: &Path) {
    for engine in engines() {
        let found = finding(dir, engine, &[path(program)], "stuck-output");
        let frames = own(&found);
        assert_eq!(frames[0]["function"], "report", "{engine}: {found:#}");
        assert_eq!(frames[0]["line"], line(WAITS, "writes"), "{engine}: {found:#}");
        assert_eq!(frames[1]["function"], "main", "{engine}: {found:#}");
    }
}

#[test]
fn the_report_says_when_a_loop_outlasts_the_watchpoint() {
    if !can_watch("the_report_says_when_a_loop_outlasts_the_watchpoint") {
        return;
    }
    for_each_engine(|engine, dir| {
        let program = compile(dir, "loops", LOOPS, &["-g"]).expect("cc");
        let found = finding(dir, engine, &[path(&program)], "stuck-output");
        assert_eq!(found["wrote"]["last"], false, "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["function"], "count", "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["line"], line(LOOPS, "writes"), "{engine}: {found:#}");
        let why = found["why"].as_str().expect("a sentence");
        assert!(why.contains("perhaps elsewhere too") && !why.contains("last written"), "{why}");
    });
}

#[test]
fn a_log_file_is_watched_once_it_has_pending_bytes() {
    if !can_watch("a_log_file_is_watched_once_it_has_pending_bytes") {
        return;
    }
    for_each_engine(|engine, dir| {
        let program = compile(dir, "logs", LOGS, &["-g"]).expect("cc");
        let found = finding(dir, engine, &[path(&program)], "lost-at-exit");
        assert!(found["path"].as_str().is_some_and(|path| path.ends_with("/log")), "{found:#}");
        assert_eq!(own(&found)[0]["function"], "main", "{engine}: {found:#}");
        assert_eq!(own(&found)[0]["line"], line(LOGS, "/* last"), "{engine}: {found:#}");
        assert_eq!(found["wrote"]["last"], true, "{engine}: {found:#}");
    });
}

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
fn a_rust_program_has_a_call_site() {
    let name = "a_rust_program_has_a_call_site";
    if !has("rustc") || !can_watch(name) {
        return skip(name, "needs rustc and watchpoints");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("demo.rs"), RUST).expect("the source");
    let (file, program) = (dir.path().join("demo.rs"), dir.path().join("demo"));
    let made = programs::compile("rustc", &["-g", "-O", "-o", PROGRAM, SOURCE], &file, &program);
    assert!(made.is_ok_and(|made| made.status.success()), "rustc");
    for engine in engines() {
        let found = finding(dir.path(), engine, &["./demo"], "stuck-output");
        let functions: Vec<&str> =
            own(&found).iter().filter_map(|frame| frame["function"].as_str()).collect();
        assert_eq!(functions[..2], ["demo::report", "demo::main"], "{engine}: {found:#}");
        assert_eq!(own(&found)[1]["line"], line(RUST, "// calls"), "{engine}: {found:#}");
    }
}

#[test]
fn a_go_program_has_a_call_site() {
    let name = "a_go_program_has_a_call_site";
    if !has("go") || !can_watch(name) {
        return skip(name, "needs go and watchpoints");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("demo.go"), GO).expect("the source");
    let (file, program) = (dir.path().join("demo.go"), dir.path().join("demo"));
    let made = programs::compile("go", &["build", "-o", PROGRAM, SOURCE], &file, &program).expect("go");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for engine in engines() {
        let found = finding(dir.path(), engine, &["./demo"], "stuck-output");
        let functions: Vec<&str> =
            own(&found).iter().filter_map(|frame| frame["function"].as_str()).collect();
        assert_eq!(functions, ["main.report", "main.main"], "{engine}: {found:#}");
    }
}

#[test]
fn a_child_of_a_shell_has_a_call_site() {
    if !can_watch("a_child_of_a_shell_has_a_call_site") {
        return;
    }
    let dir = disk_dir();
    let program = compile(dir.path(), "waits", WAITS, &["-g"]).expect("cc");
    let command = format!("{}; true", path(&program));
    // With eBPF the program may write before weir receives the event of its start.
    let found = finding(dir.path(), "ptrace", &["sh", "-c", &command], "stuck-output");
    assert_eq!(own(&found)[0]["function"], "report", "{found:#}");
}

#[test]
fn call_sites_need_no_privilege() {
    let name = "call_sites_need_no_privilege";
    if !is_root() || !has("setpriv") || !can_watch(name) {
        return skip(name, "needs root, setpriv and watchpoints");
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse().is_ok_and(|level: i32| level > 2) {
        return skip(name, "perf_event_paranoid is above 2");
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("chmod");
    let program = compile(dir.path(), "waits", &settled(), &["-g"]).expect("cc");
    let binary = dir.path().join("weir");
    programs::copy_program(common::WEIR, &binary);
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
