//! `weir bench` on file systems: cold caches, advice, loop mounts, and what is left after a kill.

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{bench, disk_dir, has, has_private_mounts, names, rows, run, skip, text, wait_for, weir};
use serde_json::Value;

const QUICK: [&str; 4] = ["--size", "1MB", "--budget", "2s"];

#[test]
fn cold_is_checked_and_tmpfs_is_never_cold() {
    let dir = disk_dir();
    let shm = Path::new("/dev/shm");
    let mut arguments =
        vec!["read", "--method", "syscall", "--records", "65536", "--cache", "cold,warm", "--size", "4MB"];
    arguments.extend(["--budget", "2s", "--dir", dir.path().to_str().unwrap()]);
    let has_tmpfs = shm.is_dir();
    if has_tmpfs {
        arguments.extend(["--dir", "/dev/shm"]);
    }
    let document = bench(dir.path(), &arguments);
    let cold: Vec<_> = rows(&document).iter().filter(|row| row["cache"] == "cold").collect();
    for row in &cold {
        match row["fs"].as_str() {
            Some("tmpfs") => assert!(row["cannot"].as_str().unwrap().contains("never cold"), "{row}"),
            _ if row["cached_before"] == 0.0 => {}
            _ => assert!(row["remark"].as_str().unwrap().contains("cold state was not reached"), "{row}"),
        }
    }
    assert_eq!(cold.len(), 1 + usize::from(has_tmpfs));
}

#[test]
fn a_directory_whose_name_is_no_utf_8_is_measured() {
    let dir = disk_dir();
    let odd = OsStr::from_bytes(b"data-\xff");
    std::fs::create_dir(dir.path().join(odd)).unwrap();
    let arguments = ["bench", "copy", "--method", "syscall", "--records", "64K", "--json", "-", "--dir"];
    let output = weir(dir.path(), &arguments).arg(odd).args(QUICK).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows(&document)[0]["elapsed_s"]["median"].as_f64() > Some(0.0), "{document}");
    assert_eq!(std::fs::read_dir(dir.path().join(odd)).unwrap().count(), 0);
}

#[test]
fn a_copy_between_two_directories_reads_from_the_first_and_writes_to_the_second() {
    let [from, to] = [disk_dir(), disk_dir()];
    let paths = [&from, &to].map(|dir| dir.path().to_str().unwrap());
    let arguments =
        ["bench", "copy", "--size", "4MB", "--budget", "3s", "--dir", paths[0], "--dir", paths[1]];
    let bare = weir(from.path(), &[]);
    let traces = has("strace");
    let mut command = if traces { Command::new("strace") } else { weir(from.path(), &[]) };
    if traces {
        let calls = to.path().join("calls");
        command.args(["-f", "-e", "trace=openat", "-o"]).arg(calls).arg(bare.get_program());
    }
    let output = command.args(arguments).current_dir(from.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let screen = text(&output.stdout);
    let lead = format!("From {} to {}: blocks of ", paths[0], paths[1]);
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&lead), "{screen}");
    if traces {
        let calls = std::fs::read_to_string(to.path().join("calls")).unwrap();
        let opened = |dir: &str, name: &str, mode: &str| {
            calls.lines().any(|line| line.contains(dir) && line.contains(name) && line.contains(mode))
        };
        assert!(opened(paths[0], "/in\"", "O_RDONLY") && opened(paths[1], "/out\"", "O_WRONLY"), "{calls}");
        assert!(!opened(paths[0], "/out\"", "O_WRONLY"), "{calls}");
        std::fs::remove_file(to.path().join("calls")).unwrap();
    } else {
        skip("a_copy_between_two_directories: which files it opens", "needs strace");
    }
    assert!(names(from.path()).is_empty() && names(to.path()).is_empty(), "private directories are removed");
}

#[test]
fn each_advice_has_a_row() {
    let dir = disk_dir();
    let arguments = [
        "read",
        "--method",
        "syscall",
        "--records",
        "64K",
        "--advice",
        "all",
        "--size",
        "1MB",
        "--budget",
        "1s",
    ];
    let document = bench(dir.path(), &arguments);
    let mut advices: Vec<&str> = rows(&document).iter().filter_map(|row| row["advice"].as_str()).collect();
    advices.sort_unstable();
    assert_eq!(advices, ["dontneed", "noreuse", "normal", "random", "sequential", "willneed"]);
    assert!(rows(&document).iter().all(|row| row["calls"]["fadvise64"] == 1), "{}", document["rows"]);
}

/// The mounts and loop devices of this machine that name a file in `dir`, since other tests make some at the same time.
fn mounts_and_loop_devices(dir: &Path) -> Vec<String> {
    let devices =
        Command::new("losetup").arg("--all").output().map(|output| output.stdout).unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let dir = dir.to_str().unwrap();
    mounts.lines().chain(text(&devices).lines()).filter(|line| line.contains(dir)).map(String::from).collect()
}

#[test]
fn file_systems_are_made_and_removed() {
    if !has_private_mounts() || !has("mkfs.xfs") || !has("mkfs.btrfs") || !has("losetup") {
        return skip(
            "file_systems_are_made_and_removed",
            "needs root, private mounts, xfsprogs and btrfs-progs",
        );
    }
    let dir = disk_dir();
    let arguments = [
        "copy",
        "--method",
        "syscall,copy_file_range",
        "--records",
        "64K",
        "--fs",
        "ext2,ext3,ext4,xfs,btrfs,tmpfs",
    ];
    let document = bench(dir.path(), &[&arguments[..], &QUICK].concat());
    let mut kinds: Vec<&str> = rows(&document)
        .iter()
        .filter(|row| row["elapsed_s"].is_object())
        .filter_map(|row| row["fs"].as_str())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["btrfs", "ext2", "ext3", "ext4", "tmpfs", "xfs"], "{}", document["rows"]);
    let shared: Vec<_> = rows(&document)
        .iter()
        .filter(|row| row["method"] == "copy_file_range" && row["fs"] == "xfs")
        .collect();
    assert!(shared[0]["remark"].as_str().is_some_and(|remark| remark.contains("shared")), "{}", shared[0]);
    assert_eq!(names(dir.path()), Vec::<String>::new());
    let none: [&str; 0] = [];
    assert_eq!(mounts_and_loop_devices(dir.path()), none, "no mount and no loop device is left");
}

#[test]
fn a_killed_run_leaves_no_mount_and_no_loop_device() {
    if !has_private_mounts() || !has("losetup") {
        return skip("a_killed_run_leaves_no_mount_and_no_loop_device", "needs root and private mounts");
    }
    let dir = disk_dir();
    let arguments = ["bench", "copy", "--fs", "ext4", "--size", "1MB", "--budget", "60s", "--quiet"];
    let mut child = weir(dir.path(), &arguments).spawn().unwrap();
    wait_for("its loop device", || !mounts_and_loop_devices(dir.path()).is_empty());
    std::thread::sleep(Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the kernel to free them", || mounts_and_loop_devices(dir.path()).is_empty());
}

#[test]
fn rows_of_a_file_system_that_cannot_be_mounted_say_why() {
    // Runs weir without root; a test that runs as root starts weir as another user.
    let dir = disk_dir();
    let arguments = [
        "bench",
        "copy",
        "--method",
        "syscall",
        "--records",
        "4K",
        "--fs",
        "ext4",
        "--json",
        "-",
        "--budget",
        "1s",
    ];
    let output = match common::is_root() {
        false => run(dir.path(), &arguments),
        true => {
            let open = tempfile::Builder::new().prefix("weir-test-").tempdir_in("/tmp").unwrap();
            std::fs::set_permissions(open.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .unwrap();
            let binary = open.path().join("weir");
            common::programs::copy_program(common::WEIR, &binary);
            let unprivileged = |arguments: &[&str]| {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--clear-groups"]).arg(&binary).args(arguments);
                command.current_dir(open.path()).output()
            };
            if !unprivileged(&["--version"]).is_ok_and(|output| output.status.success()) {
                let why = "needs setpriv(1) and a /tmp that can be reached without root";
                return skip("rows_of_a_file_system_that_cannot_be_mounted_say_why", why);
            }
            unprivileged(&arguments).unwrap()
        }
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows(&document)[0]["cannot"].as_str().unwrap().contains("needs root"), "{}", document["rows"]);
}
