//! Devices that fail, targets that vanish, rights that are lost, signals: a clear error, and nothing else is damaged.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{KillOnDrop, disk_dir, has, is_root, run, skip, text, wait_for, weir};
use crate::{failed_copy, shell};

/// Runs a script of bash in a mount namespace of its own. Returns its output; None without the right.
fn in_namespace(dir: &std::path::Path, script: &str) -> Option<String> {
    let output = Command::new("unshare")
        .args(["-m", "bash", "-c", script])
        .current_dir(dir)
        .output()
        .expect("unshare");
    match output.status.code() {
        Some(0) => Some(text(&output.stdout)),
        Some(77) => None,
        _ => panic!("{}: {}{}", output.status, text(&output.stdout), text(&output.stderr)),
    }
}

/// As after an I/O error of the journal: nothing can be removed any more.
#[test]
fn a_target_that_cannot_be_removed_is_named() {
    const NAME: &str = "a_target_that_cannot_be_removed_is_named";
    if !is_root() || !has("mkfs.ext4") {
        return skip(NAME, "needs root and mkfs.ext4");
    }
    let dir = disk_dir();
    let weir = crate::common::WEIR;
    let script = format!(
        "truncate -s 64M image; mkdir m; mkfs.ext4 -q -F image && mount -o loop image m || exit 77; \
         head -c 20000000 /dev/urandom > big; {weir} copy --limit 5MB/s big m/t 2> error & \
         while ! [ -s m/t ]; do sleep 0.02; done; mount -o remount,abort m 2> e || exit 77; \
         wait $!; echo $?; ls m; cat error; umount m || umount -l m; exit 0"
    );
    let Some(report) = in_namespace(dir.path(), &script) else {
        return skip(NAME, "no loop device, no mount namespace, or ext4 without 'abort'");
    };
    assert!(report.starts_with("1\n") && report.contains("\nt\n"), "{report}");
    assert!(report.contains("weir copy: 'm/t': ") && report.contains(": EROFS: "), "{report}");
    assert!(report.contains("'m/t' is incomplete and could not be removed: unlink: EROFS"), "{report}");
}

/// An ext4 image on a tmpfs that is too small for it: the page cache takes the bytes, and the device refuses them.
#[test]
fn a_failed_sync_is_final_and_said() {
    const NAME: &str = "a_failed_sync_is_final_and_said";
    if !is_root() || !has("mkfs.ext4") || !has("strace") {
        return skip(NAME, "needs root, mkfs.ext4 and strace");
    }
    let dir = disk_dir();
    let weir = crate::common::WEIR;
    let script = format!(
        "mkdir small m tree; head -c 20000000 /dev/urandom > big; cp big tree/f; \
         mount -t tmpfs -o size=12m tmpfs small || exit 77; truncate -s 64M small/image; \
         for o in '--sync full big m/t' '--sync data big m/t' '--atomic big m/t' '--resume big m/t' \
             '--cache drop big m/t' '-rT --sync full tree m'; do \
             mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard -J size=4 small/image 2>e || exit 77; \
             mount -o loop small/image m || exit 77; \
             strace -f -qq -y -o trace -e trace=fsync,fdatasync,syncfs {weir} copy $o 2>error; status=$?; \
             calls=$(grep -cE '(sync|syncfs)\\([0-9]+<[^>]*/m(/f|/t|/[.]weir[^>]*)?>' trace); \
             echo \"$status $calls $(ls m | grep -c '^t$') $(grep -cE 'EIO|ENOSPC|EROFS' error) \
                 $(grep -c 'not durable' error) $(grep -c EROFS error) $(grep -c 'could not be removed' error)\"; \
             umount m || umount -l m; done; exit 0"
    );
    let Some(report) = in_namespace(dir.path(), &script) else {
        return skip(NAME, "no loop device, or no mount namespace");
    };
    let lines: Vec<Vec<u32>> = report
        .lines()
        .map(|line| line.split(' ').map(|field| field.parse().expect("a number")).collect())
        .collect();
    assert_eq!(lines.len(), 6, "{report}");
    for (number, line) in lines.iter().enumerate() {
        // ext4 becomes read-only if its journal meets the failure before the sync does. Then the target cannot be removed.
        let became_read_only = line[5] >= 1;
        assert!(line[0] == 1 && line[3] >= 1, "case {number}: {report}");
        assert!(number == 5 || line[2] == line[6], "case {number}: {report}");
        assert!(line[6] == 0 || became_read_only, "case {number}: {report}");
        // The page cache's writer has no descriptor of which a sync is asked; all others say what a failure means.
        assert!(number == 4 || became_read_only || line[4] >= 1, "case {number}: {report}");
        // One call for each file, or for the tree and its parts: never a second one for the same file.
        assert!(line[1] <= if number == 5 { 2 } else { 1 }, "case {number}: {report}");
    }
}

#[test]
fn an_error_of_the_source_leaves_no_file() {
    let dir = disk_dir();
    // Address 0 of a process is never mapped: the read fails with EIO.
    for method in ["auto", "readwrite", "splice", "sendfile", "copy_file_range", "io_uring", "stdio"] {
        let error = failed_copy(dir.path(), &["--method", method, "/proc/self/mem", "t"]);
        assert!(error.contains("EIO") && error.contains("/proc/self/mem"), "{method}: {error}");
        assert!(!dir.path().join("t").exists(), "{method}");
    }
}

#[test]
fn a_target_that_is_removed_or_locked_while_it_is_written_is_an_error() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; for i in $(seq 400); do head -c 40000 /dev/zero > s/$i; done");
    let mut command = weir(dir.path(), &["copy", "-r", "--limit", "400K/s", "--threads", "2", "s", "t"]);
    let error = fs::File::create(dir.path().join("error")).expect("a file");
    let mut child = KillOnDrop(command.stderr(error).spawn().expect("weir"));
    wait_for("the first file", || dir.path().join("t").read_dir().is_ok_and(|names| names.count() > 1));
    // weir makes files in the directory until it is gone.
    shell(dir.path(), "mv t gone; until rm -rf gone 2>/dev/null; do :; done");
    assert_eq!(child.0.wait().expect("its end").code(), Some(1));
    let error = fs::read_to_string(dir.path().join("error")).expect("errors");
    assert!(error.contains("ENOENT") && error.contains("'t/"), "{error}");
    assert_eq!(shell(dir.path(), "ls; ls s | wc -l"), "error\ns\n400\n");
}

#[test]
fn signals_while_it_copies_cost_no_byte() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 30000000 /dev/urandom > s");
    let mut command = weir_with_signals(dir.path());
    let mut child = KillOnDrop(command.stderr(Stdio::null()).spawn().expect("weir"));
    wait_for("the copy to begin", || fs::metadata(dir.path().join("u")).is_ok_and(|file| file.len() > 0));
    while child.0.try_wait().expect("its state").is_none() {
        // ESRCH after its end.
        let _ = kill_process(Pid::from_child(&child.0), Signal::USR1);
        // A signal interrupts a call; without a pause no call would get anywhere.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.0.wait().expect("its end").success());
    shell(dir.path(), "cmp s u");
    assert!(run(dir.path(), &["copy", "s", "v"]).status.success());
}

fn weir_with_signals(dir: &std::path::Path) -> Command {
    let mut command = weir(dir, &["copy", "--reflink=never", "--limit", "60MB/s", "s", "u"]);
    crate::common::with_signals(&mut command);
    command
}

#[test]
fn idmapped_mounts_and_encrypted_directories_give_the_results_of_cp() {
    const NAME: &str = "idmapped_mounts_and_encrypted_directories_give_the_results_of_cp";
    if !is_root() || !std::path::Path::new("/usr/bin/python3").exists() {
        return skip(NAME, "needs root and /usr/bin/python3");
    }
    let dir = disk_dir();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/copy/unusual-mounts");
    let Some(report) = in_namespace(dir.path(), &format!("{script} {}", crate::common::WEIR)) else {
        return skip(NAME, "the kernel or the file system has neither");
    };
    for line in report.lines() {
        match line.strip_prefix("skipped ") {
            Some(reason) => skip(NAME, reason),
            None => assert!(line.starts_with("same "), "{report}"),
        }
    }
}
