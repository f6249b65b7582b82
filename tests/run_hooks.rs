//! Hooks that runtimes load under `weir run`: they keep a program's own settings, and set the mode that was asked for.

mod common;

use std::process::{Command, Stdio};

use common::{disk_dir, has, run, skip, text, weir};

#[test]
fn hooks_of_runtimes_keep_the_programs_own_settings() {
    let dir = disk_dir();
    std::fs::create_dir(dir.path().join("own")).unwrap();
    std::fs::write(dir.path().join("own/sitecustomize.py"), "import sys; sys.own = 1\n").unwrap();
    let python =
        "import sys, os; print(sys.own, any('hooks' in p for p in sys.path), sys.stdout.line_buffering)";
    let output = weir(dir.path(), &["run", "-oL", "--", "python3", "-c", python])
        .env("PYTHONPATH", dir.path().join("own"))
        .env_remove("PYTHONUNBUFFERED")
        .output()
        .unwrap();
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("1 False True\n", ""));
    let tcl = dir.path().join("x.tcl");
    std::fs::write(
        &tcl,
        "package require msgcat; puts [fconfigure stdout -buffering]; puts [info library]\n",
    )
    .unwrap();
    let by = |options: &[&str]| {
        let words = [&["run"], options, &["--", "tclsh", tcl.to_str().unwrap()]].concat();
        text(&run(dir.path(), &words).stdout)
    };
    let bare = Command::new("tclsh").arg(&tcl).output().unwrap();
    let bare = text(&bare.stdout);
    assert!(bare.starts_with("line\n"), "{bare}");
    assert_eq!(by(&["-o0"]), bare.replacen("line", "none", 1));
    assert_eq!(by(&["-o", "full"]), bare.replacen("line", "full", 1));
}

/// Prints 20,000 lines of 100 bytes, and then on standard error the number of its write calls.
const PROGRAMS: [(&str, &str); 3] = [
    (
        "perl",
        "print 'y' x 99, \"\\n\" for 1..20000; $| = 1; open F, '/proc/self/io'; print STDERR map /syscw: (\\d+)/, <F>;",
    ),
    (
        "python3",
        "import sys\nfor i in range(20000): print('y' * 99)\nsys.stdout.flush()\n\
            print([line[7:-1] for line in open('/proc/self/io') if 'syscw' in line][0], end='', file=sys.stderr)\n",
    ),
    (
        "ruby",
        "20000.times { puts 'y' * 99 }; STDOUT.flush; STDERR.print File.read('/proc/self/io')[/syscw: (\\d+)/, 1]",
    ),
];

#[test]
fn a_full_buffer_makes_no_more_calls_than_without_weir() {
    let dir = disk_dir();
    for (name, program) in PROGRAMS {
        if !has(name) {
            skip("a_full_buffer_makes_no_more_calls_than_without_weir", &format!("{name} is not installed"));
            continue;
        }
        let option = if name == "python3" { "-c" } else { "-e" };
        let calls = |command: &mut Command| {
            let output =
                command.env_remove("PYTHONUNBUFFERED").stdout(Stdio::null()).output().expect("it starts");
            let errors = text(&output.stderr);
            errors
                .lines()
                .last()
                .and_then(|line| line.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("{name}: {errors}"))
        };
        let bare = calls(Command::new(name).args([option, program]));
        let by = |mode: &str| {
            calls(&mut weir(dir.path(), &["run", "-q", "-o", mode, "--", name, option, program]))
        };
        assert!(bare < 1000, "{name}: {bare}");
        for mode in ["full", "64K"] {
            assert!(by(mode) <= bare + 10, "{name} {mode}: {} instead of {bare}", by(mode));
        }
        assert!(by("line") >= 20_000, "{name}: {}", by("line"));
    }
}
