//! The walkers of Rust read bytes that real programs left in standard output and in buffers of their own.

mod support;

use std::io::Read;
use std::path::Path;
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{DueSearch, Walker, hidden_stdout_sentence, walkers};

use support::{Waiting, compile_with};

#[test]
fn with_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    for flags in [&[][..], &["-O"], &["-Csymbol-mangling-version=v0"], &["-Crelocation-model=static"]] {
        let program = dir.path().join("program");
        let Some(program) = compile_with("with_symbols", &rustc, flags, "stdout.rs", &program) else {
            return;
        };
        let waiting = Waiting::start(&mut Command::new(program));
        let found: Vec<_> =
            waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::RUST).collect();
        assert_eq!(found.len(), 1, "{flags:?}");
        assert_eq!((found[0].fd, found[0].mode, found[0].buffer_bytes), (1, Some(Mode::Line), 1024));
        assert_eq!(
            (found[0].pending_bytes, found[0].pending.as_slice()),
            (9, &b"in stdout"[..]),
            "{flags:?}"
        );
        let pending = waiting.pending();
        assert_eq!((pending.len(), pending[0].bytes.as_slice()), (1, &b"in stdout"[..]), "{flags:?}");
        waiting.store(&pending[0].drain_stores);
        assert_eq!(waiting.pending(), [], "{flags:?}");
    }
}

#[test]
fn without_symbols_no_buffer_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let (test, program) = ("without_symbols_no_buffer_is_found", dir.path().join("program"));
    let Some(program) = compile_with(test, &rustc, &["-Cstrip=symbols"], "stdout.rs", &program) else {
        return;
    };
    let waiting = Waiting::start(&mut Command::new(program));
    assert!(waiting.buffers().iter().all(|one| one.walker != RuntimeId::RUST && one.pending_bytes == 0));
}

fn start(test: &str, dir: &Path, flags: &[&str]) -> Option<Waiting> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let program = compile_with(test, &rustc, flags, "bufwriter.rs", &dir.join("program"))?;
    std::fs::write(dir.join("input"), "first line\nsecond line\nthird").unwrap();
    Some(Waiting::start(Command::new(program).arg(dir)))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn of_rust(waiting: &Waiting) -> Vec<Buffer> {
    waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::RUST).collect()
}

fn check(test: &str, flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut waiting) = start(test, dir.path(), flags) else { return };
    let found = of_rust(&waiting);
    let of = |name: &str| {
        let named: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == name).collect();
        assert_eq!(named.len(), 1, "{flags:?}: {name}: {found:#?}");
        named[0]
    };
    let waits = |name: &str| (of(name).buffer_bytes, of(name).pending_bytes, text(&of(name).pending));
    let rest = "flushed ".repeat(40) + "on the stack";
    assert_eq!(waits("stack"), (256, 76, &rest[256..]));
    assert_eq!(waits("boxed"), (4096, 8, "in a box"));
    assert_eq!((waits("lines"), of("lines").mode), ((1024, 10, "and a part"), Some(Mode::Line)));
    assert_eq!((waits("empty"), of("empty").mode), ((8192, 0, ""), Some(Mode::Full)));
    assert_eq!(waits("thread"), (8192, 11, "in a thread"));
    let stdout: Vec<_> = found.iter().filter(|one| one.fd == 1 && one.buffer_bytes == 8192).collect();
    assert_eq!(stdout.iter().map(|one| text(&one.pending)).collect::<Vec<_>>(), ["for stdout"]);
    assert_eq!(text(&of("input").unread), "second line\nthird");
    assert!(!found.iter().any(|one| one.pending.starts_with(b"not a stream")), "{found:#?}");
    late(&mut waiting, dir.path());
}

/// A snapshot shows a new stream, a changed one, and all pending bytes.
fn late(waiting: &mut Waiting, dir: &Path) {
    let memory = ProcessMemory { pid: waiting.pid() };
    let of_rust: Vec<_> =
        walkers(waiting.pid()).into_iter().filter(|one| one.runtime() == RuntimeId::RUST).collect();
    let pending = || of_rust.iter().flat_map(|one| one.pending(&memory)).collect::<Vec<_>>();
    assert!(!pending().iter().any(|one| waiting.name(one.fd) == "late"));
    std::fs::write(dir.join("go"), "").unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    of_rust.iter().for_each(|one| one.search_again());
    let pending = pending();
    let of = |name| pending.iter().find(|one| waiting.name(one.fd) == name).expect(name);
    assert_eq!((text(&of("late").bytes), text(&of("boxed").bytes)), ("later", "in a box, more"));
    assert!(of("late").drain_stores.is_empty(), "it cannot be drained from outside");
}

#[test]
fn another_thread_searches() {
    let dir = tempfile::tempdir().unwrap();
    let Some(waiting) = start("another_thread_searches", dir.path(), &["-g"]) else { return };
    let all = walkers(waiting.pid());
    all.iter().for_each(|walker| walker.set_due_search(DueSearch::Beside));
    let boxed = |all: &[Box<dyn Walker>]| {
        let found = weir_walkers::buffers(all, &ProcessMemory { pid: waiting.pid() });
        found.into_iter().any(|one| waiting.name(one.fd) == "boxed" && one.pending == b"in a box")
    };
    assert!(!boxed(&all), "a snapshot does not wait for the search");
    let searched = |all: &[Box<dyn Walker>]| all.iter().any(|walker| walker.last_search().is_some());
    while !searched(&all) {
        let is_found = boxed(&all);
        assert_eq!(is_found, searched(&all), "the result is known with the whole search");
    }
    // The next walkers of the image know the result at once.
    let next = walkers(waiting.pid());
    for (walker, former) in next.iter().flat_map(|walker| all.iter().map(move |one| (walker, one))) {
        walker.set_due_search(DueSearch::Beside);
        former.searches().into_iter().for_each(|searches| walker.adopt_searches(searches));
    }
    assert!(boxed(&next) && searched(&next));
}

#[test]
fn buffers_with_debug_information() {
    check("buffers_with_debug_information", &["-g"]);
}

#[test]
fn buffers_of_an_optimized_program() {
    check("buffers_of_an_optimized_program", &["-g", "-O"]);
}

#[test]
fn buffers_with_the_fifth_dwarf() {
    check("buffers_with_the_fifth_dwarf", &["-g", "-Cdwarf-version=5", "-Csymbol-mangling-version=v0"]);
}

#[test]
fn without_debug_information_no_buffer_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let test = "without_debug_information_no_buffer_is_found";
    let Some(waiting) = start(test, dir.path(), &["-Cstrip=debuginfo"]) else { return };
    let found = of_rust(&waiting);
    assert!(found.iter().all(|one| one.fd == 1 && one.buffer_bytes == 1024), "{found:#?}");
}

/// Only a program that prints, and of which no symbol leads to its standard output, has a buffer that cannot be found.
#[test]
fn standard_output_without_symbols_is_named() {
    let test = "standard_output_without_symbols_is_named";
    let dir = tempfile::tempdir().unwrap();
    for (code, flags, is_named) in [
        ("print!(\"partial\");", &["-O", "-Cstrip=symbols"][..], true),
        ("print!(\"partial\");", &["-O"], false),
        ("eprint!(\"\");", &["-O", "-Cstrip=symbols"], false),
    ] {
        let source = dir.path().join("prints.rs");
        let wait = "std::thread::sleep(std::time::Duration::from_secs(1000));";
        std::fs::write(&source, format!("fn main() {{ {code} eprint!(\".\"); {wait} }}\n")).unwrap();
        let to = dir.path().join("program");
        let Some(program) = compile_with(test, "rustc", flags, source.to_str().unwrap(), &to) else { return };
        let waiting = Waiting::start(&mut Command::new(program));
        let sentence = hidden_stdout_sentence(waiting.pid());
        assert_eq!(sentence.is_some(), is_named, "{code} {flags:?}: {sentence:?}");
    }
}
