//! However a program ends, what it had printed comes out, once; and its end is what it would be alone.

mod common;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use common::{BUILDS, assert_same, bare, compile, folder, followed, output, text};

/// How it ends, its status (128 and the signal), and its output.
const ENDS: [(&str, i32, &str); 12] = [
    ("exit", 0, "pending\n"),
    ("status", 42, "pending\n"),
    ("SIGKILL", 137, "pending\n"),
    ("abort", 134, "pending\n"),
    ("fault", 139, "pending\n"),
    ("_exit", 3, "pending\n"),
    ("thread", 137, "pending\n"),
    ("leader-first", 6, "pending\n"),
    ("exec-in-thread", 0, "pending\nexecuted\n"),
    ("children", 0, "child's\nparent's\nend\n"),
    ("killed-children", 137, "child's\nparent's\nend\n"),
    ("sharers", 0, "before\nafter\n"),
];

#[test]
fn every_end_brings_out_what_was_pending() {
    let folder = folder();
    for build in BUILDS {
        let Some(program) = compile("rescue_exits", build, "ends.c", folder.path()) else { continue };
        for (how, status, wanted) in ENDS {
            for options in [&["--rescue"][..], &["--rescue", "--max-delay", "5", "--fix-fork"]] {
                let got = output(&mut followed(options, &[text(&program), how]));
                let what = format!("{} {how} {options:?}", build.name);
                assert_same(&what, wanted_from(wanted, options, &got.stdout).as_bytes(), &got.stdout);
                assert_eq!(got.status.code(), Some(status), "{what}");
            }
        }
    }
}

/// With --fix-fork the parent's bytes come before the child's.
fn wanted_from(wanted: &str, options: &[&str], got: &[u8]) -> String {
    let parent_first = "parent's\nchild's\nend\n";
    let may = wanted.starts_with("child's") && (options.len() > 1 || got == parent_first.as_bytes());
    if may { parent_first.to_string() } else { wanted.to_string() }
}

#[test]
fn interpreters() {
    let python = common::python();
    let script = "import os\nfor i in range(3000): print(i)\nos.kill(os.getpid(), 9)";
    let perl = "for ($i = 0; $i < 3000; $i++) { print \"$i\\n\" } kill 9, $$";
    let wanted: String = (0..3000).map(|number| format!("{number}\n")).collect();
    for words in [[python.as_str(), "-c", script], ["perl", "-e", perl]] {
        let got = output(&mut followed(&["--rescue"], &words));
        assert_same(words[0], wanted.as_bytes(), &got.stdout);
        assert_eq!(got.status.code(), Some(137));
    }
}

#[test]
fn without_rescue_it_is_lost() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    let got = output(&mut bare(&[text(&program), "_exit"]));
    assert_same("bare", b"", &got.stdout);
    let got = output(&mut followed(&[], &[text(&program), "_exit"]));
    assert_same("followed for nothing", b"", &got.stdout);
    assert_eq!(got.status.code(), Some(3));
}

#[test]
fn what_the_sink_does_not_take_is_saved() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let (reader, broken) = std::io::pipe().expect("a pipe");
    drop(reader);
    for (sink, why) in [(Stdio::from(full), "ENOSPC"), (Stdio::from(broken), "EPIPE")] {
        let place = tempfile::tempdir_in(folder.path()).expect("a directory");
        let mut command = followed(&["--rescue"], &[text(&program), "_exit"]);
        let status = command.current_dir(place.path()).stdout(sink).status().expect("it runs");
        assert_eq!(status.code(), Some(3), "{why}");
        let mut files: Vec<_> =
            fs::read_dir(place.path()).expect("it").map(|one| one.expect("a file").path()).collect();
        files.sort();
        assert_eq!(files.len(), 2, "{why}: {files:?}");
        assert!(text(&files[0]).ends_with("-1.bin") && text(&files[1]).ends_with("-1.bin.txt"), "{files:?}");
        assert_eq!(fs::read_to_string(&files[0]).expect("it"), "pending\n");
        let report = fs::read_to_string(&files[1]).expect("it");
        assert!(report.contains(why) && report.contains("8 bytes"), "{report}");
    }
}

#[test]
fn a_daemon_does_not_hold_weir_up() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    for options in [&["--rescue"][..], &["--rescue", "--max-delay", "5", "--fix-fork"]] {
        let file = folder.path().join("out");
        let mut command = followed(options, &[text(&program), "daemon"]);
        let began = std::time::Instant::now();
        let status = command.stdout(File::create(&file).expect("a file")).status().expect("it runs");
        assert!(status.success() && began.elapsed().as_millis() < 1400, "{status} {:?}", began.elapsed());
        common::until("the daemon's line", || {
            fs::read_to_string(&file).is_ok_and(|text| text.ends_with("from the daemon\n"))
        });
    }
}

#[test]
fn a_command_that_is_not_there() {
    let got = output(&mut followed(&["--rescue"], &["./nothing-of-this-name"]));
    assert_eq!(got.status.code(), Some(125));
    let said = String::from_utf8_lossy(&got.stderr);
    assert!(said.contains("ENOENT"), "{said}");
}

#[test]
fn many_short_processes() {
    let script =
        "i=0; while [ $i -lt 150 ]; do echo $i | cat | (read x; echo got $x); /bin/true; i=$((i+1)); done";
    let wanted = output(&mut bare(&["sh", "-c", script]));
    let got = output(&mut followed(&["--rescue", "--max-delay", "1", "--fix-fork"], &["sh", "-c", script]));
    assert_same("a script", &wanted.stdout, &got.stdout);
    assert_eq!(got.status.code(), Some(0), "{:?}", got.status.signal());
    assert_same("its errors", b"", &got.stderr);
}

#[test]
fn a_reader_that_has_enough_leaves_nothing_behind() {
    let place = folder();
    let mut command = followed(&["--rescue"], &["sh", "-c", "seq 1000000 | head -n 1"]);
    let got = output(command.current_dir(place.path()));
    assert_same("head", b"1\n", &got.stdout);
    let left: Vec<_> = fs::read_dir(place.path()).expect("it").collect();
    assert!(left.is_empty(), "{left:?}");
}
