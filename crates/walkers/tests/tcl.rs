//! The walker of Tcl reads bytes that tclsh left in its channels.

mod support;

use std::io::Read;
use std::path::Path;
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{Walker, walkers, walkers_missing};

use support::{Waiting, skip};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/streams.tcl");

fn start(test: &str, dir: &Path) -> Option<Waiting> {
    let found = Command::new("tclsh8.6").stdin(std::process::Stdio::null()).output().is_ok();
    if !found {
        skip(test, "there is no tclsh8.6");
    }
    found.then(|| Waiting::start(Command::new("tclsh8.6").arg(SCRIPT).arg(dir)))
}

fn of_tcl(waiting: &Waiting) -> Box<dyn Walker> {
    walkers(waiting.pid()).into_iter().find(|one| one.runtime() == RuntimeId::TCL).expect("the walker of tcl")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn pending_bytes_of_channels() {
    let dir = tempfile::tempdir().unwrap();
    let Some(waiting) = start("pending_bytes_of_channels", dir.path()) else { return };
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    let found: Vec<Buffer> =
        waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::TCL).collect();
    let of = |name: &str| {
        let named: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == name).collect();
        assert_eq!(named.len(), 1, "{name}: {found:#?}");
        named[0]
    };
    let waits = |name: &str| (of(name).mode, of(name).pending_bytes, text(&of(name).pending));
    assert_eq!(waits("text"), (Some(Mode::Full), 18, "part one, part two"));
    assert_eq!(waits("line"), (Some(Mode::Line), 10, "and a part"));
    assert_eq!(waits("none"), (Some(Mode::None), 0, ""));
    assert_eq!(
        (of("full").pending_bytes, of("full").pending.len(), of("full").buffer_bytes),
        (300, 256, 4096)
    );
    assert_eq!((of("input").unread_bytes, text(&of("input").unread)), (17, "second line\nthird"));
    let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
    assert_eq!((stdout.mode, text(&stdout.pending)), (Some(Mode::Line), "in stdout"));
    assert_eq!(found.iter().find(|one| one.fd == 2).expect("stderr").mode, Some(Mode::None));
    for (text, kind) in [("into a pipe", "pipe:["), ("into a socket", "socket:[")] {
        let one = found.iter().find(|one| self::text(&one.pending) == text);
        let one = one.unwrap_or_else(|| panic!("{text}: {found:#?}"));
        assert!(waiting.name(one.fd).starts_with(kind), "{text}: {}", waiting.name(one.fd));
    }
    // A compressor changes the bytes before they are written.
    assert_eq!(of("squeezed").pending_bytes, 14);
    assert!(!waiting.pending().iter().any(|one| waiting.name(one.fd) == "squeezed"));
    assert!(!found.iter().any(|one| waiting.name(one.fd) == "closed"), "{found:#?}");
}

#[test]
fn channels_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut waiting) = start("channels_come_and_go", dir.path()) else { return };
    let walker = of_tcl(&waiting);
    let pending = |waiting: &Waiting, name: &str| {
        let found = walker.buffers(&ProcessMemory { pid: waiting.pid() });
        let named = found.into_iter().filter(|one| waiting.name(one.fd) == name);
        named.map(|one| text(&one.pending).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(pending(&waiting, "text"), ["part one, part two"]);
    std::fs::write(dir.path().join("go"), "").unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert_eq!(pending(&waiting, "late"), ["later"], "without a new search");
    assert_eq!(pending(&waiting, "text"), Vec::<String>::new());
}
