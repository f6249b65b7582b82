//! The facts in an executable about its C++ library and its file buffers, and the entry in the table of runtimes.

use weir_model::{Runtime, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};
use weir_sys::elf::{ElfSections, MAX_SECTION_BYTES};

use super::detect;
use super::types::FILE_BUFFER_TYPE;
use crate::runtime_entry::section_contains;
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, UnreachedBuffers, WalkerEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::CPP,
        name: "C++",
        language: SourceLanguage::Cpp,
        fixes: RuntimeFixes::STDIO,
        limits: RuntimeLimits::NONE,
    },
    unreached: &[
        UnreachedBuffers {
            name: "std::cout after sync_with_stdio(false)",
            options: &["--stdout", "--fix-order"],
            possible: |sections, _| can_leave_stdio(sections),
            is_drained: true,
        },
        UnreachedBuffers {
            name: "std::cin after sync_with_stdio(false)",
            options: &["--stdin"],
            possible: |sections, _| can_leave_stdio(sections),
            is_drained: false,
        },
        UnreachedBuffers {
            name: "the file buffer of a std::ofstream",
            options: &["--stdout", "--file"],
            possible: |sections, _| match contains_libcxx(sections) {
                true => is_linked_in(sections) || has_buffers_of_libcxx(sections),
                false => can_have_file_buffers(sections) || has_buffers_of_libcxx(sections),
            },
            is_drained: true,
        },
        UnreachedBuffers {
            name: "the file buffer of a std::wofstream or std::wcout",
            options: &["--stdout", "--file", "--max-delay", "--rescue", "--fix-fork", "--fix-order"],
            possible: |sections, _| has_wide_buffers(sections),
            is_drained: false,
        },
    ],
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &[FILE_BUFFER_TABLE],
        own_symbols: &[FILE_BUFFER_TABLE],
        libraries: &["libstdc++.so", "libc++.so"],
        detect,
    }),
    ..RuntimeEntry::stdio("cpp", "C++", 220, ProgramDetection::Executable(is_cpp))
};

/// The virtual table of libstdc++'s file buffer. An executable defines it if it contains the library, or has a copy.
const FILE_BUFFER_TABLE: &str = "_ZTVSt13basic_filebufIcSt11char_traitsIcEE";

/// The facts about file buffers in an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileBufferFacts {
    /// The addresses of the name of libstdc++'s file buffer type. The file has the name if it contains the library.
    pub names: Vec<u64>,
    /// As `names`, of libc++, which is in each program that uses one.
    pub names_of_libcxx: Vec<u64>,
    /// The file contains or imports code that writes through a file buffer of libc++.
    pub uses_libcxx: bool,
    /// The file imports code that writes through a file buffer of wide characters, which no walker reads: their bytes are made
    /// only when they are written.
    pub uses_wide: bool,
}

impl FileBufferFacts {
    pub fn of(sections: &ElfSections) -> FileBufferFacts {
        // Both libraries and their users with objects of file buffers have exception tables; most programs in C have none.
        if !sections.has(".gcc_except_table") {
            return FileBufferFacts { uses_wide: has_wide_buffers(sections), ..FileBufferFacts::default() };
        }
        let constants = sections.bytes(".rodata", MAX_SECTION_BYTES).unwrap_or_default();
        let start = sections.address_and_size(".rodata").map_or(0, |(start, _)| start);
        let addresses =
            |name: &[u8]| occurrences(constants, name).into_iter().map(|at| start + at as u64).collect();
        FileBufferFacts {
            names: addresses(FILE_BUFFER_TYPE),
            names_of_libcxx: addresses(FILE_BUFFER_OF_LIBCXX),
            uses_libcxx: has_buffers_of_libcxx(sections),
            uses_wide: has_wide_buffers(sections),
        }
    }
}

/// Returns the offsets of a type's name, which ends at a NUL.
fn occurrences(constants: &[u8], name: &[u8]) -> Vec<usize> {
    /// Bounds the time for a crafted file: each name costs a search of the type information. A file has one or two.
    const MAX_NAMES: usize = 16;
    let name = [name, b"\0"].concat();
    memchr::memmem::find_iter(constants, &name).take(MAX_NAMES).collect()
}

fn is_cpp(sections: &ElfSections) -> bool {
    let is_library = |name: &[u8]| name.starts_with(b"libstdc++.") || name.starts_with(b"libc++.");
    sections.needed().is_some_and(|names| names.iter().any(|name| is_library(name)))
        || is_linked_in(sections)
        || contains_libcxx(sections)
}

/// Returns whether the executable contains libstdc++ itself, so that its imports do not show which parts the program uses.
fn is_linked_in(sections: &ElfSections) -> bool {
    let shared = |name: &&[u8]| name.starts_with(b"libstdc++.");
    !sections.needed().is_some_and(|names| names.iter().any(shared))
        && section_contains(sections, ".rodata", FILE_BUFFER_TYPE)
}

fn can_leave_stdio(sections: &ElfSections) -> bool {
    // The streams of libc++ write through stdio always, and its function has a longer name.
    let is_imported = || imports(sections, |name| name == b"_ZNSt8ios_base15sync_with_stdioEb");
    is_linked_in(sections) || !contains_libcxx(sections) && is_imported()
}

fn can_have_file_buffers(sections: &ElfSections) -> bool {
    let contains = |name: &[u8], word: &str| memchr::memmem::find(name, word.as_bytes()).is_some();
    let writes = |name: &[u8]| contains(name, "basic_ofstream") || contains(name, "basic_fstream");
    // With optimization a program uses the file buffer without its stream.
    let own_buffer = || {
        imports(sections, |name| contains(name, "basic_filebuf"))
            && !imports(sections, |name| contains(name, "basic_ifstream"))
    };
    is_linked_in(sections) || imports(sections, writes) || own_buffer()
}

/// Returns whether a program imports a writing stream or file buffer of wide characters, or contains those of libc++, which are always
/// types of the program. False for a static program with libstdc++, which shows neither.
fn has_wide_buffers(sections: &ElfSections) -> bool {
    const WIDE: [&[u8]; 3] = [b"basic_ofstreamIw", b"basic_fstreamIw", b"basic_filebufIw"];
    const STANDARD_STREAMS: [&[u8]; 3] = [b"_ZSt5wcout", b"_ZSt5wcerr", b"_ZSt5wclog"];
    let imports = |is: &dyn Fn(&[u8]) -> bool| sections.any_symbol(true, is).unwrap_or(false);
    let is_wide = |name: &[u8]| WIDE.iter().any(|part| memchr::memmem::find(name, part).is_some());
    // Without stdio, libstdc++ gives its standard streams file buffers of wide characters.
    let leaves_stdio = || imports(&|name| name == b"_ZNSt8ios_base15sync_with_stdioEb");
    imports(&is_wide)
        || leaves_stdio() && imports(&|name| STANDARD_STREAMS.contains(&name))
        || has_wide_buffers_of_libcxx(sections)
}

fn has_wide_buffers_of_libcxx(sections: &ElfSections) -> bool {
    let contains = |name: &[u8]| section_contains(sections, ".rodata", name);
    // A stream contains a file buffer, so a program without any is searched once.
    contains(b"NSt3__113basic_filebufIw")
        && (contains(b"NSt3__114basic_ofstreamIw")
            || contains(b"NSt3__113basic_fstreamIw")
            || !contains(b"NSt3__114basic_ifstreamIw"))
}

/// Returns whether a dynamic symbol of the executable fits. True if its symbols cannot be read.
fn imports(sections: &ElfSections, is: impl FnMut(&[u8]) -> bool) -> bool {
    sections.any_symbol(true, is).unwrap_or(true)
}

/// The name of the file buffer in the type information of libc++, which a static program contains.
const FILE_BUFFER_OF_LIBCXX: &[u8] = b"NSt3__113basic_filebufIcNS_11char_traitsIcEEEE";
/// The names in the symbols of a program that writes through a file buffer of libc++.
const WRITERS: [&[u8]; 2] = [b"basic_ofstream", b"basic_fstream"];

/// Returns whether the executable contains the file buffer of libc++, as each static program with libc++ does.
fn contains_libcxx(sections: &ElfSections) -> bool {
    section_contains(sections, ".rodata", FILE_BUFFER_OF_LIBCXX)
}

/// Returns whether a program uses a file buffer of libc++.
fn has_buffers_of_libcxx(sections: &ElfSections) -> bool {
    let has_name = |section: &str| WRITERS.iter().any(|name| section_contains(sections, section, name));
    let needed = sections.needed();
    let is_loaded = needed.is_some_and(|names| names.iter().any(|name| name.starts_with(b"libc++.")));
    match is_loaded {
        // A std::fstream is a type of the program, a std::ofstream one of the library.
        true => has_name(".dynstr") || has_name(".rodata"),
        false => contains_libcxx(sections) && has_name(".rodata"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crafted_file_has_a_limited_number_of_names() {
        let constants = b"xSt3\0St3a\0St3\0";
        assert_eq!(occurrences(constants, b"St3"), [1, 10]);
        assert_eq!(occurrences(&b"St3\0".repeat(1000), b"St3").len(), 16);
    }
}
