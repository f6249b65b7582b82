//! Helpers of the tests of `weir trace`: the engines, compiled programs, and a traced run with its document.
#![allow(dead_code)] // not every test binary uses everything

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

use serde_json::Value;

use crate::common::programs::{self, PROGRAM, SOURCE};
use crate::common::{disk_dir, is_root, weir};

/// Returns the engines that record calls: ebpf only if this user may load programs into the kernel.
pub fn engines() -> Vec<&'static str> {
    if is_root() { vec!["ebpf", "ptrace"] } else { vec!["ptrace"] }
}

/// Runs `test` with each engine, all at the same time, each in a directory of its own.
pub fn for_each_engine(test: impl Fn(&'static str, &Path) + Sync) {
    thread::scope(|scope| {
        for engine in engines() {
            let test = &test;
            scope.spawn(move || test(engine, disk_dir().path()));
        }
    });
}

/// Runs `weir trace --json t.json OPTIONS… -- COMMAND…` in `dir` and returns its output and the document, or null if it
/// wrote none.
pub fn traced(dir: &Path, options: &[&str], command: &[&str]) -> (Output, Value) {
    let _absent = fs::remove_file(dir.join("t.json"));
    let mut weir = weir(dir, &[&["trace", "--json", "t.json"], options, &["--"], command].concat());
    let output = weir.env_remove("PYTHONUNBUFFERED").output().expect("weir starts");
    (output, document(dir))
}

/// Returns the verdict on a command of which each call is recorded, and the kinds of buffers in `unreadable`.
pub fn verdict(engine: &str, dir: &Path, command: &[&str]) -> (String, Vec<String>) {
    let (_, seen) = traced(dir, &["-q", "--exact", "--engine", engine], command);
    let buffers =
        list(&seen, "unreadable").iter().map(|one| one["buffers"].as_str().expect("text").to_string());
    (seen["verdict"].as_str().expect("a verdict").to_string(), buffers.collect())
}

/// Returns the document t.json in `dir`, or null if there is none.
pub fn document(dir: &Path) -> Value {
    let text = fs::read(dir.join("t.json")).ok();
    text.map_or(Value::Null, |text| serde_json::from_slice(&text).expect("it is JSON"))
}

/// Returns the list `name` of a document. Panics if it is absent.
pub fn list<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name].as_array().unwrap_or_else(|| panic!("{name}: {document}"))
}

/// Returns the first finding `id` of a document.
pub fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    list(document, "findings").iter().find(|finding| finding["id"] == id)
}

/// Compiles a C program with cc in `dir`. Returns None if the compiler fails.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compile_by("cc", dir, name, source, flags)
}

/// Compiles a C program with `compiler` in `dir`. Returns None if the compiler fails.
pub fn compile_by(compiler: &str, dir: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (program, file) = (dir.join(name), dir.join(name).with_extension("c"));
    fs::write(&file, source).expect("the source");
    let words = [&["-O1", "-D_GNU_SOURCE", "-o", PROGRAM, SOURCE], flags].concat();
    programs::compile(compiler, &words, &file, &program).ok()?.status.success().then_some(program)
}

/// Returns a program's path as a word of a command.
pub fn path(program: &Path) -> &str {
    program.to_str().expect("a name")
}
