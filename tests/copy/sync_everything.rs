//! Nothing that was copied is left out of a sync, and no device or stream is written in a way that was not asked for.

use std::process::Command;

use crate::common::{disk_dir, has, is_root, run, skip, text};
use crate::{copy, failed_copy, shell};

/// Runs weir copy under strace in a mount namespace with a tmpfs at `m`. Returns its status, and the paths of the files that
/// were synced, each with the call. None without the right or the program.
fn synced(dir: &std::path::Path, prepare: &str, arguments: &str) -> Option<Vec<String>> {
    let script = format!(
        "mkdir -p m; mount -t tmpfs tmpfs m || exit 77; {prepare}; strace -y -f -qq -o trace \
         -e trace=fsync,fdatasync,syncfs {} copy {arguments} || exit 1; \
         sed -nE 's/^[0-9]+ +([a-z]+)\\([0-9]+<(.*)>.*= 0$/\\1 \\2/p' trace",
        crate::common::WEIR
    );
    let output = Command::new("unshare")
        .args(["-m", "bash", "-c", &script])
        .current_dir(dir)
        .output()
        .expect("unshare");
    let dir = format!("{}/", std::fs::canonicalize(dir).expect("a path").display());
    match output.status.code() {
        Some(0) => Some(text(&output.stdout).lines().map(|line| line.replace(&dir, "")).collect()),
        Some(77) => None,
        _ => panic!("{arguments}: {}: {}", output.status, text(&output.stderr)),
    }
}

#[test]
fn targets_on_other_file_systems_are_synced_too() {
    if !is_root() || !has("strace") {
        return skip("targets_on_other_file_systems_are_synced_too", "needs root and strace");
    }
    let dir = disk_dir();
    let prepare = "mkdir -p s d; echo 1 > s/a; echo 2 > s/b; echo 0 > m/a; ln -sf ../m/a d/a";
    let Some(calls) = synced(dir.path(), prepare, "-rT --sync full s d") else {
        return skip("targets_on_other_file_systems_are_synced_too", "no mount namespace");
    };
    assert!(calls.contains(&"fsync m/a".to_string()), "the link's target: {calls:?}");
    assert!(calls.iter().any(|call| call.starts_with("syncfs d") || call == "fsync d/b"), "{calls:?}");

    let single = synced(dir.path(), "echo 1 > one", "-r --sync full one m/new").expect("a namespace");
    assert_eq!(single, ["fsync m/new", "fsync m"], "a file with -r is no tree");

    let links = synced(dir.path(), "ln -sfn x soft", "-a --sync full soft m/soft").expect("a namespace");
    assert_eq!(links, ["fsync m"], "the name of a link");

    let tree = synced(dir.path(), "mkdir -p t/e; echo 1 > t/e/f", "-r --atomic t m/t").expect("a namespace");
    assert!(tree[0].starts_with("fsync m/t/e/.weir-copy-") && tree[1] == "fsync m/t/e", "{tree:?}");
    assert!(tree.len() > 2, "the names of directories: {tree:?}");
}

#[test]
fn a_stream_is_copied_atomically() {
    let dir = disk_dir();
    shell(dir.path(), "echo old > t; chmod 640 t");
    let weir = crate::common::WEIR;
    shell(dir.path(), &format!("exec 3<t; echo new | {weir} copy --atomic - t; [ \"$(cat <&3)\" = old ]"));
    assert_eq!(shell(dir.path(), "cat t; stat -c %a t; ls -A"), "new\n640\nt\n");
    let refused = shell(
        dir.path(),
        &format!(
            "for o in '--sync full' --atomic --verify; do {weir} copy $o t - 2>&1 && exit 1; done; true"
        ),
    );
    assert_eq!(refused.matches("needs a file with a name").count(), 3, "{refused}");
    let verified = shell(dir.path(), &format!("echo x | {weir} copy --verify - u 2>&1 && exit 1; ls -A"));
    assert!(verified.contains("--verify cannot read a stream") && !verified.contains("u\n"), "{verified}");
}

#[test]
fn devices_are_not_overwritten_by_mistake() {
    let dir = disk_dir();
    shell(dir.path(), "echo new > s; mkfifo p");
    copy(dir.path(), &["s", "/dev/null"]);
    assert!(failed_copy(dir.path(), &["--atomic", "s", "p"]).contains("no regular file"));
    assert_eq!(shell(dir.path(), "stat -c %F p; ls -A"), "fifo\np\ns\n");
    if !is_root() || !has("losetup") {
        return skip("devices_are_not_overwritten_by_mistake", "needs root and losetup");
    }
    let Ok(device) = Command::new("bash")
        .args(["-c", "truncate -s 1M image && losetup -f --show image"])
        .current_dir(dir.path())
        .output()
        .map(|output| text(&output.stdout).trim().to_string())
        .and_then(|name| std::fs::metadata(&name).map(|_| name))
    else {
        return skip("devices_are_not_overwritten_by_mistake", "no loop device");
    };
    let outputs = [&["copy", "s", &device][..], &["copy", "--device", "s", &device]]
        .map(|arguments| run(dir.path(), arguments));
    shell(dir.path(), &format!("sync {device}; losetup -d {device}"));
    assert!(text(&outputs[0].stderr).contains("add --device"), "{}", text(&outputs[0].stderr));
    assert!(outputs[1].status.success(), "{}", text(&outputs[1].stderr));
    assert_eq!(shell(dir.path(), "head -c 3 image"), "new");
}
