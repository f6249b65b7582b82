//! musl: the three standard FILE structures, and the list of the other ones.

pub(crate) mod list_search;

use std::collections::HashSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::copied_memory::{
    MAX_BUFFER, MAX_STREAMS, UNREAD_KEPT, int, read_content, read_stable, structure, word,
};
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::{self, StreamBuffer};
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, WalkerEntry};

/// [`crate::c_library`] detects musl together with glibc.
pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["ofl_head", "stdin", "stdout", "stderr"],
        own_symbols: &[],
        libraries: &["/ld-musl-"],
        detect: |_, _| {},
    }),
    ..RuntimeEntry::stdio("musl", "musl", 310, ProgramDetection::Never)
};

/// Size of `struct _IO_FILE` up to `lbf`, and offsets in it; the same since musl 1.1.
pub(crate) const FILE_BYTES: usize = 152;
const RPOS: usize = 8;
const REND: usize = 16;
pub(crate) const CLOSE: usize = 24;
const WEND: usize = 32;
const WPOS: usize = 40;
const WBASE: usize = 56;
pub(crate) const READ: usize = 64;
pub(crate) const WRITE: usize = 72;
pub(crate) const SEEK: usize = 80;
pub(crate) const BUF: usize = 88;
pub(crate) const BUF_SIZE: usize = 96;
pub(crate) const PREV: usize = 104;
pub(crate) const NEXT: usize = 112;
pub(crate) const FD: usize = 120;
pub(crate) const LOCK: usize = 140;
const LBF: usize = 144;
/// Offset of `cookie`, and the offset of the write function in the cookie of fopencookie(3). The cookies of fmemopen(3) and
/// open_memstream(3) have a size or a position there.
const COOKIE: u64 = 152;
const COOKIE_WRITE: u64 = 16;

/// The flag F_NOWR in `flags`.
pub(crate) const NO_WRITING: i32 = 8;

/// The room before a buffer for bytes pushed back by ungetc(3).
const UNGET: u64 = 8;

/// The walker of musl.
#[derive(Debug, Clone)]
pub struct MuslStreams {
    /// The addresses of the standard streams that the program uses.
    pub(crate) standard: Vec<u64>,
    /// The list of all other streams.
    pub(crate) others: OpenFileList,
}

/// How to find `ofl_head`, the head of the list of open files. A stripped library has no symbol for it.
#[derive(Debug, Clone)]
pub(crate) enum OpenFileList {
    Head(u64),
    /// A search of this memory at each snapshot: the list is empty, and cannot be found, until a file is open.
    Search(list_search::MuslListSearch),
}

impl Walker for MuslStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::MUSL
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let others = match &self.others {
            OpenFileList::Head(head) => list(memory, memory.u64(*head).unwrap_or(0), &mut { MAX_STREAMS }),
            OpenFileList::Search(search) => search.longest_list(memory, &self.standard),
        };
        let standard = self.standard.iter().filter_map(|at| Some((*at, structure(memory, *at)?)));
        let all: Vec<_> = standard.chain(others).collect();
        let plain = all.iter().find_map(|(_, file)| stderr_write(file));
        all.into_iter()
            .filter_map(|(at, file)| {
                read_stable(memory, at, file, |file| stream(memory, at, file, plain, kept))
            })
            .collect()
    }

    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.read(memory, kept);
        // exit(3) flushes the files before the standard streams.
        found.sort_by_key(|one| self.standard.contains(&one.buffer.address));
        found
    }

    fn cookie_buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let has_own_writer = |at: u64| {
            let cookie = memory.u64(at.checked_add(COOKIE)?)?;
            let function = memory.u64(cookie.checked_add(COOKIE_WRITE)?)?;
            (!memory.bytes(function, 1).is_empty()).then_some(())
        };
        let pending = |one: &Buffer| one.fd < 0 && one.pending_bytes > 0;
        let found = self.read(memory, 0).into_iter().map(|one| one.buffer).filter(pending);
        found.filter(|one| has_own_writer(one.address).is_some()).collect()
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(self.clone()))
    }
}

/// Returns the addresses and copies of the streams in a list. Each stream points back to the one before it. Reads at most
/// `left` structures, and lowers `left` by those that it reads: crafted memory can hold many lists that share their ends.
pub(crate) fn list(memory: &dyn Memory, first: u64, left: &mut usize) -> Vec<(u64, [u8; FILE_BYTES])> {
    let (mut found, mut visited) = (Vec::new(), HashSet::new());
    let (mut before, mut at) = (0, first);
    while at != 0 && *left > 0 && visited.insert(at) {
        *left -= 1;
        let Some(file) = structure::<FILE_BYTES>(memory, at) else { break };
        if word(&file, PREV) != before || word(&file, CLOSE) == 0 {
            break;
        }
        found.push((at, file));
        (before, at) = (at, word(&file, NEXT));
    }
    found
}

/// Returns the write function of a decided stream if this is stderr, which has it from the start.
fn stderr_write(file: &[u8; FILE_BYTES]) -> Option<u64> {
    (int(file, FD) == 2).then(|| word(file, WRITE))
}

fn stream(
    memory: &dyn Memory,
    address: u64,
    file: &[u8; FILE_BYTES],
    plain: Option<u64>,
    kept: u64,
) -> Option<StreamBuffer> {
    let (buf, size) = (word(file, BUF), word(file, BUF_SIZE));
    let end = buf.checked_add(size).filter(|_| size <= MAX_BUFFER)?;
    let (rpos, rend, wbase, wpos) = (word(file, RPOS), word(file, REND), word(file, WBASE), word(file, WPOS));
    let mut buffer = Buffer {
        mode: mode(file, plain),
        buffer_bytes: size,
        ..Buffer::empty(RuntimeId::MUSL, address, int(file, FD).max(-1))
    };
    if wbase != 0 {
        if buf > wbase || wbase > wpos || wpos > end {
            return None;
        }
        buffer.pending_bytes = wpos - wbase;
        buffer.pending = read_content(memory, wbase, buffer.pending_bytes, kept)?;
    } else if rpos != 0 && rpos < rend {
        if buf.saturating_sub(UNGET) > rpos || rend > end.max(buf.saturating_add(1)) {
            return None;
        }
        buffer.unread_bytes = rend - rpos;
        buffer.unread = read_content(memory, rpos, buffer.unread_bytes, UNREAD_KEPT)?;
    }
    let mut stream = StreamBuffer::of(buffer);
    stream.watch_address = Some(address + WPOS as u64);
    if wbase != wpos {
        add_drain(address, file, &mut stream);
    }
    Some(stream)
}

/// Adds the stores that leave the stream as fflush(3) does, neither writing nor reading. The lock is negative in a
/// program of one thread.
fn add_drain(at: u64, file: &[u8; FILE_BYTES], stream: &mut StreamBuffer) {
    let lock = int(file, LOCK);
    stream.locked = (lock >= 0).then_some(lock != 0);
    // A bit beside the thread number says that another thread waits for the lock.
    stream.lock_owner = u64::from(lock.max(0) as u32 & 0x3fff_ffff);
    stream.drain_stores = [WEND, WPOS, WBASE].map(|field| MemoryStore::u64(at + field as u64, 0)).to_vec();
    stream.partial_stores =
        vec![PartialStore::new(at + WBASE as u64, StoredValue::WrittenPlus(word(file, WBASE)))];
}

/// Returns the buffering mode; None for stdout before its first write, which decides it: until then `write` is a
/// special function, and `lbf` is set. `lbf` means nothing for a stream that is only read.
fn mode(file: &[u8; FILE_BYTES], plain: Option<u64>) -> Option<Mode> {
    let decided = int(file, FD) != 1 || plain == Some(word(file, WRITE));
    let by_line = int(file, LBF) >= 0 && int(file, 0) & NO_WRITING == 0;
    match word(file, BUF_SIZE) {
        0 => Some(Mode::None),
        _ if by_line => decided.then_some(Mode::Line),
        _ => Some(Mode::Full),
    }
}
