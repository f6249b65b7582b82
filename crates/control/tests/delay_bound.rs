//! With a delay of 100 ms, a line is out within 120 ms, whatever the program does between its lines.
//!
//! On a busy machine some may be later, so most lines must be in time here, and none be kept to the end.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use common::{BUILDS, Build, compile, folder, followed, text};

const LINES: &str = "20";

fn now() -> f64 {
    weir_sys::clock::now_ns() as f64 / 1e9
}

/// How late each line came, in ms, as it is read from this end.
fn late(mut output: File, done: impl Fn() -> bool) -> Vec<f64> {
    let (mut text, mut late, mut block) = (String::new(), Vec::new(), [0; 4096]);
    loop {
        // A file's end is not its writer's; a terminal whose other end is closed gives an error.
        let got = match output.read(&mut block) {
            Ok(0) | Err(_) if done() => return late,
            Ok(0) | Err(_) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            Ok(got) => got,
        };
        let time = now();
        text.push_str(std::str::from_utf8(&block[..got]).expect("plain text"));
        while let Some((line, rest)) = text.split_once('\n') {
            let said: f64 = line.trim_end().trim_start_matches("at ").parse().expect("a time");
            late.push((time - said) * 1000.0);
            text = rest.to_string();
        }
    }
}

fn in_time(what: &str, words: &[&str], sink: &str) {
    let folder = folder();
    let (reader, writer): (File, OwnedFd) = match sink {
        "pipe" => std::io::pipe()
            .map(|(end, other)| (File::from(OwnedFd::from(end)), other.into()))
            .expect("a pipe"),
        "file" => {
            let path = folder.path().join("out");
            let file = File::create(&path).expect("a file");
            (File::open(&path).expect("a file"), file.into())
        }
        _ => terminal(),
    };
    let mut command = followed(&["--max-delay", "100"], words);
    let mut weir = command.stdin(Stdio::null()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tells = ended.clone();
    let waiter = std::thread::spawn(move || {
        let status = weir.wait().expect("its end");
        tells.store(true, std::sync::atomic::Ordering::Relaxed);
        status
    });
    let mut late = late(reader, || ended.load(std::sync::atomic::Ordering::Relaxed));
    assert!(waiter.join().expect("a thread").success(), "{what}");
    assert_eq!(late.len(), LINES.parse::<usize>().expect("a number"), "{what}");
    late.sort_by(f64::total_cmp);
    let (middle, most) = (late[late.len() / 2], late[late.len() - 1]);
    assert!(
        middle < wanted_ms() && most < 2000.0,
        "{what}: half of the lines within {middle:.0} ms, all in {most:.0}"
    );
}

/// 120 where a processor is to be had; a program that computes among many others gets one now and then only.
fn wanted_ms() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
    if load > 1.5 * processors as f64 { 300.0 } else { 120.0 }
}

/// A terminal: the end that is read, and the end that a program has.
fn terminal() -> (File, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&main).and_then(|()| unlockpt(&main)).expect("a terminal");
    let name = ptsname(&main, Vec::new()).expect("its name");
    let end = File::options().read(true).write(true).open(name.to_str().expect("a plain name")).expect("it");
    (File::from(main), end.into())
}

fn compiled(build: Build, sinks: &[&str]) {
    let folder = folder();
    let Some(program) = compile("delay_bound", build, "ticks.c", folder.path()) else { return };
    for sink in sinks {
        for between in ["sleep", "compute"] {
            in_time(&format!("{} {sink} {between}", build.name), &[text(&program), LINES, between], sink);
        }
    }
}

#[test]
fn glibc_to_everything() {
    compiled(BUILDS[0], &["pipe", "file", "terminal"]);
}

#[test]
fn glibc_stripped() {
    compiled(BUILDS[2], &["pipe"]);
}

#[test]
fn musl() {
    compiled(BUILDS[3], &["pipe"]);
}

/// Calls that a stop ends with EINTR, or might: a server is in one of them most of its time.
#[test]
fn waits_for_others() {
    let folder = folder();
    let Some(program) = compile("waits_for_others", BUILDS[0], "waits.c", folder.path()) else { return };
    for call in ["accept", "read", "recv", "epoll", "epoll-timed", "sigwait"] {
        in_time(call, &[text(&program), LINES, call], "pipe");
    }
}

#[test]
fn python() {
    let script = "import time\nfor i in range(20):\n print('at %.6f' % time.monotonic()); time.sleep(.1)";
    in_time("python", &[&common::python(), "-c", script], "pipe");
}

#[test]
fn perl() {
    let script = "use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
        for (1..20) { printf \"at %.6f\\n\", clock_gettime(CLOCK_MONOTONIC); sleep 0.1 }";
    in_time("perl", &["perl", "-e", script], "pipe");
}
