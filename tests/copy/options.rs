//! cp's options, streams, devices, and the methods on the command line.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::common::schema::assert_schema;
use crate::common::{disk_dir, run, skip, text, weir};
use crate::{copy, failed_copy, shell};

#[test]
fn every_method_copies_and_is_named_in_the_result() {
    let dir = disk_dir();
    shell(dir.path(), "head -c 5000001 /dev/urandom > s");
    for method in
        ["copy_file_range", "splice", "sendfile", "io_uring", "readwrite", "mmap", "direct", "stdio", "auto"]
    {
        let output = copy(dir.path(), &["--method", method, "--reflink=never", "--json", "-", "s", "t"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        shell(dir.path(), "cmp s t; rm t");
        let used = document["methods"].as_object().expect("methods");
        let refused = text(&output.stderr).contains("refused");
        assert!(method == "auto" || refused || used.contains_key(method), "{method}: {document}");
        assert_eq!(
            (&document["schema"], &document["copied_bytes"]),
            (&"weir-copy/1".into(), &5_000_001.into())
        );
    }
}

#[test]
fn existing_targets_are_kept_replaced_or_saved_as_cp_does() {
    let dir = disk_dir();
    let content = |name: &str| fs::read_to_string(dir.path().join(name)).expect("a file");
    shell(dir.path(), "echo new > s; echo old > t; touch -d 2001-01-01 s");
    copy(dir.path(), &["-n", "s", "t"]);
    copy(dir.path(), &["-u", "s", "t"]);
    copy(dir.path(), &["--update=none", "s", "t"]);
    assert!(failed_copy(dir.path(), &["--update=none-fail", "s", "t"]).contains("not replacing"));
    assert_eq!(content("t"), "old\n");
    let mut ask = weir(dir.path(), &["copy", "-i", "s", "t"]);
    assert!(ask.stdin(Stdio::null()).status().expect("weir").success());
    assert_eq!(content("t"), "old\n");
    copy(dir.path(), &["-b", "s", "t"]);
    copy(dir.path(), &["--backup=numbered", "s", "t"]);
    copy(dir.path(), &["--backup=existing", "s", "t"]);
    copy(dir.path(), &["-S", ".bak", "--backup=simple", "s", "t"]);
    assert_eq!(["t~", "t.~1~", "t.~2~", "t.bak"].map(content), ["old\n", "new\n", "new\n", "new\n"]);
    shell(dir.path(), "chmod 000 t; ln t hard");
    copy(dir.path(), &["--remove-destination", "s", "t"]);
    assert_eq!(shell(dir.path(), "stat -c %h t hard"), "1\n1\n");
    let verbose = copy(dir.path(), &["-v", "s", "t"]);
    assert_eq!(text(&verbose.stdout), "'s' -> 't'\n");
}

#[test]
fn a_backup_with_the_highest_number_is_not_followed_by_another() {
    let dir = disk_dir();
    let last = "t.~18446744073709551615~";
    shell(dir.path(), &format!("echo new > s; echo old > t; echo first > t.~0~; echo last > {last}"));
    for names in ["--backup=numbered", "--backup=existing"] {
        let error = failed_copy(dir.path(), &[names, "s", "t"]);
        assert!(error.contains("'t': a backup has the highest number"), "{error}");
    }
    assert_eq!(shell(dir.path(), &format!("cat t t.~0~ {last}")), "old\nfirst\nlast\n");
}

#[test]
fn a_file_is_not_copied_onto_itself() {
    let dir = disk_dir();
    shell(dir.path(), "echo 1 > s; ln s hard; ln -s s soft; mkdir d; ln -s .. d/up");
    for (source, target) in
        [("s", "s"), ("s", "./s"), ("s", "hard"), ("s", "soft"), ("soft", "s"), ("s", "d/up/s")]
    {
        for options in [&[][..], &["-f"], &["--atomic"], &["-p"]] {
            let error = failed_copy(dir.path(), &[options, &[source, target]].concat());
            assert!(error.contains("same file"), "{options:?} {source} {target}: {error}");
        }
    }
    assert_eq!(shell(dir.path(), "cat s"), "1\n");
    assert!(failed_copy(dir.path(), &["s", "d/up"]).contains("same file"));
    copy(dir.path(), &["-l", "s", "hard"]);
}

#[test]
fn several_sources_need_a_directory_and_do_not_replace_each_other() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir a b d; echo a > a/f; echo b > b/f; echo x > x");
    assert!(failed_copy(dir.path(), &["a/f", "x", "nothing"]).contains("is not a directory"));
    assert!(failed_copy(dir.path(), &["a/f", "b/f", "d"]).contains("just-created"));
    assert_eq!(shell(dir.path(), "cat d/f"), "a\n");
    copy(dir.path(), &["-t", "d", "x", "a/f"]);
    copy(dir.path(), &["--parents", "a/f", "d"]);
    assert_eq!(shell(dir.path(), "cd d; find . | LC_ALL=C sort | xargs"), ". ./a ./a/f ./f ./x\n");
    assert!(failed_copy(dir.path(), &["-T", "x", "d"]).contains("cannot overwrite directory"));
    assert_eq!(run(dir.path(), &["copy", "x"]).status.code(), Some(1));
    copy(dir.path(), &["-s", "x", "soft"]);
    copy(dir.path(), &["--attr", "x", "shell"]);
    assert_eq!(shell(dir.path(), "readlink soft; cat shell"), "x\n");
}

#[test]
fn streams_and_devices() {
    let dir = disk_dir();
    let weir_path = crate::common::WEIR;
    shell(dir.path(), "head -c 3000000 /dev/urandom > s; mkfifo fifo");
    shell(dir.path(), &format!("cat s | {weir_path} copy - t; cmp s t; {weir_path} copy s - | cmp s -"));
    shell(
        dir.path(),
        &format!("cat s > fifo & {weir_path} copy fifo u; cmp s u; cat s | {weir_path} copy - - | cmp s -"),
    );
    shell(dir.path(), &format!("{weir_path} copy /dev/null n; [ ! -s n ]; {weir_path} copy s /dev/null"));
    shell(dir.path(), &format!("cat s | {weir_path} copy --method splice - v; cmp s v"));
    if std::path::Path::new("/dev/loop-control").exists() {
        assert!(failed_copy(dir.path(), &["/dev/loop-control", "x"]).contains("--device"));
        assert!(!dir.path().join("x").exists());
    }
}

#[test]
fn sparse_files_are_kept_made_or_filled() {
    let dir = disk_dir();
    shell(dir.path(), "truncate -s 4M s; printf x >> s; head -c 4000000 /dev/zero > zeros");
    let blocks = |name: &str| -> u64 {
        shell(dir.path(), &format!("stat -c %b {name}")).trim().parse().expect("blocks")
    };
    copy(dir.path(), &["s", "auto"]);
    copy(dir.path(), &["--sparse=never", "s", "full"]);
    copy(dir.path(), &["--sparse=always", "zeros", "made"]);
    copy(dir.path(), &["--holes=scan", "zeros", "scanned"]);
    shell(dir.path(), "cmp s auto; cmp s full; cmp zeros made; cmp zeros scanned");
    assert!(blocks("auto") < 64 && blocks("made") < 64 && blocks("scanned") < 64);
    assert!(blocks("full") >= 8192, "{}", blocks("full"));
}

#[test]
fn holes_are_no_bytes_that_a_method_moved() {
    let dir = disk_dir();
    shell(dir.path(), "truncate -s 5M hole; truncate -s 4M part; printf x >> part; : > empty; echo 1 > one");
    let result = |arguments: &[&str]| -> (Value, String) {
        let output = copy(dir.path(), &[&["--json", "result.json", "--summary"], arguments].concat());
        let document = fs::read_to_string(dir.path().join("result.json")).expect("a document");
        (serde_json::from_str(&document).expect("JSON"), text(&output.stderr))
    };
    let options =
        [&[][..], &["--reflink=never"], &["--sparse=always"], &["--resume"], &["--method", "readwrite"]];
    for options in options {
        for source in ["hole", "part", "empty", "one"] {
            let (document, summary) = result(&[options, &[source, "t"]].concat());
            let number = |name: &str| document[name].as_u64().expect("a number");
            let data = number("copied_bytes") + number("shared_bytes");
            let size = fs::metadata(dir.path().join(source)).expect("a file").len();
            assert_eq!(data + number("hole_bytes"), size, "{options:?} {source}: {document}");
            assert!(data < 1 << 20, "{options:?} {source}: {document}");
            let methods = document["methods"].as_object().expect("methods");
            let moved: u64 = methods.values().map(|count| count["bytes"].as_u64().expect("bytes")).sum();
            assert_eq!(moved, data, "{options:?} {source}: {document}");
            assert!(
                !summary.contains("power cut now can cost all 0 B") && !summary.contains("0 B are durable")
            );
        }
        shell(dir.path(), "rm -f t");
    }
    for (options, sentence) in [
        (&[][..], "a power cut now can cost 1 file: nothing was synced; --sync full"),
        (&["--sync", "data"], "a power cut now can cost new names: --sync full makes these durable too"),
        (&["--sync", "full"], "a power cut now costs nothing: 1 file and its name are durable"),
    ] {
        let (document, summary) = result(&[options, &["hole", "t"]].concat());
        assert!(summary.contains(sentence) && summary.contains("1 file (0 B)"), "{options:?}: {summary}");
        assert_eq!(document["hole_bytes"], 5 << 20, "{document}");
    }
}

#[test]
fn events_are_lines_of_json() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; head -c 100000 /dev/urandom > s/f; echo 1 > s/g");
    let output = copy(dir.path(), &["-r", "--verify", "--events", "-", "s", "t"]);
    let events: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["schema"], "weir-copy-event/1");
    shell(dir.path(), "head -c 35000000 /dev/urandom > large");
    // A limit of one second at least, so that a line about the progress is written.
    let more = run(
        dir.path(),
        &["copy", "--reflink=never", "--limit", "25MB/s", "--events", "-", "large", "nothing", "t"],
    );
    let more = text(&more.stdout);
    let more: Vec<Value> = more.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for event in events.iter().chain(&more) {
        assert_schema(event, "weir-copy-event-1");
    }
    for kind in ["progress", "error", "end"] {
        assert!(more.iter().any(|event| event["event"] == kind), "no {kind}: {more:?}");
    }
    assert!(more.iter().any(|event| event["trial"]["ns_per_mib"].is_array()), "{more:?}");
    let file = events.iter().find(|event| event["target"] == "t/f").expect("the file's event");
    let wanted = shell(dir.path(), "sha256sum < s/f");
    assert_eq!(file["sha256"].as_str(), wanted.split(' ').next());
    assert_eq!(events.last().expect("an event")["result"]["files"], 2);
    // A byte that is no UTF-8 is U+10FE00 plus the byte, so two names stay different.
    shell(dir.path(), r"mkdir n; echo 1 > $'n/a\xfe'; echo 2 > $'n/a\xff'");
    let output = text(&copy(dir.path(), &["-r", "--verify", "--events", "-", "n", "u"]).stdout);
    for letter in ['\u{10FEFE}', '\u{10FEFF}'] {
        assert!(output.contains(&format!("\"source\":\"n/a{letter}\"")), "{output}");
    }
}

#[test]
fn the_document_obeys_its_schema() {
    let dir = disk_dir();
    shell(dir.path(), "mkdir s; echo 1 > s/f; ln -s f s/l; truncate -s 1M s/h");
    for arguments in
        [&["-a", "s", "t"][..], &["-r", "--sync", "data", "s", "u"], &["s/f", "v"], &["nothing", "w"]]
    {
        let output = run(dir.path(), &[&["copy", "--json", "-"], arguments].concat());
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_schema(&document, "weir-copy-1");
    }
}

/// A file of sysfs has a size of 4096 and ends earlier.
#[test]
fn a_method_that_reaches_an_early_end_did_not_refuse() {
    let dir = disk_dir();
    let source = "/sys/kernel/mm/transparent_hugepage/enabled";
    if !std::path::Path::new(source).exists() {
        return skip("a_method_that_reaches_an_early_end_did_not_refuse", "the kernel has no huge pages");
    }
    let error = text(&copy(dir.path(), &["--method", "splice", "--debug", source, "t"]).stderr);
    assert!(!error.contains("refused") && error.contains("by splice"), "{error}");
    shell(dir.path(), &format!("cmp {source} t"));
}

#[test]
fn an_empty_name_is_told_from_a_missing_one() {
    let dir = disk_dir();
    shell(dir.path(), "echo 1 > s");
    for (arguments, sentence) in [
        (&["s", ""][..], "weir copy: the target is an empty name"),
        (&["", "t"], "weir copy: source 1 is an empty name"),
        (&["-t", "", "s"], "weir copy: the directory of --target-directory is an empty name"),
        (&["--events", "", "s", "t"], "'--events <FILE>' but none was supplied\n\n  tip: the value is empty"),
        (&["--events=", "s", "t"], "tip: the value is empty"),
    ] {
        let told = failed_copy(dir.path(), arguments);
        assert!(told.contains(sentence) && told.contains("variable of the shell unset?"), "{told}");
    }
    assert!(!failed_copy(dir.path(), &["s", "t", "--events"]).contains("is empty"));
}
