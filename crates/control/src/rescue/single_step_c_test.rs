//! As `single_step_test`, of programs in C, C++ and Rust.

use std::ffi::OsString;

use super::replay::STEPS_BUDGET_NS;
use super::single_step_test::{campaign, check_flushes, compile, expected_output};

/// The check interval for C++ and Rust, where each check is a replay.
const REPLAY_CHECK_INTERVAL: u64 = 31;

const CPP: [&str; 2] = ["g++", "-O2"];
const LIBCXX: [&str; 4] = ["clang++", "-std=gnu++17", "-stdlib=libc++", "-O2"];

fn cpp_program(flags: &[&str], same: bool, to_pipe: bool) {
    replayed_program(&CPP, "flushes.cc", [100, STEPS_BUDGET_NS], flags, same, to_pipe);
}

fn libcxx_program(flags: &[&str], same: bool, to_pipe: bool) {
    replayed_program(&LIBCXX, "flushes.cc", [100, STEPS_BUDGET_NS], flags, same, to_pipe);
}

fn rust_program(flags: &[&str], same: bool, to_pipe: bool) {
    let compiler = ["rustc", "--edition=2024", "-g"];
    replayed_program(&compiler, "flushes.rs", [256, STEPS_BUDGET_NS], flags, same, to_pipe);
}

/// Checks a program with a buffer of this size. Each replay has this CPU time.
fn replayed_program(
    compiler: &[&str],
    source: &str,
    [buffer, replay_budget_ns]: [u64; 2],
    flags: &[&str],
    same: bool,
    to_pipe: bool,
) {
    let (folder, longer) = (tempfile::tempdir().expect("a directory"), 3 * buffer as usize);
    let built = folder.path().join("flushes");
    if !compile(compiler, source, flags, &built) {
        return;
    }
    let words = [
        built.display().to_string(),
        folder.path().join("counter").display().to_string(),
        if same { "same" } else { "counted" }.to_string(),
        buffer.to_string(),
    ];
    let mut lines = vec![(114, 0)];
    lines.extend((0..8).map(|each| (1, longer + each)));
    lines.push((2, 0));
    let expected = expected_output(same, &lines);
    check_flushes(
        words.map(OsString::from).to_vec(),
        folder.path(),
        to_pipe,
        [REPLAY_CHECK_INTERVAL, replay_budget_ns],
        expected,
    );
}

#[test]
fn cpp_counted() {
    cpp_program(&[], false, true);
}

#[test]
fn cpp_same() {
    cpp_program(&[], true, false);
}

#[test]
fn cpp_static() {
    cpp_program(&["-static", "-s"], false, true);
}

#[test]
fn libcxx_counted() {
    libcxx_program(&[], false, true);
}

#[test]
fn libcxx_same() {
    libcxx_program(&[], true, false);
}

#[test]
fn libcxx_static() {
    libcxx_program(&["-static", "-s"], false, true);
}

/// A replay without a result, as on a machine that gives it too little time, doubles no byte. `make test` tries one of three programs.
#[test]
fn too_little_time() {
    replayed_program(&LIBCXX, "flushes.cc", [100, 0], &[], false, true);
    if campaign::is_quick() {
        return;
    }
    replayed_program(&CPP, "flushes.cc", [100, 0], &[], false, true);
    replayed_program(&["rustc", "--edition=2024", "-g", "-O"], "flushes.rs", [256, 0], &[], false, true);
}

#[test]
fn rust_counted() {
    rust_program(&["-O"], false, true);
}

#[test]
fn rust_same() {
    rust_program(&["-O"], true, false);
}

fn c_program(compiler: &[&str], same: bool, to_pipe: bool, mode: &str) {
    const BUFFER: usize = 100;
    let folder = tempfile::tempdir().expect("a directory");
    let built = folder.path().join("flushes");
    if !compile(&[compiler[0], "-std=gnu11", "-O2"], "flushes.c", &compiler[1..], &built) {
        return;
    }
    let words = [
        built.display().to_string(),
        folder.path().join("counter").display().to_string(),
        if same { "same" } else { "counted" }.to_string(),
        BUFFER.to_string(),
        mode.to_string(),
    ];
    let mut lines = vec![(114, 0)];
    lines.extend((0..8).map(|each| (1, 3 * BUFFER + each)));
    lines.push((2, 0));
    check_flushes(
        words.map(OsString::from).to_vec(),
        folder.path(),
        to_pipe,
        [1, STEPS_BUDGET_NS],
        expected_output(same, &lines),
    );
}

#[test]
fn glibc_counted() {
    c_program(&["gcc"], false, true, "full");
}

#[test]
fn glibc_same() {
    c_program(&["gcc"], true, false, "full");
}

#[test]
fn glibc_lines() {
    c_program(&["gcc", "-static"], false, true, "lines");
}

#[test]
fn musl() {
    c_program(&["musl-gcc"], false, true, "full");
}
