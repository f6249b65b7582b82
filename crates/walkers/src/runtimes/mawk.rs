//! mawk: writes through the C library's stdio. It reads a pipe into a buffer of its own, and uses nothing in it before the
//! buffer is full.
//!
//! The walker reads that buffer while mawk waits in read(2) for the rest of it. No symbol leads to the buffer: the heap
//! is searched for mawk's description of the input file (`FIN` of fin.h), whose buffer must end exactly where that
//! read(2) ends.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use weir_model::trace::Buffer;
use weir_model::{Mode, Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};
use weir_sys::file_system::open_regular;
use weir_sys::memory::Memory;
use weir_sys::proc::{self, ThreadState};

use crate::elf_image::ElfImage;
use crate::heap_search::blocks;
use crate::runtime_entry::always_possible;
use crate::stream_buffer::StreamBuffer;
use crate::{
    BufferAccess, Detected, ProcessImages, ProgramDetection, RuntimeEntry, UnreachedBuffers, Walker,
    WalkerEntry,
};

/// The most bytes that are searched in the file of a program: programs of mawk are shorter.
const MAX_PROGRAM_BYTES: u64 = 1 << 20;

/// mawk fills its input buffer before it processes the first line of a pipe, unless it is interactive. Then it reads lines by
/// fgets(3), and takes each as a string that ends at a NUL byte.
const INTERACTIVE: RuntimeFix = RuntimeFix::Options {
    options: &["-W", "interactive"],
    effect: "mawk -W interactive: it reads lines as they come and writes them at once",
    limit: "its input must have no NUL bytes: mawk loses the rest of a line after one",
    unreached: "input that mawk has read and not used (mawk -W interactive uses each line at once, but loses the rest of a line after \
                a NUL byte)",
};

/// mawk as a program of the C library's stdio.
const STDIO: RuntimeEntry = RuntimeEntry::stdio(
    "mawk",
    "mawk",
    100,
    ProgramDetection::ProgramNames { names: &["mawk"], marks: &["mawk", "MAWK"] },
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::MAWK,
        name: "mawk",
        language: SourceLanguage::Awk,
        fixes: RuntimeFixes {
            unbuffered: INTERACTIVE,
            line_buffered: INTERACTIVE,
            max_delay: INTERACTIVE,
            ..RuntimeFixes::STDIO
        },
        limits: RuntimeLimits::NONE,
    },
    buffers: BufferAccess::Readable(WalkerEntry { symbols: &[], own_symbols: &[], libraries: &[], detect }),
    ..STDIO
};

/// mawk whose program sets RS. With -W interactive, mawk reads lines whatever RS is, so it keeps its own buffers.
pub(crate) static OWN_RECORDS: RuntimeEntry = RuntimeEntry {
    facts: Runtime { fixes: RuntimeFixes::STDIO, ..RUNTIME.facts },
    unreached: &[UnreachedBuffers {
        name: "input that mawk has read and not used (its program sets RS, which mawk -W interactive ignores)",
        options: &["--max-delay", "--stdin", "--stdout"],
        possible: always_possible,
        is_drained: false,
    }],
    ..STDIO
};

/// Returns the entry for mawk with these arguments.
pub fn entry_for(arguments: &[OsString]) -> &'static RuntimeEntry {
    if sets_record_separator(arguments) { &OWN_RECORDS } else { &RUNTIME }
}

/// Returns whether an argument, or a program's file behind -f or -W exec, names the variable RS. Also true for a file that cannot be
/// read.
fn sets_record_separator(arguments: &[OsString]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let names_rs = |text: &[u8]| {
        let begins = |at: usize| at == 0 || !is_name(&text[at - 1]) || text[..at].ends_with(b"-v");
        let ends = |at: usize| text.get(at).is_none_or(|byte| !is_name(byte));
        text.windows(2).enumerate().any(|(at, word)| word == b"RS" && begins(at) && ends(at + 2))
    };
    let file_names_rs = |file: &OsStr| {
        let mut text = Vec::new();
        // A pipe can be read once, by mawk.
        let mut read = || open_regular(Path::new(file))?.take(MAX_PROGRAM_BYTES).read_to_end(&mut text);
        read().map_or(true, |bytes| bytes as u64 == MAX_PROGRAM_BYTES) || names_rs(&text)
    };
    // Options of -W can be abbreviated, and a list.
    let is_exec =
        |value: &[u8]| value.split(|byte| *byte == b',').any(|one| matches!(one, [b'e' | b'E', ..]));
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let file = match word.as_bytes() {
            b"-f" | b"--file" => words.next().map(OsString::as_os_str),
            b"-W" if words.next().is_some_and(|value| is_exec(value.as_bytes())) => {
                words.next().map(OsString::as_os_str)
            }
            option if option.strip_prefix(b"-W").is_some_and(is_exec) => {
                words.next().map(OsString::as_os_str)
            }
            b"--" => None,
            option => option
                .strip_prefix(b"--file=")
                .or_else(|| option.strip_prefix(b"-f").filter(|rest| !rest.is_empty()))
                .map(OsStr::from_bytes),
        };
        if names_rs(word.as_bytes()) || file.is_some_and(file_names_rs) {
            return true;
        }
    }
    false
}

/// mawk's walker comes after that of the C library.
const LAST: u64 = u64::MAX;

fn detect(process: &ProcessImages, found: &mut Detected) {
    let name = process.path.file_name().unwrap_or_default();
    let link = weir_sys::executable::link(process.pid);
    let is_confirmed = |image: &Arc<ElfImage>| image.confirms_runtime(&link, RuntimeId::MAWK);
    if name.to_string_lossy().starts_with("mawk") && process.executable.as_ref().is_some_and(is_confirmed) {
        found.add(LAST, Box::new(MawkInput { pid: process.pid, file: Cell::new(0) }));
    }
}

/// BUFFSZ of mawk's sizes.h.
const BLOCK_BYTES: u64 = 4096;
/// The largest input buffer: a record that does not fit makes mawk enlarge it.
const MAX_BUFFER: u64 = 16 << 20;
/// Size of `FIN` up to the number of blocks: descriptor, FILE (null unless interactive), buffer, next record, end of the
/// bytes, number of blocks.
const FILE_BYTES: usize = 44;
/// The read-ahead bytes in a snapshot.
const PREVIEW_BYTES: u64 = 64;

/// The walker of mawk's input buffer.
#[derive(Debug)]
pub(crate) struct MawkInput {
    pid: u32,
    /// Address of the `FIN` that the last search found; 0: none.
    file: Cell<u64>,
}

/// A read(2) in which mawk waits.
#[derive(Debug, Clone, Copy)]
struct WaitingRead {
    fd: i32,
    at: u64,
    end: u64,
}

impl WaitingRead {
    fn of(pid: u32) -> Option<WaitingRead> {
        match proc::thread_state(pid) {
            ThreadState::Waiting { number: libc::SYS_read, args: [fd, at, bytes, ..] } => {
                Some(WaitingRead { fd: i32::try_from(fd).ok()?, at, end: at.checked_add(bytes)? })
            }
            _ => None,
        }
    }

    /// Returns the address of the buffer of which this call reads the rest, if the bytes are a `FIN` with it.
    fn buffer(&self, file: &[u8; FILE_BYTES]) -> Option<u64> {
        let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap_or(&[0; 8]));
        let half = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap_or(&[0; 4]));
        let (stdio, buffer, next, limit) = (word(8), word(16), word(24), word(32));
        let bytes = u64::from(half(40)) * BLOCK_BYTES;
        let inside = |address: u64| (buffer..=self.end).contains(&address);
        let fits = half(0) as i32 == self.fd
            && stdio == 0
            && (BLOCK_BYTES..=MAX_BUFFER).contains(&bytes)
            && buffer.checked_add(bytes) == Some(self.end);
        (fits && inside(self.at) && inside(next) && inside(limit)).then_some(buffer)
    }

    fn buffer_of_file_at(&self, memory: &dyn Memory, file: u64) -> Option<u64> {
        let bytes = memory.bytes(file, FILE_BYTES);
        self.buffer(bytes.first_chunk()?)
    }
}

impl MawkInput {
    /// Returns the addresses of the description of the input file and of its buffer.
    fn find(&self, memory: &dyn Memory, read: WaitingRead) -> Option<(u64, u64)> {
        let known = self.file.get();
        if let Some(buffer) = read.buffer_of_file_at(memory, known).filter(|_| known != 0) {
            return Some((known, buffer));
        }
        let mut found = None;
        blocks(self.pid, memory, |start, data| {
            for at in (0..data.len().saturating_sub(FILE_BYTES - 1)).step_by(8) {
                let buffer = data[at..].first_chunk().and_then(|file| read.buffer(file));
                if let Some(buffer) = buffer {
                    found = Some((start + at as u64, buffer));
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        self.file.set(found.map_or(0, |(file, _)| file));
        found
    }
}

impl Walker for MawkInput {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::MAWK
    }

    fn read(&self, memory: &dyn Memory, _kept: u64) -> Vec<StreamBuffer> {
        let Some(read) = WaitingRead::of(self.pid) else { return Vec::new() };
        let Some((file, buffer)) = self.find(memory, read) else { return Vec::new() };
        let unread_bytes = read.at - buffer;
        vec![StreamBuffer::of(Buffer {
            mode: Some(Mode::Full),
            buffer_bytes: read.end - buffer,
            unread_bytes,
            unread: memory.bytes(buffer, unread_bytes.min(PREVIEW_BYTES) as usize),
            found_by_search: true,
            ..Buffer::empty(RuntimeId::MAWK, file, read.fd)
        })]
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(MawkInput { pid: child, file: self.file.clone() }))
    }
}

/// The entry point of fuzz/: searches for the description of the file that a read(2) with these arguments reads.
pub(crate) mod fuzzing {
    use super::*;

    pub(crate) fn find(memory: &dyn Memory, [fd, at, end]: [u64; 3]) {
        let read = WaitingRead { fd: fd as i32, at, end };
        let walker = MawkInput { pid: crate::fuzzing::NO_PROCESS, file: Cell::new(at) };
        let _found = walker.find(memory, read);
        let again = walker.find(memory, read).map(|(_, buffer)| buffer);
        assert!(again.is_none_or(|buffer| (buffer..=read.end).contains(&read.at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(words: [u64; 5], blocks: u32) -> [u8; FILE_BYTES] {
        let mut bytes = [0; FILE_BYTES];
        words
            .iter()
            .enumerate()
            .for_each(|(at, word)| bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes()));
        bytes[40..].copy_from_slice(&blocks.to_le_bytes());
        bytes
    }

    #[test]
    fn a_program_that_names_rs_keeps_its_own_records() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let (with, without) = (path("with", "BEGIN { RS = \"\" }"), path("without", "{ print FIRST, RST }"));
        let sets =
            |words: &[&str]| sets_record_separator(&words.iter().map(OsString::from).collect::<Vec<_>>());
        for words in [
            &["BEGIN{RS=\";\"}{print}"][..],
            &["-vRS=", "1"],
            &["-v", "RS=", "1"],
            &["1", "RS=x", "f"],
            &["-f", &with],
            &["-f", "/dev/null"],
            &["-W", "exec", &with],
            &["-W", "E", &with, "data"],
            &["-Wexec", &with],
            &["-We", &with],
            &["-W", "posix_space,ex", &with],
        ] {
            assert!(sets(words), "{words:?}");
        }
        for words in [
            &["{print $1}"][..],
            &["-F:", "/URS/{print ORS}"],
            &["-f", &without, "data"],
            &["-W", "exec", &without],
            &["-W", "interactive", "1", &with],
            &["-Winteractive", "1", &with],
        ] {
            assert!(!sets(words), "{words:?}");
        }
    }

    #[test]
    fn a_buffer_ends_where_the_read_ends() {
        let read = WaitingRead { fd: 3, at: 0x5007, end: 0x6000 };
        assert_eq!(read.buffer(&file([3, 0, 0x5000, 0x5000, 0x5000], 1)), Some(0x5000));
        assert_eq!(read.buffer(&file([3, 0, 0x4000, 0x4ff9, 0x5000], 2)), Some(0x4000), "of two blocks");
        for (words, blocks) in [
            ([4, 0, 0x5000, 0x5000, 0x5000], 1),
            ([3, 9, 0x5000, 0x5000, 0x5000], 1),
            ([3, 0, 0x5008, 0x5008, 0x5008], 1),
            ([3, 0, 0x5000, 0x4000, 0x5000], 1),
            ([3, 0, 0x5000, 0x5000, 0x6001], 1),
            ([3, 0, 0x5000, 0x5000, 0x5000], 0),
            ([3, 0, u64::MAX, u64::MAX, u64::MAX], u32::MAX),
            ([0; 5], 0),
        ] {
            assert_eq!(read.buffer(&file(words, blocks)), None, "{words:x?} {blocks}");
        }
        let before = WaitingRead { at: 0x4fff, ..read };
        assert_eq!(before.buffer(&file([3, 0, 0x5000, 0x5000, 0x5000], 1)), None);
    }
}
