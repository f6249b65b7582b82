//! musl's FILEs: the three standard ones, and the list of the others.

pub(crate) mod list_search;

use std::collections::HashSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::pending_bytes::{PartialStore, PendingBytes, MemoryStore, StoredValue};
use crate::stream_buffer::{self, StreamBuffer};
use crate::copied_memory::{BUFFER_MOST, STREAMS_MOST, UNREAD_KEPT, read_content, int, read_stable, structure, word};
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, WalkerEntry};
use crate::Walker;

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

/// Of `struct _IO_FILE` up to `lbf`; the same since musl 1.1.
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
const LOCK: usize = 140;
const LBF: usize = 144;

/// In `flags`.
pub(crate) const NO_WRITING: i32 = 8;

/// Before its buffer a stream keeps room for pushed-back bytes.
const UNGET: u64 = 8;

/// The streams of a process with musl.
#[derive(Debug, Clone)]
pub struct MuslStreams {
    /// The addresses of the standard streams that the program has.
    pub(crate) standard: Vec<u64>,
    /// Where the list of the other streams is to be found.
    pub(crate) others: OpenFileList,
}

/// Where `ofl_head` is: a stripped library does not tell.
#[derive(Debug, Clone)]
pub(crate) enum OpenFileList {
    Head(u64),
    /// A word of this memory, which is searched at each look: while no file is open there is nothing to find.
    Search(list_search::MuslListSearch),
}

impl Walker for MuslStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::MUSL
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let others = match &self.others {
            OpenFileList::Head(head) => list(memory, memory.u64(*head).unwrap_or(0)),
            OpenFileList::Search(ground) => ground.longest_list(memory, &self.standard),
        };
        let standard = self.standard.iter().filter_map(|at| Some((*at, structure(memory, *at)?)));
        let all: Vec<_> = standard.chain(others).collect();
        let plain = all.iter().find_map(|(_, file)| stderr_write(file));
        all.into_iter()
            .filter_map(|(at, file)| read_stable(memory, at, file, |file| stream(memory, at, file, plain, kept)))
            .collect()
    }

    fn pending(&self, memory: &dyn Memory) -> Vec<PendingBytes> {
        let mut found = self.read(memory, BUFFER_MOST);
        // exit(3) flushes the files first.
        found.sort_by_key(|one| self.standard.contains(&one.buffer.address));
        stream_buffer::pending(found)
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(self.clone()))
    }
}

/// The streams from `first` on, with copies of them; each names the one before it.
pub(crate) fn list(memory: &dyn Memory, first: u64) -> Vec<(u64, [u8; FILE_BYTES])> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let (mut before, mut at) = (0, first);
    while at != 0 && found.len() < STREAMS_MOST && seen.insert(at) {
        let Some(file) = structure::<FILE_BYTES>(memory, at) else { break };
        if word(&file, PREV) != before || word(&file, CLOSE) == 0 {
            break;
        }
        found.push((at, file));
        (before, at) = (at, word(&file, NEXT));
    }
    found
}

/// The write function of ordinary streams: stderr has it from the start.
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
    let end = buf.checked_add(size).filter(|_| size <= BUFFER_MOST)?;
    let (rpos, rend, wbase, wpos) = (word(file, RPOS), word(file, REND), word(file, WBASE), word(file, WPOS));
    let mut buffer = Buffer {
        walker: RuntimeId::MUSL,
        address,
        fd: int(file, FD).max(-1),
        mode: mode(file, plain),
        buffer_bytes: size,
        pending_bytes: 0,
        pending: Vec::new(),
        unread_bytes: 0,
        unread: Vec::new(),
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

/// As fflush(3) leaves it: neither writing nor reading. The lock is negative in a program of one thread.
fn add_drain(at: u64, file: &[u8; FILE_BYTES], stream: &mut StreamBuffer) {
    let lock = int(file, LOCK);
    stream.locked = (lock >= 0).then_some(lock != 0);
    // Beside the thread: somebody waits for it.
    stream.lock_owner = u64::from(lock.max(0) as u32 & 0x3fff_ffff);
    stream.drain_stores = [WEND, WPOS, WBASE].map(|field| MemoryStore::u64(at + field as u64, 0)).to_vec();
    stream.partial_stores = vec![PartialStore::new(at + WBASE as u64, StoredValue::WrittenPlus(word(file, WBASE)))];
}

/// stdout decides at its first write; until then its `write` is not that of other streams, and `lbf` is set. Of a
/// stream that is only read `lbf` means nothing.
fn mode(file: &[u8; FILE_BYTES], plain: Option<u64>) -> Option<Mode> {
    let decided = int(file, FD) != 1 || plain == Some(word(file, WRITE));
    let by_line = int(file, LBF) >= 0 && int(file, 0) & NO_WRITING == 0;
    match word(file, BUF_SIZE) {
        0 => Some(Mode::None),
        _ if by_line => decided.then_some(Mode::Line),
        _ => Some(Mode::Full),
    }
}
