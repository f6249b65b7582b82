//! Trees: equal to cp -a's.

use std::process::Command;

use crate::common::{WEIR, disk_dir, is_root, skip};
use crate::{copy, failed_copy, shell};

/// Makes a tree with names, holes, links and special files that are seldom tested.
const TREE: &str = r#"
mkdir -p s/a/b/c/d/e s/closed s/empty-dir
head -c 3000000 /dev/urandom > s/data; : > s/empty; printf x > s/one
printf n > $'s/new\nline'; printf b > $'s/\xff\xfe'; printf q > "s/it's"; printf d > s/-dash
printf l > "s/$(head -c 255 /dev/zero | tr '\0' n)"
truncate -s 10M s/hole-only; truncate -s 3M s/hole-end; printf y | dd of=s/hole-end bs=1 seek=100000 conv=notrunc status=none
truncate -s 5M s/hole-start; printf z >> s/hole-start
ln s/data s/a/hard1; ln s/data s/a/b/c/hard2; ln -s ../data s/a/soft; ln -s nowhere s/dangling; ln s/dangling s/a/dangling2 2>/dev/null || true
for i in 1 2 3 4 5; do ln -s l$((i-1)) s/l$i; done; ln -s data s/l0
mkfifo s/fifo; chmod 4755 s/one; chmod 600 s/empty; chmod 1777 s/a/b; touch -d 2001-02-03T04:05:06.789 s/data s/a/b/c
touch -h -d 1999-01-01 s/dangling
for i in $(seq 300); do echo $i > s/a/b/f$i; done
chmod 2750 s/a/b/c/d; chmod 500 s/closed
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s/socket")'
python3 -c 'import os; os.setxattr("s/data","user.k",b"v"); os.setxattr("s/a","user.d",b"w")' 2>/dev/null || true
if [ "$(id -u)" = 0 ]; then chown 12:34 s/empty; chown -h 12:34 s/dangling; mknod s/null c 1 3; mknod s/block b 7 99; chown 7:8 s/closed; fi
setfacl -m u:12:r s/empty 2>/dev/null || true
"#;

/// Lists everything about a tree but its inode numbers and the sizes of directories.
const LIST: &str = r#"
list() { ( cd "$1"; find . -printf '%p %y %m %U:%G %T@ %n %l ' \( -type d -printf '\n' -o -printf '%s\n' \) | LC_ALL=C sort
find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
python3 - <<'PY'
import os
links = {}
for root, dirs, files in os.walk(b"."):
    for name in sorted(dirs + files):
        path = os.path.join(root, name)
        stat = os.lstat(path)
        if not os.path.islink(path):
            print(path, [(k, os.getxattr(path, k)) for k in sorted(os.listxattr(path))] if stat.st_mode & 0o170000 in (0o100000, 0o040000) else "")
        if stat.st_nlink > 1 and not os.path.isdir(path): links.setdefault(stat.st_ino, []).append(path)
        if stat.st_mode & 0o060000 in (0o060000, 0o020000): print(path, stat.st_rdev)
print(sorted(sorted(names) for names in links.values()))
PY
) }
"#;

#[test]
fn a_tree_is_equal_to_that_of_cp() {
    let dir = disk_dir();
    shell(dir.path(), TREE);
    copy(dir.path(), &["-a", "s", "t"]);
    let script = format!(
        "{LIST} cp -a s u; list t > lt; list u > lu; diff lt lu || exit 1; wc -l < lu; chmod 700 */closed"
    );
    let lines: usize = shell(dir.path(), &script).trim().parse().expect("a number");
    assert!(lines > 600, "{lines}");
    let blocks = shell(dir.path(), "du -k t/hole-only t/hole-end t/hole-start | cut -f1 | sort -n | tail -1");
    assert!(blocks.trim().parse::<u64>().expect("KiB") <= 64, "holes are kept: {blocks}");
    // Again, onto the tree that exists.
    copy(dir.path(), &["-a", "s/.", "t"]);
    shell(
        dir.path(),
        &format!("{LIST} chmod 500 */closed; list t > lt; list u > lu; diff lt lu; chmod 700 */closed"),
    );
}

#[test]
fn without_options_modes_and_links_are_those_of_cp() {
    let dir = disk_dir();
    shell(dir.path(), TREE);
    shell(dir.path(), "rm -f s/fifo s/socket s/null s/block");
    for options in ["-r", "-rp", "-rL", "-dr", "-rH --preserve=links", "-r --preserve=timestamps"] {
        shell(
            dir.path(),
            "chmod -R u+rwx t u 2>/dev/null || true; rm -rf t u; rm -f s/dangling s/a/dangling2",
        );
        let arguments: Vec<&str> = options.split(' ').chain(["s", "t"]).collect();
        copy(dir.path(), &arguments);
        let times = if options == "-rp" || options.contains("timestamps") {
            ""
        } else {
            "| sed -E 's/ [0-9]{10}\\.[0-9]+ / /'"
        };
        let script = format!("{LIST} cp {options} s u; list t {times} > lt; list u {times} > lu; diff lt lu");
        shell(dir.path(), &script);
    }
    shell(dir.path(), "chmod -R u+rwx .");
}

#[test]
fn many_threads_finish_directories_last() {
    let dir = disk_dir();
    shell(
        dir.path(),
        "for d in $(seq 60); do mkdir -p s/$d/x; for f in $(seq 40); do echo $d > s/$d/x/$f; done; done; \
         find s -type d -exec touch -d 2002-02-02 {} +",
    );
    copy(dir.path(), &["-a", "--threads", "8", "s", "t"]);
    let wrong = shell(dir.path(), "find t -type d ! -newermt 2002-02-03 | wc -l; diff -r s t && echo same");
    assert_eq!(wrong.split_whitespace().collect::<Vec<_>>(), ["121", "same"]);
}

#[test]
fn a_wide_tree_needs_few_descriptors() {
    let dir = disk_dir();
    shell(
        dir.path(),
        "mkdir links; for d in $(seq 300); do mkdir -p s/$d; echo $d > s/$d/f; ln -s ../s/$d links/$d; done",
    );
    shell(dir.path(), &format!("ulimit -n 128; {WEIR} copy -r s t; diff -r s t"));
    shell(dir.path(), &format!("ulimit -n 128; {WEIR} copy -rL links u; diff -r s u"));
}

#[test]
fn a_directory_is_not_copied_into_itself() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir -p s/d/e; echo 1 > s/f; ln -s s/d link");
    for target in ["s/d", "s", "s/new", "link", "link/x"] {
        let error = failed_copy(dir.path(), &["-r", "s", target]);
        assert!(error.contains("into itself"), "{target}: {error}");
    }
    assert_eq!(shell(dir.path(), "find s | sort").lines().count(), 4, "nothing was made");
    assert!(failed_copy(dir.path(), &["s", "t"]).contains("omitting directory"));
}

#[test]
fn links_of_the_source_are_not_followed_in_a_tree() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s secret; echo top > secret/f; ln -s ../secret s/link; ln -s loop s/loop");
    copy(dir.path(), &["-r", "s", "t"]);
    assert_eq!(shell(dir.path(), "readlink t/link t/loop"), "../secret\nloop\n");
    if is_root() {
        // A link in the target's tree does not lead the copy of a directory elsewhere.
        shell(dir.path(), "mkdir -p s2/sub u/s2; echo 1 > s2/sub/new; ln -s ../../secret u/s2/sub");
        assert!(failed_copy(dir.path(), &["-r", "s2", "u"]).contains("non-directory"));
        assert_eq!(shell(dir.path(), "ls secret"), "f\n");
    }
}

#[test]
fn attributes_of_the_file_system_stay_behind() {
    const NAME: &str = "attributes of the file system";
    let dir = disk_dir();
    let set = r#"python3 -c 'import os
open("s", "w").close()
for name in ["trusted.SGI_ACL_FILE", "trusted.SGI_MAC_FILE", "trusted.of_root", "user.own"]: os.setxattr("s", name, b"v")'"#;
    let is_set = Command::new("bash").args(["-ec", set]).current_dir(dir.path()).status().expect("bash");
    if !is_set.success() {
        return skip(NAME, "this user cannot set trusted attributes here");
    }
    shell(dir.path(), &format!("{WEIR} copy -a s t"));
    let list = r#"python3 -c 'import os; print(*sorted(name for name in os.listxattr("t") if not name.startswith("security.")))'"#;
    assert_eq!(shell(dir.path(), list), "trusted.of_root user.own\n");
}
