//! Flushes of stdio by the library meet signal handlers, failing execs and other threads.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{directory, prepare, program};
use weir_control::preload::PreloadConfig;

/// Returns what a program prints with this configuration. Kills it after 20 s.
fn output(program: &Path, arguments: &[&str], config: &PreloadConfig) -> String {
    let mut command = Command::new(program);
    prepare(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()), config);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn order() -> PreloadConfig {
    PreloadConfig { order: true, ..PreloadConfig::default() }
}

fn exec_flush() -> PreloadConfig {
    PreloadConfig { exec_flush: true, ..PreloadConfig::default() }
}

#[test]
fn a_write_in_a_handler_does_not_flush_inside_stdio() {
    for compiler in ["cc", "musl-gcc"] {
        let handlers = program(compiler, "handlers");
        for case in ["locked", "unlocked"] {
            let printed = output(&handlers, &[case], &order());
            assert_eq!(printed, "0 lines wrong, status 0", "{compiler}, {case}");
        }
    }
}

#[test]
fn an_exec_in_a_handler_does_not_flush_inside_stdio() {
    for compiler in ["cc", "musl-gcc"] {
        let handlers = program(compiler, "handlers");
        for case in ["locked-exec", "unlocked-exec"] {
            let printed = output(&handlers, &[case], &exec_flush());
            assert_eq!(printed, "0 lines wrong, status 0", "{compiler}, {case}");
        }
    }
}

#[test]
fn a_handler_outside_of_stdio_flushes() {
    for compiler in ["cc", "musl-gcc"] {
        let handlers = program(compiler, "handlers");
        assert_eq!(output(&handlers, &["idle"], &order()), "stdio handler ", "{compiler}");
        assert_eq!(output(&handlers, &["jump"], &order()), "stdio write ", "{compiler}");
        assert_eq!(output(&handlers, &["idle-exec"], &exec_flush()), "stdio ", "{compiler}");
        assert_eq!(output(&handlers, &["actions"], &order()), "4 right", "{compiler}");
    }
}

#[test]
fn a_failing_exec_writes_no_byte_twice() {
    let dir = directory();
    let file = dir.path().join("empty");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let failing = program("cc", "failing_exec");
    let run = |how: &str| output(&failing, &[how, file.to_str().unwrap()], &exec_flush());
    assert_eq!(run("missing"), "parent inherited own inherited ");
    assert_eq!(run("exec"), "parent own later inherited ");
    assert_eq!(run("exit"), "parent own inherited later inherited ");
    assert_eq!(run("end"), "parent own inherited ");
}

#[test]
fn fclose_waits_for_a_flush_of_another_thread() {
    assert_eq!(output(&program("cc", "closes"), &[], &order()), "w");
}
