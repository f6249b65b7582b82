//! The walker of libc++ reads bytes that real programs left in their file buffers.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{MAX_PENDING, walkers, walkers_missing};

use support::programs::has_libcxx;
use support::{Waiting, compile_with, skip};

/// The files and their pending bytes.
const PENDING: [(&str, &str); 6] = [
    ("data", "in data"),
    ("stack", "on the stack"),
    ("heap", "in the heap12"),
    ("own", "in an own buffer"),
    ("moved", "moved, and more"),
    ("counting", "of a derived type"),
];

fn check(test: &str, flags: &[&str]) {
    if !has_libcxx() {
        return skip(test, "there is no clang++ with libc++");
    }
    let (dir, flags) = (tempfile::tempdir().unwrap(), [&["-stdlib=libc++"], flags].concat());
    let to = dir.path().join("program");
    let Some(program) = compile_with(test, "clang++", &flags, "libcxx_buffers.cc", &to) else { return };
    std::fs::write(dir.path().join("input"), "first line\nsecond line\nthird").unwrap();
    let waiting = Waiting::start(Command::new(program).current_dir(dir.path()));
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new(), "{flags:?}");
    let memory = ProcessMemory { pid: waiting.pid() };
    let all = walkers(waiting.pid());
    let pending = weir_walkers::pending(&all, &memory, MAX_PENDING).streams;
    let own = all.iter().filter(|one| one.runtime() == RuntimeId::CPP);
    let buffers: Vec<Buffer> = own.flat_map(|one| one.buffers(&memory)).collect();
    check_buffers(&buffers.into_iter().map(|one| (waiting.name(one.fd), one)).collect());
    // The first put empties the file buffer, so the first byte is in the C library's stream.
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for one in &pending {
        *texts.entry(waiting.name(one.fd)).or_default() += &String::from_utf8_lossy(&one.bytes);
    }
    texts.retain(|name, _| PENDING.iter().any(|(known, _)| known == name));
    assert_eq!(texts, PENDING.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect());
    let of_both = |name: &str| -> Vec<RuntimeId> {
        pending.iter().filter(|one| waiting.name(one.fd) == name).map(|one| one.walker).collect()
    };
    for (name, _) in PENDING {
        assert_eq!(of_both(name), [RuntimeId::GLIBC, RuntimeId::CPP], "{name} {flags:?}");
    }
    // A function of the program itself handles the bytes.
    let searched = pending.iter().filter(|one| one.found_by_search);
    assert_eq!(searched.map(|one| waiting.name(one.fd)).collect::<Vec<_>>(), ["counting"]);
    // The order that `weir peek` shows.
    let shown = weir_walkers::previews(&all, &memory, 100, MAX_PENDING);
    let data: Vec<&Buffer> =
        shown.iter().map(|one| &one.buffer).filter(|one| waiting.name(one.fd) == "data").collect();
    let (walkers, texts): (Vec<_>, Vec<_>) = data.iter().map(|one| (one.walker, &one.pending[..])).unzip();
    assert_eq!(
        (walkers, texts.concat()),
        (vec![RuntimeId::GLIBC, RuntimeId::CPP], b"in data".to_vec()),
        "{flags:?}"
    );
}

fn check_buffers(buffers: &BTreeMap<String, Buffer>) {
    let of = |name: &str| buffers.get(name).unwrap_or_else(|| panic!("{name}: {buffers:#?}"));
    assert_eq!((of("stack").buffer_bytes, of("own").buffer_bytes), (4095, 99));
    assert_eq!((of("none").buffer_bytes, of("none").mode), (0, Some(Mode::None)));
    assert_eq!(of("input").unread, b"second line\nthird");
    let converted = of("converted");
    assert_eq!((converted.pending_bytes, converted.pending.len()), (14, 0), "their number only");
    assert!(!buffers.contains_key("closed"));
}

#[test]
fn buffers_of_a_dynamic_program() {
    check("buffers_of_a_dynamic_program", &["-O2"]);
}

#[test]
fn buffers_of_a_program_at_a_fixed_address() {
    check("buffers_of_a_program_at_a_fixed_address", &["-O0", "-no-pie", "-fno-pie"]);
}

#[test]
fn buffers_of_a_stripped_program() {
    check("buffers_of_a_stripped_program", &["-O2", "-s"]);
}

#[test]
fn buffers_of_a_stripped_static_program() {
    check("buffers_of_a_stripped_static_program", &["-O2", "-static", "-s"]);
}
