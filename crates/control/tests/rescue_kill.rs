//! With --rescue each complete line of a program that is killed at any moment is in its output, once and in order.
//!
//! WEIR_FOLLOW_FULL=1 kills each program 200 times; a larger number is the number of kills.

mod common;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{
    BUILDS, Build, CPP_BUILDS, GO_BUILDS, LIBCXX_BUILDS, OCAML_BUILDS, RUST_BUILDS, command_of, compile,
    folder, programs::has_libcxx, skip, supervised, text, until,
};

/// One run: the command, the kind of its output, and whether weir bounds the delay too.
struct Case {
    words: Vec<String>,
    to_file: bool,
    delay: bool,
}

fn kills_per_program() -> u64 {
    let full = std::env::var("WEIR_FOLLOW_FULL").ok();
    full.map_or(12, |number| number.parse().ok().filter(|number| *number > 1).unwrap_or(200))
}

/// Draws a number below `below` from a sequence that is the same in each run.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % below
}

fn complete(counter: &Path) -> u64 {
    let bytes = std::fs::read(counter).expect("the counter");
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// Runs a program, kills it, and returns the number of complete lines and its output.
fn run_and_kill(case: &Case, folder: &Path, wait: Duration) -> (u64, Vec<u8>) {
    let (counter, out) = (folder.join("counter"), folder.join("out"));
    std::fs::write(&counter, [0; 8]).expect("the counter");
    let options: &[&str] = if case.delay { &["--rescue", "--max-delay", "1"] } else { &["--rescue"] };
    let mut words = case.words.clone();
    words.insert(words.len() - 1, text(&counter).to_string());
    let mut command: Command = supervised(options, &words);
    command.current_dir(folder).stdin(Stdio::null());
    match case.to_file {
        true => command.stdout(File::create(&out).expect("the output")),
        false => command.stdout(Stdio::piped()),
    };
    let mut weir = command.spawn().expect("weir starts");
    let reader = weir.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        })
    });
    until("its first line", || complete(&counter) > 0);
    std::thread::sleep(wait);
    let pid = command_of(&weir).expect("the command");
    // SAFETY: a signal to a process that weir has not waited for.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    assert_eq!(weir.wait().expect("weir's end").code(), Some(137));
    let bytes = match reader {
        Some(reader) => reader.join().expect("a thread").expect("the output"),
        None => std::fs::read(&out).expect("the output"),
    };
    (complete(&counter), bytes)
}

/// Checks that each complete line is in the output, once and in order. The last line may be cut off, or complete but
/// not yet counted.
fn check(what: &str, complete: u64, output: &[u8]) {
    let text = String::from_utf8_lossy(output);
    let mut next = 0;
    for line in text.split_inclusive('\n') {
        let number = line.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        let whole = line.ends_with('\n');
        assert!(number == Some(next) || !whole, "{what}: {line:?} where line {next} should be");
        next += u64::from(whole);
    }
    assert!(next >= complete, "{what}: {complete} lines were complete, {next} are there");
    assert!(next <= complete + 1, "{what}: {complete} lines were complete, {next} are there");
}

fn kill_at_many_moments(name: &str, program: Vec<String>) {
    let folder = folder();
    let mut state = 20261121 + name.len() as u64;
    for kill in 0..kills_per_program() {
        let every = ["0", "50", "7"][kill as usize % 3];
        let words = program.iter().cloned().chain([every.to_string()]).collect();
        let case = Case { words, to_file: kill % 2 == 0, delay: kill % 4 == 1 };
        let wait = Duration::from_micros(draw(&mut state, 20_000));
        let (complete, output) = run_and_kill(&case, folder.path(), wait);
        let output_kind = if case.to_file { "file" } else { "pipe" };
        check(&format!("{name}, {output_kind}, pause {every}, kill {kill} ({wait:?})"), complete, &output);
    }
}

fn kill_compiled_program(build: Build) {
    let folder = folder();
    let source = match build.compiler {
        "g++" | "clang++" => "numbers.cc",
        "rustc" => "numbers.rs",
        "go" => "numbers.go",
        "ocamlopt" | "ocamlc" => "numbers.ml",
        _ => "numbers.c",
    };
    if let Some(program) = compile("rescue_kill", build, source, folder.path()) {
        kill_at_many_moments(build.name, vec![text(&program).to_string()]);
    }
}

#[test]
fn glibc() {
    kill_compiled_program(BUILDS[0]);
}

#[test]
fn glibc_static() {
    kill_compiled_program(BUILDS[1]);
}

#[test]
fn glibc_stripped() {
    kill_compiled_program(BUILDS[2]);
}

#[test]
fn musl() {
    kill_compiled_program(BUILDS[3]);
}

#[test]
fn cpp() {
    kill_compiled_program(CPP_BUILDS[0]);
}

#[test]
fn cpp_stripped() {
    kill_compiled_program(CPP_BUILDS[2]);
}

#[test]
fn libcxx() {
    kill_libcxx_program(LIBCXX_BUILDS[0]);
}

#[test]
fn libcxx_stripped() {
    kill_libcxx_program(LIBCXX_BUILDS[1]);
}

fn kill_libcxx_program(build: Build) {
    match has_libcxx() {
        true => kill_compiled_program(build),
        false => skip("rescue_kill", "there is no clang++ with libc++"),
    }
}

#[test]
fn rust() {
    kill_compiled_program(RUST_BUILDS[0]);
}

#[test]
fn ocaml() {
    kill_compiled_program(OCAML_BUILDS[0]);
}

#[test]
fn ocaml_bytecode() {
    kill_compiled_program(OCAML_BUILDS[1]);
}

/// With one processor for the goroutines, the one that writes waits for it after its calls.
#[test]
fn go() {
    kill_go_program(GO_BUILDS[0], &[("1", "100", true), ("1", "100", false)]);
}

#[test]
fn go_stripped() {
    kill_go_program(GO_BUILDS[1], &[("2", "1", true), ("4", "100", false)]);
}

/// Kills a program with some values of GOMAXPROCS and GOGC, with or without other goroutines.
fn kill_go_program(build: Build, schedules: &[(&str, &str, bool)]) {
    let folder = folder();
    let Some(program) = compile("rescue_kill", build, "numbers.go", folder.path()) else { return };
    for (processors, collection, is_busy) in schedules {
        let settings = [format!("GOMAXPROCS={processors}"), format!("GOGC={collection}")];
        let name = format!("{} {} {} {is_busy}", build.name, settings[0], settings[1]);
        let mut words = vec!["/usr/bin/env".to_string()];
        words.extend(settings);
        words.push(text(&program).to_string());
        words.extend(is_busy.then(|| "busy".to_string()));
        kill_at_many_moments(&name, words);
    }
}

#[test]
fn cpython() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/numbers.py");
    kill_at_many_moments("cpython", vec![common::python(), text(&script).to_string()]);
}
