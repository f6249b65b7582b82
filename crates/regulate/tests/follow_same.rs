//! Bounded delay changes no byte, whatever a program does with its streams.

mod common;

use common::{BUILDS, assert_same, bare, compile, folder, followed, output, text};

/// What restless.c is to do, and how many lines of it.
const KINDS: [(&str, &str); 7] =
    [("p", "1500"), ("w", "1500"), ("f", "800"), ("s", "400"), ("2", "300"), ("t", "1500"), ("e", "400")];

fn seeds() -> u64 {
    if std::env::var_os("WEIR_FOLLOW_FULL").is_some() { 12 } else { 1 }
}

fn same(build: common::Build, delay: &str) {
    let folder = folder();
    let Some(program) = compile("follow_same", build, "restless.c", folder.path()) else { return };
    for (kind, lines) in KINDS {
        for seed in 1..=seeds() {
            let (seed, file) = (seed.to_string(), folder.path().join("seek"));
            let words = [text(&program), kind, &seed, lines, text(&file)];
            let wanted = output(&mut bare(&words));
            let got = output(&mut followed(&["--max-delay", delay, "--rescue"], &words));
            let what = format!("{} {kind} seed {seed}, {delay} ms", build.name);
            assert!(wanted.status.success() && !wanted.stdout.is_empty(), "{what}: bare: {}", wanted.status);
            assert_eq!(got.status, wanted.status, "{what}: {}", String::from_utf8_lossy(&got.stderr));
            assert_same(&what, &wanted.stdout, &got.stdout);
            assert_same(&what, b"", &got.stderr);
        }
    }
}

#[test]
fn glibc() {
    same(BUILDS[0], "1");
    same(BUILDS[0], "20");
}

#[test]
fn glibc_static() {
    same(BUILDS[1], "1");
}

#[test]
fn glibc_stripped() {
    same(BUILDS[2], "1");
}

#[test]
fn musl() {
    same(BUILDS[3], "1");
    same(BUILDS[3], "20");
}

#[test]
fn musl_stripped() {
    same(BUILDS[4], "1");
}
