//! Failures leave nothing half, and say what happened.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{
    KillOnDrop, as_nobody, disk_dir, for_nobody, is_root, names, run, skip, text, wait_for, weir,
};
use crate::{copy, failed_copy, shell};

/// Runs a script in a mount namespace of its own, with a tmpfs of 1 MiB at `m`. Returns None without the right.
fn with_small_disk(dir: &std::path::Path, script: &str) -> Option<String> {
    let script = format!("mkdir -p m; mount -t tmpfs -o size=1m tmpfs m || exit 77; {script}");
    let output = Command::new("unshare")
        .args(["-m", "bash", "-c", &script])
        .current_dir(dir)
        .output()
        .expect("unshare");
    match output.status.code() {
        Some(0) => Some(text(&output.stdout)),
        Some(77 | 1) => None,
        _ => panic!("{}: {}", output.status, text(&output.stderr)),
    }
}

#[test]
fn a_full_device_had_no_content() {
    let dir = disk_dir();
    shell(dir.path(), "echo text > s");
    let error = failed_copy(dir.path(), &["s", "/dev/full"]);
    assert!(
        error.contains("ENOSPC") && !error.contains("--atomic") && !error.contains("old content"),
        "{error}"
    );
}

#[test]
fn a_full_disk_leaves_nothing_half() {
    if !is_root() {
        return skip("a_full_disk_leaves_nothing_half", "needs root to mount a small tmpfs");
    }
    let dir = disk_dir();
    shell(
        dir.path(),
        "head -c 3000000 /dev/urandom > s; mkdir tree; for i in $(seq 9); do head -c 200000 s > tree/$i; done",
    );
    let weir = crate::common::WEIR;
    let methods = "auto copy_file_range splice sendfile io_uring readwrite mmap direct stdio";
    let script = format!(
        "for m in {methods}; do {weir} copy --method $m s m/x 2>e; echo $m $? $(ls -A m | wc -l) $(grep -ciE ENOSPC e); done; \
         echo old > m/x; {weir} copy --atomic s m/x 2>e; echo atomic $? $(cat m/x) $(grep -c ENOSPC e); rm m/x; \
         {weir} copy -r tree m/tree 2>e; echo tree $? $(cd m/tree; for f in *; do cmp $f ../../tree/$f 2>&1; done | wc -l); \
         rm -r m/*; cat s | {weir} copy - m/x 2>e; echo stream $? $(ls -A m | wc -l) $(grep -c ENOSPC e); exit 0"
    );
    let Some(report) = with_small_disk(dir.path(), &script) else {
        return skip("a_full_disk_leaves_nothing_half", "no mount namespace");
    };
    for line in report.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[0] {
            "atomic" => assert_eq!(fields[1..], ["1", "old", "1"], "{report}"),
            "tree" => assert_eq!(fields[1..], ["1", "0"], "{report}"),
            _ => assert_eq!(fields[1..], ["1", "0", "1"], "{report}"),
        }
    }
    assert_eq!(report.lines().count(), 12, "{report}");
}

#[test]
fn an_unreadable_file_is_named_and_the_others_are_copied() {
    if !is_root() {
        return skip("an_unreadable_file_is_named_and_the_others_are_copied", "needs root to become nobody");
    }
    let dir = for_nobody();
    shell(
        dir.path(),
        "mkdir s; echo 1 > s/open; echo 2 > s/secret; chmod 600 s/secret; mkdir s/d; chmod 700 s/d",
    );
    let output = as_nobody(dir.path(), &["copy", "-r", "s", "t"]).output().expect("weir");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("'s/secret': open: EACCES") && error.contains("'s/d'"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("t/open")).expect("copied"), "1\n");
    let output = as_nobody(dir.path(), &["copy", "s/open", "/etc/weir-test-copy"]).output().expect("weir");
    assert!(text(&output.stderr).contains("EACCES"), "{}", text(&output.stderr));
}

#[test]
fn missing_sources_are_errors_and_nothing_is_made() {
    let dir = disk_dir();
    let error = failed_copy(dir.path(), &["nothing", "t"]);
    assert!(error.contains("'nothing': stat: ENOENT"), "{error}");
    shell(dir.path(), "ln -s nowhere dangling; echo 1 > s");
    assert!(failed_copy(dir.path(), &["s", "dangling"]).contains("dangling symlink"));
    for arguments in [&["s", "no/dir"][..], &["--atomic", "s", "no/dir"], &["-r", "/etc/skel", "no/dir"]] {
        let error = failed_copy(dir.path(), arguments);
        assert!(error.contains("ENOENT") && error.contains("create it: mkdir -p 'no'"), "{error}");
    }
    for arguments in [&["s", "no/"][..], &["--atomic", "s", "no/"], &["-", "no/"]] {
        let error = failed_copy(dir.path(), arguments);
        assert!(error.contains("'no/': no such directory: create it: mkdir -p 'no'"), "{error}");
    }
    assert!(failed_copy(dir.path(), &["no/thing", "t"]).contains("check the name"), "a missing source");
    assert_eq!(run(dir.path(), &["copy", "--no-such-option", "s", "t"]).status.code(), Some(1));
    let mut left = names(dir.path());
    left.sort();
    assert_eq!(left, ["dangling", "s"]);
}

#[test]
fn a_stop_leaves_no_half_file() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000000 /dev/urandom > s; mkfifo fifo");
    for (arguments, target) in [
        (&["--limit", "100K/s", "s", "t"][..], "t"),
        (&["fifo", "u"], "u"),
        (&["-r", "--limit", "100K/s", "s", "t"], "t"),
    ] {
        let mut command = weir(dir.path(), &[&["copy"], arguments].concat());
        crate::common::with_signals(&mut command);
        let mut child = KillOnDrop(command.stderr(Stdio::null()).spawn().expect("weir"));
        // A writer that keeps the FIFO open, so that the read blocks.
        let mut writer = (target == "u").then(|| {
            fs::OpenOptions::new().read(true).write(true).open(dir.path().join("fifo")).expect("a FIFO")
        });
        if let Some(writer) = &mut writer {
            writer.write_all(b"begun").expect("written");
        }
        wait_for("the copy to begin", || {
            fs::metadata(dir.path().join(target)).is_ok_and(|target| target.len() > 0)
        });
        kill_process(Pid::from_child(&child.0), Signal::INT).expect("kill");
        let status = child.0.wait().expect("its end");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(2),
            "{arguments:?}: {status}"
        );
        assert!(!dir.path().join(target).exists(), "{arguments:?}");
    }
}

#[test]
fn the_summary_of_a_stopped_copy_counts_no_error() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000000 /dev/urandom > s");
    let mut command = weir(dir.path(), &["copy", "--summary", "--limit", "100K/s", "s", "t"]);
    let errors = fs::File::create(dir.path().join("errors")).expect("a file");
    let mut child =
        KillOnDrop(crate::common::with_signals(&mut command).stderr(errors).spawn().expect("weir"));
    wait_for("the copy to begin", || fs::metadata(dir.path().join("t")).is_ok_and(|target| target.len() > 0));
    kill_process(Pid::from_child(&child.0), Signal::TERM).expect("kill");
    let _status = child.0.wait().expect("its end");
    let errors = fs::read_to_string(dir.path().join("errors")).expect("text");
    assert!(errors.contains("the copy was stopped before a file was complete"), "{errors}");
    assert!(!errors.contains("error"), "{errors}");
}

#[test]
fn a_file_named_with_a_slash_is_no_directory() {
    let dir = disk_dir();
    shell(dir.path(), "echo x > s; echo old > file");
    assert!(failed_copy(dir.path(), &["s", "file/"]).contains("open: ENOTDIR"));
    assert_eq!(shell(dir.path(), "cat file"), "old\n");
}

#[test]
fn remedies_for_a_source_and_for_a_target_differ() {
    let dir = disk_dir();
    shell(dir.path(), "echo x > s; mkdir d");
    let no_files = "takes no new files: it was removed, or its file system is one of the kernel's";
    for (arguments, remedy) in [
        (&["nothing", "t"][..], "ENOENT: No such file or directory – no such file: check the name"),
        (&["s", "/proc/x"], no_files),
        (&["--atomic", "s", "/proc/x"], no_files),
        (&["-l", "s", "/proc/x"], no_files),
        (&["-", "/proc/x"], no_files),
        (&["-r", "d", "/proc/x"], no_files),
        (&["s", "s/"], "– 's' is no directory: leave the slash out"),
        (&["s/", "t"], "– 's' is no directory: leave the slash out"),
        (
            &["-r", "d", "s/t"],
            "– 's' is no directory, so that nothing can be made in it: choose another target",
        ),
        (&["d/../s/t/u", "t"], "– 'd/../s' is no directory: check the name"),
        (&["-T", "s", "d/"], "– it is a directory: leave -T out, or choose another target"),
    ] {
        let error = failed_copy(dir.path(), arguments);
        assert!(error.contains(remedy), "{arguments:?}: {error}");
    }
    if std::path::Path::new("/sys/kernel").is_dir() {
        let error = failed_copy(dir.path(), &["s", "/sys/kernel/weir-test"]);
        assert!(error.contains(no_files), "{error}");
    }
}

#[test]
fn a_stop_names_the_target_whose_old_content_is_gone() {
    let dir = disk_dir();
    shell(
        dir.path(),
        "head -c 3000000 /dev/urandom > s; mkdir d; echo old > t; echo old > d/s; echo old > u",
    );
    for (arguments, target) in [(&["s", "t"][..], "t"), (&["-r", "s", "d"], "d/s"), (&["-", "u"], "u")] {
        let slowly = ["copy", "--summary", "--limit", "100K/s"];
        let mut command = weir(dir.path(), &[&slowly[..], arguments].concat());
        crate::common::with_signals(&mut command);
        command.stdin(fs::File::open(dir.path().join("s")).expect("the source"));
        command.stderr(fs::File::create(dir.path().join("errors")).expect("a file"));
        let mut child = KillOnDrop(command.spawn().expect("weir"));
        wait_for("the copy to begin", || {
            fs::metadata(dir.path().join(target)).is_ok_and(|target| target.len() > 4)
        });
        kill_process(Pid::from_child(&child.0), Signal::TERM).expect("kill");
        child.0.wait().expect("its end");
        let errors = fs::read_to_string(dir.path().join("errors")).expect("errors");
        let named = format!("stopped – '{target}' is incomplete, and its old content is gone");
        assert!(errors.contains(&named), "{arguments:?}: {errors}");
        assert!(!errors.contains("a power cut costs none"), "{arguments:?}: {errors}");
    }
}

#[test]
fn sigusr1_prints_how_far_a_copy_is() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000000 /dev/urandom > s");
    let mut command = weir(dir.path(), &["copy", "--limit", "200K/s", "s", "t"]);
    crate::common::with_signals(&mut command);
    let child =
        command.stderr(fs::File::create(dir.path().join("e")).expect("a file")).spawn().expect("weir");
    let child = KillOnDrop(child);
    wait_for("the copy to begin", || fs::metadata(dir.path().join("t")).is_ok_and(|target| target.len() > 0));
    kill_process(Pid::from_child(&child.0), Signal::USR1).expect("kill");
    wait_for("the line", || {
        fs::read_to_string(dir.path().join("e"))
            .is_ok_and(|text| text.contains("/s") && text.contains(" of "))
    });
}

#[test]
fn an_immutable_target_is_named() {
    let dir = disk_dir();
    shell(dir.path(), "echo new > s; echo old > t");
    if !is_root()
        || !Command::new("chattr")
            .args(["+i", "t"])
            .current_dir(dir.path())
            .status()
            .is_ok_and(|s| s.success())
    {
        return skip("an_immutable_target_is_named", "chattr +i needs root and a file system that has it");
    }
    let errors = [&["s", "t"][..], &["-f", "s", "t"], &["--atomic", "s", "t"]]
        .map(|arguments| text(&run(dir.path(), &[&["copy"], arguments].concat()).stderr));
    shell(dir.path(), "chattr -i t");
    assert!(errors.iter().all(|error| error.contains("EPERM") && error.contains("'t'")), "{errors:?}");
    assert_eq!(shell(dir.path(), "cat t; ls -A"), "old\ns\nt\n");
    copy(dir.path(), &["s", "t"]);
}

#[test]
fn a_source_that_becomes_shorter_is_named_once() {
    let dir = disk_dir();
    let cases: [(&[&str], &str); 5] = [
        (&["--reflink=never", "s/f", "t"], "t"),
        (&["--reflink=never", "-a", "s", "tree"], "tree/f"),
        (&["--method", "readwrite", "--verify", "s/f", "u"], "u"),
        (&["--reflink=never", "--json", "json", "s/f", "v"], "v"),
        (&["--reflink=never", "--sparse", "always", "s/f", "w"], "w"),
    ];
    for (arguments, target) in cases {
        shell(dir.path(), "mkdir -p s; head -c 4000000 /dev/urandom > s/f");
        let child = weir(dir.path(), &[&["copy", "--limit", "2M/s"], arguments].concat())
            .stderr(fs::File::create(dir.path().join("e")).expect("a file"))
            .spawn();
        let mut child = KillOnDrop(child.expect("weir"));
        wait_for("the copy to begin", || {
            fs::metadata(dir.path().join(target)).is_ok_and(|target| target.len() > 0)
        });
        fs::File::options().write(true).open(dir.path().join("s/f")).unwrap().set_len(1000).unwrap();
        let status = child.0.wait().expect("its end");
        let message = fs::read_to_string(dir.path().join("e")).unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}: {message}");
        assert_eq!(message.matches("became shorter").count(), 1, "{arguments:?}: {message}");
        assert!(!dir.path().join(target).exists(), "{arguments:?}: {message}");
    }
}
