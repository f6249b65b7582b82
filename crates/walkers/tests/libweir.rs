//! The walker of libweir reads bytes that a real program left in its streams, linked statically or dynamically.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};

use weir_walkers::{MemoryStore, OutsideWrite};

use support::{Waiting, compile};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
}

/// Compiles the library into `dir`, as objects and as a shared library.
fn library(root: &Path, dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let run =
        |command: &mut Command| assert!(command.current_dir(dir).status().unwrap().success(), "{command:?}");
    run(Command::new("gcc")
        .args(["-c", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden"])
        .args(&files));
    let objects: Vec<_> =
        files.iter().map(|file| dir.join(file.with_extension("o").file_name().unwrap())).collect();
    run(Command::new("gcc")
        .args(["-shared", "-Wl,-soname,libweir.so.0", "-o", "libweir.so.0"])
        .args(&objects));
    objects
}

#[test]
fn linked_in_either_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libweir");
    let dir = tempfile::tempdir().unwrap();
    let objects = library(&root, dir.path());
    let include = format!("-I{}", root.join("include").display());
    let shared = dir.path().join("libweir.so.0").display().to_string();
    let rpath = format!("-Wl,-rpath,{}", dir.path().display());
    let objects: Vec<_> = objects.iter().filter_map(|object| object.to_str()).collect();
    for flags in [vec![shared.as_str(), &rpath], objects.clone(), [&objects[..], &["-static"]].concat()] {
        let flags = [&[include.as_str()], flags.as_slice(), &["-pthread"]].concat();
        let program = compile("linked_in_either_way", "gcc", &flags, "weir.c", &dir.path().join("program"));
        let Some(program) = program else { return };
        let files = tempfile::tempdir().unwrap();
        check(&Waiting::start(Command::new(program).arg(files.path()).env("WEIR_SPILL_DIR", dir.path())));
    }
}

/// A program with another version of libweir has other offsets: nothing may be stored there.
fn refuses_another_layout(waiting: &Waiting, stream: u64) {
    let address = stream + rustix::param::page_size() as u64 + 79;
    let set = |layout: u8| waiting.store(&[MemoryStore { address, bytes: vec![layout] }]);
    let read = || waiting.pending().into_iter().find(|one| one.stream == stream).unwrap();
    assert_eq!((read().outside, read().drain_stores.is_empty()), (OutsideWrite::default(), false));
    set(0);
    let of_another_version = read();
    assert!(of_another_version.outside.refusal.is_some_and(|why| why.contains("version")));
    assert_eq!((of_another_version.early_len(), of_another_version.drain_stores), (0, vec![]));
    set(1);
}

fn check(waiting: &Waiting) {
    let mut found = waiting.buffers();
    found.retain(|one| one.walker == RuntimeId::LIBWEIR);
    let of = |name: &str| {
        found.iter().find(|one| waiting.name(one.fd) == name).unwrap_or_else(|| panic!("{name}"))
    };
    let waits = |one: &Buffer| (one.mode, String::from_utf8(one.pending.clone()).unwrap());
    assert_eq!(waits(of("none")), (Some(Mode::None), String::new()));
    assert_eq!(waits(of("line")), (Some(Mode::Line), "the rest".to_string()));
    assert_eq!(waits(of("record")), (Some(Mode::Record), "a record\n".to_string()));
    let full = of("full");
    assert_eq!((full.mode, full.pending_bytes, full.buffer_bytes), (Some(Mode::Full), 300, 5000));
    let expected: Vec<u8> = (0..256).map(|i| b'a' + (i % 26) as u8).collect();
    assert_eq!(full.pending, expected);
    let input = of("input");
    assert_eq!((input.unread_bytes, input.unread.as_slice()), (17, &b"second line\nthird"[..]));
    let stdout = found.iter().find(|one| one.fd == 1).unwrap();
    assert_eq!(waits(stdout), (Some(Mode::Full), "in stdout".to_string()));
    assert!(found.iter().all(|one| waiting.name(one.fd) != "kept"), "it is not lost with the process");
    assert_eq!(found.len(), 6, "{found:#?}");
    let pending = waiting.pending();
    let full = pending.iter().find(|one| waiting.name(one.fd) == "full").unwrap();
    assert_eq!((full.bytes.len(), &full.bytes[..256]), (300, expected.as_slice()));
    assert_eq!((pending.len(), full.locked), (4, Some(false)));
    waiting.store(&full.partial_drain(200).unwrap());
    refuses_another_layout(waiting, full.stream);
    let left = waiting.pending();
    assert_eq!(left.iter().find(|one| one.fd == full.fd).unwrap().bytes, full.bytes[200..]);
    left.iter().for_each(|one| waiting.store(&one.drain_stores));
    assert_eq!(waiting.pending(), []);
}
