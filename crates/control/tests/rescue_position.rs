//! Bytes for the middle of a file that is open for reading and writing are rescued at their place. Such a stream has read ahead,
//! so the file's offset is behind the place to which its flush would move first.

mod common;

use common::{
    BUILDS, Build, CPP_BUILDS, LIBCXX_BUILDS, assert_same, bare, compile, folder, output,
    programs::has_libcxx, skip, supervised, text,
};

/// The moves of both_ways.c: none, here, back, forward, after ungetc, without a seek, at the end of the file twice.
const MOVES: [&str; 9] = ["n", "h", "b", "f", "u", "r", "z", "e", "h2"];

fn check(name: &str, program: &[String]) {
    let options: [&[&str]; 3] = [&["--rescue"], &["--rescue", "--max-delay", "1"], &["--max-delay", "1"]];
    for moves in MOVES {
        let run = |options: Option<&[&str]>, is_killed: bool| {
            let folder = folder();
            let mut words = program.to_vec();
            words.push(moves.into());
            words.extend(is_killed.then(|| "kill".to_string()));
            let mut command = options.map_or_else(|| bare(&words), |options| supervised(options, &words));
            let ended = output(command.current_dir(folder.path()));
            assert_eq!(ended.status.code(), Some(if is_killed { 137 } else { 0 }), "{name} {moves}");
            assert_same(&format!("{name} {moves}: messages"), b"", &ended.stderr);
            std::fs::read(folder.path().join("file")).expect("the file")
        };
        let wanted = run(None, false);
        for options in options {
            let got = run(Some(options), options[0] == "--rescue");
            assert_same(&format!("{name} {moves} {options:?}"), &wanted, &got);
        }
    }
}

fn check_build(build: Build, source: &str) {
    let folder = folder();
    if let Some(program) = compile("rescue_position", build, source, folder.path()) {
        check(build.name, &[text(&program).to_string()]);
    }
}

#[test]
fn glibc() {
    check_build(BUILDS[0], "both_ways.c");
}

#[test]
fn musl() {
    check_build(BUILDS[3], "both_ways.c");
}

#[test]
fn libstdcxx() {
    check_build(CPP_BUILDS[0], "both_ways.cc");
}

#[test]
fn libcxx() {
    match has_libcxx() {
        true => LIBCXX_BUILDS.into_iter().for_each(|build| check_build(build, "both_ways.cc")),
        false => skip("rescue_position", "there is no clang++ with libc++"),
    }
}

#[test]
fn cpython() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/both_ways.py");
    check("cpython", &[common::python(), text(&script).to_string()]);
}
