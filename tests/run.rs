//! `weir run`: options, exit statuses, messages, terminals and environments.

mod common;
#[path = "common/session.rs"]
mod session;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::schema::assert_schema;
use common::{disk_dir, run, text, wait_for, weir};
use serde_json::Value;
use session::Session;
use weir_diagnose::RunOption;

/// Compiles a C program with the command `compiler`, which includes its options.
fn build(dir: &Path, name: &str, compiler: &[&str], source: &str) -> PathBuf {
    let (file, out) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, source).unwrap();
    let status = Command::new(compiler[0]).args(&compiler[1..]).arg(&file).arg("-o").arg(&out).status();
    assert!(status.expect("a compiler").success(), "{compiler:?} {name}");
    out
}

/// Prints the buffering mode of standard output at the start of main, as the C library reports it.
const MODES: &str = "#include <stdio.h>\n#include <stdio_ext.h>\nint main(void) { \
    const char *is = __flbf(stdout) ? \"line\" : __fbufsize(stdout) == 1 ? \"none\" : \"full\"; \
    printf(\"%s %zu\\n\", is, __fbufsize(stdout)); return 0; }\n";

fn errors(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn weir_exits_with_the_commands_status() {
    let dir = disk_dir();
    for options in [&[][..], &["-oL"], &["--rescue"], &["--pty"], &["--quiet", "--json", "j"]] {
        let status = |script: &str| {
            let words = [&["run"], options, &["--", "sh", "-c", script]].concat();
            let ended = run(dir.path(), &words).status;
            ended.code().or_else(|| ended.signal().map(|signal| 128 + signal))
        };
        assert_eq!(status("exit 7"), Some(7), "{options:?}");
        assert_eq!(status("kill -9 $$"), Some(137), "{options:?}");
        assert_eq!(status("kill -15 $$"), Some(143), "{options:?}");
    }
    for options in [&[][..], &["-oL"]] {
        let code = |word: &str| run(dir.path(), &[&["run"], options, &["--", word]].concat()).status.code();
        assert_eq!((code("weir-no-such"), code("/etc/passwd")), (Some(127), Some(126)), "{options:?}");
    }
}

#[test]
fn the_options_of_stdbuf_work_as_in_stdbuf() {
    let dir = disk_dir();
    let program = build(dir.path(), "modes", &["cc", "-O1"], MODES);
    let program = program.to_str().unwrap();
    let by = |options: &[&str]| {
        let output = run(dir.path(), &[&["run"], options, &["--", program]].concat());
        assert!(output.status.success(), "{options:?}: {}", errors(&output));
        assert_eq!(errors(&output), "", "{options:?}");
        text(&output.stdout)
    };
    for (options, mode) in [
        (&["-oL"][..], "line"),
        (&["-o0"], "none"),
        (&["--stdout", "none"], "none"),
        (&["--line"], "line"),
        (&["--stdout=full:100K"], "full 102400"),
        (&["-o", "64K"], "full 65536"),
        (&["-oL", "--stdout=auto"][1..], "full"),
    ] {
        assert!(by(options).starts_with(mode), "{options:?}: {}", by(options));
    }
}

#[test]
fn wrong_options_are_refused_before_the_command_runs() {
    let dir = disk_dir();
    for words in [
        &["-ox"][..],
        &["-iL"],
        &["--max-delay", "0"],
        &["--max-delay", "soon"],
        &["--file", "x"],
        &["--coalesce=pipes"],
        &["--line", "--full"],
        &["--nothing"],
    ] {
        let output = run(dir.path(), &[&["run"], words, &["--", "touch", "ran"]].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", errors(&output));
        assert!(!dir.path().join("ran").exists(), "{words:?}");
    }
    assert_eq!(run(dir.path(), &["run"]).status.code(), Some(2));
}

#[test]
fn impossible_options_and_substitutes_are_reported() {
    let dir = disk_dir();
    let program = build(dir.path(), "still", &["cc", "-static"], MODES);
    let program = program.to_str().unwrap();
    for option in ["--fix-order", "--coalesce", "--stdout=full:1M"] {
        let output = run(dir.path(), &["run", option, "--", program]);
        assert_eq!(output.status.code(), Some(125), "{option}");
        assert!(
            errors(&output).contains("statically") && output.stdout.is_empty(),
            "{option}: {}",
            errors(&output)
        );
    }
    let output = run(dir.path(), &["run", "-oL", "--", program]);
    assert!(output.status.success() && errors(&output).contains("10 ms"), "{}", errors(&output));
    let output = run(dir.path(), &["run", "-oL", "--quiet", "--", program]);
    assert_eq!(errors(&output), "");
}

#[test]
fn why_explains_the_plan_and_json_has_the_result() {
    let dir = disk_dir();
    let output = run(dir.path(), &["run", "--why", "-oL", "--", "echo", "x"]);
    assert!(errors(&output).contains("--stdout line done, by the library"), "{}", errors(&output));
    assert_eq!(text(&output.stdout), "x\n");
    let output = run(dir.path(), &["run", "--why=only", "--rescue", "--", "touch", "ran"]);
    assert!(text(&output.stdout).contains("--rescue done, from outside"), "{}", text(&output.stdout));
    assert!(!dir.path().join("ran").exists());
    let output = run(dir.path(), &["run", "--rescue", "--quiet", "--json", "j", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
    let document: Value = serde_json::from_slice(&std::fs::read(dir.path().join("j")).unwrap()).unwrap();
    assert_eq!(document["ended"]["exit"], serde_json::json!({"code": 3}));
    assert_schema(&document, "weir-run-1");
}

#[test]
fn a_terminal_keeps_the_two_streams_apart_and_every_byte() {
    let dir = disk_dir();
    let script = "test -t 1 && test -t 2 && printf 'a\\nb\\tc\\r\\n\\033[1mx' && echo error >&2; exit 5";
    let output = run(dir.path(), &["run", "--pty", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(output.stdout, b"a\nb\tc\r\n\x1b[1mx");
    assert_eq!(output.stderr, b"error\n");
    let many = run(dir.path(), &["run", "--pty", "--", "seq", "200000"]).stdout;
    assert_eq!(many, Command::new("seq").arg("200000").output().unwrap().stdout);
}

#[test]
fn a_background_process_can_write_to_the_terminal_after_the_command_ended() {
    let dir = disk_dir();
    let script = "(sleep 0.5; echo later) & echo now";
    let output = run(dir.path(), &["run", "--pty", "--", "sh", "-c", script]);
    assert_eq!(text(&output.stdout), "now\nlater\n");
}

#[test]
fn a_closed_reader_ends_the_writer_and_not_the_shell_that_waits_for_it() {
    let dir = disk_dir();
    let script =
        format!("{} run --pty -- sh -c 'yes; echo after $? > log' | head -n 1; cat log", common::WEIR);
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
    assert_eq!(text(&output.stdout), "y\nafter 141\n", "{}", text(&output.stderr));
}

#[test]
fn a_closed_reader_ends_the_program_as_with_a_pipe() {
    let dir = disk_dir();
    let script = format!("{} run --pty -- yes | head -n 1; wait", common::WEIR);
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
    assert_eq!(text(&output.stdout), "y\n");
}

#[test]
fn the_users_preload_and_variables_are_kept() {
    let dir = disk_dir();
    let mut command = weir(dir.path(), &["run", "-oL", "--", "sh", "-c", "echo $LD_PRELOAD; echo $RUBYOPT"]);
    command.env("LD_PRELOAD", "libm.so.6").env("RUBYOPT", "-W0");
    let output = text(&command.output().unwrap().stdout);
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].ends_with(":libm.so.6") && lines[0].contains("libweir-run.so"), "{output}");
    assert!(lines[1].starts_with("-W0 -r/") && lines[1].ends_with("/ruby/weir_run.rb"), "{output}");
}

#[test]
fn standard_input_is_passed_on_unchanged() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("in"), "1\n2\n3\n").unwrap();
    let script = "read a; echo $a; cat";
    for options in [&[][..], &["-oL"], &["--pty"], &["--rescue"]] {
        let words = [&["run"], options, &["--", "sh", "-c", script]].concat();
        let mut command = weir(dir.path(), &words);
        command.stdin(Stdio::from(std::fs::File::open(dir.path().join("in")).unwrap()));
        assert_eq!(text(&command.output().unwrap().stdout), "1\n2\n3\n", "{options:?}");
    }
}

#[test]
fn children_do_not_read_a_private_standard_input() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("in"), "1\n2\n3\n").unwrap();
    let script = "while read a; do cat > /dev/null; echo $a; done";
    for (options, lines) in [(&["--private-stdin"][..], "1\n2\n3\n"), (&["-oL"], "1\n")] {
        let words = [&["run"], options, &["--", "sh", "-c", script]].concat();
        let mut command = weir(dir.path(), &words);
        command.stdin(Stdio::from(std::fs::File::open(dir.path().join("in")).unwrap()));
        assert_eq!(text(&command.output().unwrap().stdout), lines, "{options:?}");
    }
}

/// Returns the option after this one, so that the compiler demands a line for each new option.
fn next_option(option: &RunOption) -> Option<RunOption> {
    match option {
        RunOption::Coalesce => Some(RunOption::MaxDelay),
        RunOption::MaxDelay => Some(RunOption::Rescue),
        RunOption::Rescue => Some(RunOption::RescueAtExec),
        RunOption::RescueAtExec => Some(RunOption::FixFork),
        RunOption::FixFork => Some(RunOption::FixOrder),
        RunOption::FixOrder => Some(RunOption::Line),
        RunOption::Line => Some(RunOption::FileLines("log".into())),
        RunOption::FileLines(_) => Some(RunOption::PrivateStdin),
        RunOption::PrivateStdin => None,
    }
}

#[test]
fn options_that_findings_recommend_are_accepted() {
    let dir = disk_dir();
    for option in std::iter::successors(Some(RunOption::Coalesce), next_option) {
        let words = option.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(dir.path(), &[&["run"], &words[..], &["--quiet", "--", "echo", "x"]].concat());
        assert!(output.status.success(), "{words:?}: {}", errors(&output));
        assert_eq!(text(&output.stdout), "x\n", "{words:?}");
    }
}

/// An interactive shell needs its controlling terminal as standard error, or it has no job control.
#[test]
fn pty_keeps_the_outputs_that_are_terminals() {
    let dir = disk_dir();
    let shell = "weir=$1; tty; tty <&1; tty <&2; $weir run -q --pty -- sh -c 'tty <&1; tty <&2; test -t 1 && echo done'; \
                 $weir run -q --pty -- bash --norc --noprofile -ic 'jobs; echo end'; \
                 $weir run -q --pty -- sh -c 'tty <&2; test -t 1 && echo piped' | cat";
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_weir")]).current_dir(dir.path());
    let session = Session::start(command, 120, 60);
    session.until("the end", |text| text.lines().any(|line| line.trim() == "piped"));
    let screen = session.text();
    let lines: Vec<&str> = screen.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tty = lines[0];
    assert!(tty.starts_with("/dev/"), "{screen}");
    assert_eq!(lines, [tty, tty, tty, tty, tty, "done", "end", tty, "piped"], "{screen}");
}

/// Ctrl-Z, bg and fg in an interactive shell work as with the command alone: in the background, SIGTTIN stops cat,
/// because it reads from the terminal; in the foreground it continues.
#[test]
fn job_control_works_as_with_the_command_alone() {
    let dir = disk_dir();
    for option in ["--max-delay=50ms", "--rescue", "--pty"] {
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-i"]).current_dir(dir.path());
        shell.env("PS1", "$ ").env("HISTFILE", "/dev/null");
        let mut session = Session::start(shell, 120, 60);
        let twice = |word: &str, text: &str| text.lines().filter(|line| line.trim() == word).count() == 2;
        let weir = env!("CARGO_BIN_EXE_weir");
        // Keys that are typed before the prompt go to the shell's line editor.
        let prompt = |text: &str| text.lines().last().is_some_and(|line| line.trim_end().ends_with('$'));
        session.until("the shell", prompt);
        session.keys(&format!("{weir} run {option} -- sh -c 'echo ready; exec cat'\n"));
        session.until("it runs", |text| text.lines().any(|line| line.trim() == "ready"));
        session.keys("one\n");
        session.until("cat answers", |text| twice("one", text));
        session.keys("\x1a");
        session.until("it is stopped", |text| text.contains("Stopped") && prompt(text));
        session.keys("echo status $?\n");
        // 128 + SIGTSTP.
        session.until("the status of a stop by the terminal", |text| {
            text.contains("status 148") && prompt(text)
        });
        session.keys("bg\n");
        session.until("it is in the background", |text| text.contains("[1]+ ") && prompt(text));
        std::thread::sleep(std::time::Duration::from_millis(300));
        session.keys("fg\n");
        let announced =
            |text: &str| text.lines().filter(|line| line.starts_with(weir) && !line.contains('&')).count();
        session.until("it is in the foreground", |text| announced(text) == 1);
        session.keys("two\n");
        session.until("cat goes on", |text| twice("two", text));
        session.keys("\x03");
        session.until("Ctrl-C ends it", |text| text.contains("^C") && prompt(text));
        session.keys("echo ended $?\n");
        session.until("its status", |text| text.contains("ended 130"));
        session.keys("exit\n");
        session.end();
    }
}

/// As cpulimit(1) does it: weir, which stops with the command, must not keep it stopped.
#[test]
fn a_command_goes_on_when_it_alone_is_continued() {
    let dir = disk_dir();
    for option in ["--coalesce", "--rescue"] {
        let script = "kill -s STOP $$; echo went on";
        let mut command = weir(dir.path(), &["run", option, "--quiet", "--", "sh", "-c", script]);
        let mut weir = command.stdout(Stdio::piped()).spawn().expect("weir starts");
        let state = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        };
        let pid = weir.id().to_string();
        wait_for("weir stops", || state(&pid) == Some('T'));
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
        let command = children.split(' ').next().expect("the command").to_string();
        assert!(Command::new("kill").args(["-s", "CONT", &command]).status().expect("kill").success());
        wait_for("weir ends", || weir.try_wait().expect("its state").is_some());
        let output = weir.wait_with_output().expect("its output");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "went on\n"), "{option}");
    }
}

/// Before, a copy of the killed interpreter was single-stepped for up to 40 s. CPU time is counted, because other
/// programs may use the processors.
#[test]
fn a_cpython_killed_while_it_starts_dies_at_once() {
    const LIMIT_NS: u64 = 1_500_000_000;
    let dir = disk_dir();
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let python = text(&python.expect("python3").stdout).trim().to_string();
    for delay in ["0.002", "0.008", "0.014", "0.016", "0.020", "0.030", "0.050"] {
        let script = format!("'{python}' -c 'import time; time.sleep(9)' & sleep {delay}; kill -9 $!; wait");
        let mut weir = weir(dir.path(), &["run", "--quiet", "--rescue", "--", "sh", "-c", &script]);
        let mut running =
            weir.stdout(Stdio::null()).env_remove("PYTHONUNBUFFERED").spawn().expect("weir starts");
        // SAFETY: a struct of integers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let mut status = 0;
        // SAFETY: the child is not reaped; the call fills two locals.
        unsafe { libc::wait4(running.id() as i32, &mut status, 0, &mut usage) };
        let _reaped = running.try_wait();
        let nanoseconds =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        let cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
        assert!(cpu_ns < LIMIT_NS, "killed after {delay} s: {} ms of CPU time", cpu_ns / 1_000_000);
    }
}

#[test]
fn a_result_that_cannot_be_written_does_not_change_the_status() {
    let dir = disk_dir();
    for (verb, options) in [("run", &["--rescue"][..]), ("trace", &["--quiet"])] {
        let arguments = [&[verb], options, &["--json", "/dev/full", "--", "sh", "-c", "exit 3"]].concat();
        let output = run(dir.path(), &arguments);
        assert_eq!(output.status.code(), Some(3), "{verb}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("ENOSPC"), "{verb}: {}", text(&output.stderr));
        let arguments = [&[verb], options, &["--json", "none/j", "--", "touch", "started"]].concat();
        assert_eq!(run(dir.path(), &arguments).status.code(), Some(125), "{verb}");
        assert!(!dir.path().join("started").exists(), "{verb}: checked before the start");
    }
}

#[test]
fn a_delay_is_written_as_a_size_is() {
    let dir = disk_dir();
    for (delay, why) in [
        ("1e3", "write a number and a unit"),
        ("18446744073709551615", "too large"),
        ("-1", "must be positive"),
    ] {
        let output = run(dir.path(), &["run", &format!("--max-delay={delay}"), "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{delay}");
        assert!(text(&output.stderr).contains(why), "{delay}: {}", text(&output.stderr));
    }
}

/// Runs a program of Python that is killed with pending bytes for /dev/full; no file may have more than `limit` bytes.
fn killed_with_a_limit(dir: &Path, limit: &str) -> Output {
    const KILLED: &str =
        "import os; f = open('/dev/full', 'w'); f.write('a' * 3000); os.kill(os.getpid(), 9)";
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={limit}")).args([common::WEIR, "run", "--rescue", "--", "/usr/bin/python3"]);
    command.args(["-c", KILLED]).current_dir(dir).env("TMPDIR", dir).output().expect("prlimit")
}

#[test]
fn the_limit_of_file_sizes_does_not_end_weir_while_it_saves_bytes() {
    let dir = disk_dir();
    let output = killed_with_a_limit(dir.path(), "1024");
    assert_eq!(output.status.code(), Some(137), "{}", errors(&output));
    assert!(errors(&output).contains("could not be saved: EFBIG"), "{}", errors(&output));
    assert_eq!(common::names(dir.path()), [""; 0], "no part of the bytes");
    let output = killed_with_a_limit(dir.path(), "4096");
    assert_eq!(output.status.code(), Some(137), "{}", errors(&output));
    let saved = common::names(dir.path()).into_iter().find(|name| name.ends_with(".bin")).expect("a file");
    assert_eq!(std::fs::read(dir.path().join(saved)).expect("its bytes"), b"a".repeat(3000));
}
