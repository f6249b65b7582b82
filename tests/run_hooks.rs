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

/// Ruby and Perl do not start if a file that a variable names cannot be found.
#[test]
fn a_program_that_changes_the_search_path_still_starts() {
    const NAME: &str = "a_program_that_changes_the_search_path_still_starts";
    let dir = disk_dir();
    let print = [
        ("ruby", "RUBYLIB", "ruby -e 'puts STDOUT.sync, $:.include?(%q(/own))'", "true\ntrue\n"),
        ("perl", "PERL5LIB", "perl -e 'print qq($|\n), (grep { $_ eq q(/own) } @INC) + 0, qq(\n)'", "1\n1\n"),
        ("perl", "PERLLIB", "perl -e 'print qq($|\n), (grep { $_ eq q(/own) } @INC) + 0, qq(\n)'", "1\n1\n"),
    ];
    for (name, variable, program, expected) in print {
        if !has(name) {
            skip(NAME, &format!("{name} is not installed"));
            continue;
        }
        for script in [format!("{variable}=/own {program}"), format!("env {variable}=/own {program}")] {
            let mut command = weir(dir.path(), &["run", "--stdout", "line", "--", "sh", "-c", &script]);
            for other in ["RUBYLIB", "PERL5LIB", "PERLLIB"] {
                command.env_remove(other);
            }
            let output = command.output().unwrap();
            assert_eq!(text(&output.stdout), expected, "{script}: {}", text(&output.stderr));
        }
        let unset = format!("unset {variable}; {}", program.replace("/own", "/dev"));
        let output = run(dir.path(), &["run", "-oL", "--", "sh", "-c", &unset]);
        assert!(output.status.success(), "{unset}: {}", text(&output.stderr));
    }
}

/// weir's thread in Ruby never ends.
#[test]
fn a_ruby_program_that_joins_all_its_threads_ends() {
    let dir = disk_dir();
    if !has("ruby") {
        return skip("a_ruby_program_that_joins_all_its_threads_ends", "ruby is not installed");
    }
    let program = "others = Thread.list - [Thread.current]; p others.size, ThreadGroup::Default.list.size; \
                   exit! 1 unless others.empty?; others.each(&:join); puts 'end'";
    let output = run(dir.path(), &["run", "--", "ruby", "-w", "-e", program]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("0\n1\nend\n", ""));
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
