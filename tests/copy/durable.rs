//! Durability: the order of syncs and renames, verification, the page cache.

use std::process::Command;

use crate::common::{WEIR, as_nobody, disk_dir, for_nobody, has_private_mounts, is_root, run, skip, text};
use crate::{copy, shell};

/// Returns the calls that matter for durability, in their order, without arguments. strace(1) also reports a child that weir kills.
fn sync_calls(dir: &std::path::Path, arguments: &str) -> Vec<String> {
    let weir = crate::common::WEIR;
    let script = format!(
        "strace -f -qq -o trace -e trace=fsync,fdatasync,syncfs,renameat,renameat2,rename {weir} copy {arguments}; \
         sed -nE 's/^[0-9]+ +//; s/^([a-z0-9]+)\\(.*/\\1/p' trace"
    );
    shell(dir, &script).lines().map(str::to_string).collect()
}

#[test]
fn files_are_synced_before_they_get_their_names() {
    if !crate::common::has("strace") {
        return skip("files_are_synced_before_they_get_their_names", "strace is not installed");
    }
    let dir = disk_dir();
    shell(dir.path(), "echo 1 > s; mkdir tree; for i in $(seq 50); do echo $i > tree/$i; done");
    assert!(sync_calls(dir.path(), "s t").is_empty());
    assert_eq!(sync_calls(dir.path(), "--sync data s t"), ["fdatasync"]);
    assert_eq!(sync_calls(dir.path(), "--sync full s t"), ["fsync", "fsync"]);
    assert_eq!(sync_calls(dir.path(), "--atomic s t"), ["fsync", "renameat", "fsync"]);
    assert_eq!(
        sync_calls(dir.path(), "--resume --sync full s t"),
        ["fsync", "fsync"],
        "a copy of an earlier run"
    );
    assert_eq!(sync_calls(dir.path(), "-r --sync full tree u"), ["syncfs"], "a tree is synced once");
}

#[test]
fn an_atomic_copy_keeps_mode_and_links_of_the_target() {
    let dir = disk_dir();
    shell(dir.path(), "echo new > s; echo old > t; chmod 640 t; ln -s t soft; echo other > x");
    copy(dir.path(), &["--atomic", "s", "soft"]);
    assert_eq!(
        shell(dir.path(), "cat t; stat -c %a t; readlink soft; ls -A"),
        "new\n640\nt\ns\nsoft\nt\nx\n"
    );
    copy(dir.path(), &["--atomic", "-b", "x", "t"]);
    assert_eq!(shell(dir.path(), "cat t t~"), "other\nnew\n");
    // A reader of the old file keeps it.
    shell(
        dir.path(),
        &format!("exec 3<t; {} copy --atomic s t; [ \"$(cat <&3)\" = other ]; cat t", crate::common::WEIR),
    );
}

#[test]
fn a_target_that_gets_another_owner_loses_its_set_id_bits() {
    if !is_root() {
        return skip("a_target_that_gets_another_owner_loses_its_set_id_bits", "needs root to become nobody");
    }
    let dir = for_nobody();
    shell(dir.path(), "head -c 9000000 /dev/urandom > s; chmod 644 s");
    for option in ["--atomic", "--resume"] {
        shell(dir.path(), "rm -f t; echo old > t; chmod 6755 t");
        let output = as_nobody(dir.path(), &["copy", option, "s", "t"]).output().expect("weir");
        assert!(output.status.success(), "{option}: {}", text(&output.stderr));
        assert_eq!(shell(dir.path(), "cmp s t; stat -c '%a %u' t"), "755 65534\n", "{option}");
    }
    shell(dir.path(), "chmod 6755 t");
    copy(dir.path(), &["--atomic", "s", "t"]);
    assert_eq!(shell(dir.path(), "stat -c '%a %u' t"), "6755 65534\n", "root keeps the owner");
}

#[test]
fn a_verified_copy_names_its_checksum() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 2500000 /dev/urandom > s");
    let output = copy(dir.path(), &["--verify", "--sync", "full", "--summary", "s", "t"]);
    let error = text(&output.stderr);
    let sum = shell(dir.path(), "sha256sum < s | cut -d' ' -f1");
    assert!(error.contains(sum.trim()) && error.contains("power cut now costs nothing"), "{error}");
    let lazy = text(&copy(dir.path(), &["--summary", "s", "u"]).stderr);
    assert!(lazy.contains("power cut now can cost all"), "{lazy}");
}

/// Every sync is counted, also that of `--verify`, and the sentence about a power cut knows it.
#[test]
fn syncs_of_a_verified_copy_are_counted() {
    if !crate::common::has("strace") {
        return skip("syncs_of_a_verified_copy_are_counted", "strace is not installed");
    }
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000000 /dev/urandom > s; mkdir tree; cp s tree/a; cp s tree/b");
    let data = "are durable; a power cut now can cost new names: --sync full makes these durable too";
    for (options, sentence) in [
        ("--verify s", data),
        ("--verify --sync data s", data),
        ("--verify --sync full s", "a power cut now costs nothing: "),
        ("--verify -r tree", data),
        ("--verify -r --sync full tree", "a power cut now costs nothing: "),
    ] {
        shell(dir.path(), "rm -rf t");
        let made = sync_calls(dir.path(), &format!("--json result.json {options} t"));
        let document = std::fs::read_to_string(dir.path().join("result.json")).expect("a document");
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        for call in ["fdatasync", "fsync", "syncfs"] {
            let count = made.iter().filter(|made| *made == call).count() as u64;
            assert_eq!(document["calls"][call].as_u64().unwrap_or(0), count, "{options}: {call}: {document}");
        }
        assert_eq!(document["synced_files"], document["files"], "{options}: {document}");
        assert!(document["sync_s"].as_f64().expect("seconds") > 1e-6, "{options}: {document}");
        let power_cut = document["power_cut"].as_str().expect("a sentence");
        assert!(power_cut.contains(sentence), "{options}: {power_cut}");
    }
}

#[test]
fn the_result_has_the_mode_of_the_mask_also_where_modes_are_preserved() {
    let dir = disk_dir();
    shell(dir.path(), "echo x > s");
    let script = format!("umask 027; {} copy -a --json result.json s t", crate::common::WEIR);
    shell(dir.path(), &script);
    assert_eq!(shell(dir.path(), "stat -c %a result.json").trim(), "640");
}

#[test]
fn a_copy_may_leave_the_page_cache_alone() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 40000000 /dev/urandom > s; sync s; dd if=s iflag=nocache count=0 status=none");
    let output = run(dir.path(), &["copy", "--cache", "drop", "--json", "-", "s", "t"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    shell(dir.path(), "cmp s t");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let fs = shell(dir.path(), "stat -f -c %T .");
    match document["cached_bytes"].as_u64() {
        Some(bytes) if fs.trim() != "tmpfs" => assert!(bytes < 400_000, "{bytes} bytes are cached on {fs}"),
        _ => skip(
            "a_copy_may_leave_the_page_cache_alone",
            "the kernel has no cachestat, or the disk is memory",
        ),
    }
}

/// syncfs(2) does not make a FUSE server write, so that each file and each directory is synced by itself.
#[test]
fn names_of_a_tree_on_fuse_are_synced() {
    const NAME: &str = "names_of_a_tree_on_fuse_are_synced";
    if !crate::common::has_private_mounts()
        || !["fuse2fs", "mkfs.ext4", "strace"].iter().all(|one| crate::common::has(one))
    {
        return skip(NAME, "needs a mount namespace, fuse2fs, mkfs.ext4 and strace");
    }
    let dir = disk_dir();
    let weir = crate::common::WEIR;
    shell(
        dir.path(),
        "mkdir -p tree/sub/empty m; echo 1 > tree/sub/file; ln -s file tree/sub/link; mkfifo tree/fifo",
    );
    let script = format!(
        "truncate -s 16M image && mkfs.ext4 -q -F image && fuse2fs -o rw image m 2>error || exit 77; \
         strace -f -qq -y -o trace -e trace=fsync {weir} copy -a --sync full tree m/tree; status=$?; umount m; \
         sed -nE 's/.*fsync\\([0-9]+<.*\\/m(\\/[^>]*)?>\\) *= 0/m\\1/p' trace; exit $status"
    );
    let output = Command::new("unshare").args(["-m", "bash", "-c", &script]).current_dir(dir.path()).output();
    let output = output.expect("unshare");
    if output.status.code() == Some(77) {
        return skip(NAME, "fuse2fs cannot mount");
    }
    let synced = text(&output.stdout);
    let mut names: Vec<&str> = synced.lines().collect();
    names.sort_unstable();
    names.dedup();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(names, ["m", "m/tree", "m/tree/sub", "m/tree/sub/empty", "m/tree/sub/file"]);
}

#[test]
fn a_copy_is_verified_without_proc() {
    const NAME: &str = "a_copy_is_verified_without_proc";
    if !has_private_mounts() {
        return skip(NAME, "needs root, to hide /proc");
    }
    let dir = disk_dir();
    shell(dir.path(), "head -c 3000001 /dev/urandom > s; ln -s real link; echo old > real");
    let script = format!(
        "mount -t tmpfs none /proc; for to in t link; do {WEIR} copy --verify s $to && cmp s $to; done; \
         {WEIR} copy --verify --atomic s u"
    );
    let output = Command::new("unshare").args(["-m", "bash", "-c", &script]).current_dir(dir.path()).output();
    let told = text(&output.expect("unshare").stderr);
    for name in ["'t'", "'link'"] {
        assert!(told.contains(&format!("{name}: reread from the device, equal")), "{told}");
    }
    assert!(
        told.contains("'u': reread")
            || told.contains("/proc is not mounted") && told.contains("mount -t proc"),
        "{told}"
    );
    assert!(!told.contains("ENOENT"), "{told}");
}
