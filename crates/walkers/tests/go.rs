//! The walker of Go reads bytes that real programs left in the buffers of bufio.

mod support;

use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_walkers::{pending_of_stopped, unseen_sentence, walkers, walkers_missing};

use support::programs::{PROGRAM, SOURCE, compile as compile_shared};
use support::{Waiting, skip};

fn compile(test: &str, dir: &Path, flags: &[&str]) -> Option<PathBuf> {
    let (source, program) = ("tests/programs/bufio.go", dir.join("program"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let words = [&["build"], flags, &["-o", PROGRAM, SOURCE]].concat();
    match compile_shared("go", &words, &source, &program) {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{flags:?}: {errors}");
        }
        Err(why) => {
            skip(test, &format!("go: {why}"));
            return None;
        }
    }
    Some(program)
}

fn start(dir: &Path, program: &Path) -> Waiting {
    std::fs::write(dir.join("input"), "first line\nsecond line\nthird").unwrap();
    Waiting::start(Command::new(program).arg(dir))
}

fn of_go(waiting: &Waiting) -> Vec<Buffer> {
    waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::GO).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn check(test: &str, flags: &[&str], stack_is_known: bool) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(test, dir.path(), flags) else { return };
    let mut waiting = start(dir.path(), &program);
    assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
    let found = of_go(&waiting);
    let of = |name: &str| {
        let named: Vec<_> =
            found.iter().filter(|one| waiting.name(one.fd) == name && one.unread_bytes == 0).collect();
        assert_eq!(named.len(), 1, "{name}: {found:#?}");
        named[0]
    };
    let waits = |name: &str| (of(name).mode, of(name).pending_bytes, text(&of(name).pending));
    assert_eq!(of("heap").buffer_bytes, 100);
    assert_eq!(waits("heap"), (Some(Mode::Full), 71, &("flushed ".repeat(20) + "in the heap")[100..]));
    assert_eq!(waits("inside").2, "in a struct");
    assert_eq!(waits("empty").1, 0);
    let copied = found.iter().filter(|one| waiting.name(one.fd) == "copied");
    assert!(copied.into_iter().all(|one| one.pending == b"in a copy"), "the original is rejected");
    assert_eq!(
        (of("large").pending_bytes, of("large").pending.len(), of("large").buffer_bytes),
        (300, 256, 65536)
    );
    let stdout: Vec<_> = found.iter().filter(|one| one.fd == 1).map(|one| text(&one.pending)).collect();
    match stack_is_known {
        true => assert_eq!(stdout, ["in stdout, and after it moved"]),
        // The stale copy of the stack contradicts the current one, and nothing shows which one is stale.
        false => assert!(stdout.is_empty() || stdout == ["in stdout, and after it moved"], "{stdout:?}"),
    }
    let unread: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == "input").collect();
    let mut unread: Vec<_> = unread.iter().map(|one| text(&one.unread)).collect();
    unread.sort_unstable();
    assert_eq!(unread, ["second line\nthird", "third"]);
    assert!(!found.iter().any(|one| text(&one.pending).contains("nowhere")), "{found:#?}");
    late(&mut waiting, dir.path());
}

/// A snapshot shows a new stream, a changed one, and all pending bytes.
fn late(waiting: &mut Waiting, dir: &Path) {
    let memory = ProcessMemory { pid: waiting.pid() };
    let go = walkers(waiting.pid())
        .into_iter()
        .find(|one| one.runtime() == RuntimeId::GO)
        .expect("the walker of go");
    assert_eq!(go.buffers(&memory).iter().filter(|one| waiting.name(one.fd) == "late").count(), 0);
    std::fs::write(dir.join("go"), "").unwrap();
    waiting.child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    go.search_again();
    let _examined = go.pending(&memory);
    let pending = go.pending(&memory);
    // The last read did not examine which Writers a goroutine flushes.
    let buffers = go.buffers(&memory);
    let mut unsure = go.flushing(&memory, &buffers);
    let mut holding: Vec<u64> =
        buffers.iter().filter(|one| one.pending_bytes > 0).map(|one| one.address).collect();
    unsure.sort_unstable();
    holding.sort_unstable();
    assert!(!holding.is_empty());
    assert_eq!(unsure, holding);
    go.search_again();
    let buffers = go.buffers(&memory);
    assert_eq!(go.flushing(&memory, &buffers), [0; 0], "no goroutine flushes");
    let of = |name| pending.iter().find(|one| waiting.name(one.fd) == name).expect(name);
    assert_eq!(text(&of("late").bytes), "later");
    assert!(of("heap").bytes.ends_with(b"in the heap, more"));
    assert_eq!(of("large").bytes, [b'x'; 300]);
    assert!(pending.iter().all(|one| one.drain_stores.is_empty()), "it cannot be drained from outside");
}

/// The memory of a process, and how many bytes of it were read.
struct CountedMemory {
    process: ProcessMemory,
    bytes: Cell<usize>,
}

impl Memory for CountedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let bytes = self.process.read(address, into);
        self.bytes.set(self.bytes.get() + bytes);
        bytes
    }
}

/// While a process is stopped, a large heap is not searched again: that takes a tenth of a second.
#[test]
fn the_large_heap_of_a_stopped_program_is_not_searched() {
    for flags in [&[][..], &["-ldflags=-s -w"]] {
        let dir = tempfile::tempdir().unwrap();
        let test = "the_large_heap_of_a_stopped_program_is_not_searched";
        let Some(program) = compile(test, dir.path(), flags) else { return };
        std::fs::write(dir.path().join("input"), "first line\nsecond line\nthird").unwrap();
        let waiting = Waiting::start(Command::new(program).arg(dir.path()).arg("large"));
        let mut walkers = walkers(waiting.pid());
        walkers.retain(|one| one.runtime() == RuntimeId::GO);
        let memory = CountedMemory { process: ProcessMemory { pid: waiting.pid() }, bytes: Cell::new(0) };
        walkers[0].search_again();
        let found = walkers[0].buffers(&memory);
        let searched = memory.bytes.take();
        let pending = pending_of_stopped(&walkers, &memory, 1 << 20, &[]).streams;
        let stopped = memory.bytes.take();
        assert!(stopped > 0 && stopped * 4 < searched, "{flags:?}: {stopped} of {searched} bytes");
        let large = found.iter().find(|one| waiting.name(one.fd) == "large").expect("the stream");
        let bytes = pending.iter().find(|one| one.stream == large.address).map(|one| one.bytes.len());
        assert_eq!(bytes, Some(300), "{flags:?}");
    }
}

#[test]
fn with_symbols() {
    check("with_symbols", &[], true);
}

#[test]
fn without_debug_information() {
    check("without_debug_information", &["-ldflags=-w"], true);
}

#[test]
fn stripped() {
    check("stripped", &["-ldflags=-s -w"], false);
}

#[test]
fn relocatable() {
    check("relocatable", &["-buildmode=pie"], true);
}

/// A Writer over another one is not found. A lock file is as empty, and a written file no sign of one.
#[test]
fn a_file_of_an_unknown_writer_is_named() {
    let test = "a_file_of_an_unknown_writer_is_named";
    let dir = tempfile::tempdir().unwrap();
    let code = "package main\nimport (\"bufio\"; \"io\"; \"os\"; \"syscall\"; \"time\")\n\
        func main() {\n os.Chdir(os.Args[1])\n file, _ := os.Create(\"unknown\")\n\
        writer := bufio.NewWriter(struct{ io.Writer }{file})\n writer.WriteString(\"pending\")\n\
        lock, _ := os.Create(\"lock\")\n syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)\n\
        known, _ := os.Create(\"known\")\n found := bufio.NewWriter(known)\n found.WriteString(\"found\")\n\
        written, _ := os.Create(\"written\")\n written.WriteString(\"text\")\n\
        os.Stderr.WriteString(\".\")\n time.Sleep(time.Hour)\n\
        writer.Flush(); found.Flush(); lock.Close(); written.Close() }\n";
    let (source, program) = (dir.path().join("unknown.go"), dir.path().join("program"));
    std::fs::write(&source, code).unwrap();
    let built = compile_shared("go", &["build", "-o", PROGRAM, SOURCE], &source, &program);
    let Ok(output) = built else { return skip(test, "there is no go") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let waiting = Waiting::start(Command::new(&program).arg(dir.path()));
    let walkers = walkers(waiting.pid());
    let known: Vec<i32> = of_go(&waiting).iter().map(|one| one.fd).collect();
    let sentence = unseen_sentence(waiting.pid(), &walkers, &known).expect("a sentence");
    let named = |name: &str| sentence.contains(&format!("/{name})"));
    assert!(named("unknown"), "{sentence}");
    assert!(!named("lock") && !named("known") && !named("written"), "{sentence}");
}
