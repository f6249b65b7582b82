//! `weir run` names the writers of a Rust program that it does not reach, in one line.

mod common;

use std::path::Path;
use std::process::Output;

use common::programs::{self, PROGRAM, SOURCE};
use common::{disk_dir, run, skip, text};

/// Compiles a program; returns None, and notes a skip, without the compiler.
fn build(dir: &Path, name: &str, source: &str, flags: &[&str]) -> Option<String> {
    let (file, program) = (dir.join(format!("{name}.rs")), dir.join(name));
    std::fs::write(&file, source).unwrap();
    match programs::compile("rustc", &[flags, &["-o", PROGRAM, SOURCE]].concat(), &file, &program) {
        Ok(output) => assert!(output.status.success(), "{name}: {}", text(&output.stderr)),
        Err(_) => {
            skip(&format!("run_rust_writers: {name}"), "rustc is not here");
            return None;
        }
    }
    Some(program.to_str().unwrap().to_string())
}

fn errors(output: &Output) -> String {
    text(&output.stderr)
}

const LOG_WRITER: &str = "use std::io::Write;
fn main() {
    let mut log = std::io::BufWriter::new(std::fs::File::create(\"log\").unwrap());
    writeln!(log, \"hi\").unwrap();
}
";

/// The buffers of a stripped program share a sentence too.
#[test]
fn a_stripped_rust_program_is_commented_once() {
    let dir = disk_dir();
    for (name, flags, buffers) in [
        (
            "stripped",
            &["-O", "-Cstrip=symbols"][..],
            "a BufWriter, because the program has no debug information of types (-g), or standard output, because the \
             program has no symbols",
        ),
        ("symbols", &["-O"], "a BufWriter, because the program has no debug information of types (-g)"),
        ("debug", &["-O", "-g"], ""),
    ] {
        let Some(program) = build(dir.path(), name, LOG_WRITER, flags) else { return };
        let output = run(dir.path(), &["run", "--rescue", "--max-delay", "50ms", "--", &program]);
        let said = match buffers {
            "" => String::new(),
            _ => {
                format!("weir: --max-delay 50.0ms, --rescue: out of reach in this Rust program: {buffers}\n")
            }
        };
        assert_eq!((errors(&output), output.status.code()), (said, Some(0)), "{name}");
    }
}

/// Debug information without types does not help, nor types that lead to no file.
#[test]
fn writers_that_no_walker_finds_are_out_of_reach() {
    let dir = disk_dir();
    let boxed = LOG_WRITER.replace("std::io::BufWriter::new(", "std::io::BufWriter::new(Box::new(");
    let boxed = boxed.replace(".unwrap());", ".unwrap()) as Box<dyn Write>);");
    let untyped = "a BufWriter, because the program has no debug information of types (-g)";
    let other = "a BufWriter over Box<dyn Write> or another type than a file";
    for (name, flag, source, buffers) in [
        ("limited", "-Cdebuginfo=1", LOG_WRITER, untyped),
        ("lines", "-Cdebuginfo=line-tables-only", LOG_WRITER, untyped),
        ("boxed", "-g", &boxed, other),
    ] {
        let Some(program) = build(dir.path(), name, source, &[flag]) else { return };
        let output = run(dir.path(), &["run", "--rescue", "--", &program]);
        let said = format!("weir: --rescue: out of reach in this Rust program: {buffers}\n");
        assert_eq!((errors(&output), output.status.code()), (said, Some(0)), "{name}");
    }
}

/// Kills itself with bytes in two buffers. In the optimized program the debug information of the types of one crate refers to that of
/// another.
const KILLED: &str = r#"use std::io::{BufWriter, Write};
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let lines: u32 = words[1].parse().unwrap();
    let mut log = BufWriter::new(std::fs::File::create(&words[2]).unwrap());
    let mut out = BufWriter::new(std::io::stdout());
    for line in 0..lines {
        let text = format!("line {line:07} {}\n", "x".repeat((line % 80) as usize));
        out.write_all(text.as_bytes()).unwrap();
        log.write_all(text.as_bytes()).unwrap();
        if line + 1 == lines {
            unsafe { end() }
        }
    }
}
extern "C" {
    fn kill(pid: i32, signal: i32) -> i32;
    fn getpid() -> i32;
}
unsafe fn end() {
    kill(getpid(), 9);
}
"#;

#[test]
fn bytes_of_an_optimized_program_are_rescued() {
    let dir = disk_dir();
    for (name, flags) in [("plain", &["-g"][..]), ("optimized", &["-g", "-O"])] {
        let Some(program) = build(dir.path(), name, KILLED, flags) else { return };
        let output = run(dir.path(), &["run", "--rescue", "--", &program, "1000", "log"]);
        let bytes: usize = (0..1000).map(|line| "line 0000000 \n".len() + line % 80).sum();
        let log = std::fs::metadata(dir.path().join("log")).unwrap().len() as usize;
        assert_eq!((log, output.stdout.len()), (bytes, bytes), "{name}: {}", errors(&output));
    }
}
