//! The walkers of glibc and musl read what real programs left in their streams.

mod support;

use std::process::Command;

use support::{Waiting, compile};
use weir_model::Mode;
use weir_model::trace::{Buffer, Walker};

fn check(test: &str, compiler: &str, flags: &[&str], walker: Walker) {
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

macro_rules! stdio {
    ($($name:ident: $compiler:literal $flags:expr, $walker:ident;)*) => {
        $(#[test] fn $name() { check(stringify!($name), $compiler, &$flags, Walker::$walker); })*
    };
}

stdio! {
    glibc_dynamic: "gcc" [], Glibc;
    glibc_fixed_address: "gcc" ["-no-pie", "-fno-pie"], Glibc;
    glibc_static: "gcc" ["-static"], Glibc;
    glibc_static_stripped: "gcc" ["-static", "-s"], Glibc;
    glibc_static_pie_stripped: "gcc" ["-static-pie", "-s"], Glibc;
    musl_dynamic: "musl-gcc" [], Musl;
    musl_static: "musl-gcc" ["-static"], Musl;
    musl_static_stripped: "musl-gcc" ["-static", "-s"], Musl;
}
