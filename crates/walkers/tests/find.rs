//! Tests which walkers are found: in another root directory, after an upgrade of the library, and the message if
//! there is none.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use weir_model::trace::RuntimeId;
use weir_sys::memory::ProcessMemory;
use weir_walkers::{StreamListHead, list_head, walkers, walkers_missing};

use support::{Waiting, compile, skip};

fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Returns the files that a program maps at its start.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    text.split_ascii_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Makes a folder with the program and copies of its libraries, for use as its root directory.
fn root(test: &str) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(test, "gcc", &[], "streams.c", &dir.path().join("program"))?;
    for library in libraries(&program) {
        let to = dir.path().join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&library, to).unwrap();
    }
    Some(dir)
}

fn in_stdout(waiting: &Waiting) -> Option<Vec<u8>> {
    waiting.buffers().into_iter().find(|one| one.fd == 1).map(|one| one.pending)
}

#[test]
fn in_a_changed_root() {
    let Some(dir) = is_root("in_a_changed_root").then(|| root("in_a_changed_root")).flatten() else { return };
    let waiting = Waiting::start(Command::new("chroot").arg(dir.path()).args(["/program", "/"]));
    assert_eq!(in_stdout(&waiting).as_deref(), Some(&b"in stdout"[..]));
}

#[test]
fn in_a_container() {
    let Some(dir) = is_root("in_a_container").then(|| root("in_a_container")).flatten() else { return };
    fs::create_dir(dir.path().join("old")).unwrap();
    let script = r#"mount --bind "$0" "$0" && cd "$0" && pivot_root . old && exec /program /"#;
    let waiting =
        Waiting::start(Command::new("unshare").args(["--mount", "sh", "-c", script]).arg(dir.path()));
    assert_eq!(in_stdout(&waiting).as_deref(), Some(&b"in stdout"[..]));
}

#[test]
fn after_the_library_was_replaced() {
    let test = "after_the_library_was_replaced";
    let Some(dir) = is_root(test).then(|| root(test)).flatten() else { return };
    let waiting = Waiting::start(Command::new("chroot").arg(dir.path()).args(["/program", "/"]));
    let library = libraries(&dir.path().join("program")).into_iter().find(|path| path.ends_with("libc.so.6"));
    let library = dir.path().join(library.unwrap().strip_prefix("/").unwrap());
    fs::remove_file(&library).unwrap();
    fs::write(&library, "not the same").unwrap();
    assert_eq!(in_stdout(&waiting).as_deref(), Some(&b"in stdout"[..]));
}

/// Kills the process on drop.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn unknown_runtimes_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bare.c"), "void _start(void) { for (;;) __asm__ volatile(\"\"); }\n").unwrap();
    let (source, program) = (dir.path().join("bare.c"), dir.path().join("bare"));
    let flags = ["-static", "-nostdlib", "-ffreestanding"];
    let test = "unknown_runtimes_are_reported";
    let Some(program) = compile(test, "gcc", &flags, source.to_str().unwrap(), &program) else { return };
    let bare = Ending(Command::new(program).spawn().unwrap());
    let perl = dir.path().join("perl");
    // Another process copies the file: a child of another test could hold it open for writing, and its execve(2)
    // would fail.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&perl).status().unwrap().success());
    let perl = Ending(Command::new(perl).arg("1000").spawn().unwrap());
    let ruby = dir.path().join("libruby-9.so");
    assert!(Command::new("cp").arg("/bin/sleep").arg(&ruby).status().unwrap().success());
    let ruby = Ending(Command::new(ruby).arg("1000").spawn().unwrap());
    wait_for_image(bare.0.id(), "/bare");
    assert_eq!(walkers(bare.0.id()).len(), 0);
    let said = walkers_missing(bare.0.id());
    assert!(said.len() == 1 && said[0].starts_with("the buffers of a static program"), "{said:?}");
    assert!(said[0].ends_with(&cannot("", &bare)), "{said:?}");
    wait_for_image(perl.0.id(), "libc.so");
    assert_eq!(walkers_missing(perl.0.id()), [cannot("the buffers of perl", &perl)], "no perl that is known");
    wait_for_image(ruby.0.id(), "libc.so");
    assert_eq!(walkers_missing(ruby.0.id()), [cannot("the buffers of ruby of an unknown version", &ruby)]);
    assert!(walkers(u32::MAX).is_empty() && walkers_missing(u32::MAX).is_empty(), "there is no such process");
}

fn cannot(what: &str, process: &Ending) -> String {
    format!("{what} (pid {}) cannot be read", process.0.id())
}

/// Waits until the new program is mapped, some time after its start.
fn wait_for_image(pid: u32, name: &str) {
    while !fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains(name) {
        std::thread::yield_now();
    }
}

#[test]
fn heads_in_files() {
    let dir = tempfile::tempdir().unwrap();
    for (compiler, flags, walker) in [
        ("gcc", vec!["-static"], Some(RuntimeId::GLIBC)),
        ("gcc", vec!["-static-pie"], Some(RuntimeId::GLIBC)),
        ("gcc", vec!["-static", "-s"], None),
        ("gcc", vec![], None),
        ("musl-gcc", vec!["-static"], Some(RuntimeId::MUSL)),
    ] {
        let program = dir.path().join("program");
        let Some(program) = compile("heads_in_files", compiler, &flags, "streams.c", &program) else {
            return;
        };
        let head = list_head(&program);
        assert_eq!(head.map(|head| head.walker), walker, "{compiler} {flags:?}");
        let relative = flags.contains(&"-static-pie");
        assert!(head.is_none_or(|head| head.relative == relative), "{compiler} {flags:?}");
        if let Some(StreamListHead { address, relative: false, .. }) = head {
            let waiting = Waiting::start(Command::new(program).arg(dir.path()));
            let first =
                weir_sys::memory::Memory::u64(&ProcessMemory { pid: waiting.pid() }, address).unwrap();
            assert!(waiting.buffers().iter().any(|one| one.address == first), "{compiler} {flags:?}");
        }
    }
    let library = libraries(Path::new("/bin/sh")).into_iter().find(|path| path.ends_with("libc.so.6"));
    let head = library.and_then(|library| list_head(&library)).expect("of the C library of this system");
    assert!(head.walker == RuntimeId::GLIBC && head.relative);
}
