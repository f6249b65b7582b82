//! The walker of Ruby reads bytes that ruby left in its IO objects.

mod support;

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{Walker, walkers, walkers_missing};

use support::{Waiting, skip};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/streams.rb");

fn has_ruby(test: &str) -> bool {
    let found = Command::new("ruby").arg("--version").output();
    let known = found.is_ok_and(|found| found.stdout.starts_with(b"ruby "));
    if !known {
        skip(test, "there is no ruby");
    }
    known
}

fn start(dir: &Path, more: &[&str]) -> Waiting {
    Waiting::start(Command::new("ruby").env_remove("RUBYOPT").arg(SCRIPT).arg(dir).args(more))
}

fn of_ruby(pid: u32) -> Box<dyn Walker> {
    walkers(pid).into_iter().find(|one| one.runtime() == RuntimeId::RUBY).expect("the walker of ruby")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn pending_bytes_of_streams() {
    if !has_ruby("pending_bytes_of_streams") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let waiting = start(dir.path(), &[]);
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    let found: Vec<Buffer> =
        waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::RUBY && one.fd >= 0).collect();
    let of = |name: &str| {
        let named: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == name).collect();
        assert_eq!(named.len(), 1, "{name}: {found:#?}");
        named[0]
    };
    let waits = |name: &str| (of(name).mode, of(name).pending_bytes, text(&of(name).pending));
    assert_eq!(waits("text"), (Some(Mode::Full), 18, "part one, part two"));
    assert_eq!(waits("flushed"), (Some(Mode::None), 0, ""));
    assert_eq!(
        (of("full").pending_bytes, of("full").pending.len(), of("full").buffer_bytes),
        (300, 256, 8192)
    );
    let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
    assert_eq!((stdout.mode, text(&stdout.pending)), (Some(Mode::Full), "in stdout"));
    assert_eq!(found.iter().find(|one| one.fd == 2).expect("stderr").mode, Some(Mode::None));
    assert!(found.iter().any(|one| text(&one.pending) == "into a pipe"), "{found:#?}");
    assert!(!found.iter().any(|one| waiting.name(one.fd) == "closed"), "{found:#?}");
    assert_eq!((of("large").unread_bytes, of("large").unread.len()), (8191, 64));
    let unread: Vec<_> =
        found.iter().filter(|one| waiting.name(one.fd) == "input").map(|one| text(&one.unread)).collect();
    assert_eq!(unread.len(), 2, "{found:#?}");
    assert!(
        unread.contains(&"second line\nthird") && unread.contains(&"irst line\nsecond line\nthird"),
        "{unread:?}"
    );
}

/// Returns the bytes in the stream of a file, as this walker reads them in a process.
fn pending(walker: &dyn Walker, pid: u32, name: &str) -> Vec<String> {
    let found = walker.buffers(&ProcessMemory { pid });
    let is_named = |fd: i32| {
        std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link.file_name().unwrap() == name)
    };
    found.iter().filter(|one| is_named(one.fd)).map(|one| text(&one.pending).to_string()).collect()
}

/// Kills the child of a program on drop.
struct Ending {
    child: u32,
    began: Instant,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.child as i32);
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    }
}

#[test]
fn after_a_fork() {
    if !has_ruby("after_a_fork") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let waiting = start(dir.path(), &["fork"]);
    let child: u32 = std::fs::read_to_string(dir.path().join("child")).unwrap().parse().unwrap();
    let ending = Ending { child, began: Instant::now() };
    let walker = of_ruby(waiting.pid());
    assert_eq!(pending(&*walker, waiting.pid(), "text"), ["part one, part two parent"]);
    let of_child = walker.for_child(child).expect("the same for the child");
    while pending(&*of_child, child, "text") != ["part one, part two child"] {
        assert!(ending.began.elapsed().as_secs() < 20, "{:?}", pending(&*of_child, child, "text"));
        std::thread::yield_now();
    }
}

#[test]
fn streams_come_and_go() {
    if !has_ruby("streams_come_and_go") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = start(dir.path(), &[]);
    let walker = of_ruby(waiting.pid());
    assert_eq!(pending(&*walker, waiting.pid(), "text").len(), 1);
    let pid = rustix::process::Pid::from_child(&waiting.child);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert_eq!(pending(&*walker, waiting.pid(), "text"), Vec::<String>::new());
    walker.search_again();
    assert_eq!(pending(&*walker, waiting.pid(), "late"), ["later"]);
}
