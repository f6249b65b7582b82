//! Static programs without streams of a C library: in assembly, in C without its library, in Zig. weir cannot change how they write.

use weir_model::{RuntimeFix, RuntimeFixes};
use weir_sys::elf::{ElfSections, StaticSegment};
use weir_sys::syscalls::SYSCALL_CODE;

use crate::copied_memory::int;
use crate::runtimes::{glibc, libweir, musl};
use crate::{ProgramDetection, RuntimeEntry, runtimes};

const IMPOSSIBLE: RuntimeFix =
    RuntimeFix::Impossible("this static program has no stream of a C library that weir could change");

pub(crate) static RUNTIME: RuntimeEntry = {
    let mut entry = RuntimeEntry::stdio(
        "no-stdio",
        "a program without stdio",
        290,
        ProgramDetection::Executable(is_without_streams),
    );
    entry.facts.fixes = RuntimeFixes::all(IMPOSSIBLE);
    entry
};

/// Returns whether a program certainly has no stream that a walker reads, and starts no other program, which could have one.
fn is_without_streams(sections: &ElfSections) -> bool {
    sections.static_segments().is_some_and(|segments| {
        !segments.iter().any(|one| has_streams(one) || can_execute_program(one))
            && !has_symbol_of_streams(sections)
            && !GO_SECTIONS.iter().any(|name| sections.has(name))
    })
}

/// Sections of Go programs from before `.go.buildinfo`.
const GO_SECTIONS: [&str; 2] = [".gopclntab", ".note.go.buildid"];

/// Bytes of code or constants that only a program with streams has: the modes that musl's fopen(3) and fdopen(3) accept, and the
/// magic number of libweir's streams. The third mark is the name of Free Pascal's compiler.
const MARKS: [&[u8]; 3] = [b"rwa\0", &libweir::STREAM_MAGIC.to_le_bytes(), b"FPC "];

/// Returns whether a segment contains a standard stream of glibc or musl, or a mark of another stream.
fn has_streams(segment: &StaticSegment) -> bool {
    let words = || (0..segment.bytes.len()).step_by(4).map(|at| &segment.bytes[at..]);
    segment.writable && words().any(|bytes| glibc::begins_as_file(bytes) || begins_as_standard_of_musl(bytes))
        || MARKS.iter().any(|mark| memchr::memmem::find(segment.bytes, mark).is_some())
}

/// Returns whether bytes begin with one of musl's standard streams as the linker lays them out, whose function pointers may
/// be relocated.
fn begins_as_standard_of_musl(bytes: &[u8]) -> bool {
    const READS: i32 = 9;
    const WRITES: i32 = 5;
    const NO_LOCK: i32 = -1;
    let is = |file: &[u8]| {
        [READS, WRITES].contains(&int(file, 0))
            && (0..=2).contains(&int(file, musl::FD))
            && int(file, musl::LOCK) == NO_LOCK
    };
    bytes.get(..musl::FILE_BYTES).is_some_and(is)
}

/// Returns whether code contains the number of execve(2) or execveat(2): a program that it starts can have streams.
fn can_execute_program(segment: &StaticSegment) -> bool {
    const NUMBERS: [[u8; 4]; 2] = [59u32.to_le_bytes(), 322u32.to_le_bytes()];
    /// `push $59` and `mov $59, %al`, shortly before `syscall`.
    const SHORT: [[u8; 2]; 2] = [[0x6a, 59], [0xb0, 59]];
    const SHORTLY: usize = 32;
    let has_call = |at: usize| {
        let end = segment.bytes.len().min(at + SHORTLY);
        memchr::memmem::find(&segment.bytes[at..end], &SYSCALL_CODE).is_some()
    };
    segment.executable
        && (NUMBERS.iter().any(|number| memchr::memmem::find(segment.bytes, number).is_some())
            || SHORT.iter().any(|one| memchr::memmem::find_iter(segment.bytes, one).any(has_call)))
}

/// Returns whether the program has a symbol that leads a walker to streams.
fn has_symbol_of_streams(sections: &ElfSections) -> bool {
    let walkers = || runtimes().iter().filter_map(|runtime| runtime.walker_entry());
    let is_known =
        |name: &[u8]| walkers().any(|one| one.symbols.iter().any(|known| known.as_bytes() == name));
    [false, true].iter().any(|dynamic| sections.any_symbol(*dynamic, is_known) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: &[u8]) -> StaticSegment<'_> {
        StaticSegment { writable: true, executable: false, bytes }
    }

    fn code(bytes: &[u8]) -> StaticSegment<'_> {
        StaticSegment { writable: false, executable: true, bytes }
    }

    #[test]
    fn streams_are_found_in_data_only() {
        let mut glibc = [0u8; 300];
        glibc[32..36].copy_from_slice(&0xfbad_2084u32.to_le_bytes());
        let mut musl = [0u8; 300];
        for (at, value) in [(0, 5), (musl::FD, 1), (musl::LOCK, -1)] {
            musl[32 + at..36 + at].copy_from_slice(&i32::to_le_bytes(value));
        }
        for bytes in [glibc, musl] {
            assert!(has_streams(&data(&bytes)) && !has_streams(&code(&bytes)));
        }
        musl[32 + musl::FD] = 3;
        assert!(!has_streams(&data(&musl)), "the descriptor is no standard stream's");
        assert!(!has_streams(&data(&[0; 300])) && !has_streams(&data(&[])));
        assert!(has_streams(&code(b"\0rwa\0")) && has_streams(&data(b"\0weirstrm")));
    }

    #[test]
    fn a_number_of_execve_is_found_in_code_only() {
        for bytes in [&b"\xb8\x3b\0\0\0\x0f\x05"[..], b"\xbf\x42\x01\0\0", b"\x6a\x3b\x58\x0f\x05"] {
            assert!(can_execute_program(&code(bytes)) && !can_execute_program(&data(bytes)), "{bytes:?}");
        }
        for bytes in [&b"\xb8\x3c\0\0\0\x0f\x05"[..], b"\x6a\x3b\x58"] {
            assert!(!can_execute_program(&code(bytes)), "{bytes:?}");
        }
    }

    #[test]
    fn a_dynamic_program_can_have_streams() {
        let own = weir_sys::elf::ElfFile::open(std::path::Path::new("/proc/self/exe")).unwrap();
        assert!(!is_without_streams(&own.sections().unwrap()));
    }
}
