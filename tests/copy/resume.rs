//! `--resume`: a stopped copy continues where it was, after weir has read back what is there.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use weir_model::Size;

use crate::common::{KillOnDrop, WEIR, disk_dir, names, run, text, wait_for, weir};
use crate::{copy, shell};

const PART: u64 = 8 << 20;

/// Returns the temporary file and its journal.
fn kept(dir: &Path) -> Vec<String> {
    let mut kept: Vec<String> =
        names(dir).into_iter().filter(|name| name.starts_with(".weir-resume-")).collect();
    kept.sort();
    kept
}

/// Starts a slow copy of `s` to `t` and stops it by a signal when a part is in the journal: nine seconds before its end.
fn stop_half_way(dir: &Path, signal: Signal) {
    let mut command = weir(dir, &["copy", "--reflink=never", "--resume", "--limit", "2MB/s", "s", "t"]);
    crate::common::with_signals(&mut command);
    let mut child = KillOnDrop(command.stderr(Stdio::null()).spawn().expect("weir"));
    wait_for("a part", || {
        let journal = kept(dir).into_iter().find(|name| name.ends_with(".journal"));
        journal.is_some_and(|name| {
            fs::read_to_string(dir.join(name)).is_ok_and(|text| text.lines().count() >= 2)
        })
    });
    kill_process(Pid::from_child(&child.0), signal).expect("kill");
    child.0.wait().expect("its end");
    assert_eq!(kept(dir).len(), 2, "{:?}", names(dir));
    assert_eq!(fs::read_to_string(dir.join("t")).ok().as_deref(), Some("old\n"), "the old file stays");
}

#[test]
fn a_killed_copy_may_keep_its_lock_for_a_moment() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 9000000 /dev/urandom > s");
    let lock = "journal=.weir-resume-$(printf t | sha256sum | head -c 16).journal; exec 9>$journal; flock 9;";
    let hold = |time: &str| format!("{lock} (sleep {time}) & exec 9>&-; {} copy --resume s t; wait", WEIR);
    shell(dir.path(), &hold("0.5"));
    shell(dir.path(), "cmp s t; rm t");
    let output =
        Command::new("bash").args(["-ec", &hold("4")]).current_dir(dir.path()).output().expect("bash");
    assert!(text(&output.stderr).contains("another weir copies to this target"), "{}", text(&output.stderr));
    assert!(!dir.path().join("t").exists());
}

#[test]
fn a_journal_that_was_removed_before_the_lock_is_made_again() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 9000000 /dev/urandom > s");
    // As a weir that ends its copy: it removes the journal, and then its lock ends.
    let script = format!(
        "journal=.weir-resume-$(printf t | sha256sum | head -c 16).journal; exec 9>$journal; flock 9; \
         (sleep 1; rm $journal) & holder=$!; exec 9>&-; \
         {WEIR} copy --reflink=never --resume --limit 3MB/s s t & copy=$!; wait $holder; \
         while kill -0 $copy 2>/dev/null; do [ ! -e $journal ] || found=yes; sleep 0.02; done; \
         wait $copy; cmp s t; echo $found"
    );
    assert_eq!(shell(dir.path(), &script), "yes\n", "another weir cannot lock the journal that this one has");
}

#[test]
fn the_summary_counts_what_was_moved() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 26000000 /dev/urandom > s; echo old > t");
    stop_half_way(dir.path(), Signal::KILL);
    let output = copy(dir.path(), &["--reflink=never", "--resume", "--summary", "--json", "j", "s", "t"]);
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("j")).expect("a result")).expect("JSON");
    let [copied, kept] = ["copied_bytes", "kept_bytes"].map(|name| json[name].as_u64().expect("a number"));
    assert!(kept >= PART && kept.is_multiple_of(PART) && copied + kept == 26_000_000, "{json}");
    let error = text(&output.stderr);
    assert!(error.contains(&format!("{} kept", Size(kept))), "{error}");
    assert!(error.contains(&format!("1 file, {} in", Size(copied))), "{error}");
}

#[test]
fn a_stopped_copy_continues_after_its_parts_were_read_back() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 26000000 /dev/urandom > s; echo old > t; chmod 640 t");
    for signal in [Signal::INT, Signal::KILL] {
        shell(dir.path(), "echo old > t");
        stop_half_way(dir.path(), signal);
        let output = copy(dir.path(), &["--reflink=never", "--resume", "s", "t"]);
        let error = text(&output.stderr);
        let from: u64 = error
            .split("continues at byte ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .expect(&error);
        assert!(from >= PART && from.is_multiple_of(PART), "{error}");
        shell(dir.path(), "cmp s t");
        assert_eq!(shell(dir.path(), "stat -c %a t"), "640\n");
        assert!(kept(dir.path()).is_empty(), "{:?}", names(dir.path()));
    }
}

#[test]
fn a_part_that_is_not_there_is_copied_again() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 26000000 /dev/urandom > s; echo old > t");
    stop_half_way(dir.path(), Signal::KILL);
    let temporary = dir.path().join(&kept(dir.path())[0]);
    let file = fs::OpenOptions::new().write(true).open(temporary).expect("the temporary file");
    // The size stays; a block of the first part is lost, as after a power cut.
    file.write_all_at(&[0; 4096], 4096).expect("written");
    let error = text(&copy(dir.path(), &["--reflink=never", "--resume", "s", "t"]).stderr);
    assert!(!error.contains("continues"), "a part is not as the journal says: {error}");
    shell(dir.path(), "cmp s t");

    shell(dir.path(), "echo old > t");
    stop_half_way(dir.path(), Signal::KILL);
    shell(dir.path(), "printf changed | dd of=s bs=1 seek=100 conv=notrunc status=none");
    let error = text(&copy(dir.path(), &["--reflink=never", "--resume", "s", "t"]).stderr);
    assert!(!error.contains("continues"), "a source that has changed: {error}");
    shell(dir.path(), "cmp s t");
}

#[test]
fn a_tree_continues_with_the_files_that_are_missing() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; for i in $(seq 20); do head -c 3000 /dev/urandom > s/$i; done; cp -r s t");
    shell(dir.path(), "rm t/3; printf x | dd of=t/5 bs=1 conv=notrunc status=none");
    let output = run(dir.path(), &["copy", "-rT", "--resume", "--json", "-", "s", "t"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((document["files"].as_u64(), document["skipped"].as_u64()), (Some(2), Some(18)));
    shell(dir.path(), "diff -r s t");
    let refused = shell(
        dir.path(),
        &format!("echo x | {} copy --resume - u 2>&1 && exit 1; true", crate::common::WEIR),
    );
    assert!(refused.contains("--resume cannot read a stream"), "{refused}");
}

#[test]
fn a_killed_tree_of_small_files_leaves_no_temporary_file() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; for i in $(seq 12); do head -c 4000000 /dev/urandom > s/$i; done");
    for options in [&["copy", "-r", "--limit", "20MB/s"][..], &["copy", "-rT", "--limit", "20MB/s"]] {
        let mut command = weir(dir.path(), &[options, &["--resume", "s", "t"]].concat());
        let mut child = KillOnDrop(command.stderr(Stdio::null()).spawn().expect("weir"));
        wait_for("a temporary file", || {
            let is_there = dir.path().join("t").is_dir();
            is_there && kept(&dir.path().join("t")).iter().any(|name| name.ends_with(".new"))
        });
        kill_process(Pid::from_child(&child.0), Signal::KILL).expect("kill");
        child.0.wait().expect("its end");
    }
    assert!(!kept(&dir.path().join("t")).is_empty(), "the kill left nothing, so the test shows nothing");
    let output = run(dir.path(), &["copy", "-rT", "--quiet", "--resume", "s", "t"]);
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    shell(dir.path(), "diff -r s t");
    assert!(kept(dir.path()).is_empty(), "{:?}", names(dir.path()));
}

#[test]
fn a_temporary_file_that_another_weir_writes_stays() {
    let dir = disk_dir();
    shell(dir.path(), "echo new > s");
    let hold = |time: &str| {
        let lock = "exec 9>.weir-resume-$(printf t | sha256sum | head -c 16).new; flock 9;";
        format!("{lock} (sleep {time}) & exec 9>&-; {WEIR} copy --resume s t; wait")
    };
    shell(dir.path(), &hold("0.3"));
    shell(dir.path(), "cmp s t; rm t");
    let output =
        Command::new("bash").args(["-ec", &hold("4")]).current_dir(dir.path()).output().expect("bash");
    assert!(text(&output.stderr).contains("another weir copies to this target"), "{}", text(&output.stderr));
    assert_eq!(kept(dir.path()).len(), 1);
    // A link of another user must not be followed.
    shell(
        dir.path(),
        "echo precious > p; rm .weir-resume-*; ln -s p .weir-resume-$(printf t | sha256sum | head -c 16).new",
    );
    let output = run(dir.path(), &["copy", "--resume", "s", "t"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(shell(dir.path(), "cat p"), "precious\n");
}
