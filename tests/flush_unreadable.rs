//! `weir flush --children` names the buffers of descendants that it cannot read.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;
use std::process::Command;

use common::{has, run, skip, text, wait_for};
use trace::{compile, path};

/// Opens a file, keeps bytes for it in memory of its own, and sleeps.
const OWN_BUFFER: &str = "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\n\
    static char own[65536];\n\
    int main(int words, char **word) {\n\
        int fd = open(word[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);\n\
        strcpy(own, \"line 1\\n\");\n\
        sleep(30);\n\
        return write(fd, own, 7) != 7; }\n";

/// Returns standard output, standard error and the exit status of a flush of a shell and its child, which makes the file `file`
/// when it is ready.
fn flush_with_child(dir: &Path, child: &str) -> (String, String, Option<i32>) {
    let script = format!("{child} & wait");
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", &script]).current_dir(dir).spawn().expect("a shell");
    wait_for("the child", || dir.join("file").exists());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let flush = run(dir, &["flush", "--children", &shell.id().to_string()]);
    let end = Command::new("pkill").args(["-P", &shell.id().to_string()]).status();
    end.expect("pkill");
    shell.wait().expect("it ends");
    (text(&flush.stdout), text(&flush.stderr), flush.status.code())
}

#[test]
fn a_child_with_a_buffer_of_its_own_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "own", OWN_BUFFER, &[]) else { return };
    let (out, errors, status) = flush_with_child(dir.path(), &format!("{} file", path(&program)));
    assert!(out.starts_with("sh (") && out.ends_with("nothing is pending\n"), "{out}");
    assert!(errors.contains("if own keeps bytes for descriptor 3 ("), "{errors}");
    assert_eq!(status, Some(0));
}

#[test]
fn a_repeated_flush_names_the_buffer_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "own", OWN_BUFFER, &[]) else { return };
    let mut own = Command::new(program).arg("file").current_dir(dir.path()).spawn().expect("the program");
    wait_for("the program", || dir.path().join("file").exists());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut flush = Command::new("timeout");
    flush.args(["-s", "INT", "2", common::WEIR, "flush", "--every", "100ms", &own.id().to_string()]);
    let flush = flush.output().expect("timeout");
    own.kill().expect("the program runs");
    own.wait().expect("it ends");
    let errors = text(&flush.stderr);
    assert_eq!(errors.matches("if own keeps bytes for descriptor 3 (").count(), 1, "{errors}");
}

#[test]
fn a_child_in_another_runtime_is_named() {
    if !has("node") {
        return skip("a_child_in_another_runtime_is_named", "there is no node");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let child = "node -e \"require('fs').writeFileSync('file', ''); setTimeout(() => {}, 30000)\"";
    let (out, errors, status) = flush_with_child(dir.path(), child);
    assert!(out.starts_with("sh (") && out.ends_with("nothing is pending\n"), "{out}");
    assert!(errors.starts_with("weir: Node's own buffers (pid "), "{errors}");
    assert_eq!(status, Some(0));
}

#[test]
fn a_static_child_without_known_streams_is_named() {
    const TEST: &str = "a_static_child_without_known_streams_is_named";
    if !cfg!(target_arch = "x86_64") {
        return skip(TEST, "the program is for x86-64");
    }
    let code = "void _start(void) { long nap[2] = {30, 0};\n\
        __asm__ volatile(\"syscall\" :: \"a\"(35), \"D\"(nap), \"S\"(0) : \"rcx\", \"r11\", \"memory\");\n\
        __asm__ volatile(\"syscall\" :: \"a\"(60), \"D\"(0)); }\n";
    let dir = tempfile::tempdir().expect("a directory");
    let flags = ["-static", "-nostdlib", "-ffreestanding", "-s", "-fno-stack-protector"];
    let Some(program) = compile(dir.path(), "bare", code, &flags) else { return };
    let (_, errors, status) = flush_with_child(dir.path(), &format!("> file; {}", path(&program)));
    assert!(errors.starts_with("weir: the buffers of a static program"), "{errors}");
    assert_eq!(status, Some(0), "a descendant without known streams is no failure");
}
