//! The abilities of weir for the runtimes of Debian 11, 12, 13 and sid, and Ubuntu 22.04 and 24.04, each in a root directory of its
//! own. Prints a table and writes target/runtimes.json. Part of `make test-all`. Needs root, mmdebstrap(1), patchelf(1) and packages
//! of both; a release that cannot be had is skipped.
//! WEIR_RUNTIMES=bookworm tries one release, and replaces in the file what is known of it. WEIR_GENERATE=1 writes the table into
//! docs/runtimes.md.

#[path = "runtimes/abilities.rs"]
mod abilities;
mod common;
#[path = "runtimes/documented.rs"]
mod documented;
#[path = "runtimes/free_threaded.rs"]
mod free_threaded;
#[path = "runtimes/roots.rs"]
mod roots;
#[path = "runtimes/table.rs"]
mod table;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use abilities::{ABILITIES, Case, below, inside};
use roots::{RELEASES, Release};
use table::{Expected, NOT_TRIED, RUNTIMES, Runtime, TCL};

/// One row of the table.
struct Row {
    release: &'static str,
    runtime: &'static str,
    version: String,
    abilities: [bool; 5],
    expected: Expected,
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
    configure_libcxx(root, &library);
    // Without this file R says so on standard output.
    if below(root, "/etc/R").exists() {
        let _ = fs::write(below(root, "/etc/R/Renviron"), "");
    }
    if below(root, "/usr/bin/ghc-pkg").exists() {
        let _ = inside(root, "/").args(["ghc-pkg", "recache", "--global"]).output();
    }
}

/// Links what a release has only in the folder of a version: Ubuntu the headers of libc++, and all the static libc++abi. Where
/// that is missing, libc++.a contains it.
fn configure_libcxx(root: &Path, library: &str) {
    let folders = fs::read_dir(below(root, "/usr/lib")).into_iter().flatten().flatten();
    let versions = folders.map(|one| Path::new("/usr/lib").join(one.file_name()));
    for version in versions.filter(|folder| folder.to_string_lossy().starts_with("/usr/lib/llvm-")) {
        let of_version = version.join("lib/libc++abi.a");
        let has_static = below(root, &of_version.to_string_lossy()).exists();
        let abi = if has_static { of_version } else { "libc++.a".into() };
        for (target, link) in [
            (version.join("include/c++/v1"), "/usr/include/c++/v1".into()),
            (abi, format!("{library}/libc++abi.a")),
        ] {
            let _exists = std::os::unix::fs::symlink(target, below(root, &link));
        }
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
        // The libraries that a linker searches come after the program.
        "g++" => compiler.args(["-o", &program, &source]).args(options),
        _ => compiler.args(options).args(["-o", &program, &source]),
    };
    let output = compiler.output();
    let output = output.expect("unshare starts");
    let errors = common::text(&output.stderr);
    let errors: Vec<&str> = errors.lines().take(20).collect();
    assert!(output.status.success(), "{} {options:?}:\n{}", runtime.program, errors.join("\n"));
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
        let version = version(root, runtime);
        // Debian's python3 is one of those with a version in their name.
        if rows.iter().any(|row: &Row| (row.runtime, &row.version) == (runtime.name, &version)) {
            continue;
        }
        let dir = format!("/tmp/runtime-{index}");
        let _ = fs::remove_dir_all(below(root, &dir));
        fs::create_dir_all(below(root, &dir)).expect("mkdir");
        let command = command(root, runtime, &dir);
        let abilities = Case { weir, root, dir, command }.abilities();
        let expected = runtime.expected(&version);
        rows.push(Row { release: release.suite, runtime: runtime.name, version, abilities, expected });
        print_row(rows.last().expect("a row"));
    }
    rows
}

fn print_row(row: &Row) {
    let marks = row.abilities.map(|ability| format!("{:9}", if ability { "yes" } else { "no" }));
    print(&format!("{:10}{:24}{:14}{}", row.release, row.runtime, row.version, marks.concat()));
}

/// Prints a line. println! is captured by the test harness, and shown for failed tests only.
fn print(line: &str) {
    let line = format!("{}\n", line.trim_end());
    std::io::stdout().write_all(line.as_bytes()).expect("standard output");
}

/// Writes the table into the target directory, beside the folder of the root directories. If only one release was tried, what is
/// known of the others stays, by the former table or else by the page.
fn write(target: &Path, rows: &[Row], skipped: &[(String, String)], only: Option<&str>) {
    let path = target.join("runtimes.json");
    let table = || serde_json::from_slice(&fs::read(&path).ok()?).ok();
    let former: Value = only.map(|_| table().unwrap_or_else(documented::rows)).unwrap_or_default();
    let today = Command::new("date").args(["-u", "+%F"]).output().expect("date(1)");
    let document = document(&former, rows, skipped, only, common::text(&today.stdout).trim());
    fs::write(path, serde_json::to_string_pretty(&document).expect("JSON")).expect("target/runtimes.json");
    if std::env::var_os("WEIR_GENERATE").is_some() {
        documented::generate(&document);
    }
}

/// Returns the table, in which each new row has the date `today`. A release that was not tried now keeps its rows of the former
/// table, and the reasons why it or a program of it was skipped; one that is in neither is listed as not tried.
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
            ("why", row.expected.why),
        ];
        let names = names.map(|(name, value)| (name.to_string(), json!(value)));
        Value::Object(names.into_iter().chain(abilities).collect())
    };
    let mut all: Vec<Value> = of_others.cloned().chain(rows.iter().map(row)).collect();
    all.sort_by_key(|row| RELEASES.iter().position(|release| row["release"] == release.suite));
    let mut skipped: Vec<_> = skipped.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect();
    for other in RELEASES.iter().filter(|one| only.is_some_and(|only| only != one.suite)) {
        let name = other.name();
        let is_of_other = |one: &&Value| one["what"].as_str().is_some_and(|what| what.starts_with(&name));
        let known: Vec<Value> =
            former["skipped"].as_array().into_iter().flatten().filter(is_of_other).cloned().collect();
        if known.is_empty() && all.iter().all(|row| row["release"] != other.suite) {
            skipped.push(json!({ "what": name, "why": "not tried yet" }));
        }
        skipped.extend(known);
    }
    json!({ "schema": "weir-runtimes/1", "rows": all, "skipped": skipped })
}

/// A run of one release must not claim for the others that they were had, or forget why they were not.
#[test]
fn a_run_of_one_release_keeps_what_is_known_of_the_others() {
    let row = |release| Row {
        release,
        runtime: "glibc",
        version: "2.36".into(),
        abilities: [true; 5],
        expected: RUNTIMES[0].expected("2.36"),
    };
    let skip = |suite| {
        let release = RELEASES.iter().find(|one| one.suite == suite).expect("a release");
        (release.name(), "no network".to_string())
    };
    let releases = |table: &Value| -> Vec<String> {
        let rows = table["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["release"].as_str().expect("a name").into()).collect()
    };
    let reasons = |table: &Value| -> Vec<String> {
        let skipped = table["skipped"].as_array().expect("a list").iter();
        skipped.map(|one| format!("{}: {}", one["what"], one["why"]).replace('"', "")).collect()
    };
    let python = ("Debian trixie, CPython".to_string(), "no source".to_string());
    let first =
        document(&Value::Null, &[row("trixie")], &[skip("sid"), skip("jammy"), python], None, "2025-01-01");
    assert_eq!(
        (releases(&first), reasons(&first)),
        (
            vec!["trixie".into()],
            ["Debian sid: no network", "Ubuntu jammy: no network", "Debian trixie, CPython: no source"]
                .map(String::from)
                .to_vec()
        )
    );
    let second = document(&first, &[row("bookworm")], &[], Some("bookworm"), "2025-02-02");
    assert_eq!(releases(&second), ["bookworm", "trixie"]);
    let dates: Vec<_> = second["rows"].as_array().expect("rows").iter().map(|row| &row["measured"]).collect();
    assert_eq!(dates, ["2025-02-02", "2025-01-01"], "a row keeps the date of its measurement");
    let bullseye_and_ubuntu =
        ["Debian bullseye: not tried yet", "Ubuntu jammy: no network", "Ubuntu noble: not tried yet"];
    let of_trixie = "Debian trixie, CPython: no source";
    assert_eq!(reasons(&second), [&bullseye_and_ubuntu[..], &[of_trixie, "Debian sid: no network"]].concat());
    let third = document(&second, &[row("sid")], &[], Some("sid"), "2025-03-03");
    assert_eq!(releases(&third), ["bookworm", "trixie", "sid"]);
    assert_eq!(reasons(&third), [&bullseye_and_ubuntu[..], &[of_trixie]].concat());
    let fourth = document(&third, &[], &[skip("trixie")], Some("trixie"), "2025-04-04");
    assert_eq!(releases(&fourth), ["bookworm", "sid"]);
    assert_eq!(reasons(&fourth), [&["Debian trixie: no network"], &bullseye_and_ubuntu[..]].concat());
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
        "{:10}{:24}{:14}{}",
        "release",
        "runtime",
        "version",
        ABILITIES.map(|one| format!("{one:9}")).concat()
    ));
    let only = std::env::var("WEIR_RUNTIMES").ok();
    for release in RELEASES.iter().filter(|one| only.as_ref().is_none_or(|suite| suite == one.suite)) {
        match roots::root(release, &target.join("runtimes")) {
            Ok(root) => {
                skipped.extend(free_threaded::install(release, &root));
                all.extend(rows(release, &root, &weir));
            }
            Err(why) => skipped.push((release.name(), why)),
        }
    }
    skipped.iter().for_each(|(what, why)| print(&format!("skipped: {what}: {why}")));
    write(target, &all, &skipped, only.as_deref());
    if all.is_empty() {
        return common::skip(test, "no release could be had");
    }
    let wrong = all.iter().filter(|row| row.abilities != row.expected.abilities);
    let wrong: Vec<String> = wrong
        .map(|row| format!("{} {} {}: {:?}", row.release, row.runtime, row.version, row.abilities))
        .collect();
    assert!(wrong.is_empty(), "not as expected ({ABILITIES:?}):\n{}", wrong.join("\n"));
}
