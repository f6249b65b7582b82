//! `weir copy - FILE`: standard input as a file and as a pipe.

use crate::common::{WEIR, disk_dir};
use crate::shell;

/// A file with 4 KiB of data in the middle of 8 MiB, and its name.
const SPARSE: &str =
    "truncate -s 8M s; head -c 4096 /dev/urandom | dd of=s bs=4096 seek=1000 conv=notrunc status=none";

/// The KiB of blocks that are enough for the data and the file system's own.
const FEW_KIB: u64 = 64;

fn kib(dir: &std::path::Path, name: &str) -> u64 {
    shell(dir, &format!("sync {name}; du -k {name} | cut -f1")).trim().parse().expect("a number")
}

#[test]
fn a_file_as_standard_input_keeps_its_holes_and_moves_its_offset() {
    let dir = disk_dir();
    shell(dir.path(), SPARSE);
    let rest = shell(dir.path(), &format!("{{ {WEIR} copy - t; wc -c; }} < s; cmp s t"));
    assert_eq!(rest.trim(), "0", "the next reader continues at the end");
    assert!(kib(dir.path(), "t") <= FEW_KIB);
    shell(dir.path(), &format!("{WEIR} copy --sparse=never --reflink=never - full < s; cmp s full"));
    assert!(kib(dir.path(), "full") >= 8192);
    // The copy begins where another program has stopped reading.
    shell(dir.path(), &format!("{{ dd bs=4096 count=999 of=first status=none; {WEIR} copy - rest; }} < s"));
    shell(dir.path(), "cat first rest | cmp - s");
}

#[test]
fn nul_bytes_of_a_pipe_become_holes_if_asked() {
    let dir = disk_dir();
    shell(dir.path(), SPARSE);
    shell(dir.path(), "printf tail >> s; truncate -s +10000 s");
    let copies =
        [("--sparse=always", "holes"), ("--sparse=auto", "full"), ("--buffer=1000 --sparse=always", "small")];
    for (options, target) in copies {
        shell(dir.path(), &format!("cat s | {WEIR} copy {options} - {target}; cmp s {target}"));
    }
    assert!(kib(dir.path(), "holes") <= FEW_KIB);
    assert!(kib(dir.path(), "full") >= 8192);
    let counts = shell(dir.path(), &format!("cat s | {WEIR} copy --json - --sparse=always - counted"));
    let counts: serde_json::Value = serde_json::from_str(&counts).expect("JSON");
    let length = (8 << 20) + 4 + 10000;
    assert_eq!(counts["hole_bytes"].as_u64(), Some(length - 2 * 4096), "two blocks have data: {counts}");
}

#[test]
fn standard_input_is_not_copied_onto_its_own_file() {
    let dir = disk_dir();
    let script = format!(
        "echo data > f; ln -s f link; ! {WEIR} copy - f < f 2> e; ! {WEIR} copy - link < f 2>> e; cat f e"
    );
    let seen = shell(dir.path(), &script);
    assert!(seen.starts_with("data\n"), "{seen}");
    assert_eq!(seen.matches("are the same file").count(), 2, "{seen}");
}

#[test]
fn a_failed_copy_is_not_counted_and_leaves_the_offset() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 100000 /dev/urandom > s");
    let script = format!(
        "{{ (trap '' XFSZ; ulimit -f 50; {WEIR} copy --reflink=never --json - - t 2> /dev/null || true) > json; wc -c; }} < s; ls t 2>&1 || true; cat json"
    );
    let seen = shell(dir.path(), &script);
    let (rest, counts) = seen.split_once('{').expect("JSON");
    assert!(rest.starts_with("100000\n") && rest.contains("No such file"), "{rest}");
    let counts: serde_json::Value = serde_json::from_str(&format!("{{{counts}")).expect("JSON");
    assert_eq!((counts["files"].as_u64(), counts["errors"].as_u64()), (Some(0), Some(1)), "{counts}");
}
