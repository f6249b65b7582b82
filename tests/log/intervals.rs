//! Commands at intervals: one run at a time, with a sentence about the starts left out and the runs that fail.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{KillOnDrop, WEIR, disk_dir, wait_for};
use crate::{Collector, lines_of};

#[test]
fn a_slow_command_is_not_started_again_before_its_end() {
    let dir = disk_dir();
    let script = "echo begin; sleep 0.3; echo end";
    let collector = Collector::start(dir.path(), &["-o", "out", "--every", "20ms", "--exec", script]);
    let log = lines_of(&dir.path().join("out"), 6);
    for pair in log[..6].chunks(2) {
        assert_eq!(pair, ["begin", "end"], "one run at a time: {log:?}");
    }
    wait_for("the sentence", || collector.errors().contains("10 starts left out so far"));
    let errors = collector.errors();
    assert!(
        errors.contains("--exec 'echo begin; sleep 0.3; echo end': the run before had not ended"),
        "{errors}"
    );
    assert!(errors.matches("left out").count() <= 3, "not at each interval: {errors}");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_process_that_a_command_leaves_behind_delays_the_next_start() {
    let dir = disk_dir();
    let script = "echo run; sleep 1 &";
    let mut collector = Collector::start(dir.path(), &["-o", "out", "--every", "20ms", "--exec", script]);
    wait_for("the sentence", || collector.errors().contains("left out"));
    lines_of(&dir.path().join("out"), 2);
    let descriptors = format!("/proc/{}/fd", collector.child().id());
    let number = std::fs::read_dir(descriptors).map_or(0, Iterator::count);
    assert!(number < 40, "the pipes of one run: {number} descriptors");
    assert_eq!(collector.stop(), 0);
    // The last run has left a process behind.
    std::thread::sleep(Duration::from_millis(1500));
}

#[test]
fn a_command_that_fails_at_intervals_is_reported_without_a_flood() {
    let dir = disk_dir();
    let arguments = ["-o", "out", "--every", "20ms", "--exec", "echo run; exit 3"];
    let collector = Collector::start(dir.path(), &arguments);
    wait_for("the tenth failure", || collector.errors().contains("10 of 10 runs failed so far"));
    let errors = collector.errors();
    assert!(
        errors.contains("--exec 'echo run; exit 3': ended with status 3; 1 of 1 run failed so far"),
        "{errors}"
    );
    assert!(errors.matches("ended with").count() <= 3, "{errors}");
    lines_of(&dir.path().join("out"), 12);
    assert_eq!(collector.stop(), 0);
    let end = std::fs::read_to_string(dir.path().join("errors")).expect("read");
    let last = end.lines().rfind(|line| line.contains("ended with")).expect("a sentence");
    assert!(!last.contains(" 10 of 10 "), "the end has the last count: {end}");
}

#[test]
fn a_fifo_that_is_read_at_intervals_does_not_stop_the_collector() {
    let dir = disk_dir();
    let made = Command::new("mkfifo").arg(dir.path().join("f")).status();
    assert!(made.is_ok_and(|made| made.success()));
    std::fs::write(dir.path().join("sensor"), "21.5\n").expect("written");
    let arguments = ["-o", "out", "--every", "20ms", "--read", "f", "--read", "sensor"];
    let collector = Collector::start(dir.path(), &arguments);
    wait_for("the sentence", || collector.errors().contains("read f: it is a FIFO: use --listen fifo:f"));
    assert_eq!(lines_of(&dir.path().join("out"), 3)[..3], ["21.5"; 3]);
    assert_eq!(collector.errors().matches("is a FIFO").count(), 1, "said once: {}", collector.errors());
    assert_eq!(collector.stop(), 0);
}

#[test]
fn commands_have_the_limit_of_open_files_that_weir_was_started_with() {
    let dir = disk_dir();
    let script = r#"ulimit -Sn 512 && exec "$0" log -q -o out "$@""#;
    let started = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", script, WEIR]).args(arguments).current_dir(dir.path()).stdin(Stdio::null());
        KillOnDrop(command.spawn().expect("sh starts"))
    };
    let mut once = started(&["--", "sh", "-c", "ulimit -Sn"]);
    assert!(once.0.wait().expect("it ends").success());
    assert_eq!(lines_of(&dir.path().join("out"), 1), ["512"]);
    let _repeated = started(&["--every", "20ms", "--exec", "ulimit -Sn"]);
    assert_eq!(lines_of(&dir.path().join("out"), 3)[..3], ["512"; 3]);
}
