//! The facts of an ELF executable that a plan depends on.

use std::path::Path;

use weir_model::RuntimeId;
use weir_sys::elf;
use weir_walkers::{RuntimeEntry, UnreachedBuffers, compiled_runtime};

/// The facts of one executable. For a foreign one only `native` is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutableFacts {
    /// Of this machine's architecture and 64 bits.
    pub native: bool,
    /// It has no interpreter segment, so LD_PRELOAD has no effect.
    pub is_static: bool,
    /// Its interpreter is musl's loader.
    pub musl: bool,
}

/// Reads the facts of a file; None if it is not an ELF file or cannot be read.
pub fn read(path: &Path) -> Option<ExecutableFacts> {
    let file = elf::ElfFile::open(path)?;
    if file.is_foreign() {
        return Some(ExecutableFacts::default());
    }
    let loader = file.interpreter().ok()?;
    Some(ExecutableFacts {
        native: file.is_native().ok()?,
        is_static: loader.is_none(),
        musl: loader.is_some_and(|path| path.windows(7).any(|part| part == b"ld-musl")),
    })
}

/// Returns the runtime that an executable shows; None for C, and if the file does not tell.
pub fn runtime(path: &Path) -> Option<RuntimeId> {
    let file = elf::ElfFile::open(path).filter(|file| !file.is_foreign())?;
    compiled_runtime(&file.sections().ok()?)
}

/// Returns the buffers of a runtime that a program with this executable can have and that options do not reach.
pub fn unreached(path: Option<&Path>, runtime: &'static RuntimeEntry) -> Vec<&'static UnreachedBuffers> {
    let file = path.and_then(elf::ElfFile::open).filter(|file| !file.is_foreign());
    let sections = file.as_ref().and_then(|file| file.sections().ok());
    let possible =
        |one: &&UnreachedBuffers| sections.as_ref().is_none_or(|sections| (one.possible)(sections));
    runtime.unreached.iter().filter(possible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_native_rust_program() {
        let path = std::env::current_exe().unwrap();
        let own = read(&path).unwrap();
        assert_eq!((own.native, own.is_static, runtime(&path)), (true, false, Some(RuntimeId::RUST)));
    }

    #[test]
    fn a_file_of_another_format_has_no_facts() {
        assert_eq!(read(Path::new("/proc/self/status")), None);
        assert_eq!(read(Path::new("/nowhere")), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i386");
        std::fs::write(&path, b"\x7fELF\x01\x01\x01").unwrap();
        assert!(read(&path).is_some_and(|elf| !elf.native));
    }
}
