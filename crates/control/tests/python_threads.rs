//! With --max-delay and --rescue each line that a thread of a Python program has written is in its output, once and in the
//! thread's order. Some interpreters have a global lock; in others the threads run at the same time.
//!
//! WEIR_FOLLOW_FULL=1 runs and kills each program 60 times.

mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{folder, programs, skip, supervised, text, until};

/// The number of threads in threads.py.
const THREADS: usize = 4;

fn rounds() -> u64 {
    if std::env::var_os("WEIR_FOLLOW_FULL").is_some() { 60 } else { 4 }
}

fn words(python: &Path, counter: &Path, end: [&str; 2]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/threads.py");
    let words = [text(python), text(&script), text(counter), end[0], end[1]];
    words.map(str::to_string).to_vec()
}

/// Returns the numbers of complete lines: of each thread in standard output, in the shared file, and in its own.
fn complete(counter: &Path) -> Vec<[u64; 3]> {
    let bytes = fs::read(counter).expect("the counter");
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.collect::<Vec<_>>().as_chunks::<3>().0.to_vec()
}

fn outputs(folder: &Path) -> Vec<(String, String)> {
    let own = (0..THREADS).map(|thread| format!("own{thread}"));
    let names = ["out", "shared"].map(str::to_string).into_iter().chain(own);
    names
        .map(|name| {
            let bytes = fs::read(folder.join(&name)).expect("an output");
            (name, String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect()
}

/// Returns the number of lines of each thread in an output. Fails if one is not whole, or not there once and in its thread's
/// order. The last line of the output may be cut off. In standard output the order is not checked: a thread that waits for
/// the buffer's lock with bytes of the text layer can be overtaken by another one, also without weir.
fn lines(what: &str, is_stdout: bool, output: &str) -> [u64; THREADS] {
    let mut found: [Vec<u64>; THREADS] = Default::default();
    for line in output.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let mut words = line.splitn(3, ' ');
        let thread = words.next().and_then(|word| word.parse::<usize>().ok());
        let number = words.next().and_then(|word| word.parse::<u64>().ok());
        let of_thread = thread.and_then(|thread| found.get_mut(thread));
        let (Some(of_thread), Some(number)) = (of_thread, number) else { panic!("{what}: {line:?}") };
        assert_eq!(words.next(), Some("a line that ends here\n"), "{what}: {line:?}");
        of_thread.push(number);
    }
    found.map(|mut numbers| {
        if is_stdout {
            numbers.sort_unstable();
        }
        let wrong = numbers.iter().zip(0..).find(|(number, wanted)| *number != wanted);
        assert_eq!(wrong, None, "{what}: the number of a line, and the one that should be there");
        numbers.len() as u64
    })
}

fn prepare(folder: &Path) -> (PathBuf, File) {
    let counter = folder.join("counter");
    fs::write(&counter, [0; 8 * 3 * THREADS]).expect("the counter");
    (counter, File::create(folder.join("out")).expect("the output"))
}

fn check_ends(python: &Path) {
    const LINES: u64 = 1000;
    for (round, delay) in (0..rounds()).zip(["1", "3", "20"].into_iter().cycle()) {
        let folder = folder();
        let (counter, out) = prepare(folder.path());
        let words = words(python, &counter, ["end", &LINES.to_string()]);
        let mut command = supervised(&["--max-delay", delay, "--rescue"], &words);
        let status = command.current_dir(folder.path()).stdin(Stdio::null()).stdout(out).status();
        assert!(status.expect("weir starts").success());
        for (name, output) in outputs(folder.path()) {
            let what = format!("{}, round {round}, {delay} ms, {name}", python.display());
            let found: u64 = lines(&what, name == "out", &output).iter().sum();
            let wanted = if name.starts_with("own") { LINES } else { LINES * THREADS as u64 };
            assert_eq!(found, wanted, "{what}");
            assert!(output.ends_with('\n'), "{what}");
        }
    }
}

/// Kills the program. Lines can be missing only if weir says so: then bytes of which it is not sure are in files of their own.
fn check_kills(python: &Path) {
    for round in 0..rounds() {
        let folder = folder();
        let (counter, out) = prepare(folder.path());
        let words = words(python, &counter, ["kill", "0"]);
        let options: &[&str] = if round % 2 == 0 { &["--rescue"] } else { &["--rescue", "--max-delay", "3"] };
        let mut command: Command = supervised(options, &words);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
        command.env("SUPERVISE_OUTCOME", "1");
        let weir = command.spawn().expect("weir starts");
        until("the first lines", || complete(&counter).iter().all(|thread| thread[2] > 0));
        std::thread::sleep(Duration::from_micros(1700 * (round + 1) % 40_000));
        let pid = common::command_of(&weir).expect("the command");
        // SAFETY: a signal to a process that weir has not waited for.
        unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        let output = weir.wait_with_output().expect("weir's end");
        assert_eq!(output.status.code(), Some(137));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut exact = 0;
        let complete = complete(&counter);
        for (index, (name, output)) in outputs(folder.path()).into_iter().enumerate() {
            let what = format!("{}, kill {round}, {name}, {said}", python.display());
            let found = lines(&what, name == "out", &output);
            let may_miss = said.contains(&format!("/{name} may be lost"));
            exact += usize::from(!may_miss);
            for (thread, complete) in complete.iter().enumerate() {
                let wanted = match index {
                    0 | 1 => complete[index],
                    _ if index - 2 == thread => complete[2],
                    _ => 0,
                };
                let range = if may_miss { 0 } else { wanted }..=wanted + 1;
                assert!(
                    range.contains(&found[thread]),
                    "{what}: {} of thread {thread}, {wanted} wanted",
                    found[thread]
                );
            }
        }
        assert!(exact > 0, "{}, kill {round}: {said}", python.display());
    }
}

#[test]
fn cpython_ends() {
    check_ends(Path::new(&common::python()));
}

#[test]
fn cpython_kills() {
    check_kills(Path::new(&common::python()));
}

/// Calls `check` with each free-threaded Python. Skips the test if there is none.
fn for_free_threaded(test: &str, check: fn(&Path)) {
    let pythons = programs::free_threaded_pythons();
    if pythons.is_empty() {
        skip(test, "there is no free-threaded Python");
    }
    pythons.iter().for_each(|python| check(python));
}

#[test]
fn free_threaded_ends() {
    for_free_threaded("free_threaded_ends", check_ends);
}

#[test]
fn free_threaded_kills() {
    for_free_threaded("free_threaded_kills", check_kills);
}
