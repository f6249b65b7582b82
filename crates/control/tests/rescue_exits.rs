//! With --rescue all printed bytes are written once however a program ends, and its exit status is unchanged.

mod common;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use common::{BUILDS, assert_same, bare, compile, folder, output, supervised, text};

/// Ways to end, each with the exit status (128 + the signal) and the output.
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
fn pending_bytes_are_written_at_every_kind_of_end() {
    let folder = folder();
    for build in BUILDS {
        let Some(program) = compile("rescue_exits", build, "ends.c", folder.path()) else { continue };
        for (how, status, wanted) in ENDS {
            for options in [&["--rescue"][..], &["--rescue", "--max-delay", "5", "--fix-fork"]] {
                let got = output(&mut supervised(options, &[text(&program), how]));
                let what = format!("{} {how} {options:?}", build.name);
                assert_same(&what, expected_output(wanted, options, &got.stdout).as_bytes(), &got.stdout);
                assert_eq!(got.status.code(), Some(status), "{what}");
            }
        }
    }
}

/// A main thread that ends just before its process is killed has no exit stop if it has begun to end when the kill comes. Many
/// at once make that likely: one of a hundred.
#[test]
fn a_main_thread_that_ends_with_its_process() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    let run = || {
        for _ in 0..20 {
            let got = output(&mut supervised(&["--rescue"], &[text(&program), "leader-first"]));
            let what = format!("leader-first: {}", String::from_utf8_lossy(&got.stderr));
            assert_same(&what, b"pending\n", &got.stdout);
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(run))));
}

/// Returns the expected output. With --fix-fork the parent's bytes come before the child's.
fn expected_output(wanted: &str, options: &[&str], got: &[u8]) -> String {
    let parent_first = "parent's\nchild's\nend\n";
    let may_differ = wanted.starts_with("child's") && (options.len() > 1 || got == parent_first.as_bytes());
    if may_differ { parent_first.to_string() } else { wanted.to_string() }
}

#[test]
fn interpreters() {
    let python = common::python();
    let script = "import os\nfor i in range(3000): print(i)\nos.kill(os.getpid(), 9)";
    let perl = "for ($i = 0; $i < 3000; $i++) { print \"$i\\n\" } kill 9, $$";
    let wanted: String = (0..3000).map(|number| format!("{number}\n")).collect();
    for words in [[python.as_str(), "-c", script], ["perl", "-e", perl]] {
        let got = output(&mut supervised(&["--rescue"], &words));
        assert_same(words[0], wanted.as_bytes(), &got.stdout);
        assert_eq!(got.status.code(), Some(137));
    }
}

#[test]
fn pending_bytes_are_lost_without_rescue() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    let got = output(&mut bare(&[text(&program), "_exit"]));
    assert_same("bare", b"", &got.stdout);
    let got = output(&mut supervised(&[], &[text(&program), "_exit"]));
    assert_same("supervised without options", b"", &got.stdout);
    assert_eq!(got.status.code(), Some(3));
}

#[test]
fn bytes_that_the_target_refuses_are_saved() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let (reader, broken) = std::io::pipe().expect("a pipe");
    drop(reader);
    for (output, why) in [(Stdio::from(full), "ENOSPC"), (Stdio::from(broken), "EPIPE")] {
        let directory = tempfile::tempdir_in(folder.path()).expect("a directory");
        let mut command = supervised(&["--rescue"], &[text(&program), "_exit"]);
        let status = command.current_dir(directory.path()).stdout(output).status().expect("it runs");
        assert_eq!(status.code(), Some(3), "{why}");
        let mut files: Vec<_> = fs::read_dir(directory.path())
            .expect("the directory")
            .map(|one| one.expect("a file").path())
            .collect();
        files.sort();
        assert_eq!(files.len(), 2, "{why}: {files:?}");
        assert!(text(&files[0]).ends_with("-1.bin") && text(&files[1]).ends_with("-1.bin.txt"), "{files:?}");
        assert_eq!(fs::read_to_string(&files[0]).expect("the saved file"), "pending\n");
        let report = fs::read_to_string(&files[1]).expect("the saved file");
        assert!(report.contains(why) && report.contains("8 bytes"), "{report}");
    }
}

#[test]
fn weir_ends_before_a_daemon() {
    let folder = folder();
    let Some(program) = compile("rescue_exits", BUILDS[0], "ends.c", folder.path()) else { return };
    for options in [&["--rescue"][..], &["--rescue", "--max-delay", "5", "--fix-fork"]] {
        let (file, weir_has_ended) = (folder.path().join("out"), folder.path().join("ended"));
        let mut command = supervised(options, &[text(&program), "daemon", text(&weir_has_ended)]);
        let mut weir = command.stdout(File::create(&file).expect("a file")).spawn().expect("it runs");
        let mut status = None;
        common::until("weir ends, and the daemon does not", || {
            status = weir.try_wait().expect("a child");
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        File::create(&weir_has_ended).expect("a file");
        common::until("the daemon's line", || {
            fs::read_to_string(&file).is_ok_and(|text| text.ends_with("from the daemon\n"))
        });
        fs::remove_file(&weir_has_ended).expect("the file");
    }
}

#[test]
fn a_missing_command_is_an_error() {
    let got = output(&mut supervised(&["--rescue"], &["./nothing-of-this-name"]));
    assert_eq!(got.status.code(), Some(125));
    let errors = String::from_utf8_lossy(&got.stderr);
    assert!(errors.contains("ENOENT"), "{errors}");
}

#[test]
fn many_short_processes() {
    let script =
        "i=0; while [ $i -lt 150 ]; do echo $i | cat | (read x; echo got $x); /bin/true; i=$((i+1)); done";
    let wanted = output(&mut bare(&["sh", "-c", script]));
    let got = output(&mut supervised(&["--rescue", "--max-delay", "1", "--fix-fork"], &["sh", "-c", script]));
    assert_same("a script", &wanted.stdout, &got.stdout);
    assert_eq!(got.status.code(), Some(0), "{:?}", got.status.signal());
    assert_same("its errors", b"", &got.stderr);
}

#[test]
fn nothing_is_saved_for_a_reader_that_has_closed() {
    let directory = folder();
    let mut command = supervised(&["--rescue"], &["sh", "-c", "seq 1000000 | head -n 1"]);
    let got = output(command.current_dir(directory.path()));
    assert_same("head", b"1\n", &got.stdout);
    let left: Vec<_> = fs::read_dir(directory.path()).expect("the directory").collect();
    assert!(left.is_empty(), "{left:?}");
}
