//! `weir flush` of Go's bufio.Writers.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{WEIR, disk_dir, has, run, skip, text};
use crate::flush;
use crate::programs::{Program, built};

/// The ways to build the Go program. A goroutine's stack is unwound on x86-64 only.
pub fn builds() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let all: [(&str, &[&str]); 2] = [("go", &[]), ("go", &["-ldflags=-s -w"])];
    all.into_iter().filter(|_| cfg!(target_arch = "x86_64") && has("go"))
}

#[test]
fn a_writer_of_go_is_emptied_unless_a_goroutine_uses_it() {
    let test = "a_writer_of_go_is_emptied_unless_a_goroutine_uses_it";
    if builds().next().is_none() {
        return skip(test, "it needs go on x86-64");
    }
    for (compiler, flags) in builds() {
        let Some(path) = built(test, compiler, flags, "buffers.go") else { return };
        let mut program = Program::start(Command::new(&path).arg("read"));
        let peek = text(&run(program.dir(), &["peek", &program.pid().to_string()]).stdout);
        assert!(peek.contains(&format!("weir flush {}", program.pid())), "{peek}");
        let output = flush(&program, &["--wait", "60s"]);
        let what = format!("{flags:?}: {}", text(&output.stderr));
        assert!(output.status.success() && text(&output.stdout).contains("13 B written to"), "{what}");
        assert_eq!(program.out(), "one\ntwo\nthree", "{what}");
        let again = flush(&program, &[]);
        assert!(again.status.success() && text(&again.stdout).contains("nothing is pending"), "{what}");
        assert_eq!(program.end(), Some(0), "{what}");
        assert_eq!(program.out(), "one\ntwo\nthree end\n", "{what}");

        let mut program = Program::start(Command::new(&path).arg("inside"));
        let output = flush(&program, &["--wait", "300ms"]);
        let errors = text(&output.stderr);
        assert!(errors.contains("13 B for descriptor 1"), "{flags:?}: {errors}");
        assert_eq!((output.status.code(), program.out().as_str()), (Some(1), ""), "{flags:?}: {errors}");
        assert_eq!(program.end(), Some(0), "{flags:?}");
        assert_eq!(program.out(), "one\ntwo\nthree end\n", "{flags:?}");
    }
}

/// os.Create opens a file for reading and writing.
#[test]
fn a_writer_of_go_over_a_created_file_is_timely() {
    let test = "a_writer_of_go_over_a_created_file_is_timely";
    let Some((compiler, flags)) = builds().next() else { return skip(test, "it needs go on x86-64") };
    let Some(path) = built(test, compiler, flags, "buffers.go") else { return };
    let dir = disk_dir();
    let mut command = Command::new(WEIR);
    command.args(["run", "--max-delay", "50ms", "--"]).arg(path).arg("created").current_dir(dir.path());
    let mut weir = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let created = || fs::read_to_string(dir.path().join("created")).unwrap_or_default();
    let (began, limit) = (Instant::now(), Duration::from_secs(60));
    while created() != "one\ntwo\nthree" && began.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    let early = created();
    drop(weir.stdin.take());
    assert!(weir.wait().unwrap().success());
    assert_eq!((early.as_str(), created().as_str()), ("one\ntwo\nthree", "one\ntwo\nthree end\n"));
}
