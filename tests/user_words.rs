//! Tests of messages that quote the words of the user: names of programs, odd names, numbers of processes; and of the help.

mod common;

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use common::{WEIR, disk_dir, has, skip, text, weir};

#[test]
fn the_name_of_a_program_does_not_tell_its_runtime() {
    let dir = disk_dir();
    for name in ["mix", "iex", "erl", "php", "node", "java", "julia", "tclsh"] {
        fs::copy("/bin/sleep", dir.path().join(name)).unwrap();
        let program = format!("./{name}");
        let output =
            weir(dir.path(), &["run", "--why=only", "--fix-order", "--", &program, "0"]).output().unwrap();
        let plan = text(&output.stderr) + &text(&output.stdout);
        assert!(plan.contains(&format!("{program} 0 · C\n")), "{plan}");
        assert!(plan.contains("--fix-order done, by the library"), "{plan}");
    }
}

#[test]
fn a_name_with_a_newline_is_shown_on_one_line() {
    let dir = disk_dir();
    let odd = "odd/out\n\u{1b}[2Jx.log";
    let shown = "odd/out\\n\\x1b[2Jx.log";
    for words in [
        &["run", "--", odd][..],
        &["trace", "-o", odd, "--", "true"],
        &["run", "--max-delay", odd, "--", "true"],
        &["trace", "--engine", odd, "--", "true"],
    ] {
        let output = weir(dir.path(), words).output().unwrap();
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains(shown), "{words:?}: {errors}");
        assert!(!errors.contains("\n\\x1b") && !errors.contains('\u{1b}'), "{words:?}: {errors}");
    }
}

#[test]
fn a_first_argument_need_not_be_utf_8() {
    let dir = disk_dir();
    let odd = OsStr::from_bytes(b"n\xff");
    fs::write(dir.path().join(odd), "text").unwrap();
    let output = weir(dir.path(), &["copy"]).arg(odd).arg("to").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read(dir.path().join("to")).unwrap(), b"text");
    for verb in ["peek", "flush", "top", "report", "bench", "advise", "lab", "doctor"] {
        let output = weir(dir.path(), &[verb]).arg(odd).output().unwrap();
        assert!(output.status.code().is_some_and(|status| status < 101), "{verb}: {}", text(&output.stderr));
    }
}

#[test]
fn mawk_reads_its_own_records() {
    if !has("mawk") {
        return skip("mawk_reads_its_own_records", "mawk is not installed");
    }
    let dir = disk_dir();
    let output = |run: &[&str]| {
        let script = "printf 'a;b;c\\nd' | \"$@\" mawk 'BEGIN { RS = \";\" } { print NR, $0 }'";
        Command::new("sh").args(["-c", script, "sh"]).args(run).current_dir(dir.path()).output().unwrap()
    };
    let alone = output(&["env"]);
    assert_eq!(text(&alone.stdout), "1 a\n2 b\n3 c\nd\n");
    for options in [&["run", "--"][..], &["run", "-oL", "--"], &["run", "--rescue", "--"]] {
        let output = output(&[&[WEIR], options].concat());
        assert_eq!((output.status, output.stdout), (alone.status, alone.stdout.clone()), "{options:?}");
    }
}

/// With -W interactive, mawk loses the rest of a line after a NUL byte, and reads lines whatever RS is.
#[test]
fn mawk_loses_no_input_without_an_option() {
    if !has("mawk") {
        return skip("mawk_loses_no_input_without_an_option", "mawk is not installed");
    }
    let dir = disk_dir();
    fs::write(dir.path().join("records.awk"), "BEGIN { RS = \";\" } { print NR, $0 }").unwrap();
    let output = |input: &str, run: &[&str], program: &str| {
        let script = format!("printf '{input}' | \"$@\" mawk {program}");
        Command::new("sh").args(["-c", &script, "sh"]).args(run).current_dir(dir.path()).output().unwrap()
    };
    let bare = output("a\\0b\\nc\\n", &["env"], "'{ print }'").stdout;
    assert_eq!(bare, b"a\0b\nc\n");
    assert_eq!(output("a\\0b\\nc\\n", &[WEIR, "run", "--"], "'{ print }'").stdout, bare);
    let warned = output("a\\nc\\n", &[WEIR, "run", "-oL", "--"], "'{ print }'");
    assert_eq!(warned.stdout, b"a\nc\n");
    assert!(text(&warned.stderr).contains("no NUL bytes"), "{}", text(&warned.stderr));
    for program in ["-W exec records.awk", "-We records.awk", "-Wexec records.awk"] {
        let output = output("a;b\\nc", &[WEIR, "run", "-oL", "--"], program);
        assert_eq!(text(&output.stdout), "1 a\n2 b\nc\n", "{program}: {}", text(&output.stderr));
    }
}

#[test]
fn a_help_that_cannot_be_written_is_an_error() {
    let dir = disk_dir();
    for words in [&["--help"][..], &["--version"], &["run", "--help"], &["copy", "-h"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = weir(dir.path(), words).stdout(full).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {errors}");
        assert!(errors.starts_with("weir: standard output: write: ENOSPC"), "{words:?}: {errors}");
        assert_eq!(weir(dir.path(), words).output().unwrap().status.code(), Some(0), "{words:?}");
    }
    assert_eq!(weir(dir.path(), &["--odd"]).output().unwrap().status.code(), Some(2));
    assert_eq!(weir(dir.path(), &["copy", "--odd"]).output().unwrap().status.code(), Some(1));
}
