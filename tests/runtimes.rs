//! The abilities of weir for the runtimes of Debian 11, 12, 13 and sid, each in a root directory of its own. Prints a table
//! and writes target/runtimes.json. Part of `make test-all`. Needs root, mmdebstrap(1), patchelf(1) and Debian's packages.
//! WEIR_RUNTIMES=bookworm tries one release, and replaces in the file what is known of it.

#[path = "runtimes/abilities.rs"]
mod abilities;
mod common;
#[path = "runtimes/roots.rs"]
mod roots;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use abilities::{ABILITIES, Case, below, inside};
use roots::{RELEASES, Release};

/// A runtime of a release, and what weir is to do with it.
struct Runtime {
    name: &'static str,
    /// Its interpreter or compiler in /usr/bin, or its path. A release without it has no row.
    program: &'static str,
    /// A shell command that prints its version, perhaps among other words.
    version: &'static str,
    /// The file of tests/runtimes that it runs or compiles.
    source: &'static str,
    /// The options of a compiler; None for an interpreter.
    compiles: Option<&'static [&'static str]>,
    /// The abilities that weir must have, in the order of [`ABILITIES`].
    expected: [bool; 5],
}

const ALL: [bool; 5] = [true; 5];
/// weir does not read the buffers, and says so.
const NONE: [bool; 5] = [false; 5];
/// The program has no buffers, so nothing is lost that could be found.
const UNBUFFERED: [bool; 5] = [true, true, true, true, false];
/// `weir flush` cannot empty the buffers.
const NO_FLUSH: [bool; 5] = [true, true, true, false, true];
/// Go before 1.16 has other tables of functions, by which weir unwinds the goroutines. Without them it is unknown whether a killed
/// goroutine had written its bytes, so nothing is claimed.
const OLD_GO: [bool; 5] = [true, true, false, false, false];

const fn interpreter(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
) -> Runtime {
    Runtime { name, program, version, source, compiles: None, expected: ALL }
}

const fn compiler(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
    options: &'static [&'static str],
) -> Runtime {
    Runtime { name, program, version, source, compiles: Some(options), expected: ALL }
}

const GLIBC: &str = "/lib/$(uname -m)-linux-gnu/libc.so.6";
const MUSL: &str = "/lib/ld-musl-$(uname -m).so.1 2>&1";
/// The folder of libc.so in releases whose /lib is not /usr/lib. Without it libc.a is linked.
const MUSL_DYNAMIC: &[&str] = &["-O2", "-L/lib/x86_64-linux-musl", "-L/lib/aarch64-linux-musl"];
const JAVA: &str = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java";
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
    Runtime { expected: NONE, ..interpreter("PyPy", "pypy3", "pypy3 --version | tail -n 1", "program.py") },
    interpreter("Ruby", "ruby", "ruby --version", "program.rb"),
    interpreter("Ruby", "ruby3.4", "ruby3.4 --version", "program.rb"),
    interpreter("Perl", "perl", "perl -e 'printf \"%vd\", $^V'", "program.pl"),
    interpreter("Lua", "lua5.3", "lua5.3 -v", "program.lua"),
    interpreter("Lua", "lua5.4", "lua5.4 -v", "program.lua"),
    interpreter("LuaJIT", "luajit", "luajit -v | cut -d. -f1,2", "program.lua"),
    compiler("Go", "go", "go version | cut -d' ' -f3 | tr o ' '", "program.go", &[]),
    compiler(
        "Go, stripped",
        "go",
        "go version | cut -d' ' -f3 | tr o ' '",
        "program.go",
        &["-ldflags=-s -w"],
    ),
    Runtime {
        expected: NO_FLUSH,
        ..compiler("Rust", "rustc", "rustc --version", "program.rs", &["-g", "-O"])
    },
    compiler("OCaml", "ocamlopt", "ocamlopt -version", "program.ml", &["-I", "+unix", "unix.cmxa"]),
    compiler("OCaml, bytecode", "ocamlc", "ocamlc -version", "program.ml", &["-I", "+unix", "unix.cma"]),
    interpreter("R", "Rscript", "grep ^Version: /usr/lib/R/library/base/DESCRIPTION", "program.R"),
    Runtime { expected: UNBUFFERED, ..interpreter("PHP", "php8.2", "php8.2 -v", "program.php") },
    Runtime {
        expected: NONE,
        ..interpreter("Node", "node", "node -e 'console.log(process.versions.node)'", "program.js")
    },
    Runtime {
        expected: NONE,
        ..interpreter(
            "Java",
            JAVA,
            "cat /usr/lib/jvm/java-17-openjdk-amd64/release | tr '\"' ' '",
            "program.java",
        )
    },
    Runtime { expected: NONE, ..compiler("Haskell", "ghc", "ghc --numeric-version", "program.hs", &[]) },
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
    ("libc++", "not installed in the roots; tests/libcxx.rs of weir-walkers tries that of this machine"),
];

/// One row of the table.
struct Row {
    release: &'static str,
    runtime: &'static str,
    version: String,
    abilities: [bool; 5],
    expected: [bool; 5],
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

/// Gives the copy of weir in a root directory the libraries of this machine and their loader: it may need a newer C library
/// than the release has. A search path in the file itself counts for weir only, not for the programs that it starts.
fn give_libraries(weir: &Path, root: &Path) {
    let folder = below(root, "/weir-libraries");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("mkdir");
    let output = Command::new("ldd").arg(weir).output().expect("ldd");
    let text = common::text(&output.stdout);
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    let mut loader = None;
    for path in paths.map(Path::new) {
        let name = path.file_name().expect("a file name");
        fs::copy(path, folder.join(name)).expect("a copy of a library");
        loader = loader.or(name.to_str().filter(|name| name.starts_with("ld-")));
    }
    // A static weir needs none.
    let Some(loader) = loader else { return };
    let status = Command::new("patchelf")
        .args(["--set-interpreter", &format!("/weir-libraries/{loader}"), "--set-rpath", "/weir-libraries"])
        .arg(below(root, "/weir"))
        .status();
    assert!(status.expect("patchelf starts").success());
}

/// Does what the configuration of the packages would do, as far as a runtime needs it: musl-gcc and rustc call cc, R uses BLAS
/// and has a file of settings, and GHC has a cache of its packages.
fn configure(root: &Path) {
    let library = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    for (target, link) in [
        ("gcc", "/usr/bin/cc".to_string()),
        ("blas/libblas.so.3", format!("{library}/libblas.so.3")),
        ("lapack/liblapack.so.3", format!("{library}/liblapack.so.3")),
    ] {
        let _exists = std::os::unix::fs::symlink(target, below(root, &link));
    }
    // Without this file R says so on standard output.
    if below(root, "/etc/R").exists() {
        let _ = fs::write(below(root, "/etc/R/Renviron"), "");
    }
    if below(root, "/usr/bin/ghc-pkg").exists() {
        let _ = inside(root, "/").args(["ghc-pkg", "recache", "--global"]).output();
    }
}

/// Compiles the source if the runtime is a compiler. Returns the command that runs the program.
fn command(root: &Path, runtime: &Runtime, dir: &str) -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runtimes").join(runtime.source);
    fs::copy(source, below(root, dir).join(runtime.source)).expect("the source is copied");
    let source = format!("{dir}/{}", runtime.source);
    let Some(options) = runtime.compiles else { return vec![runtime.program.into(), source] };
    let program = format!("{dir}/program");
    let mut compiler = inside(root, dir);
    compiler.args(["env", "REALGCC=gcc", runtime.program]);
    match runtime.program {
        "go" => compiler.arg("build").args(options).args(["-o", &program, &source]),
        _ => compiler.args(options).args(["-o", &program, &source]),
    };
    let output = compiler.output();
    let output = output.expect("unshare starts");
    assert!(output.status.success(), "{} {options:?}: {}", runtime.program, common::text(&output.stderr));
    vec![program]
}

/// Tries all runtimes of a release that its root directory has.
fn rows(release: &'static Release, root: &Path, weir: &Path) -> Vec<Row> {
    let weir_inside = below(root, "/weir");
    let _ = fs::remove_file(&weir_inside);
    common::programs::copy_program(weir, &weir_inside);
    give_libraries(weir, root);
    configure(root);
    let mut rows = Vec::new();
    for (index, runtime) in RUNTIMES.iter().enumerate() {
        let program = runtime.program.strip_prefix("/usr/bin/").unwrap_or(runtime.program);
        let path = if program.starts_with('/') { program.into() } else { format!("/usr/bin/{program}") };
        if fs::symlink_metadata(below(root, &path)).is_err() {
            continue;
        }
        let dir = format!("/tmp/runtime-{index}");
        let _ = fs::remove_dir_all(below(root, &dir));
        fs::create_dir_all(below(root, &dir)).expect("mkdir");
        let command = command(root, runtime, &dir);
        let abilities = Case { weir, root, dir, command }.abilities();
        let version = version(root, runtime);
        let expected = match (runtime.program, version.rsplit_once('.')) {
            ("go", Some(("1.15", _))) => OLD_GO,
            // It has no list of itabs, by which weir finds the types.
            ("go", Some(("1.27", _))) => NONE,
            _ => runtime.expected,
        };
        rows.push(Row { release: release.suite, runtime: runtime.name, version, abilities, expected });
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

/// Writes the table into the target directory, beside the folder of the root directories. If only one release was tried, what is
/// known of the others stays.
fn write(target: &Path, rows: &[Row], skipped: &[(String, String)], only: Option<&str>) {
    let path = target.join("runtimes.json");
    let former = only.and_then(|_| fs::read(&path).ok());
    let former: Value = former.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let today = Command::new("date").args(["-u", "+%F"]).output().expect("date(1)");
    let document = document(&former, rows, skipped, only, common::text(&today.stdout).trim());
    fs::write(path, serde_json::to_string_pretty(&document).expect("JSON")).expect("target/runtimes.json");
}

/// Returns the name in the list of skipped things of a release that could not be had.
fn skipped_release(suite: &str) -> String {
    format!("Debian {suite}")
}

/// Returns the table, in which each new row has the date `today`. A release that was not tried now keeps its rows, or the reason why it was skipped, of the former table; one
/// that is in neither is listed as not tried.
fn document(
    former: &Value,
    rows: &[Row],
    skipped: &[(String, String)],
    only: Option<&str>,
    today: &str,
) -> Value {
    let of_others =
        former["rows"].as_array().into_iter().flatten().filter(|row| row["release"].as_str() != only);
    let row = |row: &Row| {
        let abilities = ABILITIES.iter().zip(row.abilities).map(|(name, has)| (name.to_string(), json!(has)));
        let names = [
            ("release", row.release),
            ("runtime", row.runtime),
            ("version", &row.version),
            ("measured", today),
        ];
        let names = names.map(|(name, value)| (name.to_string(), json!(value)));
        Value::Object(names.into_iter().chain(abilities).collect())
    };
    let mut all: Vec<Value> = of_others.cloned().chain(rows.iter().map(row)).collect();
    all.sort_by_key(|row| RELEASES.iter().position(|release| row["release"] == release.suite));
    let mut skipped: Vec<_> = skipped.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect();
    let others = RELEASES.iter().filter(|one| only.is_some_and(|only| only != one.suite));
    for other in others.filter(|one| all.iter().all(|row| row["release"] != one.suite)) {
        let what = skipped_release(other.suite);
        let known = former["skipped"].as_array().into_iter().flatten().find(|one| one["what"] == what);
        skipped.push(known.cloned().unwrap_or_else(|| json!({ "what": what, "why": "not tried yet" })));
    }
    json!({ "schema": "weir-runtimes/1", "rows": all, "skipped": skipped })
}

/// A run of one release must not claim for the others that they were had, or forget why they were not.
#[test]
fn a_run_of_one_release_keeps_what_is_known_of_the_others() {
    let row =
        |release| Row { release, runtime: "glibc", version: "2.36".into(), abilities: ALL, expected: ALL };
    let skip = |suite| (skipped_release(suite), "no network".to_string());
    let releases = |table: &Value| -> Vec<String> {
        let rows = table["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["release"].as_str().expect("a name").into()).collect()
    };
    let reasons = |table: &Value| -> Vec<String> {
        let skipped = table["skipped"].as_array().expect("a list").iter();
        skipped.map(|one| format!("{}: {}", one["what"], one["why"]).replace('"', "")).collect()
    };
    let first = document(&Value::Null, &[row("trixie")], &[skip("sid")], None, "2025-01-01");
    assert_eq!(
        (releases(&first), reasons(&first)),
        (vec!["trixie".into()], vec!["Debian sid: no network".into()])
    );
    let second = document(&first, &[row("bookworm")], &[], Some("bookworm"), "2025-02-02");
    assert_eq!(releases(&second), ["bookworm", "trixie"]);
    let dates: Vec<_> = second["rows"].as_array().expect("rows").iter().map(|row| &row["measured"]).collect();
    assert_eq!(dates, ["2025-02-02", "2025-01-01"], "a row keeps the date of its measurement");
    assert_eq!(reasons(&second), ["Debian bullseye: not tried yet", "Debian sid: no network"]);
    let third = document(&second, &[row("sid")], &[], Some("sid"), "2025-03-03");
    assert_eq!(releases(&third), ["bookworm", "trixie", "sid"]);
    assert_eq!(reasons(&third), ["Debian bullseye: not tried yet"]);
    let fourth = document(&third, &[], &[skip("trixie")], Some("trixie"), "2025-04-04");
    assert_eq!(releases(&fourth), ["bookworm", "sid"]);
    assert_eq!(reasons(&fourth), ["Debian trixie: no network", "Debian bullseye: not tried yet"]);
}

#[test]
fn abilities_by_version() {
    let test = "abilities_by_version";
    if !common::has_private_mounts() || !["mmdebstrap", "patchelf"].iter().all(|tool| common::has(tool)) {
        return common::skip(test, "it needs root, private mounts, mmdebstrap and patchelf");
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
    let only = std::env::var("WEIR_RUNTIMES").ok();
    for release in RELEASES.iter().filter(|one| only.as_ref().is_none_or(|suite| suite == one.suite)) {
        match roots::root(release, &target.join("runtimes")) {
            Ok(root) => all.extend(rows(release, &root, &weir)),
            Err(why) => skipped.push((skipped_release(release.suite), why)),
        }
    }
    skipped.iter().for_each(|(what, why)| print(&format!("skipped: {what}: {why}")));
    write(target, &all, &skipped, only.as_deref());
    if all.is_empty() {
        return common::skip(test, "no release of Debian could be had");
    }
    let wrong = all.iter().filter(|row| row.abilities != row.expected);
    let wrong: Vec<String> = wrong
        .map(|row| format!("{} {} {}: {:?}", row.release, row.runtime, row.version, row.abilities))
        .collect();
    assert!(wrong.is_empty(), "not as expected ({ABILITIES:?}):\n{}", wrong.join("\n"));
}
