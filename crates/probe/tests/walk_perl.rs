//! The walker of Perl reads what perl left in its handles.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Waiting, compile, skip};
use weir_model::Mode;
use weir_model::trace::{Buffer, Walker};
use weir_probe::memory::ProcessMemory;
use weir_probe::walk::{walkers, walkers_missing};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/streams.pl");

fn has_perl(test: &str) -> bool {
    let found = Command::new("perl").arg("-v").output().is_ok();
    if !found {
        skip(test, "there is no perl");
    }
    found
}

fn start(dir: &Path, more: &[&str]) -> Waiting {
    Waiting::start(Command::new("perl").env_remove("PERLIO").arg(SCRIPT).arg(dir).args(more))
}

fn perl_streams(waiting: &Waiting) -> Vec<Buffer> {
    waiting.buffers().into_iter().filter(|one| one.walker == Walker::Perl).collect()
}

/// Those of the handles of a file.
fn of<'a>(waiting: &Waiting, found: &'a [Buffer], name: &str) -> Vec<&'a Buffer> {
    found.iter().filter(|one| waiting.name(one.fd) == name).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn what_waits_in_handles() {
    if !has_perl("what_waits_in_handles") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let waiting = start(dir.path(), &[]);
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    check_output(&waiting, &perl_streams(&waiting));
    check_input(&waiting, &perl_streams(&waiting));
}

fn check_output(waiting: &Waiting, found: &[Buffer]) {
    let of = |name: &str| {
        let named = of(waiting, found, name);
        assert_eq!(named.len(), 1, "{name}: {found:#?}");
        named[0]
    };
    let waits = |name: &str| (of(name).mode, of(name).pending_bytes, text(&of(name).pending));
    let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
    assert_eq!((stdout.mode, text(&stdout.pending), stdout.buffer_bytes), (Some(Mode::Full), "in stdout", 8192));
    assert_eq!(waits("text"), (Some(Mode::Full), 18, "part one, part two"));
    assert_eq!(waits("full"), (Some(Mode::Full), 1, "x"));
    assert_eq!(waits("flushed"), (Some(Mode::Full), 0, ""), "each print flushes it");
    assert_eq!(waits("encoded"), (Some(Mode::Full), 7, "grüße"));
    assert_eq!(waits("crlf"), (Some(Mode::Full), 8, "a line\r\n"));
    assert_eq!(waits("many100"), (Some(Mode::Full), 12, "the last one"), "in the second table");
    assert_eq!((of("appended").pending_bytes, of("appended").pending.len()), (300, 256));
    assert!(of("appended").pending.starts_with(b"abcdefghijklmnopqrstuvwxyzabc"));
    assert_eq!((of("raw").mode, of("raw").buffer_bytes), (Some(Mode::None), 0));
    assert_eq!(found.iter().find(|one| one.fd == 2).expect("stderr").mode, Some(Mode::None));
    // Three standard ones, those of `many`, eight written and three read ones; no closed one, none of a string.
    assert_eq!(found.len(), 3 + 100 + 7 + 3 + usize::from(script_is_open(waiting)), "{found:#?}");
}

/// perl keeps its script open where it has `__END__` only; another version may differ.
fn script_is_open(waiting: &Waiting) -> bool {
    (3..20).any(|fd| waiting.name(fd) == "streams.pl")
}

fn check_input(waiting: &Waiting, found: &[Buffer]) {
    let input = of(waiting, found, "input");
    let unread: Vec<_> = input.iter().map(|one| (one.unread_bytes, text(&one.unread))).collect();
    assert_eq!(unread, [(17, "second line\nthird"); 2], "one of bytes, one decoded");
    let large = of(waiting, found, "binary-input")[0];
    assert_eq!((large.unread_bytes, large.pending_bytes), (8092, 0));
    assert!(large.unread.len() == 64 && large.unread.starts_with(b"wxyzabcdef"), "{large:?}");
}
