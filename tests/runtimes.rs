//! The abilities of weir for the runtimes of Debian 11, 12, 13 and sid, each in a root directory of its own. Prints a table
//! and writes target/runtimes.json. Part of `make test-all`. Needs root, mmdebstrap(1) and Debian's packages.

#[path = "runtimes/abilities.rs"]
mod abilities;
mod common;
#[path = "runtimes/roots.rs"]
mod roots;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use abilities::{ABILITIES, Case, below, inside};
use roots::{RELEASES, Release};

/// A runtime of a release, and what weir is to do with it.
struct Runtime {
    name: &'static str,
    /// Its interpreter or compiler in /usr/bin. A release without it has no row.
    program: &'static str,
    /// A shell command that prints its version, perhaps among other words.
    version: &'static str,
    /// The file of tests/runtimes that it runs or compiles.
    source: &'static str,
    /// The options of a compiler; None for an interpreter.
    compiles: Option<&'static [&'static str]>,
    /// weir reads the buffers.
    is_readable: bool,
}

const fn interpreter(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
) -> Runtime {
    Runtime { name, program, version, source, compiles: None, is_readable: true }
}

const fn compiler(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
    options: &'static [&'static str],
) -> Runtime {
    Runtime { name, program, version, source, compiles: Some(options), is_readable: true }
}

const GLIBC: &str = "/lib/$(uname -m)-linux-gnu/libc.so.6";
const MUSL: &str = "/lib/ld-musl-$(uname -m).so.1 2>&1";
/// The folder of libc.so in releases whose /lib is not /usr/lib. Without it libc.a is linked.
const MUSL_DYNAMIC: &[&str] = &["-O2", "-L/lib/x86_64-linux-musl", "-L/lib/aarch64-linux-musl"];
const TCL: &str = "echo 'puts [info patchlevel]' | ";

const RUNTIMES: &[Runtime] = &[
    compiler("glibc", "gcc", GLIBC, "program.c", &["-O2"]),
    compiler("glibc, static", "gcc", GLIBC, "program.c", &["-O2", "-static"]),
    compiler("musl", "musl-gcc", MUSL, "program.c", MUSL_DYNAMIC),
    compiler("musl, static", "musl-gcc", MUSL, "program.c", &["-O2", "-static"]),
    compiler("libstdc++", "g++", "g++ -dumpfullversion", "program.cc", &["-O2"]),
    compiler("libstdc++, static", "g++", "g++ -dumpfullversion", "program.cc", &["-O2", "-static"]),
    interpreter("CPython", "python3", "python3 --version", "program.py"),
    interpreter("CPython", "python3.13", "python3.13 --version", "program.py"),
    interpreter("CPython", "python3.15", "python3.15 --version", "program.py"),
    Runtime {
        is_readable: false,
        ..interpreter("PyPy", "pypy3", "pypy3 --version | tail -n 1", "program.py")
    },
    interpreter("Ruby", "ruby", "ruby --version", "program.rb"),
    interpreter("Ruby", "ruby3.4", "ruby3.4 --version", "program.rb"),
    interpreter("Perl", "perl", "perl -e 'printf \"%vd\", $^V'", "program.pl"),
    interpreter("Lua", "lua5.3", "lua5.3 -v", "program.lua"),
    interpreter("Lua", "lua5.4", "lua5.4 -v", "program.lua"),
    interpreter("Tcl", "tclsh8.6", TCL, "program.tcl"),
    interpreter("Tcl", "tclsh9.0", TCL, "program.tcl"),
    interpreter("Tcl", "tclsh9.1", TCL, "program.tcl"),
];

/// Versions that no release of Debian has, with the reason why they have no row.
const NOT_TRIED: &[(&str, &str)] = &[
    (
        "CPython 3.10, 3.12",
        "in no release of Debian; tests/python.rs of weir-walkers tries the python3 of this machine",
    ),
    ("CPython, free-threaded", "in no release of Debian; weir does not read it and says so"),
    ("Ruby 3.0, 3.2", "in no release of Debian; laid out as Ruby 3.1 and 3.3"),
    (
        "Go, Rust",
        "their compilers take a gigabyte a release; tests/go.rs and tests/rust.rs use those of this machine",
    ),
];

/// One row of the table.
struct Row {
    release: &'static str,
    runtime: &'static str,
    version: String,
    abilities: [bool; 5],
    is_readable: bool,
}

/// Returns the first word with a digit and a dot, the version in the output of a command.
fn version(root: &Path, runtime: &Runtime) -> String {
    let command =
        if runtime.version == TCL { format!("{TCL}{}", runtime.program) } else { runtime.version.into() };
    let output = inside(root, "/").args(["sh", "-c", &command]).output().expect("unshare starts");
    let text = common::text(&output.stdout);
    let is_version =
        |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    let words =
        text.split(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ')' | ',' | '-' | '+'));
    let mut versions = words.map(|word| word.trim_end_matches('.')).filter(is_version);
    versions.next().unwrap_or("unknown").into()
}

/// Compiles the source if the runtime is a compiler. Returns the command that runs the program.
fn command(root: &Path, runtime: &Runtime, dir: &str) -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runtimes").join(runtime.source);
    fs::copy(source, below(root, dir).join(runtime.source)).expect("the source is copied");
    let source = format!("{dir}/{}", runtime.source);
    let Some(options) = runtime.compiles else { return vec![runtime.program.into(), source] };
    let program = format!("{dir}/program");
    let mut compiler = inside(root, dir);
    // musl-gcc calls cc, which only the configuration of a package would make.
    let output = compiler
        .args(["env", "REALGCC=gcc", runtime.program])
        .args(options)
        .args(["-o", &program, &source])
        .output();
    let output = output.expect("unshare starts");
    assert!(output.status.success(), "{} {options:?}: {}", runtime.program, common::text(&output.stderr));
    vec![program]
}

/// Tries all runtimes of a release that its root directory has.
fn rows(release: &'static Release, root: &Path, weir: &Path) -> Vec<Row> {
    let weir_inside = below(root, "/weir");
    let _ = fs::remove_file(&weir_inside);
    common::programs::copy_program(weir, &weir_inside);
    let mut rows = Vec::new();
    for (index, runtime) in RUNTIMES.iter().enumerate() {
        if !below(root, "/usr/bin").join(runtime.program).exists() {
            continue;
        }
        let dir = format!("/tmp/runtime-{index}");
        let _ = fs::remove_dir_all(below(root, &dir));
        fs::create_dir_all(below(root, &dir)).expect("mkdir");
        let command = command(root, runtime, &dir);
        let abilities = Case { weir, root, dir, command }.abilities();
        let (version, is_readable) = (version(root, runtime), runtime.is_readable);
        rows.push(Row { release: release.suite, runtime: runtime.name, version, abilities, is_readable });
        print_row(rows.last().expect("a row"));
    }
    rows
}

fn print_row(row: &Row) {
    let marks = row.abilities.map(|ability| format!("{:9}", if ability { "yes" } else { "no" }));
    print(&format!("{:10}{:20}{:14}{}", row.release, row.runtime, row.version, marks.concat()));
}

/// Prints a line. println! is captured by the test harness, and shown for failed tests only.
fn print(line: &str) {
    let line = format!("{}\n", line.trim_end());
    std::io::stdout().write_all(line.as_bytes()).expect("standard output");
}

/// Writes the table into the target directory, beside the folder of the root directories.
fn write(target: &Path, rows: &[Row], skipped: &[(String, String)]) {
    let row = |row: &Row| {
        let abilities = ABILITIES.iter().zip(row.abilities).map(|(name, has)| (name.to_string(), json!(has)));
        let names = [("release", row.release), ("runtime", row.runtime), ("version", &row.version)];
        let names = names.map(|(name, value)| (name.to_string(), json!(value)));
        serde_json::Value::Object(names.into_iter().chain(abilities).collect())
    };
    let skipped: Vec<_> = skipped.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect();
    let document = json!({
        "schema": "weir-runtimes/1", "rows": rows.iter().map(row).collect::<Vec<_>>(), "skipped": skipped,
    });
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    fs::write(target.join("runtimes.json"), text).expect("target/runtimes.json");
}

#[test]
fn abilities_by_version() {
    let test = "abilities_by_version";
    if !common::has_private_mounts() || !common::has("mmdebstrap") {
        return common::skip(test, "it needs root, private mounts and mmdebstrap");
    }
    let weir = std::env::var_os("WEIR").map_or_else(|| PathBuf::from(common::WEIR), PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a directory");
    let mut skipped: Vec<(String, String)> =
        NOT_TRIED.iter().map(|(what, why)| (what.to_string(), why.to_string())).collect();
    let mut all = Vec::new();
    print(&format!(
        "{:10}{:20}{:14}{}",
        "release",
        "runtime",
        "version",
        ABILITIES.map(|one| format!("{one:9}")).concat()
    ));
    for release in RELEASES {
        match roots::root(release, &target.join("runtimes")) {
            Ok(root) => all.extend(rows(release, &root, &weir)),
            Err(why) => skipped.push((format!("Debian {}", release.suite), why)),
        }
    }
    skipped.iter().for_each(|(what, why)| print(&format!("skipped: {what}: {why}")));
    write(target, &all, &skipped);
    if all.is_empty() {
        return common::skip(test, "no release of Debian could be had");
    }
    let wrong = all.iter().filter(|row| row.abilities != [row.is_readable; 5]);
    let wrong: Vec<String> = wrong
        .map(|row| format!("{} {} {}: {:?}", row.release, row.runtime, row.version, row.abilities))
        .collect();
    assert!(wrong.is_empty(), "not as expected ({ABILITIES:?}):\n{}", wrong.join("\n"));
}
