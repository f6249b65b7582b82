//! `weir peek` and `weir flush` on real programs: no byte is lost or written twice, and the programs run on unchanged.

mod common;
#[path = "peek_flush/go.rs"]
mod go;
#[path = "peek_flush/large_heaps.rs"]
mod large_heaps;
#[path = "peek_flush/programs.rs"]
mod programs;
#[path = "peek_flush/rust.rs"]
mod rust;
#[cfg(target_arch = "x86_64")] // On aarch64 weir does not see that a call was interrupted.
#[path = "peek_flush/timed_waits.rs"]
mod timed_waits;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::schema::assert_schema;
use common::{disk_dir, has, run, skip, text};
use programs::{Program, builds, built, cpp_builds, interpreted};
use serde_json::Value;

/// Runs `weir flush ARGUMENTS… PID`.
fn flush(program: &Program, arguments: &[&str]) -> std::process::Output {
    let pid = program.pid().to_string();
    run(program.dir(), &[&["flush"], arguments, &[&pid]].concat())
}

#[test]
fn a_sleeping_program_writes_all_once() {
    for (compiler, flags) in builds() {
        let Some(path) = built("a_sleeping_program_writes_all_once", compiler, flags, "waits.c") else {
            return;
        };
        for call in ["sleep", "poll", "epoll_wait", "read"] {
            let mut program = Program::start(Command::new(&path).arg(call));
            // musl writes the first lines at once.
            let pending = 13 - program.out().len();
            let output = flush(&program, &[]);
            let what = format!("{compiler} {flags:?} {call}: {}", text(&output.stderr));
            assert!(output.status.success(), "{what}");
            assert!(text(&output.stdout).contains(&format!("{pending} B written to descriptor 1")), "{what}");
            assert_eq!(program.out(), "one\ntwo\nthree", "{what}");
            let again = flush(&program, &[]);
            assert!(again.status.success() && text(&again.stdout).contains("nothing is pending"), "{what}");
            assert_eq!(program.end(), Some(0), "{what}: its call continues");
            assert_eq!(program.out(), "one\ntwo\nthree end\n", "{what}");
        }
    }
}

#[test]
fn python_and_perl_write_all_once() {
    for (interpreter, script, other) in [
        ("python3", "waits.py", ("binary", "in binary end\n")),
        ("perl", "waits.pl", ("file", "in a file end\n")),
    ] {
        if !has(interpreter) {
            skip("python_and_perl_write_all_once", &format!("{interpreter} is not installed"));
            continue;
        }
        let mut program = Program::start(&mut interpreted(interpreter, script));
        let output = flush(&program, &["--json", "-"]);
        assert!(output.status.success(), "{interpreter}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_schema(&document, "weir-flush-1");
        let before = program.out();
        let name = program.dir().join(other.0);
        assert_eq!(fs::read_to_string(&name).unwrap(), other.1.trim_end_matches(" end\n"), "{interpreter}");
        assert_eq!(program.end(), Some(0), "{interpreter}: its file positions are right");
        assert_eq!(program.out(), format!("{before} end\n"), "{interpreter}");
        assert!(before.starts_with("one"), "{interpreter}");
        assert_eq!(fs::read_to_string(&name).unwrap(), other.1, "{interpreter}");
    }
}

#[test]
fn the_wait_for_a_locked_stream_is_limited() {
    let test = "the_wait_for_a_locked_stream_is_limited";
    let Some(path) = built(test, "gcc", &["-pthread"], "held.c") else { return };
    let mut program = Program::start(&mut Command::new(path));
    let began = Instant::now();
    let output = flush(&program, &["--wait", "300ms"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(began.elapsed() < Duration::from_secs(30), "flush hangs");
    assert!(errors.contains("holds the lock of the stream of descriptor 1, and is in read"), "{errors}");
    assert!(errors.contains("4 B") && program.out().is_empty(), "{errors}");
    program.close_stdin();
    program.wait_for_byte();
    assert!(flush(&program, &[]).status.success());
    assert_eq!(program.out(), "held");
}

#[test]
fn a_closed_reader_is_an_error_at_once() {
    let test = "a_closed_reader_is_an_error_at_once";
    let Some(path) = built(test, "gcc", &[], "waits.c") else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let program = Program::start_to(Command::new(path).arg("read"), writer.into());
    let began = Instant::now();
    let output = flush(&program, &["--wait", "60s"]);
    let errors = text(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("write: EPIPE: Broken pipe"), "{errors}");
    assert!(
        errors.contains("13 B for descriptor 1") && began.elapsed() < Duration::from_secs(30),
        "{errors}"
    );
}

#[test]
fn a_file_buffer_of_cpp_is_written_once() {
    for (compiler, flags) in cpp_builds("a_file_buffer_of_cpp_is_written_once") {
        let Some(path) = built("a_file_buffer_of_cpp_is_written_once", compiler, flags, "buffers.cc") else {
            return;
        };
        let mut program = Program::start(Command::new(&path).arg("read"));
        let output = flush(&program, &[]);
        let what = format!("{flags:?}: {}", text(&output.stderr));
        // The first byte of a file buffer of libc++ is in the C library's stream.
        let parts: &[&str] = if compiler == "g++" { &["13 B"] } else { &["1 B", "12 B"] };
        let says = |part: &&str| text(&output.stdout).contains(&format!("{part} written to"));
        assert!(output.status.success() && parts.iter().all(says), "{what}{}", text(&output.stdout));
        assert_eq!(program.out(), "one\ntwo\nthree", "{what}");
        let again = flush(&program, &[]);
        assert!(again.status.success() && text(&again.stdout).contains("nothing is pending"), "{what}");
        assert_eq!(program.end(), Some(0), "{what}");
        assert_eq!(program.out(), "one\ntwo\nthree end\n", "{what}");
    }
}

/// flush does not stop the program while it waits for a reader that does not read.
#[test]
fn a_full_pipe_takes_the_rest_at_the_next_flush() {
    let test = "a_full_pipe_takes_the_rest_at_the_next_flush";
    let of_c = builds().into_iter().map(|(compiler, flags)| (compiler, flags, "waits.c"));
    let of_cpp = cpp_builds(test).into_iter().map(|(compiler, flags)| (compiler, flags, "buffers.cc"));
    let of_go = go::builds().map(|(compiler, flags)| (compiler, flags, "buffers.go"));
    for (compiler, flags, source) in of_c.chain(of_cpp).chain(of_go) {
        let Some(path) = built(test, compiler, flags, source) else { return };
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[b'.'; 40_000]).unwrap();
        let program_end = writer.try_clone().unwrap();
        let mut program = Program::start_to(Command::new(&path).args(["read", "50000"]), program_end.into());
        // On a busy machine the threads may not rest in this time, and flush then writes nothing.
        let attempt = || {
            let output = flush(&program, &["--wait", "200ms"]);
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            text(&output.stderr)
        };
        let errors: Vec<String> = (0..20)
            .map(|_| attempt())
            .take_while(|text| !text.contains("is full: its reader is late"))
            .collect();
        assert!(errors.len() < 20, "{errors:?}");
        let drained = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        let output = flush(&program, &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(program.end(), Some(0));
        drop(writer);
        let letters = (0..50_000).map(|at| b'a' + (at % 26) as u8);
        let expected: Vec<u8> = std::iter::repeat_n(b'.', 40_000).chain(letters).chain(*b" end\n").collect();
        assert!(drained.join().unwrap() == expected, "{compiler} {flags:?}");
    }
}

fn assert_lines(out: &str, lines: usize, what: &str) {
    let expected: String = (0..lines).map(|line| format!("line {line}\n")).collect();
    if out != expected {
        let wrong = out.lines().zip(expected.lines()).find(|(one, other)| one != other);
        panic!("{what}: {} lines of {lines}, first wrong: {wrong:?}", out.lines().count());
    }
}

#[test]
fn each_line_is_written_once_when_flushed_at_random_times() {
    let test = "each_line_is_written_once_when_flushed_at_random_times";
    let mut commands = Vec::new();
    for (compiler, flags) in builds() {
        let Some(path) = built(test, compiler, flags, "lines.c") else { return };
        let mut command = Command::new(path);
        command.arg("400000");
        commands.push((command, 400_000, 70));
    }
    for (compiler, flags) in cpp_builds(test) {
        let Some(path) = built(test, compiler, flags, "buffers.cc") else { return };
        let mut command = Command::new(path);
        command.args(["lines", "400000"]);
        commands.push((command, 400_000, 70));
    }
    for (compiler, flags) in go::builds() {
        let Some(path) = built(test, compiler, flags, "buffers.go") else { return };
        let mut command = Command::new(path);
        command.args(["lines", "400000"]);
        commands.push((command, 400_000, 40));
    }
    if has("python3") {
        let mut command = interpreted("python3", "lines.py");
        command.arg("200000");
        commands.push((command, 200_000, 30));
    }
    for (mut command, lines, flushes) in commands {
        let (mut well, mut pause, mut runs) = (0, 1, 0..5);
        // On a busy machine, a program can end before many flushes were made.
        while well <= 3 && runs.next().is_some() {
            well += flush_at_random(&mut command, lines, flushes, &mut pause);
        }
        assert!(well > 3, "{command:?}: only {well} flushes wrote anything: the test shows nothing");
    }
}

/// Runs a program that prints numbered lines, flushes its buffers at random times, and checks the lines. Returns how many of
/// the flushes wrote anything.
fn flush_at_random(command: &mut Command, lines: usize, flushes: usize, pause: &mut u64) -> usize {
    let mut program = Program::start_silent(command);
    let mut well = 0;
    for _ in 0..flushes {
        well += usize::from(text(&flush(&program, &[]).stdout).contains("written to"));
        *pause = *pause * 48271 % 2_147_483_647;
        std::thread::sleep(Duration::from_micros(*pause % 5000));
    }
    assert_eq!(program.end(), Some(0), "{command:?}");
    assert_lines(&program.out(), lines, &format!("{command:?}"));
    well
}

/// The program's only system calls are its own writes. There may be no safe moment to flush; then flush must change
/// nothing.
#[test]
fn a_program_that_counts_in_registers_is_not_harmed() {
    let test = "a_program_that_counts_in_registers_is_not_harmed";
    let Some(path) = built(test, "gcc", &["-O2"], "count.c") else { return };
    let mut program = Program::start_silent(&mut Command::new(path));
    for _ in 0..20 {
        let output = flush(&program, &["--wait", "20ms"]);
        let errors = text(&output.stderr);
        let known = [
            "descriptor 1 itself",
            "computes",
            "in the middle",
            "rest",
            "ESRCH",
            "no process",
            "has ended",
            "late",
        ];
        assert!(output.status.success() || known.iter().any(|one| errors.contains(one)), "{errors}");
    }
    assert_eq!(program.end(), Some(0));
    let out = program.out().into_bytes();
    let wrong = out.iter().enumerate().find(|(at, byte)| **byte != b'0' + (*at as u32 % 251 % 64) as u8);
    assert_eq!((out.len(), wrong), (100 << 20, None));
}

#[test]
fn every_flushes_until_the_program_ends() {
    let Some(path) = built("every_flushes_until_the_program_ends", "gcc", &[], "lines.c") else { return };
    let mut program = Program::start_silent(Command::new(path).arg("400000"));
    let output = flush(&program, &["--every", "10ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(program.end(), Some(0));
    assert_lines(&program.out(), 400_000, "--every");
    assert!(text(&output.stdout).lines().count() > 1, "{}", text(&output.stdout));
}

#[test]
fn a_stopped_program_stays_stopped() {
    let Some(path) = built("a_stopped_program_stays_stopped", "gcc", &[], "waits.c") else { return };
    let mut program = Program::start(Command::new(path).arg("poll"));
    program.signal(rustix::process::Signal::STOP);
    let is_stopped = || text(&fs::read(format!("/proc/{}/stat", program.pid())).unwrap()).contains(") T ");
    while !is_stopped() {
        std::thread::yield_now();
    }
    let output = flush(&program, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(program.out(), "one\ntwo\nthree");
    assert!(is_stopped(), "the program runs again");
    program.signal(rustix::process::Signal::CONT);
    assert_eq!(program.end(), Some(0));
}

#[test]
fn unreachable_processes_are_errors() {
    let dir = disk_dir();
    let mut ended = Command::new("true").spawn().unwrap();
    let zombie = ended.id().to_string();
    while !text(&fs::read(format!("/proc/{zombie}/stat")).unwrap_or_default()).contains(") Z ") {
        std::thread::yield_now();
    }
    for verb in ["peek", "flush"] {
        for (pid, status, expected) in [
            ("2147483000", 1, "no process 2147483000"),
            (zombie.as_str(), 1, "is a zombie: it has ended"),
            ("0", 2, "'0' is not a PID"),
            ("x", 2, "'x' is not a PID"),
        ] {
            let output = run(dir.path(), &[verb, pid]);
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{verb} {pid}: {errors}");
            assert!(errors.contains(expected), "{verb} {pid}: {errors}");
        }
        assert_eq!(run(dir.path(), &[verb]).status.code(), Some(2));
        let bad = run(dir.path(), &[verb, "--json", "/nowhere/x", "1"]);
        assert_eq!(bad.status.code(), Some(2), "{}", text(&bad.stderr));
    }
    ended.wait().unwrap();
}

#[test]
fn a_process_with_a_tracer_is_refused() {
    let test = "a_process_with_a_tracer_is_refused";
    let Some(path) = built(test, "gcc", &[], "waits.c") else { return };
    if !has("strace") {
        return skip(test, "strace is not installed");
    }
    let mut program = Program::start(Command::new(path).arg("read"));
    let pid = program.pid().to_string();
    let mut strace =
        Command::new("strace").args(["-o", "/dev/null", "-p", &pid]).stderr(Stdio::null()).spawn().unwrap();
    let traced = || !text(&fs::read(format!("/proc/{pid}/status")).unwrap()).contains("TracerPid:\t0\n");
    while !traced() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = flush(&program, &[]);
    let (errors, tracer) = (text(&output.stderr), format!("is traced by process {} (strace)", strace.id()));
    assert!(output.status.code() == Some(1) && errors.contains(&tracer), "{errors}");
    let peek = run(program.dir(), &["peek", &pid]);
    assert!(text(&peek.stdout).contains("13 B"), "peek needs no ptrace: {}", text(&peek.stderr));
    strace.kill().unwrap();
    strace.wait().unwrap();
    assert_eq!(program.end(), Some(0));
}

#[test]
fn peek_shows_pending_bytes_their_age_and_their_reader() {
    let test = "peek_shows_pending_bytes_their_age_and_their_reader";
    let Some(path) = built(test, "gcc", &[], "waits.c") else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    let mut program = Program::start_to(Command::new(path).arg("read"), writer.into());
    let mut cat = Command::new("cat").stdin(reader).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    let pid = program.pid().to_string();
    let output = run(program.dir(), &["peek", &pid]);
    let screen = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for expected in [
        &format!("({pid}), asleep in read of descriptor 0 for "),
        &format!("pipe → cat {}", cat.id()),
        "full 4 KiB",
        "13 B",
        "at least",
        "in 4,083 B, or at exit",
        r#""one\ntwo\nthree""#,
        &format!("weir flush {pid}"),
        "weir run --max-delay 100ms -- ",
    ] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    let output = run(program.dir(), &["peek", "--full", "--json", "-", &pid]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_schema(&document, "weir-peek-1");
    let stream =
        document["processes"][0]["streams"].as_array().unwrap().iter().find(|one| one["fd"] == 1).unwrap();
    assert_eq!((&stream["pending_bytes"], &stream["preview_bytes"]), (&13.into(), &13.into()));
    assert!(stream["since_s"].as_f64().unwrap() >= 0.2, "{stream}");
    assert!(stream["peers"].as_array().unwrap().iter().any(|one| one["pid"] == cat.id()), "{stream}");
    assert_eq!(program.end(), Some(0), "peek changes nothing");
    cat.wait().unwrap();
}

#[test]
fn children_are_flushed_with_their_parent() {
    let Some(path) = built("children_are_flushed_with_their_parent", "gcc", &[], "waits.c") else { return };
    let script = format!("exec 3<&0; {} read <&3 & wait", path.display());
    let mut program = Program::start(Command::new("sh").args(["-c", &script]));
    let pid = program.pid().to_string();
    assert!(!text(&run(program.dir(), &["peek", &pid]).stdout).contains("13 B"));
    let peek = text(&run(program.dir(), &["peek", "--children", &pid]).stdout);
    assert!(peek.contains("13 B") && peek.contains("sh -c"), "{peek}");
    assert!(flush(&program, &["--children"]).status.success());
    assert_eq!(program.out(), "one\ntwo\nthree");
    assert_eq!(program.end(), Some(0));
    assert_eq!(program.out(), "one\ntwo\nthree end\n");
}
