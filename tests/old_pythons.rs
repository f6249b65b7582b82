//! Python 3 before 3.9, whose buffers weir cannot read: `weir trace` says so, `weir run` promises nothing.

mod common;
#[path = "common/trace.rs"]
mod trace;

use common::programs::old_pythons;
use common::{disk_dir, run, skip, text, weir};
use trace::{for_each_engine, path, verdict};

#[test]
fn the_buffers_of_an_old_python() {
    let pythons = old_pythons();
    if pythons.is_empty() {
        return skip("the_buffers_of_an_old_python", "there is no Python before 3.9");
    }
    let code = "import os\nf = open('log', 'w')\nf.write('abc')\nos.kill(os.getpid(), 9)\n";
    for_each_engine(|engine, dir| {
        for (version, python) in &pythons {
            let (verdict, buffers) = verdict(engine, dir, &[path(python), "-c", code]);
            let expected = format!("the buffers of python {version}");
            assert!(
                verdict.starts_with("Nothing wrong in what could be seen; "),
                "{engine} {version}: {verdict}"
            );
            assert!(buffers.contains(&expected), "{engine} {version}: {buffers:?}");
        }
    });
}

/// os._exit loses the bytes that are still in a buffer. Python 3.6 cannot change the mode of a text stream.
#[test]
fn an_old_python_writes_line_by_line() {
    let dir = disk_dir();
    let pythons = old_pythons();
    if pythons.is_empty() {
        return skip("an_old_python_writes_line_by_line", "there is no Python before 3.9");
    }
    let code = "import os, sys; print('a\\xe9'); sys.__stdout__.write('b\\r\\n'); os._exit(0)";
    for (version, python) in pythons {
        for (mode, expected) in [("line", &b"a\xe9\nb\r\n"[..]), ("full", b"")] {
            let python = python.to_str().unwrap();
            let mut command = weir(dir.path(), &["run", "-q", "--stdout", mode, "--", python, "-c", code]);
            command.env("PYTHONIOENCODING", "latin-1").env_remove("PYTHONUNBUFFERED");
            let output = command.output().unwrap();
            assert_eq!(output.stdout, expected, "{version} {mode}: {}", text(&output.stderr));
        }
    }
}

/// Its environment controls standard output; nothing reaches its buffers.
#[test]
fn the_buffers_of_an_old_python_are_out_of_reach() {
    let dir = disk_dir();
    let pythons = old_pythons();
    if pythons.is_empty() {
        return skip("the_buffers_of_an_old_python_are_out_of_reach", "there is no Python before 3.9");
    }
    for (version, python) in pythons {
        let python = python.to_str().unwrap();
        for option in ["--rescue", "--max-delay=1s", "--fix-fork"] {
            let strict = run(dir.path(), &["run", option, "--strict", "--", python, "-c", "print('hi')"]);
            assert_eq!(
                (strict.status.code(), text(&strict.stdout).as_str()),
                (Some(125), ""),
                "{version} {option}"
            );
            let why = text(&run(dir.path(), &["run", option, "--why=only", "--", python]).stdout);
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                why.contains("Python from 3.9 on") && !why.contains(" done"),
                "{version} {option}: {why}"
            );
        }
        let ignored = run(dir.path(), &["run", "-o0", "--strict", "--", python, "-I", "-c", "print('hi')"]);
        assert_eq!(ignored.status.code(), Some(125), "{version}: {}", text(&ignored.stderr));
        let unbuffered = run(dir.path(), &["run", "-o0", "--strict", "--", python, "-c", "print('hi')"]);
        assert_eq!(text(&unbuffered.stdout), "hi\n", "{version}: {}", text(&unbuffered.stderr));
    }
}
