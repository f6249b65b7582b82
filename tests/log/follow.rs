//! Following files that are renamed, truncated, and read on after a restart.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::common::{disk_dir, names, run, wait_for};
use crate::{Collector, lines_of};

fn append(path: &Path, text: &str) {
    let mut file = std::fs::File::options().append(true).create(true).open(path).expect("opened");
    file.write_all(text.as_bytes()).expect("written");
}

fn numbers(from: usize, to: usize) -> String {
    (from..to).map(|number| format!("line {number}\n")).collect()
}

fn lines(from: usize, to: usize) -> Vec<String> {
    numbers(from, to).lines().map(String::from).collect()
}

#[test]
fn renamed_files_are_read_to_their_end_first() {
    let dir = disk_dir();
    let file = dir.path().join("app.log");
    append(&file, "");
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    for part in 0..20 {
        append(&file, &numbers(part * 1000, part * 1000 + 1000));
        std::fs::rename(&file, dir.path().join(format!("app.log.{part}"))).expect("renamed");
        append(&file, "");
    }
    append(&file, "end\n");
    let mut expected = lines(0, 20_000);
    expected.push("end".into());
    assert!(lines_of(&dir.path().join("out"), expected.len()) == expected, "every line once, in order");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn rotated_files_may_be_renamed_again() {
    let dir = disk_dir();
    let file = dir.path().join("app.log");
    append(&file, "");
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    for part in 0..50 {
        append(&file, &numbers(part * 100, part * 100 + 100));
        for number in (1..=part).rev() {
            let name = |number| dir.path().join(format!("app.log.{number}"));
            std::fs::rename(name(number), name(number + 1)).expect("renamed");
        }
        std::fs::rename(&file, dir.path().join("app.log.1")).expect("renamed");
    }
    append(&file, "end\n");
    let mut expected = lines(0, 5000);
    expected.push("end".into());
    assert!(lines_of(&dir.path().join("out"), expected.len()) == expected, "every line once, in order");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_truncated_file_is_said_in_the_log() {
    let dir = disk_dir();
    let file = dir.path().join("app.log");
    append(&file, "a long first line\n");
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    lines_of(&dir.path().join("out"), 1);
    std::fs::write(&file, "short\n").expect("truncated and written");
    let log = lines_of(&dir.path().join("out"), 3);
    let said = "weir: app.log was truncated; an unknown number of records is lost";
    assert_eq!(log, ["a long first line", said, "short"]);
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_file_that_was_truncated_or_replaced_between_two_runs_is_said() {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    let follow = |wanted: usize| {
        let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
        let lines = lines_of(&log, wanted);
        let errors = collector.errors();
        assert_eq!(collector.stop(), 0);
        (lines[wanted - 2..].to_vec(), errors)
    };
    append(&file, "one\ntwo\n");
    follow(2);
    std::fs::write(&file, "1\n").expect("truncated");
    let (lines, errors) = follow(4);
    let said = "weir: app.log was truncated while weir did not run: it has 2 bytes, and 8 bytes of it had been read; it is read \
                from its start; records between may be lost";
    assert_eq!(lines, [said, "1"]);
    assert!(errors.contains("app.log was truncated while weir did not run"), "{errors}");
    append(&dir.path().join("new"), "another\n");
    std::fs::rename(dir.path().join("new"), &file).expect("replaced");
    let (lines, errors) = follow(6);
    assert_eq!(lines[1], "another");
    assert!(lines[0].contains("is another file than the one of which 2 bytes were read"), "{lines:?}");
    assert!(errors.contains("records between may be lost"), "{errors}");
    append(&file, "more\n");
    let (lines, errors) = follow(7);
    assert!(lines == ["another", "more"] && !errors.contains("may be lost"), "{lines:?}, {errors}");
}

#[test]
fn a_notice_never_shifts_records_of_one_length() {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    append(&file, "11112222");
    let arguments = ["-o", "out", "--record", "len:4", "--follow", "app.log"];
    let collector = Collector::start(dir.path(), &arguments);
    wait_for("two records", || std::fs::read(&log).is_ok_and(|log| log == b"11112222"));
    std::fs::write(&file, "3333").expect("truncated");
    wait_for("the next record", || std::fs::read(&log).is_ok_and(|log| log.ends_with(b"3333")));
    assert_eq!(std::fs::read(&log).expect("read"), b"111122223333");
    wait_for("the notice", || collector.errors().contains("app.log was truncated"));
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_restart_repeats_nothing_and_finishes_rotated_files() {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    append(&file, &(numbers(0, 1000) + "unfin"));
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    lines_of(&log, 1000);
    assert_eq!(collector.stop(), 0);
    assert!(names(dir.path()).contains(&"out.state.json".into()));
    append(&file, "ished\n");
    std::fs::rename(&file, dir.path().join("app.log.1")).expect("renamed");
    append(&file, "new\n");
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    let mut expected = lines(0, 1000);
    expected.extend(["unfinished".into(), "new".into()]);
    assert_eq!(lines_of(&log, 1002), expected);
    assert_eq!(collector.stop(), 0);
    let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    append(&file, "more\n");
    expected.push("more".into());
    assert_eq!(lines_of(&log, 1003), expected);
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_pattern_finds_new_files() {
    let dir = disk_dir();
    let logs = dir.path().join("logs");
    std::fs::create_dir(&logs).expect("a directory");
    append(&logs.join("a.log"), "from a\n");
    let collector = Collector::start(dir.path(), &["-o", "out", "--tag", "--follow", "logs/*.log"]);
    lines_of(&dir.path().join("out"), 1);
    append(&logs.join("b.log"), "from b\n");
    append(&logs.join("c.txt"), "not this\n");
    append(&logs.join("a.log"), "again\n");
    let mut log = lines_of(&dir.path().join("out"), 3);
    log.sort();
    assert_eq!(log, ["a.log: again", "a.log: from a", "b.log: from b"]);
    let status = run(dir.path(), &["log", "status", "out", "--json", "-"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let counts = |source: &serde_json::Value| (source["name"].clone(), source["records"].clone());
    let sources: Vec<_> = status["sources"].as_array().expect("sources").iter().map(counts).collect();
    assert_eq!(status["totals"]["records"], 3, "{status}");
    assert_eq!(sources, [("a.log".into(), 2.into()), ("b.log".into(), 1.into())], "{status}");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn the_name_of_a_followed_file_need_not_be_utf_8() {
    let dir = disk_dir();
    let file = dir.path().join(OsStr::from_bytes(b"z\xff.log"));
    for part in 0..2 {
        append(&file, &numbers(part * 10, part * 10 + 10));
        let collector = Collector::start(dir.path(), &["-o", "out", "--follow", "*.log"]);
        assert_eq!(lines_of(&dir.path().join("out"), (part + 1) * 10), lines(0, (part + 1) * 10));
        collector.stop();
    }
}

#[test]
fn a_damaged_state_file_is_refused() {
    let dir = disk_dir();
    append(&dir.path().join("app.log"), "x\n");
    std::fs::write(dir.path().join("out.state.json"), "{\"schema\":\"weir-log-state/1\"}").expect("written");
    let output = crate::log_of(dir.path(), &["-o", "out", "--follow", "app.log"], b"");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is damaged or no state file of weir log"), "{errors}");
}

/// Returns the CPU time of a process in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields = stat.rsplit_once(") ").expect("a name").1;
    fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}

#[test]
fn waiting_for_a_renamed_file_costs_no_cpu_time() {
    let dir = disk_dir();
    let file = dir.path().join("app.log");
    append(&file, "one\n");
    let mut collector = Collector::start(dir.path(), &["-o", "out", "--follow", "app.log"]);
    lines_of(&dir.path().join("out"), 1);
    std::fs::rename(&file, dir.path().join("app.log.1")).expect("renamed");
    append(&file, "two\n");
    lines_of(&dir.path().join("out"), 2);
    let before = ticks(collector.child().id());
    std::thread::sleep(std::time::Duration::from_secs(3));
    // A loop without a wait takes 300 ticks on a free processor, and still 30 beside nine other programs.
    let used = ticks(collector.child().id()) - before;
    assert!(used < 20, "{used} ticks in three seconds");
    // The renamed file is still read.
    append(&dir.path().join("app.log.1"), "late\n");
    assert_eq!(lines_of(&dir.path().join("out"), 3)[2], "late");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn the_log_does_not_follow_itself() {
    let dir = disk_dir();
    for name in ["app.log", "all.log.20261124T164501.000123Z.safe"] {
        append(&dir.path().join(name), &numbers(0, 100));
    }
    std::os::unix::fs::symlink("all.log", dir.path().join("link.log")).expect("a link");
    let arguments = ["-o", "all.log", "--rotate", "2K", "--state", "state.log", "--follow", "*.log*"];
    let collector = Collector::start(dir.path(), &arguments);
    for part in 1..20 {
        append(&dir.path().join("app.log"), &numbers(part * 100, part * 100 + 100));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let all = || {
        let mut logs: Vec<String> =
            names(dir.path()).into_iter().filter(|name| name.starts_with("all.log.")).collect();
        logs.sort();
        logs.push("all.log".into());
        let text: String = logs[1..]
            .iter()
            .map(|name| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default())
            .collect();
        text.lines().map(String::from).collect::<Vec<_>>()
    };
    crate::common::wait_for("all records", || all().len() >= 2000);
    assert_eq!(collector.stop(), 0);
    assert!(all() == lines(0, 2000), "every line once, in order: {} lines", all().len());
}

#[test]
fn the_log_is_refused_as_a_source() {
    let dir = disk_dir();
    append(&dir.path().join("log"), "a\n");
    std::os::unix::fs::symlink("log", dir.path().join("link")).expect("a link");
    for name in ["log", "./log", "link"] {
        let output = run(dir.path(), &["log", "-o", "log", "--follow", name]);
        let errors = crate::common::text(&output.stderr);
        assert!(!output.status.success() && errors.contains("this is the log itself"), "{name}: {errors}");
    }
    assert_eq!(std::fs::read(dir.path().join("log")).expect("the log"), b"a\n");
}

/// Kills the collector as soon as the log has what was appended, again and again.
fn repeated_after_kills(options: &[&str], age: std::time::Duration) -> usize {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    append(&file, &numbers(0, 1000));
    let arguments = [&["-o", "out", "--follow", "app.log"], options].concat();
    for _ in 0..4 {
        let mut collector = Collector::start(dir.path(), &arguments);
        lines_of(&log, 1000);
        std::thread::sleep(age);
        collector.signal(libc::SIGKILL);
        collector.child().wait().expect("it ends");
    }
    lines_of(&log, 1000).len() - 1000
}

#[test]
fn positions_advance_in_runs_of_less_than_a_second() {
    assert_eq!(repeated_after_kills(&[], std::time::Duration::from_millis(400)), 0);
    let synced = ["--sync", "interval:100ms"];
    assert_eq!(repeated_after_kills(&synced, std::time::Duration::from_millis(800)), 0);
}

#[test]
fn a_record_of_several_lines_is_in_the_log_after_its_end_and_after_a_restart() {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    // The second run reads the record that the first one had not written at its end. That of the second run ends by its age.
    let arguments = ["-o", "out", "--follow", "app.log", "--multiline", "^START"];
    append(&file, "START a\n of a\nSTART b\n of b\n");
    let collector = Collector::start(dir.path(), &arguments);
    lines_of(&log, 2);
    assert_eq!(collector.stop(), 0);
    append(&file, " more of b\nSTART c\n of c\n");
    let collector = Collector::start(dir.path(), &arguments);
    let expected = ["START a", " of a", "START b", " of b", " more of b", "START c", " of c"];
    assert_eq!(lines_of(&log, expected.len()), expected);
    // The position covers it, too.
    assert_eq!(collector.stop(), 0);
    append(&file, "START d\n");
    let collector = Collector::start(dir.path(), &arguments);
    assert_eq!(lines_of(&log, expected.len() + 1), [&expected[..], &["START d"]].concat());
    assert_eq!(collector.stop(), 0);
}

#[test]
fn an_idle_file_gets_its_unfinished_record_written() {
    let dir = disk_dir();
    let (file, log) = (dir.path().join("app.log"), dir.path().join("out"));
    append(&file, "one\nunfin");
    let arguments = ["-o", "out", "--follow", "app.log", "--idle", "200ms"];
    let collector = Collector::start(dir.path(), &arguments);
    assert_eq!(lines_of(&log, 2), ["one", "unfin"]);
    assert_eq!(collector.stop(), 0);
    append(&file, "next\n");
    let collector = Collector::start(dir.path(), &arguments);
    assert_eq!(lines_of(&log, 3), ["one", "unfin", "next"]);
    assert_eq!(collector.stop(), 0);
}
