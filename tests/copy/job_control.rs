//! A copy that is stopped and continued, and a copy in the background of a terminal.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{WEIR, comes_true, disk_dir, has, skip, text, wait_for, weir};
use crate::{on_terminal, shell};

/// Sends a signal to the process that a shell knows.
fn send(copy: &Child, signal: Signal) {
    kill_process(Pid::from_child(copy), signal).expect("kill");
}

/// Returns the bytes of the copy; 0 before it exists.
fn copied(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("t")).map_or(0, |file| file.len())
}

/// Returns whether nothing is copied for longer than the rate limit pauses.
fn stands_still(dir: &Path) -> bool {
    let before = copied(dir);
    sleep(Duration::from_millis(700));
    copied(dir) == before
}

#[test]
fn a_stopped_copy_copies_nothing_and_goes_on() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 12000000 /dev/urandom > s");
    for signal in [Signal::STOP, Signal::TSTP] {
        shell(dir.path(), "rm -f t");
        let mut command = weir(dir.path(), &["copy", "--limit", "4MB/s", "--reflink=never", "s", "t"]);
        let mut copy = command.process_group(0).stderr(Stdio::piped()).spawn().expect("weir starts");
        wait_for("some bytes", || copied(dir.path()) > 400_000);
        send(&copy, signal);
        assert!(comes_true(|| stands_still(dir.path())), "{signal:?}");
        assert!(copied(dir.path()) < 12_000_000, "{signal:?}: it is copied although it is stopped");
        send(&copy, Signal::CONT);
        assert!(copy.wait().expect("it ends").success());
        shell(dir.path(), "cmp s t");
        let output = copy.wait_with_output().expect("output");
        assert_eq!(text(&output.stderr), "", "{signal:?}");
    }
}

#[test]
fn signals_in_any_order_leave_no_copy_stopped() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 6000000 /dev/urandom > s");
    let mut command = weir(dir.path(), &["copy", "--limit", "3MB/s", "--reflink=never", "s", "t"]);
    let mut copy = command.process_group(0).stderr(Stdio::piped()).spawn().expect("weir starts");
    wait_for("some bytes", || copied(dir.path()) > 0);
    // The pauses meet every phase of the looks at the first process.
    for pause_ms in [1, 240, 255, 20, 250, 5, 270, 130] {
        send(&copy, Signal::STOP);
        sleep(Duration::from_millis(pause_ms));
        send(&copy, Signal::CONT);
        sleep(Duration::from_millis(7));
    }
    let ended = comes_true(|| copy.try_wait().expect("waitpid").is_some_and(|status| status.success()));
    assert!(ended, "{} bytes are copied", copied(dir.path()));
    shell(dir.path(), "cmp s t");
}

#[test]
fn a_copy_in_the_background_draws_no_bar() {
    const NAME: &str = "a_copy_in_the_background_draws_no_bar";
    if !has("script") {
        return skip(NAME, "needs script(1)");
    }
    let dir = disk_dir();
    shell(dir.path(), "head -c 9000000 /dev/zero > s");
    let copy = format!("{WEIR} copy --limit 2MB/s --reflink=never s t");
    let seen = on_terminal(dir.path(), &format!("set -m\n{copy} &\nsleep 2.5\necho MARK\nfg\n"));
    let (background, foreground) = seen.split_once("MARK").expect(&seen);
    assert!(!background.contains("iB"), "{seen}");
    assert!(foreground.contains('%') && foreground.contains("iB/s"), "{seen}");
}
