//! With --max-delay, --rescue and --fix-fork a program's output is byte for byte that of a bare run.

#[path = "../../../tests/common/campaign.rs"]
#[allow(dead_code)] // no cases are chosen here
mod campaign;
mod common;

use std::path::Path;
use std::process::Command;

use common::{
    BUILDS, Build, CPP_BUILDS, GO_BUILDS, LIBCXX_BUILDS, OCAML_BUILDS, RUST_BUILDS, assert_same, bare,
    compile, folder, output, programs::has_libcxx, skip, supervised, text,
};

/// Modes of restless.c and restless.cc (see there), and the lines of each.
const KINDS: [(&str, &str); 7] =
    [("p", "500"), ("w", "500"), ("f", "400"), ("s", "200"), ("2", "150"), ("t", "1000"), ("e", "150")];

/// A further mode of restless.cc.
const MOVES: (&str, &str) = ("m", "300");

/// The modes of restless.rs, and the lines of each: enough for the search to find the buffers.
const RUST_KINDS: [(&str, &str); 11] = [
    ("p", "900"),
    ("l", "600"),
    ("o", "900"),
    ("w", "900"),
    ("f", "600"),
    ("s", "300"),
    ("2", "300"),
    ("t", "3000"),
    ("m", "400"),
    ("d", "40"),
    ("e", "300"),
];

/// The modes of restless.go, and the lines of each.
const GO_KINDS: [(&str, &str); 11] = [
    ("p", "900"),
    ("w", "900"),
    ("g", "600"),
    ("r", "600"),
    ("s", "300"),
    ("2", "300"),
    ("t", "3000"),
    ("m", "60"),
    ("d", "40"),
    ("x", "60"),
    ("e", "300"),
];

fn seeds() -> u64 {
    if std::env::var_os("WEIR_FOLLOW_FULL").is_some() { 12 } else { 1 }
}

/// Checks a further build or delay of a language. A quick campaign checks one of each language only.
fn check_further(build: common::Build, delay: &str) {
    if !campaign::is_quick() {
        check_build(build, delay);
    }
}

fn check_build(build: common::Build, delay: &str) {
    let folder = folder();
    let (source, kinds) = match build.compiler {
        "g++" | "clang++" => ("restless.cc", KINDS.into_iter().chain([MOVES]).collect()),
        "rustc" => ("restless.rs", RUST_KINDS.to_vec()),
        "go" => ("restless.go", GO_KINDS.to_vec()),
        "ocamlopt" | "ocamlc" => ("restless.ml", KINDS.to_vec()),
        _ => ("restless.c", KINDS.to_vec()),
    };
    let Some(program) = compile("delay_differential", build, source, folder.path()) else { return };
    let file = folder.path().join("seek");
    for (kind, lines) in kinds {
        for seed in 1..=seeds() {
            let seed = seed.to_string();
            let words = |kind| [text(&program), kind, &seed, lines, text(&file)].map(str::to_string);
            let what = format!("{} {kind} seed {seed}, {delay} ms", build.name);
            let wanted = output(&mut bare(&words(kind)));
            assert!(wanted.status.success() && !wanted.stdout.is_empty(), "{what}: bare: {}", wanted.status);
            let options = ["--max-delay", delay, "--rescue", "--fix-fork"];
            if build.compiler == "go" {
                check_schedules(&what, &wanted, &options[..3], &words(kind), delay);
                continue;
            }
            compare(&what, &wanted, &output(&mut supervised(&options[..3], &words(kind))));
            if kind == "f" && build.compiler == "rustc" {
                compare(&what, &wanted, &output(&mut supervised(&options, &words(kind))));
            } else if kind == "f" {
                // Mode "u" is mode "f" without a flush before a fork.
                compare(&what, &wanted, &output(&mut supervised(&options, &words("u"))));
                compare(&what, &wanted, &output(&mut supervised(&options[3..], &words("u"))));
            }
        }
    }
}

/// Compares runs of a Go program with more or fewer processors for its goroutines, and collections of garbage.
fn check_schedules(
    what: &str,
    wanted: &std::process::Output,
    options: &[&str],
    words: &[String],
    delay: &str,
) {
    let schedules = [("1", "100"), ("4", "1"), ("2", "100"), ("1", "1")];
    let most = match seeds() {
        1 if delay == "1" => 2,
        1 => 1,
        _ => schedules.len(),
    };
    for (processors, collection) in &schedules[..most] {
        let mut run = supervised(options, words);
        run.env("GOMAXPROCS", processors).env("GOGC", collection);
        compare(&format!("{what}, GOMAXPROCS={processors} GOGC={collection}"), wanted, &output(&mut run));
    }
}

fn compare(what: &str, wanted: &std::process::Output, got: &std::process::Output) {
    assert_eq!(got.status, wanted.status, "{what}: {}", String::from_utf8_lossy(&got.stderr));
    assert_same(what, &wanted.stdout, &got.stdout);
    assert_same(what, b"", &got.stderr);
}

#[test]
fn a_child_does_not_write_bytes_of_its_parent() {
    let folder = folder();
    let Some(program) = compile("delay_differential", BUILDS[0], "inherits.c", folder.path()) else { return };
    for end in ["_exit", "exec"] {
        let wanted = output(&mut bare(&[text(&program), end]));
        assert_same(end, b"of the parent\n", &wanted.stdout);
        compare(end, &wanted, &output(&mut supervised(&["--max-delay", "20"], &[text(&program), end])));
        compare(
            end,
            &wanted,
            &output(&mut supervised(&["--max-delay", "20", "--rescue"], &[text(&program), end])),
        );
    }
    // A child that prints has one buffer with the parent's bytes and its own. The former are written at the fork.
    let got = output(&mut supervised(&["--max-delay", "20"], &[text(&program), "print"]));
    assert_same("print", b"of the parent\nof the child\n", &got.stdout);
}

#[test]
fn glibc() {
    check_build(BUILDS[0], "1");
    check_further(BUILDS[0], "20");
}

#[test]
fn glibc_static() {
    check_further(BUILDS[1], "1");
}

#[test]
fn glibc_stripped() {
    check_build(BUILDS[2], "1");
}

#[test]
fn musl() {
    check_build(BUILDS[3], "1");
    check_further(BUILDS[3], "20");
}

#[test]
fn musl_stripped() {
    check_further(BUILDS[4], "1");
}

#[test]
fn rust() {
    check_build(RUST_BUILDS[0], "1");
}

#[test]
fn rust_with_link_time_optimization() {
    check_further(RUST_BUILDS[1], "5");
}

#[test]
fn go() {
    check_build(GO_BUILDS[0], "1");
}

#[test]
fn go_stripped() {
    check_further(GO_BUILDS[1], "5");
}

#[test]
fn ocaml() {
    check_build(OCAML_BUILDS[0], "1");
}

#[test]
fn ocaml_bytecode() {
    check_further(OCAML_BUILDS[1], "5");
}

#[test]
fn cpp() {
    check_build(CPP_BUILDS[0], "1");
    check_further(CPP_BUILDS[0], "20");
}

#[test]
fn cpp_static() {
    check_build(CPP_BUILDS[1], "1");
}

#[test]
fn cpp_stripped() {
    check_further(CPP_BUILDS[2], "1");
}

#[test]
fn libcxx() {
    match has_libcxx() {
        true => check_build(LIBCXX_BUILDS[0], "1"),
        false => skip("delay_differential", "there is no clang++ with libc++"),
    }
}

#[test]
fn libcxx_stripped() {
    if has_libcxx() {
        check_further(LIBCXX_BUILDS[1], "1");
        check_further(LIBCXX_BUILDS[1], "20");
    }
}

/// A stream that was made just before a fork is known at the fork, although the memory was searched a moment ago. The process may
/// be so young that weir finds its runtime in a child.
#[test]
fn streams_made_just_before_a_fork() {
    let folder = folder();
    let builds = CPP_BUILDS.into_iter().chain(LIBCXX_BUILDS);
    let builds = builds.filter(|build| build.compiler != "clang++" || has_libcxx());
    let compiled =
        |build: Build| compile("streams_made_just_before_a_fork", build, "forks_late.cc", folder.path());
    let mut commands: Vec<Vec<String>> =
        builds.filter_map(compiled).map(|program| vec![text(&program).into()]).collect();
    for (interpreter, script) in [("python3", "forks_late.py"), ("ruby", "forks_late.rb")] {
        if Command::new(interpreter).arg("--version").output().is_err() {
            skip("streams_made_just_before_a_fork", &format!("{interpreter} is not installed"));
            continue;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(script);
        commands.push(vec![interpreter.into(), text(&script).into()]);
    }
    for command in commands {
        for options in
            [&["--fix-fork"][..], &["--fix-fork", "--rescue"], &["--fix-fork", "--max-delay", "50"]]
        {
            let got = output(&mut supervised(options, &command));
            assert!(got.status.success());
            assert_same(&format!("{command:?} {options:?}"), b"1\nchild of 1\n2\nchild of 2\n", &got.stdout);
        }
    }
}

/// A stream that weir leaves out because the process has more pending bytes than it reads still has its written-ahead bytes.
#[test]
fn more_pending_bytes_than_weir_reads() {
    let folder = folder();
    let Some(program) = compile("more_pending_bytes", BUILDS[0], "large.c", folder.path()) else { return };
    let names = ["one", "two"].map(|name| folder.path().join(name));
    let words = [text(&program), text(&names[0]), text(&names[1])];
    let contents = || names.each_ref().map(|name| std::fs::read(name).expect("a file"));
    assert!(output(&mut bare(&words)).status.success());
    let wanted = contents();
    assert!(output(&mut supervised(&["--max-delay", "20"], &words)).status.success());
    contents().iter().zip(&wanted).for_each(|(got, wanted)| assert_same("a file", wanted, got));
}
