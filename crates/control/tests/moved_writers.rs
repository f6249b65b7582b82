//! No line is lost or doubled of a writer that the program has moved, or fills and then leaves alone: the end of its file shows
//! which bytes are not written.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use common::{Build, GO_BUILDS, RUST_BUILDS, assert_same, compile, folder, output, supervised, text, until};

const DEBUG: Build = Build { name: "rust-debug", compiler: "rustc", flags: &[] };

fn line(number: usize) -> String {
    format!("{number} hello world, this is a line of a log\n")
}

/// Returns what is in the files of saved bytes in a folder.
fn saved_in(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder).expect("the directory").map(|one| one.expect("a file").path());
    let saved = files.filter(|path| text(path).ends_with(".bin"));
    saved.flat_map(|path| fs::read(path).expect("the saved file")).collect()
}

/// Runs a program in a new folder, and returns the folder, what is in its file, and in the files of saved bytes.
fn run(program: &Path, how: &str, options: &[&str]) -> (Vec<u8>, Vec<u8>) {
    let folder = folder();
    let mut command = supervised(options, &[text(program), text(folder.path()), how]);
    output(command.current_dir(folder.path()));
    (fs::read(folder.path().join("0")).expect("the file"), saved_in(folder.path()))
}

fn has_lines(program: &Path, how: &str, lines: usize) {
    let wanted: String = (0..lines).map(line).collect();
    for options in [&["--rescue"][..], &["--rescue", "--max-delay", "1"]] {
        let (written, saved) = run(program, how, options);
        let what = format!("{} {how} {options:?}", program.display());
        assert_same(&what, wanted.as_bytes(), &written);
        assert_same(&what, b"", &saved);
    }
}

#[test]
fn rust() {
    let folder = folder();
    for build in [DEBUG, RUST_BUILDS[0]] {
        let Some(program) = compile("moved_writers", build, "moves.rs", folder.path()) else { return };
        for how in ["field", "box", "shared", "map", "channel", "flushed"] {
            has_lines(&program, how, 500);
        }
    }
}

/// No byte is lost in silence.
#[test]
fn bytes_of_which_nothing_shows_whether_they_are_written_are_saved() {
    let folder = folder();
    let Some(program) = compile("moved_writers", DEBUG, "moves.rs", folder.path()) else { return };
    let (written, saved) = run(&program, "equal", &["--rescue"]);
    let wanted = "hello world, this is a line of a log\n".repeat(500);
    assert!(written.len() < wanted.len(), "the program has written them all");
    assert_same("both", wanted.as_bytes(), &[written, saved].concat());
}

/// Nothing shows which copy of a writer counts if its output is a pipe: no byte is written twice, and none is lost.
#[test]
fn contested_bytes_of_a_pipe_are_saved() {
    let programs = folder();
    let Some(program) = compile("moved_writers", DEBUG, "moves.rs", programs.path()) else { return };
    let wanted: String = (0..500).map(line).collect();
    for how in ["field", "box", "shared", "map", "channel"] {
        let folder = folder();
        let pipe = folder.path().join("0");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let reader = thread::spawn(move || fs::read(pipe).expect("the pipe"));
        let mut command = supervised(&["--rescue"], &[text(&program), text(folder.path()), how]);
        output(command.current_dir(folder.path()));
        let (written, saved) = (reader.join().expect("the reader"), saved_in(folder.path()));
        let (taken, left) = wanted.as_bytes().split_at_checked(written.len()).expect("none is written twice");
        assert_same(how, taken, &written);
        let has_left = left.is_empty() || saved.windows(left.len()).any(|part| part == left);
        assert!(has_left, "{how}: {} bytes are lost", left.len());
    }
}

#[test]
fn go() {
    let folder = folder();
    for build in GO_BUILDS {
        let Some(program) = compile("moved_writers", build, "moves.go", folder.path()) else { return };
        for how in ["part", "stack"] {
            has_lines(&program, how, 480);
        }
    }
}

/// A program fills its buffer in less time than the delay, and waits: no snapshot shows that the writer grows.
fn writes_early_after_a_burst(program: &Path, lines: usize) {
    let folder = folder();
    let words = [text(program), text(folder.path()), "idle"];
    let mut weir = supervised(&["--max-delay", "20"], &words).spawn().expect("it starts");
    let wanted = |lines: usize| (0..lines).map(line).collect::<String>();
    let read = || fs::read_to_string(folder.path().join("0")).unwrap_or_default();
    until("all lines", || read() == wanted(lines));
    fs::write(folder.path().join("stop"), "").expect("a file");
    assert!(weir.wait().expect("its end").success());
    assert_same("at the end", wanted(lines + 1).as_bytes(), read().as_bytes());
}

#[test]
fn a_burst_of_rust() {
    let folder = folder();
    for build in [DEBUG, RUST_BUILDS[0]] {
        let Some(program) = compile("moved_writers", build, "moves.rs", folder.path()) else { return };
        writes_early_after_a_burst(&program, 500);
    }
}

#[test]
fn a_burst_of_go() {
    let folder = folder();
    let Some(program) = compile("moved_writers", GO_BUILDS[0], "moves.go", folder.path()) else { return };
    writes_early_after_a_burst(&program, 480);
}
