//! Recognises the runtime of a program: by its names, which its file must confirm, and by the sections of its executable.

use weir_model::RuntimeId;
use weir_sys::elf::{ElfSections, MAX_SECTION_BYTES};

use crate::runtime_entry::{RuntimeEntry, runtimes};

/// How the programs of a runtime are recognised.
#[derive(Debug)]
pub enum ProgramDetection {
    /// By a name of the program or of its interpreter. Any program can have any name, so an executable must confirm it.
    ProgramNames {
        /// The names, without the version that can follow.
        names: &'static [&'static str],
        /// Texts of which an executable of the runtime has one among its constants or the names of its dynamic symbols
        /// and libraries.
        marks: &'static [&'static str],
    },
    /// By the sections of the executable.
    Executable(fn(&ElfSections) -> bool),
    /// Matches every program that no other entry matches.
    AnyProgram,
    /// Matches no program: the runtime is a library.
    Never,
}

impl ProgramDetection {
    fn has_name(&self, program_names: &[String]) -> bool {
        let ProgramDetection::ProgramNames { names, .. } = self else { return false };
        program_names.iter().any(|name| names.contains(&without_version(name)))
    }

    /// Returns whether an executable that has a name of the runtime is one of its programs.
    pub(crate) fn is_confirmed_by(&self, sections: &ElfSections) -> bool {
        let ProgramDetection::ProgramNames { marks, .. } = self else { return false };
        let has_mark = |section: &str| {
            let bytes = sections.bytes(section, MAX_SECTION_BYTES).unwrap_or_default();
            marks.iter().any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
        };
        [".dynstr", ".rodata"].into_iter().any(has_mark)
    }
}

/// The names of a program, by which its runtime is looked up.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramNames<'a> {
    /// The names of scripts and of missing files, which nothing confirms.
    pub scripts: &'a [String],
    /// The names of the executable, which it must confirm.
    pub executable: &'a [String],
}

/// Returns a name without the version at its end. A `t` after the version is that of a free-threaded CPython.
fn without_version(name: &str) -> &str {
    let is_of_version = |letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-';
    let numbered = name.strip_suffix('t').filter(|rest| rest.ends_with(|last: char| last.is_ascii_digit()));
    numbered.unwrap_or(name).trim_end_matches(is_of_version)
}

/// Returns the runtime of a program with these names and this executable; that of C if neither shows another one. `sections` are
/// those of the executable; None if it cannot be read.
pub fn detect_runtime(names: ProgramNames<'_>, sections: Option<&ElfSections>) -> &'static RuntimeEntry {
    let is_named = |entry: &&&RuntimeEntry| {
        let detection = &entry.detection;
        let confirms = |sections: &ElfSections| detection.is_confirmed_by(sections);
        detection.has_name(names.scripts)
            || detection.has_name(names.executable) && sections.is_some_and(confirms)
    };
    // This reads all constants, which takes milliseconds.
    let compiled = || {
        let id = sections.and_then(compiled_runtime)?;
        runtimes().iter().find(|entry| entry.facts.id == id)
    };
    runtimes().iter().find(is_named).or_else(compiled).copied().unwrap_or(&crate::runtimes::glibc::RUNTIME)
}

/// Returns the runtime that an executable's sections show; None for C, and if they show none.
fn compiled_runtime(sections: &ElfSections) -> Option<RuntimeId> {
    let fits =
        |entry: &&&RuntimeEntry| matches!(entry.detection, ProgramDetection::Executable(is) if is(sections));
    runtimes().iter().find(fits).map(|entry| entry.facts.id)
}

/// Returns the runtime of a running or recorded program: by the name of its executable and its sections, else by the
/// name under which it was called, as of a shell that is part of busybox.
pub fn runtime_of(executable: &str, called: &str, sections: Option<&ElfSections>) -> &'static RuntimeEntry {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let by_name = |path: &str| {
        detect_runtime(ProgramNames { executable: &[base(path)], ..ProgramNames::default() }, sections)
    };
    let by_executable = by_name(executable);
    match by_executable.detection {
        ProgramDetection::AnyProgram => by_name(called),
        _ => by_executable,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use weir_sys::elf::ElfFile;

    use super::*;
    use crate::runtime_entry::has_c_string;

    /// This test program has the words of the whole table among its constants, as weir has.
    #[test]
    fn weir_itself_is_a_program_of_rust() {
        let own = ElfFile::open(Path::new("/proc/self/exe")).unwrap();
        let sections = own.sections().unwrap();
        assert_eq!(compiled_runtime(&sections), Some(RuntimeId::new("rust")));
        let unreadable = runtimes().iter().filter_map(|runtime| runtime.unreadable_entry());
        assert!(
            !unreadable.into_iter().any(|entry| (entry.is_linked_into)(&sections)),
            "it is no program of these"
        );
        assert!(
            ["OCAMLRUNPARAM", "GFORTRAN_UNBUFFERED_ALL", "GHCRTS"]
                .iter()
                .all(|word| !has_c_string(&sections, word))
        );
    }

    fn detected(names: &[&str]) -> &'static str {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        detect_runtime(ProgramNames { scripts: &names, ..ProgramNames::default() }, None).facts.name
    }

    /// Returns the runtime of an executable that is called by a name.
    fn detected_file(name: &str, path: &Path) -> &'static str {
        let elf = ElfFile::open(path).unwrap();
        let sections = elf.sections().unwrap();
        runtime_of(name, name, Some(&sections)).facts.name
    }

    #[test]
    fn an_executable_confirms_its_name() {
        for (name, runtime) in [
            ("java", "Java"),
            ("node", "Node"),
            ("php", "PHP"),
            ("lua5.4", "Lua"),
            ("guile", "Guile"),
            ("ruby", "Ruby"),
            ("perl", "Perl"),
            ("tclsh", "Tcl"),
            ("python3", "Python"),
            ("gawk", "gawk"),
            ("mawk", "mawk"),
            ("sed", "sed"),
            ("grep", "grep"),
            ("cat", "a program that writes directly"),
            ("dd", "a program that writes directly"),
            ("gzip", "a program that writes directly"),
            ("tee", "tee"),
            ("cut", "C"),
            ("bash", "shell"),
            ("dash", "shell"),
            ("mksh", "shell"),
            ("ash", "shell"),
            ("busybox", "C"),
        ] {
            let path = Path::new("/usr/bin").join(name);
            if path.exists() {
                assert_eq!(detected_file(name, &path), runtime, "{name}");
            }
        }
        assert!(Path::new("/usr/bin/perl").exists() && Path::new("/usr/bin/sed").exists());
    }

    #[test]
    fn an_executable_with_the_name_of_another_runtime_is_none_of_it() {
        for entry in runtimes() {
            let ProgramDetection::ProgramNames { names, marks } = entry.detection else { continue };
            assert!(!marks.is_empty(), "{}", entry.facts.name);
            for name in names {
                assert_eq!(detected_file(name, Path::new("/usr/bin/sleep")), "C", "{name}");
                assert_eq!(detect_by_unreadable(name), "C", "{name}");
            }
        }
    }

    fn detect_by_unreadable(name: &str) -> &'static str {
        runtime_of(name, name, None).facts.name
    }

    #[test]
    fn a_program_is_recognised_by_its_interpreter() {
        for (names, runtime) in [
            (&["python3", "bash"][..], "Python"),
            (&["tool.py", "python3.11"], "Python"),
            (&["tool.py", "python3.13t"], "Python"),
            (&["pypy3.9"], "PyPy"),
            (&["ruby3.1"], "Ruby"),
            (&["prove", "perl"], "Perl"),
            (&["tclsh", "tclsh8.6"], "Tcl"),
            (&["nodejs"], "Node"),
            (&["java"], "Java"),
            (&["awk", "gawk"], "gawk"),
            (&["awk", "mawk"], "mawk"),
            (&["lua5.4"], "Lua"),
            (&["php8.2"], "PHP"),
            (&["sh", "dash"], "shell"),
            (&["cut"], "C"),
        ] {
            assert_eq!(detected(names), runtime, "{names:?}");
        }
    }

    #[test]
    fn interpreters_are_detected_first_and_c_last() {
        let kind = |entry: &&RuntimeEntry| match entry.detection {
            ProgramDetection::ProgramNames { .. } => 0,
            ProgramDetection::Executable(_) => 1,
            ProgramDetection::Never => 2,
            ProgramDetection::AnyProgram => 3,
        };
        assert!(runtimes().iter().is_sorted_by_key(kind));
        assert_eq!(runtimes().last().map(|entry| entry.facts.id), Some(RuntimeId::GLIBC));
        let orders: BTreeSet<u32> = runtimes().iter().map(|entry| entry.order).collect();
        let ids: BTreeSet<RuntimeId> = runtimes().iter().map(|entry| entry.facts.id).collect();
        assert_eq!((orders.len(), ids.len()), (runtimes().len(), runtimes().len()), "each is there once");
    }
}
