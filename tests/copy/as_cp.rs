//! The demands of coreutils' own tests of cp that weir copy once missed: docs/copy.md has the table.

use crate::common::disk_dir;
use crate::{copy, failed_copy, shell};

#[test]
fn a_symbolic_link_is_not_copied_onto_its_own_file() {
    let dir = disk_dir();
    shell(dir.path(), "echo data > foo; ln -s foo soft; ln -s foo soft2");
    for option in ["-d", "-df", "-P", "-a", "--remove-destination", "-b", "-bf"] {
        let error = failed_copy(dir.path(), &[option, "soft", "foo"]);
        assert!(error.contains("are the same file"), "{option}: {error}");
        assert_eq!(
            shell(dir.path(), "cat foo; readlink soft; ls"),
            "data\nfoo\nfoo\nsoft\nsoft2\n",
            "{option}"
        );
    }
    for option in ["-l", "-dl", "-fl", "-bl"] {
        copy(dir.path(), &[option, "soft", "foo"]);
        assert_eq!(shell(dir.path(), "stat -c %F foo; cat foo"), "regular file\ndata\n", "{option}");
    }
    assert!(failed_copy(dir.path(), &["-s", "soft", "soft2"]).contains("EEXIST"));
    copy(dir.path(), &["-sf", "soft", "soft2"]);
    assert_eq!(shell(dir.path(), "readlink soft2"), "soft\n");
    copy(dir.path(), &["-dsf", "foo", "soft"]);
    assert!(failed_copy(dir.path(), &["-l", "soft", "soft2"]).contains("EEXIST"));
    copy(dir.path(), &["-fl", "soft", "soft2"]);
    assert_eq!(shell(dir.path(), "stat -c '%F %h' soft2; unlink soft2; ls"), "regular file 2\nfoo\nsoft\n");
    copy(dir.path(), &["-fl", "foo", "soft"]);
    assert_eq!(shell(dir.path(), "stat -c '%F %h' soft; cat foo"), "regular file 2\ndata\n");
}

#[test]
fn attributes_only_keeps_the_content_of_a_file_with_two_names() {
    let dir = disk_dir();
    shell(dir.path(), "printf 1 > a; printf 2 > b; ln b c; ln -s a soft; chmod 640 a");
    copy(dir.path(), &["-a", "--attributes-only", "a", "b"]);
    assert_eq!(shell(dir.path(), "cat b; stat -c ' %h %a' b"), "2 2 640\n");
    failed_copy(dir.path(), &["-a", "--attributes-only", "soft", "b"]);
    assert_eq!(shell(dir.path(), "cat b"), "2");
}

#[test]
fn a_sparse_file_is_written_to_a_fifo_byte_by_byte() {
    let dir = disk_dir();
    shell(
        dir.path(),
        "truncate -s 1M s; head -c 100000 /dev/urandom | dd of=s seek=700 conv=notrunc status=none",
    );
    let weir = crate::common::WEIR;
    shell(dir.path(), &format!("mkfifo p; cat p > out & {weir} copy s p; wait; cmp s out; [ -p p ]"));
}

#[test]
fn modes_that_are_not_preserved_are_ordinary_ones() {
    let dir = disk_dir();
    shell(dir.path(), "echo 1 > s; chmod 751 s; mkdir d; chmod 705 d; echo 2 > d/f; chmod 600 d/f");
    let weir = crate::common::WEIR;
    let modes = format!(
        "umask 022; {weir} copy --no-preserve=mode s t; {weir} copy -a --no-preserve=mode d e; \
         {weir} copy --parents --no-preserve=mode d/f -t e; {weir} copy --no-preserve=mode -p s u; \
         stat -c %a t e e/f e/d u"
    );
    assert_eq!(shell(dir.path(), &modes), "644\n755\n644\n755\n751\n");
}

#[test]
fn files_that_two_links_lead_to_become_one_file() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir d; echo 1 > d/a; ln -s a d/b; mkdir e");
    copy(dir.path(), &["-RL", "--preserve=links", "d", "c"]);
    copy(dir.path(), &["-RH", "--preserve=links", "d/a", "d/b", "e"]);
    assert_eq!(shell(dir.path(), "stat -c '%h %F' c/a c/b e/a e/b | uniq"), "2 regular file\n");
}

#[test]
fn parents_get_their_attributes_last_also_if_they_exist() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir -p a/b e; echo 1 > a/b/f; echo 2 > a/b/g; touch -d 2001-02-03 a/b a");
    copy(dir.path(), &["-p", "--parents", "a/b/f", "e"]);
    shell(dir.path(), "chmod 700 e/a e/a/b");
    copy(dir.path(), &["-p", "--parents", "a/b/g", "e"]);
    assert_eq!(shell(dir.path(), "cd e; stat -c '%a %Y' a a/b"), shell(dir.path(), "stat -c '%a %Y' a a/b"));
}

#[test]
fn links_stay_links_if_one_target_is_newer() {
    let dir = disk_dir();
    shell(
        dir.path(),
        "mkdir -p s t/s; echo new > s/a; ln s/a s/b; ln s/a s/c; touch -d '-1 hour' t/s/b; touch -d '+1 hour' t/s/c",
    );
    copy(dir.path(), &["-au", "s", "t"]);
    assert_eq!(shell(dir.path(), "cd t/s; stat -c %h a b c | uniq"), "3\n");
}
