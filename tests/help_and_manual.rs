//! Every verb has help with examples, a man page and completions.

mod common;

use common::{disk_dir, names, run, text};

/// The command lines that print help with examples.
const HELPS: &[&[&str]] = &[
    &["--help"],
    &["bench", "--help"],
    &["bench", "compare", "--help"],
    &["trace", "--help"],
    &["peek", "--help"],
    &["flush", "--help"],
    &["run", "--help"],
    &["top", "--help"],
    &["report", "--help"],
    &["doctor", "--help"],
    &["advise", "--help"],
    &["lab", "--help"],
    &["log", "--help"],
    &["copy", "--help"],
    &["log", "status", "--help"],
    &["log", "check", "--help"],
];

#[test]
fn help_has_examples_and_exit_statuses() {
    let dir = disk_dir();
    for arguments in HELPS {
        let output = run(dir.path(), arguments);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("Examples:"), "{arguments:?}");
    }
    let trace = text(&run(dir.path(), &["trace", "--help"]).stdout);
    for option in [
        "--pid",
        "--time",
        "--engine",
        "--exact",
        "--seccomp",
        "--all",
        "--fail-on",
        "--json",
        "--timeline",
        "--output",
        "125",
    ] {
        assert!(trace.contains(option), "{option}");
    }
    assert!(!trace.contains("--replay"));
    let help = text(&run(dir.path(), &["bench", "--help"]).stdout);
    for option in [
        "--records",
        "--buffer",
        "--method",
        "--sync",
        "--cache",
        "--advice",
        "--dir",
        "--fs",
        "--size",
        "--budget",
        "--exact",
        "--rounds",
        "--published",
        "--json",
        "--csv",
        "--markdown",
        "--quiet",
        "130",
    ] {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn dist_writes_man_pages_and_completions() {
    let dir = disk_dir();
    assert!(run(dir.path(), &["dist", "out"]).status.success());
    let mut pages = names(&dir.path().join("out/man"));
    pages.sort();
    assert_eq!(
        pages,
        [
            "weir-advise.1",
            "weir-bench-compare.1",
            "weir-bench.1",
            "weir-copy.1",
            "weir-doctor.1",
            "weir-flush.1",
            "weir-lab-check.1",
            "weir-lab-new.1",
            "weir-lab.1",
            "weir-log-check.1",
            "weir-log-status.1",
            "weir-log.1",
            "weir-peek.1",
            "weir-report.1",
            "weir-run.1",
            "weir-top.1",
            "weir-trace.1",
            "weir.1"
        ]
    );
    let page = std::fs::read_to_string(dir.path().join("out/man/weir-bench.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("budget"), "{page}");
    check_pages(&dir.path().join("out/man"));
    for file in ["weir.bash", "_weir", "weir.fish"] {
        let text = std::fs::read_to_string(dir.path().join("out/completions").join(file)).unwrap();
        assert!(text.contains("budget") && text.contains("bench"), "{file}");
        assert!(
            text.contains("stdio-char-unlocked") && text.contains("rwf_dsync"),
            "{file} completes values"
        );
        assert!(text.contains("fail-on") && text.contains("ptrace"), "{file}");
        assert!(!text.contains("lab-tool"), "{file} offers a hidden verb");
    }
    let blocked = run(dir.path(), &["dist", "/proc/nowhere"]);
    assert_eq!(blocked.status.code(), Some(1), "{}", text(&blocked.stderr));
}

/// Checks the sections of each page, and those of `weir-bench.1` line by line.
fn check_pages(dir: &std::path::Path) {
    for name in names(dir) {
        let page = std::fs::read_to_string(dir.join(&name)).unwrap();
        assert!(!page.contains(".SH EXTRA"), "{name}: {page}");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        assert_eq!(sections[..3], ["NAME", "SYNOPSIS", "DESCRIPTION"], "{name}");
        for lines in page.split(".nf\n").skip(1) {
            for line in lines.lines().take_while(|line| *line != ".fi") {
                // The page's margin is 2 columns.
                let columns = line.replace("\\e", "e").replace('\\', "").chars().count() + 2;
                assert!(columns <= 80, "{name}: {columns} columns: {line}");
            }
        }
        if let Some(wide) = wide_line(&dir.join(&name)) {
            panic!("{name}: wider than 80 columns: {wide}");
        }
        // Examples are not filled: each begins a line of its own.
        if let Some(examples) = page.split(".SH \"EXAMPLES\"\n").nth(1) {
            let lines: Vec<&str> = examples.lines().take_while(|line| *line != ".fi").collect();
            assert!(
                lines[0] == ".in 2n" && lines[1] == ".nf" && lines[2].starts_with("weir"),
                "{name}: {lines:?}"
            );
        }
    }
    let page = std::fs::read_to_string(dir.join("weir-bench.1")).unwrap();
    for text in [
        ".SH \"EXAMPLES\"\n.in 2n\n.nf\nweir bench copy  ",
        ".SH \"EXIT STATUS\"\n.in 2n\n.nf\n0    success\n",
        "\n.SH NOTES\n~ marks a row",
        "[\\fB\\-\\-size\\fR\\ \\fISIZE\\fR]",
        "[\\fIWORKLOAD\\fR...]",
        "[\\fB\\-\\-exact\\fR]",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

/// Returns a line that man(1) prints wider than a terminal of 80 columns; `None` also without man(1).
fn wide_line(page: &std::path::Path) -> Option<String> {
    let mut man = std::process::Command::new("man");
    man.arg("-l").arg(page).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8").env_remove("MANPAGER");
    let output = man.env("PAGER", "cat").output().ok().filter(|output| output.status.success())?;
    let shown = text(&output.stdout);
    shown.lines().find(|line| line.chars().count() > 80).map(String::from)
}

#[test]
fn without_a_verb_weir_lists_the_verbs() {
    let dir = disk_dir();
    let output = run(dir.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bench"));
}
