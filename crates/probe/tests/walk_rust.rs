//! The walker of Rust's standard output reads what real programs left in it.

mod support;

use std::process::Command;

use support::{Waiting, compile_with};
use weir_model::Mode;
use weir_model::trace::Walker;

#[test]
fn with_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    for flags in [&[][..], &["-O"], &["-Csymbol-mangling-version=v0"], &["-Crelocation-model=static"]] {
        let program = dir.path().join("program");
        let Some(program) = compile_with("with_symbols", &rustc, flags, "stdout.rs", &program) else {
            return;
        };
        let waiting = Waiting::start(&mut Command::new(program));
        let found: Vec<_> = waiting.buffers().into_iter().filter(|one| one.walker == Walker::Rust).collect();
        assert_eq!(found.len(), 1, "{flags:?}");
        assert_eq!((found[0].fd, found[0].mode, found[0].buffer_bytes), (1, Some(Mode::Line), 1024));
        assert_eq!(
            (found[0].pending_bytes, found[0].pending.as_slice()),
            (9, &b"in stdout"[..]),
            "{flags:?}"
        );
        let pending = waiting.pending();
        assert_eq!((pending.len(), pending[0].bytes.as_slice()), (1, &b"in stdout"[..]), "{flags:?}");
        waiting.store(&pending[0].emptied);
        assert_eq!(waiting.pending(), [], "{flags:?}");
    }
}

#[test]
fn without_symbols_nothing_is_believed() {
    let dir = tempfile::tempdir().unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let (test, program) = ("without_symbols_nothing_is_believed", dir.path().join("program"));
    let Some(program) = compile_with(test, &rustc, &["-Cstrip=symbols"], "stdout.rs", &program) else {
        return;
    };
    let waiting = Waiting::start(&mut Command::new(program));
    assert!(waiting.buffers().iter().all(|one| one.walker != Walker::Rust && one.pending_bytes == 0));
}
