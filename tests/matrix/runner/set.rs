//! Builds the programs of programs.toml and lists the cells of the matrix.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::common::programs::has_libcxx;

/// A `[[program]]` of programs.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramEntry {
    name: String,
    /// The program that supplies the fields that this one leaves out.
    like: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    file: Option<String>,
    text: Option<String>,
    build: Option<String>,
    run: Option<String>,
    #[serde(default)]
    filter: bool,
    modes: Option<Vec<String>>,
    sinks: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ProgramList {
    program: Vec<ProgramEntry>,
}

/// The wanted mode of standard output, or kill: rescue after SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Line,
    None,
    Delay,
    Kill,
    Force,
}

/// A built program in a directory of its own.
#[derive(Debug, Clone)]
pub struct Program {
    pub name: String,
    pub dir: PathBuf,
    pub run: String,
    pub filter: bool,
}

/// A cell of the matrix: a program, a wanted mode, and a sink.
#[derive(Debug, Clone)]
pub struct Cell {
    pub program: Program,
    pub mode: Mode,
    /// The sink is a file; otherwise a pipe.
    pub file: bool,
}

impl Cell {
    /// Returns the name of the cell: program, mode and sink.
    pub fn name(&self) -> String {
        format!("{} {}", self.program.name, self.mode_and_sink())
    }

    pub fn mode_and_sink(&self) -> String {
        let sink = if self.file { "file" } else { "pipe" };
        format!("{:?} {sink}", self.mode)
    }
}

fn mode(word: &str) -> Mode {
    match word {
        "line" => Mode::Line,
        "none" => Mode::None,
        "delay" => Mode::Delay,
        "kill" => Mode::Kill,
        "force" => Mode::Force,
        _ => panic!("programs.toml: mode {word}"),
    }
}

/// Builds every program in a directory of its own in `dir`. Calls `missing` with the name and the tool of each program
/// that cannot be built on this machine.
pub fn cells(dir: &Path, mut missing: impl FnMut(&str, &str)) -> Vec<Cell> {
    let all: ProgramList = toml::from_str(include_str!("../programs.toml")).expect("programs.toml");
    let mut cells = Vec::new();
    for (number, own) in all.program.iter().enumerate() {
        let like = own.like.as_ref().and_then(|name| all.program.iter().find(|one| one.name == *name));
        let other = |of: fn(&ProgramEntry) -> Option<String>| of(own).or_else(|| like.and_then(of));
        if let Some(tool) = own.needs.iter().find(|tool| !is_installed(tool)) {
            missing(&own.name, tool);
            continue;
        }
        let program = Program {
            name: own.name.clone(),
            dir: dir.join(number.to_string()),
            run: other(|one| one.run.clone()).expect("programs.toml: run"),
            filter: own.filter,
        };
        std::fs::create_dir(&program.dir).expect("a new directory");
        if let (Some(file), Some(text)) = (other(|one| one.file.clone()), other(|one| one.text.clone())) {
            std::fs::write(program.dir.join(file), text).expect("the program's text");
        }
        if let Some(build) = other(|one| one.build.clone()) {
            make(&program.dir, &build);
        }
        let list = |of: fn(&ProgramEntry) -> &Option<Vec<String>>| {
            of(own).clone().or_else(|| like.and_then(|like| of(like).clone())).unwrap_or_default()
        };
        for word in list(|one| &one.modes) {
            for sink in list(|one| &one.sinks) {
                cells.push(Cell { program: program.clone(), mode: mode(&word), file: sink == "file" });
            }
        }
    }
    cells
}

/// `libc++` stands for the library and its headers.
fn is_installed(tool: &str) -> bool {
    match tool {
        "libc++" => has_libcxx(),
        _ => weir_sys::command::find(tool).is_some(),
    }
}

fn make(dir: &Path, command: &str) {
    let output = Command::new("sh").args(["-c", command]).current_dir(dir).env("GO111MODULE", "off").output();
    let output = output.expect("sh starts");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}
