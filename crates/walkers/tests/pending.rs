//! Pending bytes are those that the program would write, and a stream that was drained from outside does not write
//! them again.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use weir_sys::memory::ProcessMemory;
use weir_walkers::{MemoryStore, PendingBytes, walkers};

use support::{compile, skip};

/// A program with bytes in its streams. Its stdout is the file `stdout` in its folder.
struct Left {
    child: Child,
    dir: tempfile::TempDir,
}

impl Left {
    fn start(command: impl Fn(&Path) -> Command) -> Left {
        let dir = tempfile::tempdir().unwrap();
        let stdout = File::create(dir.path().join("stdout")).unwrap();
        let mut command = command(dir.path());
        command.env_remove("PYTHONUNBUFFERED").env_remove("PERLIO").stdin(Stdio::null());
        let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let mut byte = [0];
        let got = std::io::Read::read(child.stderr.as_mut().unwrap(), &mut byte).unwrap();
        assert!(got == 1 && byte[0] == b'.', "{command:?} did not begin well");
        // When the byte has arrived, the program may still be about to update its counters.
        let waits = |stat: &str| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"));
        while !waits(&std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap()) {
            std::thread::yield_now();
        }
        Left { child, dir }
    }

    fn pending(&self) -> Vec<(String, PendingBytes)> {
        let memory = ProcessMemory { pid: self.child.id() };
        let found = walkers(self.child.id()).into_iter().flat_map(|walker| walker.pending(&memory));
        found.map(|one| (self.name(one.fd), one)).collect()
    }

    fn name(&self, fd: i32) -> String {
        let link = std::fs::read_link(format!("/proc/{}/fd/{fd}", self.child.id())).unwrap();
        link.file_name().unwrap().to_str().unwrap().to_string()
    }

    /// Stores into the memory of the program, which is in a system call and not inside a stream.
    fn store(&self, stores: &[MemoryStore]) {
        let memory = File::options().write(true).open(format!("/proc/{}/mem", self.child.id())).unwrap();
        for store in stores {
            memory.write_all_at(&store.bytes, store.address).unwrap();
        }
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().flatten();
        let files = entries.map(|entry| (entry.path(), entry.file_name().into_string().unwrap()));
        files.map(|(path, name)| (name, std::fs::read(path).unwrap())).collect()
    }

    /// Ends the program and returns the content of each file.
    fn end(mut self) -> BTreeMap<String, Vec<u8>> {
        std::fs::write(self.dir.path().join("end"), "").unwrap();
        // SAFETY: sends a signal to a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGUSR1) }, 0);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        self.files()
    }
}

fn joined(before: &[u8], waits: &[u8], tail: &str) -> Vec<u8> {
    [before, waits, tail.as_bytes()].concat()
}

/// Runs the program three times: untouched, with drained streams, and with partially drained streams.
fn check(what: &str, names: &[&str], divided: &[&str], command: impl Fn(&Path) -> Command) {
    let left = Left::start(&command);
    let (before, pending) = (left.files(), left.pending());
    let mut found: Vec<_> = pending.iter().map(|one| one.0.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, names, "{what}");
    assert!(pending.iter().all(|one| one.1.locked != Some(true)), "{what}");
    let after = left.end();
    for (name, one) in &pending {
        let expected = joined(&before[name], &one.bytes, " tail\n");
        assert!(after[name] == expected, "{what}: {name}: {:?}", String::from_utf8_lossy(&after[name]));
    }
    let left = Left::start(&command);
    left.pending().iter().for_each(|(name, one)| {
        assert!(!one.drain_stores.is_empty(), "{what}: {name} can be drained");
        left.store(&one.drain_stores);
    });
    assert_eq!(left.pending(), [], "{what}");
    let after = left.end();
    assert!(names.iter().all(|name| after[*name] == joined(&before[*name], b"", " tail\n")), "{what}");
    take_some(what, divided, &before, Left::start(&command));
}

fn take_some(what: &str, divided: &[&str], before: &BTreeMap<String, Vec<u8>>, left: Left) {
    let pending = left.pending();
    for (name, one) in &pending {
        assert_eq!(divided.contains(&name.as_str()), one.can_drain_partially(), "{what}: {name}");
        left.store(&one.partial_drain(3).unwrap_or_default());
    }
    let after = left.end();
    for (name, one) in pending.iter().filter(|one| divided.contains(&one.0.as_str())) {
        assert_eq!(after[name], joined(&before[name], &one.bytes[3..], " tail\n"), "{what}: {name}");
    }
}

fn c(test: &str, compiler: &str, flags: &[&str]) {
    let programs = tempfile::tempdir().unwrap();
    let Some(program) = compile(test, compiler, flags, "leave.c", &programs.path().join("leave")) else {
        return;
    };
    let names = ["append", "both", "full", "line", "stdout", "wide"];
    // musl stores wide characters as bytes; glibc's wide buffer cannot be drained partially.
    let divided = if compiler == "gcc" { &names[..5] } else { &names[..] };
    check(&format!("{compiler} {flags:?}"), &names, divided, |dir| {
        let mut command = Command::new(&program);
        command.arg(dir);
        command
    });
}

macro_rules! stdio {
    ($($name:ident: $compiler:literal $flags:expr;)*) => {
        $(#[test] fn $name() { c(stringify!($name), $compiler, &$flags); })*
    };
}

stdio! {
    pending_in_glibc: "gcc" [];
    pending_in_glibc_with_threads: "gcc" ["-static", "-s", "-pthread"];
    pending_in_glibc_static_stripped: "gcc" ["-static", "-s"];
    pending_in_musl: "musl-gcc" [];
    pending_in_musl_static_stripped: "musl-gcc" ["-static", "-s"];
}

fn script(name: &str, interpreter: &str) -> impl Fn(&Path) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let interpreter = PathBuf::from(interpreter);
    move |dir| {
        let mut command = Command::new(&interpreter);
        command.arg(&path).arg(dir);
        command
    }
}

fn has(test: &str, interpreter: &str) -> bool {
    let found = Command::new(interpreter).arg("-v").stdin(Stdio::null()).output().is_ok();
    if !found {
        skip(test, &format!("there is no {interpreter}"));
    }
    found
}

#[test]
fn pending_in_python() {
    let names = ["append", "both", "full", "mixed", "stdout", "text"];
    if has("pending_in_python", "/usr/bin/python3") {
        check("python", &names, &names, script("leave.py", "/usr/bin/python3"));
    }
}

#[test]
fn pending_in_perl() {
    let names = ["append", "full", "stdout", "utf8"];
    if has("pending_in_perl", "perl") {
        check("perl", &names, &names, script("leave.pl", "perl"));
    }
}

#[test]
fn pending_in_ruby() {
    let names = ["append", "both", "full", "latin", "stdout"];
    if has("pending_in_ruby", "ruby") {
        check("ruby", &names, &names, script("leave.rb", "ruby"));
    }
}

#[test]
fn pending_in_tcl() {
    let names = ["append", "both", "full", "latin", "stdout"];
    if has("pending_in_tcl", "tclsh8.6") {
        let tcl = script("leave.tcl", "tclsh8.6");
        // The program ignores the signal that ends the others, and waits for a file.
        check("tcl", &names, &names, |dir| {
            let mut command = Command::new("sh");
            command.args(["-c", "trap '' USR1; exec \"$@\"", "sh"]);
            command.arg(tcl(dir).get_program()).args(tcl(dir).get_args());
            command
        });
    }
}
