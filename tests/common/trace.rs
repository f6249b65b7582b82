//! What tests of `weir trace` share: the engines, programs of C, and a run with the document that it leaves.
#![allow(dead_code)] // not every test binary uses everything

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{is_root, weir};

/// Those that see calls; ebpf only where this user may load programs into the kernel.
pub fn engines() -> Vec<&'static str> {
    if is_root() { vec!["ebpf", "ptrace"] } else { vec!["ptrace"] }
}

/// `weir trace --json t.json OPTIONS… -- COMMAND…` in `dir`: how it ended, and the document if it left one.
pub fn traced(dir: &Path, options: &[&str], command: &[&str]) -> (Output, Value) {
    let _before = fs::remove_file(dir.join("t.json"));
    let mut weir = weir(dir, &[&["trace", "--json", "t.json"], options, &["--"], command].concat());
    let output = weir.env_remove("PYTHONUNBUFFERED").output().expect("weir starts");
    (output, document(dir))
}

/// What a run has left in `dir`; null if it left none.
pub fn document(dir: &Path) -> Value {
    let text = fs::read(dir.join("t.json")).ok();
    text.map_or(Value::Null, |text| serde_json::from_slice(&text).expect("it is JSON"))
}

/// A list of the document.
pub fn list<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name].as_array().unwrap_or_else(|| panic!("{name}: {document}"))
}

/// The finding of this name, if there is one.
pub fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    list(document, "findings").iter().find(|finding| finding["id"] == id)
}

/// A program of C in `dir`; None where the compiler cannot make it.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compile_by("cc", dir, name, source, flags)
}

/// The same by this compiler.
pub fn compile_by(compiler: &str, dir: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (program, file) = (dir.join(name), dir.join(name).with_extension("c"));
    fs::write(&file, source).expect("the source");
    let mut command = Command::new(compiler);
    let command = command.args(["-O1", "-D_GNU_SOURCE", "-o"]).arg(&program).arg(&file).args(flags);
    command.output().ok()?.status.success().then_some(program)
}

/// As a word of a command.
pub fn path(program: &Path) -> &str {
    program.to_str().expect("a name")
}
