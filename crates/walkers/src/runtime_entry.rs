//! The table of runtimes: one entry for each file or folder in `src/runtimes`.

use std::path::Path;
use std::sync::LazyLock;

use weir_model::{Runtime, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};
use weir_sys::elf::{ElfFile, ElfSections, MAX_SECTION_BYTES};

use crate::ProgramDetection;
use crate::hook::Hook;
use crate::process_images::{Detected, ProcessImages};
use crate::runtime_options::IgnoresEnvironment;
use crate::runtimes::FILES;

/// One runtime's entry in the table.
#[derive(Debug)]
pub struct RuntimeEntry {
    /// The facts that are pure data.
    pub facts: Runtime,
    /// Position in the order of detection: interpreters, other programs with a known name, compiled languages, C.
    pub order: u32,
    #[allow(missing_docs)]
    pub detection: ProgramDetection,
    #[allow(missing_docs)]
    pub buffers: BufferAccess,
    /// Buffers of its programs that options of `weir run` do not reach.
    pub unreached: &'static [UnreachedBuffers],
    #[allow(missing_docs)]
    pub hook: Option<&'static Hook>,
    #[allow(missing_docs)]
    pub ignores_environment: IgnoresEnvironment,
}

/// How the runtime's buffers in another process are read.
#[derive(Debug)]
pub enum BufferAccess {
    /// A walker reads the buffers.
    Readable(WalkerEntry),
    /// A walker reads the buffers of some programs. The entry recognises the others.
    PartlyReadable(WalkerEntry, UnreadableEntry),
    /// No walker reads the buffers.
    Unreadable(UnreadableEntry),
    /// The runtime has no buffers, or those of the C library.
    NotOwn,
}

/// Buffers that some options of `weir run` do not reach.
#[derive(Debug)]
pub struct UnreachedBuffers {
    /// A noun phrase, for example `a bufio.Writer`.
    pub name: &'static str,
    /// The beginnings of these options, for example `--stdout` or `--stdout none`.
    pub options: &'static [&'static str],
    /// Returns whether a program with this executable, by its sections and its path, can have such buffers. True if the
    /// executable does not show it.
    pub possible: fn(&ElfSections, &Path) -> bool,
    /// A walker reads and drains the buffers, so a short delay from outside substitutes for the modes none and line.
    pub is_drained: bool,
}

/// The files of a program whose runtime has its own buffers, of which only that of standard output has another mode.
pub(crate) static OPENED_FILES: [UnreachedBuffers; 1] = [UnreachedBuffers {
    name: "a file that the program opens",
    options: &["--max-delay", "--rescue", "--fix-fork"],
    possible: always_possible,
    is_drained: false,
}];

/// As [`OPENED_FILES`], of a runtime that writes standard output line by line.
pub(crate) static OPENED_FILES_AND_LINE: [UnreachedBuffers; 1] = [UnreachedBuffers {
    name: "a file that the program opens, and a line without its end",
    ..OPENED_FILES[0]
}];

impl UnreachedBuffers {
    /// Returns whether an option, with its value, does not reach these buffers.
    pub fn concerns(&self, option: &str) -> bool {
        self.options.iter().any(|start| option.starts_with(start))
    }
}

/// How to find the processes that have buffers of a runtime which no walker reads.
#[derive(Debug)]
pub struct UnreadableEntry {
    /// The buffers in a sentence, for example "Java's own buffers".
    pub buffers: &'static str,
    /// A process that has mapped a file of one of these names, with or without a version after it, has such buffers.
    pub files: &'static [&'static str],
    /// Returns whether an executable or library has such buffers, by its sections.
    pub is_linked_into: fn(&ElfSections) -> bool,
}

impl UnreadableEntry {
    /// Returns whether a mapped file has one of the names in `files`.
    pub(crate) fn names(&self, file: &str) -> bool {
        let is_version =
            |rest: &str| !rest.starts_with(|next: char| next.is_alphabetic() || next == '_' || next == '-');
        self.files.iter().any(|name| file.strip_prefix(name).is_some_and(is_version))
    }

    /// Returns whether a file needs one of the libraries in `files`, which a starting process has not mapped yet.
    pub(crate) fn is_needed_by(&self, sections: &ElfSections) -> bool {
        let needed = sections.needed().unwrap_or_default();
        needed.iter().any(|library| self.names(&String::from_utf8_lossy(library)))
    }
}

/// How the walkers of a process are found.
#[derive(Debug)]
pub struct WalkerEntry {
    /// Symbols of executables and libraries that `detect` asks for.
    pub symbols: &'static [&'static str],
    /// Those symbols that only the runtime's own executables and libraries define.
    pub own_symbols: &'static [&'static str],
    /// Names of the runtime's libraries, or their beginnings, as an executable that loads them contains them.
    pub libraries: &'static [&'static str],
    /// Adds the walkers that fit a process, and sentences about buffers that no walker reads.
    pub(crate) detect: fn(&ProcessImages, &mut Detected),
}

impl RuntimeEntry {
    /// Returns the entry of a runtime whose programs write through the C library's stdio.
    pub(crate) const fn stdio(
        id: &'static str,
        name: &'static str,
        order: u32,
        programs: ProgramDetection,
    ) -> Self {
        Self {
            facts: Runtime {
                id: RuntimeId::new(id),
                name,
                language: SourceLanguage::C,
                fixes: RuntimeFixes::STDIO,
                limits: RuntimeLimits::NONE,
            },
            order,
            detection: programs,
            buffers: BufferAccess::NotOwn,
            unreached: &[],
            hook: None,
            ignores_environment: IgnoresEnvironment::Never,
        }
    }

    /// Returns the entry with another language.
    pub(crate) const fn of_language(mut self, language: SourceLanguage) -> Self {
        self.facts.language = language;
        self
    }

    /// Returns how the runtime's walkers are found; None if no walker reads its buffers.
    pub(crate) fn walker_entry(&self) -> Option<&WalkerEntry> {
        match &self.buffers {
            BufferAccess::Readable(walker) | BufferAccess::PartlyReadable(walker, _) => Some(walker),
            BufferAccess::Unreadable(_) | BufferAccess::NotOwn => None,
        }
    }

    /// Returns how processes with unreadable buffers of the runtime are found.
    pub(crate) fn unreadable_entry(&self) -> Option<&UnreadableEntry> {
        match &self.buffers {
            BufferAccess::Unreadable(entry) | BufferAccess::PartlyReadable(_, entry) => Some(entry),
            BufferAccess::Readable(_) | BufferAccess::NotOwn => None,
        }
    }

    /// Returns the entry of a runtime whose own buffers no walker reads.
    pub(crate) const fn unreadable(
        id: &'static str,
        name: &'static str,
        order: u32,
        detection: ProgramDetection,
        fixes: RuntimeFixes,
        entry: UnreadableEntry,
    ) -> Self {
        let stdio = Self::stdio(id, name, order, detection);
        Self {
            facts: Runtime { language: SourceLanguage::Other, fixes, ..stdio.facts },
            buffers: BufferAccess::Unreadable(entry),
            ..stdio
        }
    }

    /// Returns the entry with the limits of its runtime.
    pub(crate) const fn with_limits(mut self, limits: RuntimeLimits) -> Self {
        self.facts.limits = limits;
        self
    }

    /// Returns the entry with buffers that some options do not reach.
    pub(crate) const fn with_unreached(mut self, unreached: &'static [UnreachedBuffers]) -> Self {
        self.unreached = unreached;
        self
    }
}

/// Returns all runtimes in the order of detection.
pub fn runtimes() -> &'static [&'static RuntimeEntry] {
    static ORDERED: LazyLock<Vec<&RuntimeEntry>> = LazyLock::new(|| {
        let mut entries = FILES.to_vec();
        entries.sort_by_key(|entry| entry.order);
        entries
    });
    &ORDERED
}

/// Returns the runtime with an identifier; None for one from a recording of another version that no runtime has.
pub fn runtime_by_id(id: RuntimeId) -> Option<&'static RuntimeEntry> {
    runtimes().iter().find(|entry| entry.facts.id == id).copied()
}

/// Returns false: the runtime is in a library of its own, so no executable shows it.
pub(crate) fn never_linked(_sections: &ElfSections) -> bool {
    false
}

/// Returns the answer of `is_so` for the sections of an executable; None if the file cannot be read.
pub(crate) fn in_file(executable: &Path, is_so: impl Fn(&ElfSections) -> bool) -> Option<bool> {
    Some(is_so(&ElfFile::open(executable)?.sections().ok()?))
}

/// Returns whether a section contains a word. One that is larger than [`MAX_SECTION_BYTES`] is not read.
pub(crate) fn section_contains(sections: &ElfSections, name: &str, word: &[u8]) -> bool {
    let bytes = sections.bytes(name, MAX_SECTION_BYTES).unwrap_or_default();
    memchr::memmem::find(bytes, word).is_some()
}

/// Returns whether the constants of an executable contain a string of C, which is between NULs. weir itself has the strings of its
/// table without them.
pub(crate) fn has_c_string(sections: &ElfSections, text: &str) -> bool {
    section_contains(sections, ".rodata", &[b"\0", text.as_bytes(), b"\0"].concat())
}

/// The answer of [`UnreachedBuffers::possible`] if no executable shows whether a program has the buffers.
pub(crate) fn always_possible(_sections: &ElfSections, _executable: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn generated_walkers_in_the_schemas() {
        let ids = FILES.iter().filter(|entry| entry.walker_entry().is_some()).map(|entry| entry.facts.id);
        let ids: Vec<String> = ids.map(|id| format!("\"{id}\"")).collect();
        let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        for name in ["weir-flush-1", "weir-peek-1", "weir-top-1"] {
            let path = schemas.join(format!("{name}.schema.json"));
            let text = std::fs::read_to_string(&path).unwrap();
            let property = text.find("\"walker\": {").unwrap_or_else(|| panic!("{path:?} has no walker"));
            let list = |mark| property + text[property..].find(mark).expect("the property has a list");
            let (first, last) = (list("[") + 1, list("]"));
            let old = &text[first..last];
            // Keep the file's formatting: one name a line with its indentation, or all on one line.
            let space = |part: &str| part.chars().take_while(|one| one.is_whitespace()).collect::<String>();
            let separator = format!(",{}", if space(old).is_empty() { " ".into() } else { space(old) });
            let end = &old[old.trim_end().len()..];
            let new = format!("{}{}{end}", space(old), ids.join(&separator));
            if std::env::var_os("WEIR_GENERATE").is_some() {
                std::fs::write(&path, format!("{}{new}{}", &text[..first], &text[last..])).unwrap();
            } else {
                assert_eq!(old, new, "{path:?} is out of date: run `make generate`");
            }
        }
    }
}
