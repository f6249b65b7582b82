//! `weir log`: every record of every source is in the log once, whole, and in the order of its source.

mod common;
#[path = "common/session.rs"]
mod session;

#[path = "log/durability.rs"]
mod durability;
#[path = "log/faults.rs"]
mod faults;
#[path = "log/feeds.rs"]
mod feeds;
#[path = "log/follow.rs"]
mod follow;
#[path = "log/forms.rs"]
mod forms;
#[path = "log/gpio.rs"]
mod gpio;
#[path = "log/intervals.rs"]
mod intervals;
#[path = "log/power_cuts.rs"]
mod power_cuts;
#[path = "log/rotation.rs"]
mod rotation;
#[path = "log/screens.rs"]
mod screens;
#[path = "log/sources.rs"]
mod sources;
#[path = "log/spill.rs"]
mod spill;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use common::{KillOnDrop, wait_for, weir};

/// Returns how often a test repeats itself: `short` in `make test`, $WEIR_LOG_ROUNDS in `make test-log-long`.
fn rounds(short: usize) -> usize {
    std::env::var("WEIR_LOG_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// A collector that runs in a directory.
struct Collector {
    child: KillOnDrop,
    dir: PathBuf,
}

impl Collector {
    /// Starts `weir log ARGUMENTS…`, with nothing on standard input, and waits until the log exists.
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = weir(dir, &[&["log"], arguments].concat());
        common::with_signals(&mut command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.join("errors")).expect("a file"));
        let child = KillOnDrop(command.spawn().expect("weir starts"));
        let mut collector = Self { child, dir: dir.into() };
        wait_for("the collector", || {
            let ended = collector.child().try_wait().expect("its state");
            let errors = collector.errors();
            assert!(ended.is_none(), "the collector ended ({ended:?}): {errors}");
            errors.contains("a kill of weir")
        });
        collector
    }

    fn child(&mut self) -> &mut Child {
        &mut self.child.0
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.dir.join("errors")).unwrap_or_default()
    }

    fn signal(&mut self, signal: i32) {
        // SAFETY: kill(2) has no memory effects; the child is not reaped yet, so the PID is its own.
        assert_eq!(unsafe { libc::kill(self.child().id() as i32, signal) }, 0);
    }

    /// Sends SIGTERM and waits for the end. Returns the exit status.
    fn stop(mut self) -> i32 {
        self.signal(libc::SIGTERM);
        self.child().wait().expect("it ends").code().expect("a status")
    }
}

/// Runs `weir log ARGUMENTS…` with this standard input.
fn log_of(dir: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = weir(dir, &[&["log"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("weir starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("written");
    output
}

/// Returns the lines of a log, once it has so many.
fn lines_of(path: &Path, count: usize) -> Vec<String> {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    wait_for("the records", || read().lines().count() >= count);
    read().lines().map(String::from).collect()
}
