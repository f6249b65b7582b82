//! The walker of Perl reads bytes that perl left in its handles.

mod support;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{Walker, walkers, walkers_missing};

use support::{Waiting, compile, skip};

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
    waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::PERL).collect()
}

/// Returns the buffers of the handles of a file.
fn of<'a>(waiting: &Waiting, found: &'a [Buffer], name: &str) -> Vec<&'a Buffer> {
    found.iter().filter(|one| waiting.name(one.fd) == name).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn pending_bytes_of_handles() {
    if !has_perl("pending_bytes_of_handles") {
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
    assert_eq!(
        (stdout.mode, text(&stdout.pending), stdout.buffer_bytes),
        (Some(Mode::Full), "in stdout", 8192)
    );
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
    assert_eq!(of("encoded").buffer_bytes, 1024, "perl writes so much at once then");
    // Three standard handles, those of `many`, seven written and three read ones; no closed handle, and none of a
    // string.
    assert_eq!(found.len(), 3 + 100 + 7 + 3, "{found:#?}");
}

fn check_input(waiting: &Waiting, found: &[Buffer]) {
    let input = of(waiting, found, "input");
    let unread: Vec<_> = input.iter().map(|one| (one.unread_bytes, text(&one.unread))).collect();
    assert_eq!(unread, [(17, "second line\nthird"); 2], "one of bytes, one decoded");
    let large = of(waiting, found, "binary-input")[0];
    assert_eq!((large.unread_bytes, large.pending_bytes), (8092, 0));
    assert!(large.unread.len() == 64 && large.unread.starts_with(b"wxyzabcdef"), "{large:?}");
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

/// Returns the bytes in the handle of a file, as this walker reads them in a process.
fn pending(walker: &dyn Walker, pid: u32, name: &str) -> Vec<String> {
    let found = walker.buffers(&ProcessMemory { pid });
    let is_named = |fd: i32| {
        std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|link| link.file_name().unwrap() == name)
    };
    found.iter().filter(|one| is_named(one.fd)).map(|one| text(&one.pending).to_string()).collect()
}

fn perl_walker(pid: u32) -> Box<dyn Walker> {
    walkers(pid).into_iter().find(|one| one.runtime() == RuntimeId::PERL).expect("the walker of perl")
}

#[test]
fn after_a_fork() {
    if !has_perl("after_a_fork") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let waiting = start(dir.path(), &["fork"]);
    let child: u32 = std::fs::read_to_string(dir.path().join("child")).unwrap().parse().unwrap();
    let ending = Ending { child, began: Instant::now() };
    let walker = perl_walker(waiting.pid());
    assert_eq!(pending(&*walker, waiting.pid(), "text"), ["parent"], "perl flushes before a fork");
    let of_child = walker.for_child(child).expect("the same for the child");
    while pending(&*of_child, child, "text") != ["child"] {
        assert!(ending.began.elapsed().as_secs() < 20, "{:?}", pending(&*of_child, child, "text"));
        std::thread::yield_now();
    }
    assert_eq!(pending(&*perl_walker(child), child, "text"), ["child"]);
}

#[test]
fn handles_come_and_go() {
    if !has_perl("handles_come_and_go") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut waiting = start(dir.path(), &[]);
    let walker = perl_walker(waiting.pid());
    assert_eq!(pending(&*walker, waiting.pid(), "text").len(), 1);
    let pid = rustix::process::Pid::from_child(&waiting.child);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert_eq!(pending(&*walker, waiting.pid(), "late"), ["later"]);
    assert_eq!(pending(&*walker, waiting.pid(), "text"), Vec::<String>::new());
    walker.search_again();
    assert_eq!(pending(&*walker, waiting.pid(), "late"), ["later"]);
}

/// With PERLIO=stdio the handles are streams of the C library.
#[test]
fn of_stdio() {
    if !has_perl("of_stdio") {
        return;
    }
    let script = "print 'once'; syswrite STDERR, '.'; sleep 1000";
    let waiting = Waiting::start(Command::new("perl").env("PERLIO", ":stdio").args(["-e", script]));
    let found: Vec<_> = waiting.buffers().into_iter().filter(|one| one.pending_bytes > 0).collect();
    assert_eq!(found.iter().map(|one| (one.walker, one.fd)).collect::<Vec<_>>(), [(RuntimeId::GLIBC, 1)]);
}

/// libperl, which Debian has in addition to a perl that contains the interpreter.
fn libperl() -> Option<PathBuf> {
    let output = Command::new("perl").args(["-MConfig", "-e", "print \"$Config{archlibexp}/CORE\""]).output();
    let core = PathBuf::from(String::from_utf8(output.ok()?.stdout).ok()?);
    let files = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|one| one.path());
    let is_libperl = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("libperl.so"))
    };
    let above = core.ancestors().skip(1).take(4).flat_map(files);
    files(&core).chain(above).find(is_libperl)
}

#[test]
fn in_another_program() {
    let Some(library) = libperl() else { return skip("in_another_program", "there is no libperl") };
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("embeds");
    let Some(program) = compile("in_another_program", "gcc", &[], "perl.c", &program) else { return };
    let script = "print 'embedded'; syswrite STDERR, '.'; sleep 1000";
    let waiting = Waiting::start(Command::new(program).arg(library).args(["-e", script]));
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    let found = perl_streams(&waiting);
    let stdout: Vec<_> = found.iter().filter(|one| one.fd == 1).map(|one| text(&one.pending)).collect();
    assert_eq!(stdout, ["embedded"]);
}
