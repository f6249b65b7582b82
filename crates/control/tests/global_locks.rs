//! With --max-delay and --rescue each line of several threads is written once and in its thread's order, in runtimes with a global
//! lock: a thread may wait for it between its write and the note of it. For CPython see python_threads.rs.
//!
//! WEIR_FOLLOW_FULL=1 kills each program 200 times.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{OCAML_BUILDS, compile, folder, output, skip, supervised, text, until};

/// The number of threads that write.
const THREADS: usize = 4;
/// Lines of each thread.
const LINES: usize = 60;

fn check(folder: &Path, command: &[&str]) {
    for delay in ["1", "3"] {
        // With O_APPEND the position of the file does not show that bytes are written.
        let file = folder.join(format!("lines-{delay}"));
        let lines = LINES.to_string();
        let words: Vec<&str> = command.iter().copied().chain([text(&file), &lines]).collect();
        let got = output(&mut supervised(&["--max-delay", delay], &words));
        assert!(got.status.success(), "{command:?}: {}", String::from_utf8_lossy(&got.stderr));
        let written = std::fs::read_to_string(&file).expect("the lines");
        for thread in 0..THREADS {
            let prefix = format!("{thread} ");
            let of_thread: String =
                written.split_inclusive('\n').filter(|line| line.starts_with(&prefix)).collect();
            let wanted: String =
                (0..LINES).map(|number| format!("{thread} {number} a line that ends here\n")).collect();
            assert_eq!(of_thread, wanted, "{command:?}, {delay} ms, thread {thread}");
        }
        assert_eq!(written.lines().count(), THREADS * LINES, "{command:?}, {delay} ms");
    }
}

/// Kills the program, and returns the first line that is there twice or out of order; the last one may be cut off.
fn wrong_after_kill(folder: &Path, command: &[&str], round: u64, options: &[&str]) -> Option<String> {
    let file = folder.join(format!("killed-{round}"));
    let words: Vec<&str> = command.iter().copied().chain([text(&file), "1000000"]).collect();
    let weir = supervised(options, &words).current_dir(folder).spawn().expect("weir starts");
    until("the first lines", || std::fs::metadata(&file).is_ok_and(|status| status.len() > 1000));
    std::thread::sleep(Duration::from_millis(37 * round % 250));
    let pid = common::command_of(&weir).expect("the command");
    // SAFETY: a signal to a process that weir has not waited for.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    weir.wait_with_output().expect("weir's end");
    let written = std::fs::read_to_string(&file).expect("the lines");
    let mut next = [0; THREADS];
    for line in written.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let thread: usize = line[..1].parse().expect("a thread");
        if line != format!("{thread} {} a line that ends here\n", next[thread]) {
            return Some(format!("{command:?} {options:?}: {line:?} in place of number {}", next[thread]));
        }
        next[thread] += 1;
    }
    assert!(next.iter().sum::<usize>() > 0);
    None
}

fn kills() -> u64 {
    if std::env::var_os("WEIR_FOLLOW_FULL").is_some() { 200 } else { 6 }
}

/// A replay that did not check the channels' mutexes again made about one kill of 500 wrong; a campaign makes 200 for each program.
fn check_kills(folder: &Path, command: &[&str]) {
    let options = [&["--rescue"][..], &["--rescue", "--max-delay", "3"]].into_iter().cycle();
    let all = (0..kills()).zip(options);
    let wrong: Vec<String> =
        all.filter_map(|(round, options)| wrong_after_kill(folder, command, round, options)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn check_ocaml(build: common::Build) {
    let folder = folder();
    let program: Option<PathBuf> = compile("global_locks", build, "global_lock.ml", folder.path());
    if let Some(program) = program {
        check(folder.path(), &[text(&program)]);
        check_kills(folder.path(), &[text(&program)]);
    }
}

#[test]
fn ocaml() {
    check_ocaml(OCAML_BUILDS[0]);
}

#[test]
fn ocaml_bytecode() {
    check_ocaml(OCAML_BUILDS[1]);
}

#[test]
fn ruby() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/global_lock.rb");
    match std::process::Command::new("ruby").arg("--version").output() {
        Ok(_) => {
            let folder = folder();
            check(folder.path(), &["ruby", text(&script)]);
            check_kills(folder.path(), &["ruby", text(&script)]);
        }
        Err(why) => skip("global_locks ruby", &format!("ruby: {why}")),
    }
}
