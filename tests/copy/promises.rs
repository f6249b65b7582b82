//! Promises of options, kept or refused: shared blocks, durability, lines on standard output.

use std::process::Command;

use crate::common::{WEIR, disk_dir, has, has_private_mounts, names, run, skip, text};
use crate::{copy, failed_copy, on_terminal, shell};

#[test]
fn blocks_are_shared_always_or_the_copy_fails() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 9000000 /dev/urandom > s");
    let refused: [&[&str]; 4] =
        [&["--resume"], &["--cache", "drop"], &["--method", "mmap"], &["--holes", "scan"]];
    for options in refused {
        let error = failed_copy(dir.path(), &[options, &["--reflink=always", "s", "t"]].concat());
        assert!(error.contains("leave one of the two out"), "{options:?}: {error}");
        assert_eq!(names(dir.path()), ["s"], "{options:?}");
    }
    let stream = shell(dir.path(), &format!("cat s | {WEIR} copy --reflink=always - t 2>&1 || echo $?"));
    assert!(stream.contains("cannot share the blocks of a stream") && stream.ends_with("\n1\n"), "{stream}");
    let device = failed_copy(dir.path(), &["--reflink=always", "s", "/dev/null"]);
    assert!(device.contains("no blocks to share"), "{device}");
    let output = run(dir.path(), &["copy", "--reflink=always", "s", "t"]);
    let error = text(&output.stderr);
    let is_advised = error.contains("EOPNOTSUPP") && error.contains("use --reflink=auto");
    assert!(output.status.success() || is_advised, "{error}");
}

#[test]
fn nothing_is_durable_in_memory() {
    const NAME: &str = "nothing_is_durable_in_memory";
    if !has_private_mounts() {
        return skip(NAME, "needs a mount namespace");
    }
    let dir = disk_dir();
    let copies = "'--sync full a' '--sync data a' '--atomic a' '--resume b' '-a --sync full tree' 'a'";
    let script = format!(
        "echo x > a; head -c 9000000 /dev/zero > b; mkdir -p tree m low disk work; cp a tree; \
         mount -t tmpfs none m || exit 77; for o in {copies}; do {WEIR} copy --summary $o m/ 2>&1 | grep cut; done; \
         mkdir m/up m/work o; mount -t overlay none -o lowerdir=low,upperdir=$PWD/m/up,workdir=m/work o || exit 0; \
         {WEIR} copy --sync full --summary a o/ 2>&1 | grep cut; umount o; \
         mount -t overlay none -o lowerdir=low,upperdir=$PWD/disk,workdir=work o || exit 0; \
         {WEIR} copy --sync full --summary a o/ 2>&1 | grep cut; umount o"
    );
    let output = Command::new("unshare").args(["-m", "bash", "-c", &script]).current_dir(dir.path()).output();
    let output = output.expect("unshare");
    let seen = text(&output.stdout);
    let lines: Vec<&str> = seen.lines().collect();
    if output.status.code() == Some(77) {
        return skip(NAME, "tmpfs cannot be mounted");
    }
    assert!(lines.len() >= 6, "{seen}");
    for line in lines.iter().take(7) {
        assert!(
            line.contains("power cut now costs") && line.contains("no sync makes them durable on"),
            "{seen}"
        );
    }
    assert!(lines.len() < 8 || lines[7].contains("costs nothing"), "an overlay on a disk: {seen}");
}

#[test]
fn lines_that_cannot_be_written_are_an_error() {
    let dir = disk_dir();
    shell(dir.path(), "echo x > s");
    for (to, errno) in [(">/dev/full", "ENOSPC"), (">&-", "EBADF")] {
        let seen = shell(dir.path(), &format!("{{ {WEIR} copy -v s t {to} || echo $? >&2; }} 2>&1; cmp s t"));
        assert!(
            seen.contains(&format!("standard output: write: {errno}")) && seen.ends_with("\n1\n"),
            "{seen}"
        );
    }
}

#[test]
fn a_reader_that_has_enough_ends_the_copy_silently() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000000 /dev/zero > s");
    for source in [format!("{WEIR} copy s -"), format!("cat s | {WEIR} copy - -")] {
        let script = format!("{{ {source} 2>e || echo $? >status; }} | head -c 10 | wc -c; cat status e");
        assert_eq!(shell(dir.path(), &script), "10\n141\n", "{source}");
    }
}

#[test]
fn a_stopped_tree_names_the_command_that_continues_it() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; head -c 40000000 /dev/urandom > s/big; echo x > s/small");
    let script = format!(
        "timeout -s INT 1 {WEIR} copy -a --reflink=never --resume --limit 12MB/s s 'new tree' 2>&1 || true"
    );
    let seen = shell(dir.path(), &script);
    assert!(!seen.contains("journal") && seen.contains("the same command with -T continues it"), "{seen}");
    let command =
        seen.lines().find_map(|line| line.strip_prefix("weir copy: this continues the tree: weir copy "));
    let command = command.unwrap_or_else(|| panic!("{seen}"));
    assert!(command.starts_with("-T -a ") && command.ends_with(" s 'new tree'"), "{seen}");
    shell(dir.path(), &format!("{WEIR} copy {command} 2>/dev/null; diff -r s 'new tree'"));
    // -T, and a directory that exists, need no other command.
    copy(dir.path(), &["-aT", "--resume", "s", "new tree"]);
}

#[test]
fn a_killed_tree_is_recognised_and_its_command_is_offered() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; head -c 20000000 /dev/urandom > s/big; echo x > s/small");
    let slow = format!("{WEIR} copy -a --reflink=never --resume --limit 12MB/s s 'new tree'");
    shell(
        dir.path(),
        &format!("{slow} & sleep 0.8; pkill -KILL -P $! || true; kill -KILL $! || true; wait $! || true"),
    );
    shell(dir.path(), "test -d 'new tree'; ! diff -rq s 'new tree' >/dev/null");
    for again in [slow, format!("{WEIR} copy -a s 'new tree'")] {
        let seen = shell(dir.path(), &format!("{again} 2>&1 && echo copied || true"));
        assert!(seen.contains("has not finished") && !seen.contains("copied\n"), "{seen}");
        assert!(!dir.path().join("new tree/s").exists(), "nothing is copied into it");
        let command =
            seen.lines().find_map(|line| line.strip_prefix("weir copy: this continues the tree: weir copy "));
        let command = command.unwrap_or_else(|| panic!("{seen}"));
        assert!(command.starts_with("-T ") && command.contains("--resume"), "{seen}");
        if again.contains("--resume") {
            continue;
        }
        shell(dir.path(), &format!("{WEIR} copy {command} 2>/dev/null; diff -r s 'new tree'"));
    }
    assert_eq!(shell(dir.path(), "ls -A | grep weir || true"), "", "no marker is left");
    // A finished tree is a directory like any other.
    copy(dir.path(), &["-a", "--resume", "s", "new tree"]);
    assert!(dir.path().join("new tree/s/small").exists());
}

#[test]
fn the_bar_of_a_stream_claims_no_size() {
    const NAME: &str = "the_bar_of_a_stream_claims_no_size";
    if !has("script") {
        return skip(NAME, "needs script(1)");
    }
    let dir = disk_dir();
    shell(dir.path(), "head -c 4500000 /dev/zero > s");
    let slow = format!("{WEIR} copy --limit 2MB/s");
    let stream = on_terminal(dir.path(), &format!("cat s | {slow} - t"));
    let (bar, _) = stream.split_once("1 file").expect(&stream);
    assert!(bar.contains("iB, ") && bar.contains("iB/s"), "{stream}");
    assert!(!bar.contains('%') && !bar.contains(" of "), "{stream}");
    for source in ["s t", "- t < s"] {
        let file = on_terminal(dir.path(), &format!("{slow} {source}"));
        assert!(file.contains(" of 4.29 MiB, ") && file.contains('%'), "{source}: {file}");
        assert!(!file.contains("100 %  2."), "{source}: {file}");
    }
    let typed = on_terminal(dir.path(), &format!("(sleep 2; kill -INT $$) & {WEIR} copy - t"));
    assert!(!typed.contains("/s"), "{typed}");
}
