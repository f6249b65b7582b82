//! C++: std::cout writes through the C library's stdout unless the program calls sync_with_stdio(false).

use weir_model::{Runtime, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};
use weir_sys::elf::ElfSections;

use crate::runtime_entry::section_contains;
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("cpp"),
        name: "C++",
        language: SourceLanguage::Cpp,
        fixes: RuntimeFixes::STDIO,
        limits: RuntimeLimits { coalesce: None },
    },
    unreached: &[
        UnreachedBuffers {
            name: "std::cout after sync_with_stdio(false)",
            options: &["--stdout", "--max-delay", "--rescue", "--fix-fork", "--fix-order"],
            possible: can_leave_stdio,
        },
        UnreachedBuffers {
            name: "std::cin after sync_with_stdio(false)",
            options: &["--stdin"],
            possible: can_leave_stdio,
        },
        UnreachedBuffers {
            name: "the file buffer of a std::ofstream",
            options: &["--stdout", "--file", "--max-delay", "--rescue", "--fix-fork"],
            possible: can_have_file_buffers,
        },
    ],
    buffers: BufferAccess::Unreadable(UnreadableEntry {
        buffers: "C++ file buffers (std::ofstream)",
        files: &[],
        is_linked_into: has_file_buffers,
    }),
    ..RuntimeEntry::stdio("cpp", "C++", 220, ProgramDetection::Executable(is_cpp))
};

/// The type's name in the run-time type information of libstdc++, which a static program contains too.
const FILE_BUFFER_TYPE: &[u8] = b"St13basic_filebufIcSt11char_traitsIcEE";

fn is_cpp(sections: &ElfSections) -> bool {
    let is_library = |name: &[u8]| name.starts_with(b"libstdc++.") || name.starts_with(b"libc++.");
    sections.needed().is_some_and(|names| names.iter().any(|name| is_library(name))) || is_linked_in(sections)
}

/// Tells whether the executable contains libstdc++ itself, so that no import shows what the program uses.
fn is_linked_in(sections: &ElfSections) -> bool {
    let shared = |name: &&[u8]| name.starts_with(b"libstdc++.");
    !sections.needed().is_some_and(|names| names.iter().any(shared))
        && section_contains(sections, ".rodata", FILE_BUFFER_TYPE)
}

fn can_leave_stdio(sections: &ElfSections) -> bool {
    // The streams of libc++ write through stdio always, and its function has a longer name.
    is_linked_in(sections) || imports(sections, |name| name == b"_ZNSt8ios_base15sync_with_stdioEb")
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

/// Tells whether a dynamic symbol of the executable fits. True if the file does not tell.
fn imports(sections: &ElfSections, is: impl FnMut(&[u8]) -> bool) -> bool {
    sections.any_symbol(true, is).unwrap_or(true)
}

/// The names in the symbols of a program that uses a file buffer. Other C++ programs write through the C library's
/// stdout, whose buffer a walker reads.
const FILE_BUFFERS: [&[u8]; 4] = [b"basic_ofstream", b"basic_fstream", b"stdio_filebuf", b"sync_with_stdio"];

/// Tells whether a program uses an ofstream, or may give std::cout a buffer of its own. A static program contains the
/// name of the type if it uses it.
fn has_file_buffers(sections: &ElfSections) -> bool {
    if is_linked_in(sections) {
        return section_contains(sections, ".rodata", FILE_BUFFERS[0]);
    }
    is_cpp(sections) && FILE_BUFFERS.iter().any(|name| section_contains(sections, ".dynstr", name))
}
