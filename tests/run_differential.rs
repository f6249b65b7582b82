//! Ordinary commands, alone and under `weir run --coalesce --max-delay 5ms --rescue`, have the same output, exit status
//! and files, and leave the same rest of standard input.
//!
//! WEIR_DIFFERENTIAL=SUBSTRING runs only the commands that contain it.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{WEIR, disk_dir};

const OPTIONS: [&str; 7] = ["run", "--quiet", "--coalesce", "--max-delay", "5ms", "--rescue", "--"];
const COMMANDS: &str = include_str!("differential/commands.sh");
/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// The observable result of a command.
#[derive(Debug, PartialEq, Eq)]
struct CommandResult {
    status: String,
    output: String,
    errors: String,
    files: BTreeMap<String, Vec<u8>>,
    /// Offset of standard input, a file, at the end.
    input_offset: u64,
}

/// Writes the files that every command finds in its directory.
fn write_files(dir: &Path) {
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
    write("in", &(1..=3000).map(|n| format!("{n}\n")).collect::<String>());
    write("words", "banana\napple\ncherry\napple\ndate\nelderberry\nfig\n");
    write("lines.csv", "a,1,x\nb,2,y\nc,3,z\n");
    write("lines.pairs", "a b\nb c\na c\n");
    write("text", &"The quick brown fox jumps over\nthe lazy dog, and an apple\nfalls.\n\n".repeat(5));
    write(
        "prog.c",
        "#include <stdio.h>\nint main(int n, char **v)\n{\n    (void)v;\n    for (int i = 0; i < 9; i++)\n        printf(\"%d %d\\n\", n, i);\n    return 0;\n}\n",
    );
    write("broken.c", "int main(void) { return nothing; }\n");
    write("rules", "all: a.o b.o\n\t@cat a.o b.o\n%.o:\n\t@echo made $@ | tee $@ > /dev/null\n");
    write(
        "script.sh",
        "echo one\nread a\nthis is read\necho \"$a\"\ncat <<X\nhere\nX\nhead -n 1\nlast line\n",
    );
    write("ask.tcl", "gets stdin a\nputs $a\nputs [exec head -n 1 << x]\n");
    write("sums", "1+2\n3*4\n");
    fs::create_dir(dir.join("tree")).expect("a folder");
    write("tree/a.txt", "needle\n");
    write("tree/b.txt", "hay\n");
    write("tree/c", "hay needle\n");
}

fn shell(under_weir: bool) -> Command {
    if !under_weir {
        return Command::new("sh");
    }
    let mut command = Command::new(WEIR);
    command.args(OPTIONS).arg("sh");
    command
}

/// Runs a shell command in a directory of its own.
fn run(line: &str, under_weir: bool) -> CommandResult {
    let dir = disk_dir();
    write_files(dir.path());
    let mut input = File::open(dir.path().join("in")).expect("the input");
    let (out, errors) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
    let mut command = shell(under_weir);
    command.args(["-c", line]).current_dir(dir.path()).env_remove("PYTHONUNBUFFERED");
    // Variables of the make that runs the tests: they change a make in the command.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
        command.env_remove(name);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "n").env(format!("GIT_{role}_EMAIL"), "e");
        command.env(format!("GIT_{role}_DATE"), "2020-01-01T00:00:00Z");
    }
    command.env("HOME", dir.path()).env("LC_ALL", "C").env("XDG_CACHE_HOME", "/nonexistent");
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", dir.path().parent().expect("a parent"));
    command.stdin(input.try_clone().expect("a descriptor"));
    command.stdout(Stdio::from(out.try_clone().expect("a descriptor")));
    command.stderr(Stdio::from(errors.try_clone().expect("a descriptor")));
    let status = finish(command);
    let input_offset = input.stream_position().expect("an offset");
    CommandResult {
        status,
        output: contents(out),
        errors: contents(errors),
        files: files(dir.path(), dir.path()),
        input_offset,
    }
}

fn finish(mut command: Command) -> String {
    let mut child = command.spawn().expect("a command");
    let begun = Instant::now();
    loop {
        match child.try_wait().expect("a child") {
            Some(status) => return format!("{:?}", exit_code(status)),
            None if begun.elapsed() > LIMIT => {
                child.kill().expect("a child");
                child.wait().expect("a child");
                return "hangs".into();
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Returns the status as a shell reports it: 128 + N for signal N, as weir does too.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn contents(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a temporary file");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the files below a directory by their path, without those whose contents depend on the time.
fn files(dir: &Path, root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("a path below the root").to_string_lossy().into_owned();
        if path.is_symlink() {
            found.insert(name, path.read_link().expect("a link").to_string_lossy().into_owned().into_bytes());
        } else if path.is_dir() {
            found.extend(files(&path, root));
        } else if !name.starts_with(".git/") && !name.ends_with(".tgz") && !name.starts_with("tmp.") {
            found.insert(name, fs::read(&path).expect("a file"));
        }
    }
    found
}

/// Describes the differences in a few lines.
fn difference(line: &str, alone: &CommandResult, under_weir: &CommandResult) -> String {
    let mut text = format!("  {line}\n");
    for (what, alone, under_weir) in [
        ("status", alone.status.clone(), under_weir.status.clone()),
        ("output", short(&alone.output), short(&under_weir.output)),
        ("errors", short(&alone.errors), short(&under_weir.errors)),
        ("offset of the input", alone.input_offset.to_string(), under_weir.input_offset.to_string()),
    ] {
        if alone != under_weir {
            text += &format!("    {what}: {alone:?}, under weir {under_weir:?}\n");
        }
    }
    let names: Vec<&String> = alone.files.keys().chain(under_weir.files.keys()).collect();
    let differ = names.into_iter().filter(|name| alone.files.get(*name) != under_weir.files.get(*name));
    let differ: std::collections::BTreeSet<&String> = differ.collect();
    if !differ.is_empty() {
        text += &format!("    files: {differ:?}\n");
    }
    text
}

fn short(text: &str) -> String {
    let end = text.char_indices().nth(400).map_or(text.len(), |(at, _)| at);
    format!("{} ({} bytes)", &text[..end], text.len())
}

/// Returns the difference that weir makes, if any. A command that differs between two runs alone is not a valid test.
fn compare(line: &str) -> Option<String> {
    let (alone, under_weir) = (run(line, false), run(line, true));
    if alone == under_weir {
        return None;
    }
    if run(line, false) != alone {
        return Some(format!("  {line}\n    differs from itself\n"));
    }
    Some(difference(line, &alone, &under_weir))
}

#[test]
fn ordinary_commands_do_the_same_under_weir() {
    let chosen = std::env::var("WEIR_DIFFERENTIAL").unwrap_or_default();
    let lines = COMMANDS.lines().filter(|line| !line.starts_with('#') && line.contains(&chosen));
    let lines: Vec<&str> = lines.collect();
    let (next, bad) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(text) = compare(line) {
                        bad.lock().expect("no run panics").push(text);
                    }
                }
            });
        }
    });
    let bad = bad.into_inner().expect("no run panics");
    let same = lines.len() - bad.len();
    let text = format!("\nrun differential: {same} of {} commands the same\n", lines.len());
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
    assert!(bad.is_empty(), "different under weir:\n{}", bad.concat());
    assert!(!chosen.is_empty() || lines.len() >= 200, "only {} commands", lines.len());
}
