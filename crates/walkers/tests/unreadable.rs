//! Tests which buffers are reported as unreadable.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::ProcessMemory;
use weir_walkers::{unreadable, unreadable_of_file, walkers};

use support::programs::has_libcxx;
use support::{Waiting, compile_with, skip};

/// Compiles and starts a C++ program, and returns its unreadable buffers by its process and by its file.
fn of_cpp(test: &str, code: &str, compiler: &str, flags: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("program.cpp");
    let wait = "write(2, \".\", 1); pause();";
    std::fs::write(&source, format!("#include <unistd.h>\n{}", code.replace("WAIT", wait))).unwrap();
    let program = dir.path().join("program");
    let program = compile_with(test, compiler, flags, source.to_str().unwrap(), &program)?;
    let waiting = Waiting::start(&mut Command::new(&program));
    Some((unreadable(waiting.pid()).expect("it waits"), unreadable_of_file(&program)))
}

#[test]
fn no_file_buffers_of_cpp_are_unreadable() {
    let test = "no_file_buffers_of_cpp_are_unreadable";
    let file = "#include <fstream>\nint main() { std::ofstream f(\"/dev/null\"); f << 1; WAIT }";
    let printf = "#include <cstdio>\n#include <string>\nint main() { std::string s(\"a\"); printf(\"%s\", s.c_str()); WAIT }";
    let cout = "#include <iostream>\nint main() { std::cout << 1; WAIT }";
    let own = "#include <iostream>\nint main() { std::ios::sync_with_stdio(false); std::cout << 1; WAIT }";
    for (code, flags) in [
        (file, &["-O0"][..]),
        (file, &["-O2", "-s"]),
        (file, &["-O1", "-static", "-s"]),
        (own, &["-O2"]),
        (printf, &["-O2"]),
        (cout, &["-O2"]),
    ] {
        let Some((of_process, of_file)) = of_cpp(test, code, "g++", flags) else { return };
        assert!(of_process.is_empty() && of_file.is_empty(), "{flags:?} {code}: {of_process:?} {of_file:?}");
    }
    if !has_libcxx() {
        return skip(test, "there is no clang++ with libc++");
    }
    for code in [file, printf, cout, own] {
        let flags = ["-O1", "-stdlib=libc++"];
        let Some((of_process, of_file)) = of_cpp(test, code, "clang++", &flags) else { return };
        assert!(of_process.is_empty() && of_file.is_empty(), "{code}: {of_process:?} {of_file:?}");
    }
}

#[test]
fn file_buffers_of_wide_characters_are_unreadable() {
    let test = "file_buffers_of_wide_characters_are_unreadable";
    let of_code = |code: &str, compiler: &str, flags: &[&str]| of_cpp(test, code, compiler, flags);
    let writes = "#include <fstream>\nint main() { std::wofstream f(\"/dev/null\"); f << 1; WAIT }";
    let reads = "#include <fstream>\nint main() { std::wifstream f(\"/dev/null\"); f.get(); WAIT }";
    let named = || vec!["C++ file buffers of wide characters (std::wofstream)".to_string()];
    let Some((of_process, _)) = of_code(writes, "g++", &["-O1"]) else { return };
    assert_eq!(of_process, named());
    if !has_libcxx() {
        return skip(test, "there is no clang++ with libc++");
    }
    for flags in [&["-O1", "-stdlib=libc++"][..], &["-O2", "-stdlib=libc++", "-static", "-s"]] {
        let Some((of_process, _)) = of_code(writes, "clang++", flags) else { return };
        assert_eq!(of_process, named(), "{flags:?}");
        let Some((of_process, _)) = of_code(reads, "clang++", flags) else { return };
        assert_eq!(of_process, Vec::<String>::new(), "{flags:?}");
    }
}

#[test]
fn a_plain_c_program_has_no_unreadable_buffers() {
    assert!(unreadable_of_file(Path::new("/bin/cat")).is_empty());
    assert!(unreadable_of_file(Path::new("/etc/passwd")).is_empty(), "no program");
    assert_eq!(unreadable(u32::MAX), None, "no process");
}

#[test]
fn an_interpreter_in_cpp_has_its_own_buffers_only() {
    let node = Path::new("/usr/bin/node");
    if !node.exists() {
        return skip("an_interpreter_in_cpp_has_its_own_buffers_only", "there is no node");
    }
    let script = "process.stderr.write('.'); setTimeout(() => 0, 1e6)";
    let waiting = Waiting::start(Command::new(node).args(["-e", script]));
    assert_eq!(unreadable(waiting.pid()), Some(vec!["Node's own buffers".to_string()]));
}

/// Compiles a program that waits, and returns its unreadable buffers by its process and by its file.
fn of_waiting(
    test: &str,
    compiler: &str,
    flags: &[&str],
    name: &str,
    code: &str,
) -> Option<(Vec<String>, Vec<String>)> {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join(name);
    std::fs::write(&source, code).unwrap();
    let program = compile_with(test, compiler, flags, source.to_str().unwrap(), &dir.path().join("program"))?;
    let waiting = Waiting::start(&mut Command::new(&program));
    Some((unreadable(waiting.pid()).expect("it waits"), unreadable_of_file(&program)))
}

/// Libraries of mathematics load Fortran's library, and open no units: numpy has OpenBLAS.
#[test]
fn only_a_program_of_fortran_has_its_buffers() {
    let test = "only_a_program_of_fortran_has_its_buffers";
    let fortran = "program waiting\n  write(0, '(a)') '.'\n  call sleep(100)\nend program\n";
    let c = "#include <unistd.h>\nint main(void) { return write(2, \".\", 1) != 1 || pause(); }\n";
    let buffers = || vec!["Fortran's own buffers".to_string()];
    let Some(own) = of_waiting(test, "gfortran", &[], "waiting.f90", fortran) else { return };
    assert_eq!(own, (buffers(), buffers()));
    let Some(own) = of_waiting(test, "gfortran", &["-static"], "waiting.f90", fortran) else { return };
    assert_eq!(own, (buffers(), buffers()), "linked statically");
    let flags = ["-Wl,--no-as-needed", "-lgfortran"];
    let Some(loads) = of_waiting(test, "gcc", &flags, "waiting.c", c) else { return };
    assert_eq!(loads, (Vec::new(), Vec::new()), "a program of C that loads the library");
}

/// Returns mawk's input buffer once it holds `bytes`.
fn input_buffer(pid: u32, bytes: u64) -> Buffer {
    let begun = Instant::now();
    loop {
        let walkers = walkers(pid);
        let found = walkers.iter().filter(|walker| walker.runtime() == RuntimeId::MAWK);
        let buffer = found.flat_map(|walker| walker.buffers(&ProcessMemory { pid })).next();
        match buffer {
            Some(buffer) if buffer.unread_bytes == bytes => return buffer,
            other => assert!(begun.elapsed() < Duration::from_secs(20), "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lines_in_mawks_input_buffer() {
    let mawk = Command::new("mawk").arg("{ print }").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let Ok(mut mawk) = mawk else { return skip("lines_in_mawks_input_buffer", "there is no mawk") };
    let mut input = mawk.stdin.take().unwrap();
    input.write_all(b"first\nsecond\n").unwrap();
    let buffer = input_buffer(mawk.id(), 13);
    assert_eq!(
        (buffer.fd, buffer.buffer_bytes, buffer.unread.as_slice()),
        (0, 4096, &b"first\nsecond\n"[..])
    );
    assert!(buffer.is_being_filled());
    // Of the next 4200 bytes, 4083 fill the buffer; mawk uses its whole lines.
    input.write_all(&b"0123456789ab\n".repeat(323)).unwrap();
    let buffer = input_buffer(mawk.id(), 13 + 323 * 13 - 4096 / 13 * 13);
    assert!(buffer.unread.starts_with(b"0123456789ab\n"), "{buffer:?}");
    drop(input);
    mawk.wait().unwrap();
}

#[test]
fn the_file_of_a_program_that_needs_guile_has_its_buffers() {
    let test = "the_file_of_a_program_that_needs_guile_has_its_buffers";
    let guile = Path::new("/usr/bin/guile");
    if !guile.exists() {
        return skip(test, "there is no guile");
    }
    assert_eq!(unreadable_of_file(&guile.canonicalize().unwrap()), ["Guile's own buffers"]);
}
