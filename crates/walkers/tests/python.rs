//! The walker of CPython reads bytes that each installed Python left in its streams.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{kept_records, walkers, walkers_missing};

use support::{Waiting, programs, skip};

/// Debian's Python, those that pyenv has built, of the supported versions, and free-threaded ones.
fn pythons() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/usr/bin/python3")];
    found.extend((9..=14).flat_map(of_pyenv));
    found.extend(programs::free_threaded_pythons());
    found.retain(|path| path.exists());
    found
}

fn of_pyenv(minor: u32) -> Vec<PathBuf> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv")));
    let versions = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let fits = |name: &str| name.starts_with(&format!("3.{minor}."));
    let found = versions.into_iter().flatten().flatten();
    let found = found.filter(|entry| entry.file_name().to_str().is_some_and(fits));
    found.map(|entry| entry.path().join("bin/python3")).collect()
}

fn start(python: &Path, options: &[&str], dir: &Path) -> Waiting {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/streams.py");
    let mut command = Command::new(python);
    command.env_remove("PYTHONUNBUFFERED").env("PYTHONUTF8", "1");
    Waiting::start(command.args(options).arg(script).arg(dir))
}

fn python_streams(waiting: &Waiting) -> Vec<Buffer> {
    waiting.buffers().into_iter().filter(|one| one.walker == RuntimeId::CPYTHON).collect()
}

#[test]
fn every_python_here() {
    let all = pythons();
    if all.is_empty() {
        return skip("every_python_here", "there is no python3");
    }
    for python in all {
        let dir = tempfile::tempdir().unwrap();
        let waiting = start(&python, &[], dir.path());
        assert_eq!(walkers_missing(waiting.pid()), Vec::<String>::new());
        check(&python, &waiting, &python_streams(&waiting));
    }
}

/// Returns io.DEFAULT_BUFFER_SIZE: 8 KiB, from 3.14 on 128 KiB, which is then the least size of a buffer.
fn default_buffer_bytes(python: &Path) -> u64 {
    let output = Command::new(python).args(["-c", "import io; print(io.DEFAULT_BUFFER_SIZE)"]).output();
    let output = output.expect("python starts").stdout;
    String::from_utf8_lossy(&output).trim().parse().expect("a number")
}

fn check(python: &Path, waiting: &Waiting, found: &[Buffer]) {
    let of = |name: &str| {
        let named: Vec<_> = found.iter().filter(|one| waiting.name(one.fd) == name).collect();
        assert!(!named.is_empty(), "{}: no stream for {name}: {found:#?}", python.display());
        named
    };
    let waits = |name: &str| (of(name)[0].mode, String::from_utf8(of(name)[0].pending.clone()).unwrap());
    let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
    assert_eq!((stdout.mode, stdout.pending.as_slice()), (Some(Mode::Full), &b"in stdout"[..]), "{python:?}");
    let buffer_bytes = if default_buffer_bytes(python) > 8192 { 131_072 } else { 4096 };
    assert_eq!(
        (stdout.pending_bytes, stdout.buffer_bytes),
        (9, buffer_bytes),
        "up to 3.13 a pipe's st_blksize; {python:?}"
    );
    assert_eq!(waits("text"), (Some(Mode::Full), "part one, grüße".to_string()), "{python:?}");
    assert_eq!(of("text")[0].pending_bytes, 17);
    assert_eq!(waits("line"), (Some(Mode::Line), String::new()), "python flushes all of what has a newline");
    assert_eq!((of("binary")[0].pending_bytes, of("binary")[0].pending.len()), (300, 256), "{python:?}");
    assert!(of("binary")[0].pending.starts_with(b"abcdefghijklmnopqrstuvwxyzabc"));
    assert_eq!(waits("random").1, "here and there", "{python:?}");
    let unread: Vec<_> = of("input").iter().map(|one| (one.unread_bytes, one.unread.as_slice())).collect();
    assert_eq!(unread, [(17, &b"second line\nthird"[..]); 2], "one in binary, one as text; {python:?}");
    assert_eq!(found.len(), 9, "three standard streams and six files, the raw one has no buffer: {found:#?}");
}

#[test]
fn unbuffered() {
    for python in pythons() {
        let dir = tempfile::tempdir().unwrap();
        let waiting = start(&python, &["-u"], dir.path());
        let found = python_streams(&waiting);
        let stdout = found.iter().find(|one| one.fd == 1).expect("stdout");
        assert_eq!((stdout.mode, stdout.pending_bytes), (Some(Mode::None), 0), "{python:?}");
    }
}

#[test]
fn one_that_is_too_old_is_said_to_be_so() {
    let Some(python) = of_pyenv(8).into_iter().find(|path| path.exists()) else {
        return skip("one_that_is_too_old_is_said_to_be_so", "there is no python 3.8");
    };
    let dir = tempfile::tempdir().unwrap();
    let waiting = start(&python, &[], dir.path());
    assert!(python_streams(&waiting).is_empty());
    let expected = format!("the buffers of python 3.8 (pid {}) cannot be read", waiting.pid());
    assert_eq!(walkers_missing(waiting.pid()), [expected]);
}

/// Keeps 12 records in one handler and none in others, and waits. With an argument it looks at the attributes of the handler first.
const KEEPS_RECORDS: &str = "import logging.handlers, sys, time\n\
    class Own(logging.handlers.MemoryHandler): pass\n\
    target = logging.StreamHandler(sys.stdout)\n\
    kept, empty = Own(1000, target=target), logging.handlers.MemoryHandler(1000, target=target)\n\
    if len(sys.argv) > 1: kept.__dict__['own'] = 1; kept.others = [2]\n\
    logging.getLogger().addHandler(kept)\n\
    for number in range(12): logging.warning('record %d', number)\n\
    if sys.argv[1:] == ['flushed']: kept.flush()\n\
    sys.stderr.write('.'); sys.stderr.flush()\n\
    time.sleep(100)";

#[test]
fn records_in_a_memory_handler_are_counted() {
    let all = pythons();
    for python in &all {
        let records = |arguments: &[&str]| {
            let waiting = Waiting::start(Command::new(python).args(["-c", KEEPS_RECORDS]).args(arguments));
            let memory = ProcessMemory { pid: waiting.pid() };
            kept_records(&walkers(waiting.pid()), &memory)
        };
        let expected = Some("12 records in a MemoryHandler of Python's logging".to_string());
        let expected = expected.filter(|_| !programs::free_threaded_pythons().contains(python));
        assert_eq!(records(&[]), expected, "{python:?}");
        assert_eq!(records(&["with", "a dictionary"]), expected, "{python:?}");
        assert_eq!(records(&["flushed"]), None, "{python:?}");
    }
    if all.is_empty() {
        skip("records_in_a_memory_handler_are_counted", "there is no python3");
    }
}

/// Writes into streams of derived classes, of which two have functions of their own behind the pending bytes, and into one of a socket.
const DERIVED: &str = "import io, os, socket, sys, time\n\
    class Text(io.TextIOWrapper): pass\n\
    class Writer(io.BufferedWriter): pass\n\
    class More(Writer): pass\n\
    class Raw(io.FileIO): pass\n\
    class Mixin:\n    def write(self, data): return super().write(data)\n\
    class Loud(Mixin, io.BufferedWriter): pass\n\
    class OwnRaw(Mixin, io.FileIO): pass\n\
    os.chdir(sys.argv[1])\n\
    text = Text(open('text', 'wb')); text.write('in text')\n\
    more = More(io.FileIO('more', 'w')); more.write(b'in more')\n\
    raw = io.BufferedWriter(Raw('raw', 'w')); raw.write(b'over raw')\n\
    own = io.BufferedWriter(OwnRaw('own', 'w')); own.write(b'over own')\n\
    loud = io.TextIOWrapper(Loud(io.FileIO('loud', 'w'))); loud.write('over loud')\n\
    ends = socket.socketpair(); out = ends[0].makefile('w'); out.write('in a socket')\n\
    sys.stderr.write('.'); sys.stderr.flush()\n\
    time.sleep(100)";

#[test]
fn streams_of_derived_classes_are_found() {
    let all = pythons();
    for python in &all {
        let dir = tempfile::tempdir().unwrap();
        let waiting = Waiting::start(Command::new(python).args(["-c", DERIVED]).arg(dir.path()));
        let found = python_streams(&waiting);
        // The bytes of the last two are shown, and not written: a function of the program would get them.
        for (name, bytes, is_only_shown) in [
            ("text", "in text", false),
            ("more", "in more", false),
            ("raw", "over raw", false),
            ("own", "over own", true),
            ("loud", "over loud", true),
        ] {
            let one = found.iter().find(|one| waiting.name(one.fd) == name);
            let one = one.unwrap_or_else(|| panic!("{python:?}: no stream for {name}: {found:#?}"));
            let pending = String::from_utf8_lossy(&one.pending);
            assert_eq!((&*pending, one.found_by_search), (bytes, is_only_shown), "{python:?} {name}");
        }
        let kept = kept_records(&walkers(waiting.pid()), &ProcessMemory { pid: waiting.pid() });
        let expected = "28 B in 3 Python streams over objects of the program";
        assert_eq!(kept.as_deref(), Some(expected), "{python:?}: these two, and that of the socket");
    }
    if all.is_empty() {
        skip("streams_of_derived_classes_are_found", "there is no python3");
    }
}
