//! With a delay of 100 ms half of the lines are written within 120 ms, whether the program computes or blocks.
//!
//! On a busy machine lines can be later, so the test limits the median, and the longest delay generously.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use common::{
    BUILDS, Build, CPP_BUILDS, LIBCXX_BUILDS, compile, folder, programs::has_libcxx, skip, supervised, text,
};

const LINES: &str = "20";

fn now() -> f64 {
    weir_sys::clock::now_ns() as f64 / 1e9
}

/// Reads lines until `done`, and returns the delay of each in ms. A line holds the time at which it was printed.
fn line_delays_ms(mut output: File, done: impl Fn() -> bool) -> Vec<f64> {
    let (mut text, mut delays, mut block) = (String::new(), Vec::new(), [0; 4096]);
    loop {
        // At a file's end the writer may still run. A terminal returns an error when its other end is closed.
        let got = match output.read(&mut block) {
            Ok(0) | Err(_) if done() => return delays,
            Ok(0) | Err(_) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            Ok(got) => got,
        };
        let time = now();
        text.push_str(std::str::from_utf8(&block[..got]).expect("plain text"));
        while let Some((line, rest)) = text.split_once('\n') {
            let printed_at: f64 = line.trim_end().trim_start_matches("at ").parse().expect("a time");
            delays.push((time - printed_at) * 1000.0);
            text = rest.to_string();
        }
    }
}

fn check_delays(what: &str, words: &[&str], output: &str) {
    let folder = folder();
    let (reader, writer): (File, OwnedFd) = match output {
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
    let mut command = supervised(&["--max-delay", "100"], words);
    let mut weir = command.stdin(Stdio::null()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let has_ended = ended.clone();
    let waiter = std::thread::spawn(move || {
        let status = weir.wait().expect("its end");
        has_ended.store(true, std::sync::atomic::Ordering::Relaxed);
        status
    });
    let mut delays = line_delays_ms(reader, || ended.load(std::sync::atomic::Ordering::Relaxed));
    assert!(waiter.join().expect("a thread").success(), "{what}");
    assert_eq!(delays.len(), LINES.parse::<usize>().expect("a number"), "{what}");
    delays.sort_by(f64::total_cmp);
    let (median, longest) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    assert!(
        median < median_limit_ms() && longest < 2000.0,
        "{what}: half of the lines within {median:.0} ms, all in {longest:.0}"
    );
}

/// Returns 120 ms, or more on a busy machine, where a program that computes does not always get a processor.
fn median_limit_ms() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
    if load > 1.5 * processors as f64 { 300.0 } else { 120.0 }
}

/// Opens a terminal. Returns the end that is read and the program's end.
fn terminal() -> (File, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&main).and_then(|()| unlockpt(&main)).expect("a terminal");
    let name = ptsname(&main, Vec::new()).expect("its name");
    let end = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().expect("a plain name"))
        .expect("its other end");
    (File::from(main), end.into())
}

fn check_build(build: Build, outputs: &[&str]) {
    let folder = folder();
    let source = if build.compiler.ends_with("++") { "ticks.cc" } else { "ticks.c" };
    let Some(program) = compile("delay_bound", build, source, folder.path()) else { return };
    for output in outputs {
        for between in ["sleep", "compute"] {
            check_delays(
                &format!("{} {output} {between}", build.name),
                &[text(&program), LINES, between],
                output,
            );
        }
    }
}

#[test]
fn glibc_to_each_kind_of_output() {
    check_build(BUILDS[0], &["pipe", "file", "terminal"]);
}

#[test]
fn glibc_stripped() {
    check_build(BUILDS[2], &["pipe"]);
}

#[test]
fn musl() {
    check_build(BUILDS[3], &["pipe"]);
}

#[test]
fn libstdcxx() {
    check_build(CPP_BUILDS[0], &["pipe"]);
}

#[test]
fn libcxx() {
    match has_libcxx() {
        true => check_build(LIBCXX_BUILDS[0], &["pipe"]),
        false => skip("delay_bound", "there is no clang++ with libc++"),
    }
}

/// Checks calls that a stop can end with EINTR. A server spends most of its time in one of them.
#[test]
fn blocking_calls() {
    let folder = folder();
    let Some(program) = compile("blocking_calls", BUILDS[0], "waits.c", folder.path()) else { return };
    for call in ["accept", "read", "recv", "epoll", "epoll-timed", "sigwait"] {
        check_delays(call, &[text(&program), LINES, call], "pipe");
    }
}

#[test]
fn python() {
    let script = "import time\nfor i in range(20):\n print('at %.6f' % time.monotonic()); time.sleep(.1)";
    check_delays("python", &[&common::python(), "-c", script], "pipe");
}

#[test]
fn perl() {
    let script = "use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
        for (1..20) { printf \"at %.6f\\n\", clock_gettime(CLOCK_MONOTONIC); sleep 0.1 }";
    check_delays("perl", &["perl", "-e", script], "pipe");
}
