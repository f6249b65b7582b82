//! The facts of an ELF executable that a plan depends on.

use std::ffi::OsString;
use std::path::Path;

use weir_model::RuntimeId;
use weir_sys::elf;
use weir_walkers::{
    ProgramNames, RuntimeEntry, UnreachedBuffers, detect_runtime, mawk_entry_for, python_entry_for,
    runtime_by_id,
};

use crate::plan::program::ResolvedProgram;

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

/// Returns the runtime of a program, by its names and its executable; that of C if they show no other one.
pub fn runtime(program: &ResolvedProgram) -> &'static RuntimeEntry {
    with_sections(program, |sections| {
        let runtime = detect_runtime(names(program, 0), sections);
        match runtime.facts.id {
            RuntimeId::MAWK => mawk_entry_for(&program.arguments),
            RuntimeId::CPYTHON => python_entry_for(sections),
            _ => runtime,
        }
    })
}

/// Calls `read` with the sections of a program's executable; with None if it has none that this machine runs.
fn with_sections<R>(program: &ResolvedProgram, read: impl FnOnce(Option<&elf::ElfSections>) -> R) -> R {
    let file = program.executable_path.as_deref().and_then(elf::ElfFile::open);
    let file = file.filter(|file| !file.is_foreign());
    let sections = file.as_ref().and_then(|file| file.sections().ok());
    read(sections.as_ref())
}

/// Returns the names of a program without those of its first scripts.
fn names(program: &ResolvedProgram, skipped_scripts: usize) -> ProgramNames<'_> {
    // The names of a program that does not exist are all that is known of it.
    let unconfirmed =
        if program.executable_path.is_some() { program.script_names } else { program.names.len() };
    let (scripts, executable) = program.names.split_at(unconfirmed);
    ProgramNames { scripts: &scripts[skipped_scripts..], executable }
}

/// Returns the words that the interpreter of a runtime gets before a script's name: those of the script's `#!` line, or the command's
/// own. A script that has an interpreter's name, such as pyenv's for `python3`, passes its arguments on.
pub(super) fn interpreter_options<'a>(
    program: &'a ResolvedProgram,
    runtime: &RuntimeEntry,
) -> &'a [OsString] {
    if program.line_options.is_empty() {
        return &program.arguments;
    }
    with_sections(program, |sections| {
        let is_of_runtime =
            |skipped: usize| detect_runtime(names(program, skipped), sections).facts.id == runtime.facts.id;
        let mut lines = program.line_options.iter().rev();
        lines.find(|line| is_of_runtime(line.0)).map_or(&program.arguments, |line| &line.1)
    })
}

/// Returns whether these are buffers of libweir, which a program of any runtime can have. `weir run` itself says when such a program
/// has bytes that it does not write: most streams have none.
pub(super) fn is_of_libweir(buffers: &str) -> bool {
    of_libweir().iter().any(|one| one.name == buffers)
}

fn of_libweir() -> &'static [UnreachedBuffers] {
    runtime_by_id(RuntimeId::LIBWEIR).map_or(&[], |runtime| runtime.unreached)
}

/// Returns the buffers of a runtime, and of libweir, that a program with this executable can have and that options do not reach.
pub fn unreached(path: Option<&Path>, runtime: &'static RuntimeEntry) -> Vec<&'static UnreachedBuffers> {
    let file = path.and_then(elf::ElfFile::open).filter(|file| !file.is_foreign());
    let sections = file.as_ref().and_then(|file| file.sections().ok());
    let known = sections.as_ref().zip(path);
    let possible =
        |one: &&UnreachedBuffers| known.is_none_or(|(sections, path)| (one.possible)(sections, path));
    let linked = of_libweir().iter().filter(|_| known.is_some());
    runtime.unreached.iter().chain(linked).filter(possible).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use weir_model::RuntimeId;

    use super::*;

    fn runtime_name(command: impl Into<OsString>) -> &'static str {
        runtime(&ResolvedProgram::of(&[command.into()])).facts.name
    }

    #[test]
    fn a_name_is_confirmed_by_the_executable_and_not_by_a_link() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["mix", "iex", "erl", "php", "node", "java", "julia", "python3", "sh"] {
            let (copy, link) = (dir.path().join(name), dir.path().join(format!("{name}.d")));
            std::fs::copy("/bin/sleep", &copy).unwrap();
            std::fs::create_dir(&link).unwrap();
            let link = link.join(name);
            symlink("/bin/sleep", &link).unwrap();
            assert_eq!((runtime_name(copy), runtime_name(link)), ("C", "C"), "{name}");
        }
    }

    #[test]
    fn links_and_wrappers_of_interpreters_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("interpreter");
        symlink("/usr/bin/perl", &link).unwrap();
        assert_eq!(runtime_name(link), "Perl");
        let wrapper = dir.path().join("mix");
        std::fs::write(&wrapper, "#!/bin/sh\nexec true\n").unwrap();
        std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(runtime_name(wrapper), "Erlang");
    }

    #[test]
    fn this_test_is_a_native_rust_program() {
        let path = std::env::current_exe().unwrap();
        let own = read(&path).unwrap();
        let program = ResolvedProgram::of(&[path.into()]);
        let runtime = runtime(&program).facts.id;
        assert_eq!((own.native, own.is_static, runtime), (true, false, RuntimeId::RUST));
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
