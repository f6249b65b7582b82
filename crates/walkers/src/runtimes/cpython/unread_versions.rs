//! CPython 3 before 3.9, whose buffers no walker reads: its version by its files, and its entry in the table of runtimes.

use std::path::Path;

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId};
use weir_sys::elf::{ElfFile, ElfSections, MAX_SECTION_BYTES};

use super::{RUNTIME, named_version};
use crate::elf_image::ElfImage;
use crate::{BufferAccess, RuntimeEntry};

/// The first minor version of Python 3 whose buffers are read.
const FIRST_READ: u32 = 9;

const UNREAD: RuntimeFix =
    RuntimeFix::Impossible("weir reads the buffers of Python from 3.9 on, and this is an older one");

/// The entry of an older interpreter: its environment still controls standard output.
static OLD: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        fixes: RuntimeFixes { max_delay: UNREAD, rescue: UNREAD, fork: UNREAD, ..RUNTIME.facts.fixes },
        ..RUNTIME.facts
    },
    order: RUNTIME.order,
    detection: crate::ProgramDetection::Never,
    buffers: BufferAccess::NotOwn,
    unreached: &[],
    hook: RUNTIME.hook,
    ignores_environment: RUNTIME.ignores_environment,
};

/// Returns the entry for a program of CPython with this executable.
pub fn entry_for(sections: Option<&ElfSections>) -> &'static RuntimeEntry {
    if sections.is_some_and(is_old) { &OLD } else { &RUNTIME }
}

/// Returns whether an executable is an interpreter before 3.9, or loads the library of one.
fn is_old(sections: &ElfSections) -> bool {
    match library(sections) {
        Some(name) => is_old_library(&name),
        None => contains_old(sections),
    }
}

/// Returns whether an executable contains an interpreter of Python 3 before 3.9, which lacks a function that all later ones export. A
/// file of Python 2 is a stream of the C library.
fn contains_old(sections: &ElfSections) -> bool {
    let exported = sections.bytes(".dynstr", MAX_SECTION_BYTES).unwrap_or_default();
    let has = |name: &[u8]| memchr::memmem::find(exported, name).is_some();
    has(b"\0Py_Main\0") && has(b"\0PyModule_Create2\0") && !has(b"\0PyInterpreterState_Get\0")
}

/// Returns the name of the interpreter's library that an executable loads: `libpython3.8.so.1.0`.
fn library(sections: &ElfSections) -> Option<String> {
    let names = sections.needed().unwrap_or_default().into_iter();
    let mut names = names.filter_map(|name| Some(std::str::from_utf8(name).ok()?.to_owned()));
    names.find(|name| name.starts_with("libpython"))
}

fn is_old_library(name: &str) -> bool {
    named_version(name).is_some_and(|minor| minor < FIRST_READ)
}

/// Returns the version of a library without the variable of later interpreters; None if its name has none: `libpython3.so`.
pub(super) fn of_library(name: &str) -> Option<String> {
    match named_version(name) {
        Some(minor) => Some(format!("python 3.{minor}")),
        None => name.starts_with("libpython2").then(|| "python 2".to_string()),
    }
}

/// Returns the version of an executable that contains an interpreter without that variable; None if it contains none.
pub(super) fn of_static(name: &str, path: &Path, image: &ElfImage) -> Option<String> {
    let is_named = name.starts_with("python") && image.confirms_runtime(path, RuntimeId::CPYTHON);
    let elf = is_named.then(|| ElfFile::open(path)).flatten()?;
    contains_old(&elf.sections().ok()?).then(|| of_program(name))
}

fn of_program(name: &str) -> String {
    match named_version(name) {
        Some(minor) => format!("python 3.{minor}"),
        None => "python 3 before 3.9".to_string(),
    }
}

/// Returns the buffers of an interpreter before 3.9 with this executable, as the subject of a sentence; None for other programs.
pub(crate) fn unread_buffers(executable: &Path) -> Option<String> {
    let name = executable.file_name()?.to_str()?;
    let elf = name.starts_with("python").then(|| ElfFile::open(executable)).flatten()?;
    let sections = elf.sections().ok()?;
    let version = match library(&sections) {
        Some(library) => is_old_library(&library).then(|| of_library(&library)).flatten(),
        None => contains_old(&sections).then(|| of_program(name)),
    };
    version.map(|version| format!("the buffers of {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_3_9_are_old() {
        for (library, version, is_old) in [
            ("libpython3.6m.so.1.0", Some("python 3.6"), true),
            ("libpython3.8.so.1.0", Some("python 3.8"), true),
            ("libpython2.7.so.1.0", Some("python 2"), false),
            ("libpython3.9.so.1.0", Some("python 3.9"), false),
            ("libpython3.13t.so.1.0", Some("python 3.13"), false),
            ("libpython3.so", None, false),
        ] {
            assert_eq!(
                (of_library(library).as_deref(), is_old_library(library)),
                (version, is_old),
                "{library}"
            );
        }
        assert_eq!(["python3.7m", "python"].map(of_program), ["python 3.7", "python 3 before 3.9"]);
    }

    #[test]
    fn the_python_here_is_not_old() {
        for path in ["/usr/bin/python3", "/bin/cat"].map(Path::new).into_iter().filter(|path| path.exists()) {
            let elf = ElfFile::open(path).unwrap();
            assert!(!is_old(&elf.sections().unwrap()), "{path:?}");
            assert_eq!(unread_buffers(&std::fs::canonicalize(path).unwrap()), None);
        }
    }
}
