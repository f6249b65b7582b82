//! `weir run` says which programs no mode of a stream changes, because they write their data by write(2): cat, dd, gzip, tee.

mod common;

use std::process::Stdio;

use common::{disk_dir, has, run, skip, text, weir};

/// The programs that are tested, with arguments that have them copy or compress a file.
const PROGRAMS: [(&str, &[&str]); 4] = [
    ("cat", &["cat", "in"]),
    ("dd", &["dd", "if=in", "status=none"]),
    ("gzip", &["gzip", "-c", "in"]),
    ("xz", &["xz", "-c", "in"]),
];

fn is_gnu(program: &str) -> bool {
    let about = std::process::Command::new(program).arg("--version").output();
    about.is_ok_and(|about| text(&about.stdout).contains("coreutils"))
}

#[test]
fn a_mode_has_no_effect_on_a_program_that_writes_directly() {
    let test = "a_mode_has_no_effect_on_a_program_that_writes_directly";
    if !is_gnu("cat") {
        return skip(test, "it needs the GNU coreutils");
    }
    let dir = disk_dir();
    std::fs::write(dir.path().join("in"), "a line\nanother\n").expect("a file");
    for (name, command) in PROGRAMS.into_iter().filter(|(name, _)| has(name)) {
        for option in ["-oL", "-o64K", "--max-delay=1s", "--file=*=line"] {
            let plan =
                |options: &[&str]| run(dir.path(), &[&["run", option], options, &["--"], command].concat());
            let output = plan(&[]);
            let notice = text(&output.stderr);
            assert!(output.status.success() && !output.stdout.is_empty(), "{name} {option}: {notice}");
            assert!(
                notice.starts_with("weir: --") && notice.contains("write(2)"),
                "{name} {option}: {notice}"
            );
            assert_eq!(notice.lines().count(), 1, "{name} {option}: {notice}");
            assert_eq!(text(&plan(&["--quiet"]).stderr), "", "{name} {option}");
            let strict = plan(&["--strict"]);
            assert_eq!((strict.status.code(), strict.stdout.len()), (Some(125), 0), "{name} {option}");
        }
        let script = command.join(" ");
        let alone = run(dir.path(), &["run", "-oL", "--strict", "--", "sh", "-c", &script]);
        assert_eq!(alone.status.code(), Some(125), "{name}");
        let with_others = run(dir.path(), &["run", "-oL", "--", "sh", "-c", &format!("sort in | {script}")]);
        assert_eq!(
            (with_others.status.code(), text(&with_others.stderr)),
            (Some(0), String::new()),
            "{name}"
        );
    }
}

/// tee turns the buffer of its standard output off, unless weir keeps it on.
#[test]
fn a_mode_of_tee_needs_force() {
    if !is_gnu("tee") {
        return skip("a_mode_of_tee_needs_force", "it needs the GNU coreutils");
    }
    let dir = disk_dir();
    let status = |options: &[&str]| {
        let words = [&["run", "--strict", "-q"], options, &["--", "tee"]].concat();
        weir(dir.path(), &words).stdin(Stdio::null()).status().expect("weir").code()
    };
    assert_eq!(status(&["-oL"]), Some(125));
    assert_eq!(status(&["-o0"]), Some(0));
    let imports = std::process::Command::new("grep").args(["-c", "setvbuf", "/usr/bin/tee"]).status();
    if imports.is_ok_and(|status| status.success()) {
        assert_eq!(status(&["-oL", "--force"]), Some(0));
    }
}
