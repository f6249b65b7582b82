//! The walker of libstdc++ reads bytes that real programs left in their file buffers.

mod support;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{PendingBytes, Walker, walkers, walkers_missing};

use support::{Waiting, compile_with};

fn start(test: &str, dir: &Path, compiler: &str, flags: &[&str]) -> Option<Waiting> {
    let program = compile_with(test, compiler, flags, "file_buffers.cc", &dir.join("program"))?;
    std::fs::write(dir.join("input"), "first line\nsecond line\nthird").unwrap();
    Some(Waiting::start(Command::new(program).current_dir(dir)))
}

fn of_cpp(waiting: &Waiting) -> Vec<Box<dyn Walker>> {
    walkers(waiting.pid()).into_iter().filter(|one| one.runtime() == RuntimeId::CPP).collect()
}

/// Returns the streams by the name of their file, with descriptors 1 and 2 under their numbers.
fn by_name<T>(waiting: &Waiting, streams: Vec<T>, fd: impl Fn(&T) -> i32) -> BTreeMap<String, T> {
    let name = |one: &T| match fd(one) {
        standard @ 0..=2 => standard.to_string(),
        fd => waiting.name(fd),
    };
    let count = streams.len();
    let named: BTreeMap<String, T> = streams.into_iter().map(|one| (name(&one), one)).collect();
    assert_eq!(named.len(), count, "each is there once");
    named
}

fn pending(waiting: &Waiting, walkers: &[Box<dyn Walker>]) -> BTreeMap<String, PendingBytes> {
    let memory = ProcessMemory { pid: waiting.pid() };
    by_name(waiting, walkers.iter().flat_map(|one| one.pending(&memory)).collect(), |one| one.fd)
}

/// The files and their pending bytes.
const PENDING: [(&str, &str); 9] = [
    ("1", "in cout"),
    ("2", "in clog"),
    ("stack", "on the stack"),
    ("heap", "in the heap12"),
    ("data", "in data"),
    ("own", "in an own buffer"),
    ("descriptor", "of a descriptor"),
    ("named", "of a derived type"),
    ("second", "of a second base"),
];

/// The same, of types with a function of their own, which may do anything with the bytes.
const ONLY_SHOWN: [(&str, &str); 2] = [("counting", "of another type"), ("recounting", "of a type of that")];

fn check(test: &str, compiler: &str, flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut waiting) = start(test, dir.path(), compiler, flags) else { return };
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new(), "{flags:?}");
    let walkers = of_cpp(&waiting);
    let memory = ProcessMemory { pid: waiting.pid() };
    let buffers =
        by_name(&waiting, walkers.iter().flat_map(|one| one.buffers(&memory)).collect(), |one| one.fd);
    check_buffers(&buffers);
    let (only_shown, found): (BTreeMap<_, _>, BTreeMap<_, _>) =
        pending(&waiting, &walkers).into_iter().partition(|(_, one)| one.found_by_search);
    assert_eq!(texts(&found), BTreeMap::from(PENDING), "{flags:?}");
    assert_eq!(texts(&only_shown), BTreeMap::from(ONLY_SHOWN), "{flags:?}");
    for one in only_shown.values() {
        assert!(one.drain_stores.is_empty() && one.data_address.is_none() && one.early_len() == 0, "{one:?}");
    }
    for one in found.values() {
        assert!(one.data_address.is_some() && one.can_drain_partially(), "{one:?}");
        assert_eq!(one.drain_stores.len(), 1);
    }
    let partly = found["heap"].partial_drain(7).unwrap();
    waiting.store(&partly);
    waiting.store(&found["own"].drain_stores);
    check_late(&mut waiting, dir.path(), &walkers);
}

fn texts(found: &BTreeMap<String, PendingBytes>) -> BTreeMap<&str, &str> {
    found.iter().map(|(name, one)| (name.as_str(), text(&one.bytes))).collect()
}

fn check_buffers(buffers: &BTreeMap<String, Buffer>) {
    let of = |name: &str| buffers.get(name).unwrap_or_else(|| panic!("{name}: {buffers:#?}"));
    assert_eq!((of("empty").pending_bytes, of("empty").mode), (0, Some(Mode::Full)));
    assert_eq!((of("stack").buffer_bytes, of("own").buffer_bytes), (8191, 99));
    assert_eq!((of("none").buffer_bytes, of("none").mode), (0, Some(Mode::None)));
    assert_eq!((of("2").mode, of("1").mode), (None, Some(Mode::Full)));
    assert_eq!(of("input").unread, b"second line\nthird");
    let converted = of("converted");
    assert_eq!((converted.pending_bytes, converted.pending.len()), (15, 0), "their number only");
    assert!(!buffers.contains_key("closed"));
}

/// The same walkers find the buffer of a moved object, and a new one, without a request to search.
fn check_late(waiting: &mut Waiting, dir: &Path, walkers: &[Box<dyn Walker>]) {
    let before = pending(waiting, walkers);
    assert_eq!(before["heap"].bytes, b"heap12");
    assert!(!before.contains_key("own"), "it was drained");
    std::fs::write(dir.join("go"), "").unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let begun = Instant::now();
    let found = loop {
        let found = pending(waiting, walkers);
        if found.contains_key("late") && found.contains_key("stack") {
            break found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found:#?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!((text(&found["late"].bytes), text(&found["stack"].bytes)), ("later", "on the stack, moved"));
    assert_eq!(found["stack"].stream, before["stack"].stream, "it has the same buffer");
    assert_eq!(found["heap"], before["heap"]);
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn buffers_of_a_dynamic_program() {
    check("buffers_of_a_dynamic_program", "g++", &["-O2"]);
}

#[test]
fn buffers_of_a_program_at_a_fixed_address() {
    check("buffers_of_a_program_at_a_fixed_address", "g++", &["-O0", "-no-pie", "-fno-pie"]);
}

#[test]
fn buffers_of_a_static_program() {
    check("buffers_of_a_static_program", "g++", &["-O2", "-static"]);
}

#[test]
fn buffers_of_a_stripped_static_program() {
    check("buffers_of_a_stripped_static_program", "g++", &["-O2", "-static", "-s"]);
}

#[test]
fn buffers_of_a_static_program_that_is_relocated() {
    check("buffers_of_a_static_program_that_is_relocated", "g++", &["-O2", "-static-pie", "-s"]);
}

#[test]
fn buffers_of_a_program_with_a_static_library() {
    check("buffers_of_a_program_with_a_static_library", "g++", &["-O2", "-static-libstdc++"]);
}

#[test]
fn buffers_of_a_program_that_clang_compiled() {
    check("buffers_of_a_program_that_clang_compiled", "clang++", &["-O1"]);
}

/// The first search after the streams were opened finds those on the stack and in variables, although it reads a small part of the
/// memory; further searches find that in the heap. `first` is the first byte of each in the file buffer.
fn check_large_heap(test: &str, compiler: &str, flags: &[&str], first: usize) {
    let dir = tempfile::tempdir().unwrap();
    let built = compile_with(test, compiler, flags, "large_heap.cc", &dir.path().join("program"));
    let Some(program) = built else { return };
    let mut waiting = Waiting::start(Command::new(program).current_dir(dir.path()));
    let walkers = of_cpp(&waiting);
    assert_eq!(pending(&waiting, &walkers), BTreeMap::new());
    std::fs::write(dir.path().join("go"), "").unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let begun = Instant::now();
    let mut found = pending(&waiting, &walkers);
    assert_eq!(text(&found["stack"].bytes), &"on the stack"[first..]);
    assert_eq!(text(&found["data"].bytes), &"in data"[first..]);
    while !found.contains_key("heap") {
        assert!(begun.elapsed() < Duration::from_secs(30), "{found:#?}");
        std::thread::sleep(Duration::from_millis(5));
        found = pending(&waiting, &walkers);
    }
    assert_eq!((text(&found["heap"].bytes), found.len()), (&"in the heap"[first..], 3));
}

#[test]
fn buffers_beside_a_large_heap() {
    check_large_heap("buffers_beside_a_large_heap", "g++", &["-O2"], 0);
}

/// libc++ hands the first byte over to the FILE at once.
#[test]
fn libcxx_buffers_beside_a_large_heap() {
    check_large_heap("libcxx_buffers_beside_a_large_heap", "clang++", &["-O2", "-stdlib=libc++"], 1);
}

#[test]
fn a_program_without_file_buffers_has_none() {
    let (test, dir) = ("a_program_without_file_buffers_has_none", tempfile::tempdir().unwrap());
    let source = dir.path().join("cout.cc");
    let code = "#include <iostream>\n#include <unistd.h>\nint main() { std::cout << 1; write(2, \".\", 1); pause(); }";
    std::fs::write(&source, code).unwrap();
    let Some(program) = compile_with(test, "g++", &[], source.to_str().unwrap(), &dir.path().join("program"))
    else {
        return;
    };
    let waiting = Waiting::start(&mut Command::new(program));
    let memory = ProcessMemory { pid: waiting.pid() };
    assert!(of_cpp(&waiting).iter().all(|one| one.buffers(&memory).is_empty()));
    assert_eq!(waiting.pending().iter().map(|one| text(&one.bytes)).collect::<Vec<_>>(), ["1"], "stdout's");
}
