//! The walker of OCaml reads bytes that programs in bytecode and in native code left in their channels.

mod support;

use std::process::{Command, Stdio};

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_walkers::walkers_missing;

use support::{Waiting, skip};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/streams.ml");

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Compiles the program; None if the compiler is missing.
fn compile(test: &str, dir: &std::path::Path, compiler: &str, library: &str) -> Option<std::path::PathBuf> {
    if !Command::new(compiler)
        .arg("-version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        skip(test, &format!("there is no {compiler}"));
        return None;
    }
    let source = dir.join("streams.ml");
    std::fs::copy(SOURCE, &source).unwrap();
    let program = dir.join("program");
    let mut command = Command::new(compiler);
    command.args(["-I", "+unix", library, "-o"]).arg(&program).arg(&source);
    assert!(command.status().unwrap().success(), "{command:?}");
    Some(program)
}

fn check(test: &str, compiler: &str, library: &str) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(test, dir.path(), compiler, library) else { return };
    std::fs::write(dir.path().join("input"), "first line\nsecond line\n").unwrap();
    let mut waiting = Waiting::start(Command::new(&program).arg(dir.path()));
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    let found: Vec<Buffer> =
        waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::OCAML).collect();
    let of = |name: &str| {
        let named: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == name).collect();
        assert_eq!(named.len(), 1, "{name}: {found:#?}");
        named[0]
    };
    assert_eq!((of("text").mode, text(&of("text").pending)), (Some(Mode::Full), "part one, part two"));
    assert_eq!((of("flushed").pending_bytes, of("full").pending_bytes), (0, 300));
    assert_eq!(text(&of("input").unread), "second line\n");
    assert!(!found.iter().any(|one| waiting.name(one.fd) == "closed"), "{found:#?}");
    let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
    assert_eq!(text(&stdout.pending), "in stdout");

    // A drain leaves the channels as a flush does. The bytes are not written here, so the tail is the file's beginning.
    let pending = waiting.pending();
    assert_eq!(pending.len(), 3, "{pending:#?}");
    let of_files: Vec<_> = pending.iter().filter(|one| one.fd != 1).cloned().collect();
    of_files.iter().for_each(|one| waiting.store(&one.drain_stores));
    assert_eq!(waiting.pending().iter().map(|one| one.fd).collect::<Vec<_>>(), [1]);
    std::fs::write(dir.path().join("end"), "").unwrap();
    let mut out = String::new();
    std::io::Read::read_to_string(waiting.child.stdout.as_mut().unwrap(), &mut out).unwrap();
    assert_eq!(out, "in stdout tail, second line\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("text")).unwrap(), " tail at 18\n");
}

#[test]
fn native_code() {
    check("native_code", "ocamlopt", "unix.cmxa");
}

#[test]
fn bytecode() {
    check("bytecode", "ocamlc", "unix.cma");
}
