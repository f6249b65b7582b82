//! The walkers of glibc and musl read bytes that real programs left in their streams.

mod support;

use std::process::Command;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};

use weir_sys::memory::ProcessMemory;
use weir_walkers::{kept_records, walkers};

use support::{Waiting, compile};

fn check(test: &str, compiler: &str, flags: &[&str], walker: RuntimeId) {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(test, compiler, flags, "streams.c", &dir.path().join("program")) else {
        return;
    };
    let waiting = Waiting::start(Command::new(program).arg(dir.path()));
    let found = waiting.buffers();
    assert!(found.iter().all(|one| one.walker == walker), "{found:?}");
    assert_eq!(found.len(), 8, "three standard streams and five files: {found:#?}");
    let of = |name: &str| {
        found.iter().filter(|one| one.fd > 2 && waiting.name(one.fd) == name).collect::<Vec<_>>()
    };
    check_output(&found, &of);
    let unread: Vec<_> = of("input").iter().map(|one| (one.unread_bytes, one.unread.clone())).collect();
    assert!(unread.contains(&(17, b"second line\nthird".to_vec())), "{unread:?}");
    assert!(unread.contains(&(28, b"Xirst line\nsecond line\nthird".to_vec())), "{unread:?}");
}

fn check_output<'a>(found: &'a [Buffer], of: &dyn Fn(&str) -> Vec<&'a Buffer>) {
    let stdout = found.iter().find(|one| one.fd == 1).unwrap();
    assert_eq!((stdout.mode, stdout.pending.as_slice()), (Some(Mode::Full), &b"in stdout"[..]));
    assert_eq!((stdout.pending_bytes, stdout.unread_bytes), (9, 0));
    assert!(stdout.buffer_bytes >= 1024);
    let stdin = found.iter().find(|one| one.fd == 0).unwrap();
    let undecided = if stdin.walker == RuntimeId::GLIBC { None } else { Some(Mode::Full) };
    assert_eq!((stdin.mode, stdin.unread_bytes), (undecided, 0));
    let stderr = found.iter().find(|one| one.fd == 2).unwrap();
    assert_eq!((stderr.mode, stderr.pending_bytes), (Some(Mode::None), 0));
    let line = of("line")[0];
    assert_eq!((line.mode, line.pending.as_slice()), (Some(Mode::Line), &b"the rest"[..]));
    let none = of("none")[0];
    assert_eq!((none.mode, none.pending_bytes, none.pending.len()), (Some(Mode::None), 0, 0));
    let full = of("full")[0];
    let expected: Vec<u8> = (0..256).map(|i| b'a' + (i % 26) as u8).collect();
    assert_eq!((full.mode, full.pending_bytes), (Some(Mode::Full), 300));
    assert_eq!(full.pending, expected, "the first 256 of them");
    assert!(found.iter().all(|one| one.pending_bytes == 0 || one.unread_bytes == 0));
}

/// musl checks for a terminal at the first write, glibc when it allocates the buffer.
#[test]
fn before_the_first_write() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("early.c");
    let text =
        "int main(void) { fprintf(stderr, \"%s\", \"\"); printf(\"early\"); write(2, \".\", 1); pause(); }\n";
    std::fs::write(&source, format!("#include <stdio.h>\n#include <unistd.h>\n{text}")).unwrap();
    for (compiler, mode) in [("gcc", Some(Mode::Full)), ("musl-gcc", None)] {
        let (program, source) = (dir.path().join("early"), source.to_str().unwrap());
        let Some(program) = compile("before_the_first_write", compiler, &[], source, &program) else {
            return;
        };
        let found = Waiting::start(&mut Command::new(program)).buffers();
        let stdout = found.iter().find(|one| one.fd == 1).unwrap();
        assert_eq!((stdout.mode, stdout.pending.as_slice()), (mode, &b"early"[..]), "{compiler}");
    }
}

#[test]
fn wide_characters() {
    let dir = tempfile::tempdir().unwrap();
    for compiler in ["gcc", "musl-gcc"] {
        let program = dir.path().join("wide");
        let Some(program) = compile("wide_characters", compiler, &[], "wide.c", &program) else { return };
        let waiting = Waiting::start(Command::new(program).arg(dir.path()));
        let found = waiting.buffers();
        let of = |name: &str| found.iter().find(|one| waiting.name(one.fd) == name).unwrap();
        let expected = "grüße ".repeat(200);
        let (out, written) = (of("output"), std::fs::read(dir.path().join("output")).unwrap().len());
        assert_eq!(
            out.pending_bytes as usize,
            expected.len() - written,
            "what is not in the file; {compiler}"
        );
        assert_eq!(out.pending, expected.as_bytes()[written..][..256], "{compiler}");
        let unread = "second líne\nthird";
        assert_eq!((of("input").unread_bytes, of("input").unread.as_slice()), (18, unread.as_bytes()));
    }
}

/// The bytes of a stream of fopencookie(3) are named; those in memory, for which no function of the program waits, are not.
#[test]
fn streams_of_the_programs_own_functions() {
    let test = "streams_of_the_programs_own_functions";
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("cookie.c");
    let code = "#define _GNU_SOURCE\n#include <stdio.h>\n#include <unistd.h>\n\
        static ssize_t take(void *to, const char *from, size_t bytes) { return to && from ? bytes : 0; }\n\
        int main(void) {\n\
        static char area[100]; static int own; char *text; size_t size;\n\
        FILE *inside = fmemopen(area, sizeof area, \"w\"), *grown = open_memstream(&text, &size);\n\
        FILE *cookie = fopencookie(&own, \"w\", (cookie_io_functions_t){ .write = take });\n\
        fputs(\"in memory\", inside); fputs(\"in memory\", grown);\n\
        if (WITH_COOKIE) fputs(\"cookie bytes\\n\", cookie);\n\
        fprintf(stderr, \"%s\", \"\"); write(2, \".\", 1); pause(); }\n";
    std::fs::write(&source, code).unwrap();
    for (compiler, flags) in
        [("gcc", &[][..]), ("gcc", &["-static", "-s"]), ("musl-gcc", &[]), ("musl-gcc", &["-static"])]
    {
        for (with_cookie, expected) in [
            ("-DWITH_COOKIE=1", Some("13 B in a stream of fopencookie(3)".to_string())),
            ("-DWITH_COOKIE=0", None),
        ] {
            let flags = [flags, &[with_cookie]].concat();
            let program = dir.path().join("cookie");
            let source = source.to_str().unwrap();
            let Some(program) = compile(test, compiler, &flags, source, &program) else { return };
            let waiting = Waiting::start(&mut Command::new(program));
            let found = kept_records(&walkers(waiting.pid()), &ProcessMemory { pid: waiting.pid() });
            assert_eq!(found, expected, "{compiler} {flags:?}");
        }
    }
}

macro_rules! stdio {
    ($($name:ident: $compiler:literal $flags:expr, $walker:ident;)*) => {
        $(#[test] fn $name() { check(stringify!($name), $compiler, &$flags, RuntimeId::$walker); })*
    };
}

stdio! {
    glibc_dynamic: "gcc" [], GLIBC;
    glibc_fixed_address: "gcc" ["-no-pie", "-fno-pie"], GLIBC;
    glibc_static: "gcc" ["-static"], GLIBC;
    glibc_static_stripped: "gcc" ["-static", "-s"], GLIBC;
    glibc_static_pie_stripped: "gcc" ["-static-pie", "-s"], GLIBC;
    musl_dynamic: "musl-gcc" [], MUSL;
    musl_static: "musl-gcc" ["-static"], MUSL;
    musl_static_stripped: "musl-gcc" ["-static", "-s"], MUSL;
}
