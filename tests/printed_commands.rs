//! The `weir run` commands that `weir trace` and `weir peek` print: each starts the program again, or none is printed.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{KillOnDrop, disk_dir, has, skip, text, weir};

const SILENT: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    int main(void) { printf(\"ready\\n\"); sleep(3); puts(\"x\"); return 0; }\n";

/// Builds the program `silent`. Returns false, and notes a skip, without a compiler.
fn build(dir: &Path, test: &str) -> bool {
    if !has("cc") {
        skip(test, "cc is not installed");
        return false;
    }
    fs::write(dir.join("silent.c"), SILENT).expect("the source");
    let output =
        Command::new("cc").args(["-o", "silent", "silent.c"]).current_dir(dir).output().expect("cc starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    true
}

#[test]
fn a_program_under_another_tracer_gets_no_command_that_needs_one() {
    let dir = disk_dir();
    let test = "advice under another tracer";
    if !has("strace") {
        return skip(test, "strace is not installed");
    }
    if !build(dir.path(), test) {
        return;
    }
    let of = |words: &[&str]| {
        let output = weir(dir.path(), &[&["trace", "--"], words].concat()).stdin(Stdio::null()).output();
        text(&output.expect("weir starts").stderr)
    };
    // Standard output is a pipe, so the line waits for three seconds.
    let direct = of(&["./silent"]);
    assert!(direct.contains("weir run --max-delay 100ms -- ./silent"), "{direct}");
    for words in
        [&["strace", "-f", "-o", "/dev/null", "./silent"][..], &["sh", "-c", "strace -o /dev/null ./silent"]]
    {
        let traced = of(words);
        assert!(!traced.contains("weir run"), "{words:?}: {traced}");
    }
}

#[test]
fn peek_prints_a_next_command_that_starts_the_program_or_none() {
    let (dir, elsewhere) = (disk_dir(), disk_dir());
    if !build(elsewhere.path(), "next command of peek") {
        return;
    }
    let removed = elsewhere.path().join("removed");
    fs::create_dir(&removed).expect("a directory");
    let peek = |name: Option<&str>, start: &Path, program: &str| {
        let out = fs::File::create(dir.path().join("stdout")).expect("stdout");
        let mut command = Command::new(program);
        name.map(|name| std::os::unix::process::CommandExt::arg0(&mut command, name));
        let process = KillOnDrop(command.current_dir(start).stdout(out).spawn().expect("the program starts"));
        let pid = process.0.id().to_string();
        let _gone = fs::remove_dir(&removed);
        std::thread::sleep(Duration::from_millis(400));
        text(&weir(dir.path(), &["peek", &pid]).output().expect("weir starts").stdout)
    };
    let path = elsewhere.path().join("silent").to_string_lossy().into_owned();
    let command = |words: &str| {
        format!("cd {} &&\n    weir run --max-delay 100ms -- {words}\n", elsewhere.path().display())
    };
    let without_directory = peek(None, &removed, &path);
    assert!(
        without_directory.contains("-- COMMAND") && without_directory.contains("is removed"),
        "{without_directory}"
    );
    let relative = peek(Some("./silent"), elsewhere.path(), &path);
    assert!(relative.contains(&command("./silent")), "{relative}");
    let named = peek(Some("fancy-name"), elsewhere.path(), &path);
    assert!(
        named.contains(&format!("weir run --max-delay 100ms -- {path}")) || named.contains("-- \\\n"),
        "{named}"
    );
    let title = peek(Some("my worker: busy 7"), elsewhere.path(), &path);
    assert!(title.contains("-- COMMAND\n") && title.contains("by a title"), "{title}");
}

/// Returns the bytes that a shell makes of the words after `--` in a printed command.
fn words_of(shell: &str, printed: &str) -> Vec<u8> {
    let words = printed.split_once(" -- ").expect("a command").1;
    let output = Command::new(shell).args(["-c", &format!("printf '%s|' {words}")]).output();
    output.expect("the shell starts").stdout
}

#[test]
fn arguments_that_are_no_utf8_are_printed_with_their_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let dir = disk_dir();
    if !has("bash") {
        return skip("printed bytes", "bash is not installed");
    }
    if !build(dir.path(), "printed bytes") {
        return;
    }
    let expected = b"./silent|a\xffb|\xe2\x82|\xf4\x8f\xbb\xbf|";
    let arguments = [&b"a\xffb"[..], b"\xe2\x82", b"\xf4\x8f\xbb\xbf"].map(std::ffi::OsStr::from_bytes);
    let mut command = weir(dir.path(), &["trace", "--json", "trace.json", "--", "./silent"]);
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("weir starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("trace.json")).expect("a document")).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    let printed: Vec<&str> = findings.iter().filter_map(|finding| finding["command"].as_str()).collect();
    assert!(!printed.is_empty(), "{document}");
    for one in printed {
        assert_eq!(words_of("bash", one), expected, "{one}");
    }

    let mut command = Command::new("./silent");
    let out = fs::File::create(dir.path().join("stdout")).expect("stdout");
    let process =
        KillOnDrop(command.current_dir(dir.path()).args(arguments).stdout(out).spawn().expect("it starts"));
    std::thread::sleep(Duration::from_millis(400));
    let output = weir(dir.path(), &["peek", &process.0.id().to_string()]).output().expect("weir starts");
    let shown = text(&output.stdout);
    let next = &shown[shown.find("weir run").expect("a command")..];
    assert_eq!(words_of("bash", next), expected, "{shown}");
    assert!(!shown.contains('\u{fffd}'), "{shown}");
}
