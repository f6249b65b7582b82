//! glibc's FILEs, from `_IO_list_all` on.

use std::collections::HashSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, Walker};

use super::Walk;
use super::read::{
    BUFFER_MOST, PENDING_KEPT, STREAMS_MOST, UNREAD_KEPT, content, int, steady, structure, word,
};
use crate::memory::Memory;

/// Of `struct _IO_FILE` up to `_mode`; the same on x86-64 and aarch64 since glibc 2.1.
pub(super) const FILE_BYTES: usize = 224;
pub(super) const CHAIN: usize = 104;
pub(super) const FILENO: usize = 112;
pub(super) const VTABLE: usize = 216;

const MAGIC: u64 = 0xfbad_0000;
const UNBUFFERED: u64 = 0x2;
const IN_BACKUP: u64 = 0x100;
const LINE_BUFFERED: u64 = 0x200;
const PUTTING: u64 = 0x800;

/// The streams of a process with glibc.
#[derive(Debug, Clone)]
pub struct Glibc {
    heads: Vec<u64>,
    /// A stream that the list must have, where the head was found by a search.
    must: Option<u64>,
}

impl Glibc {
    /// With `_IO_list_all` at this address of the process.
    pub fn at(head: u64) -> Glibc {
        Glibc { heads: vec![head], must: None }
    }

    /// With several words that may be `_IO_list_all`: it is the one whose list is the longest.
    pub(super) fn one_of(heads: Vec<u64>, must: u64) -> Glibc {
        Glibc { heads, must: Some(must) }
    }
}

impl Walk for Glibc {
    fn walker(&self) -> Walker {
        Walker::Glibc
    }

    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let lists = self.heads.iter().filter_map(|head| Some(list(memory, memory.u64(*head)?)));
        let whole = lists.filter(|list| self.must.is_none_or(|must| list.contains(&must)));
        let longest = whole.max_by_key(Vec::len).unwrap_or_default();
        longest.into_iter().filter_map(|at| steady(memory, at, |file| stream(memory, at, file))).collect()
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walk>> {
        Some(Box::new(self.clone()))
    }
}

/// The addresses of the streams from `first` on, as far as they are streams.
pub(super) fn list(memory: &dyn Memory, first: u64) -> Vec<u64> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut at = first;
    while at != 0 && found.len() < STREAMS_MOST && seen.insert(at) {
        let Some(file) = structure::<FILE_BYTES>(memory, at).filter(is_file) else { break };
        found.push(at);
        at = word(&file, CHAIN);
    }
    found
}

/// Does it begin as every FILE does?
pub(super) fn is_file(file: &[u8; FILE_BYTES]) -> bool {
    word(file, 0) & 0xffff_0000 == MAGIC && word(file, VTABLE) != 0
}

fn stream(memory: &dyn Memory, address: u64, file: &[u8; FILE_BYTES]) -> Option<Buffer> {
    let flags = word(file, 0);
    let [read_ptr, read_end, read_base, write_base, write_ptr, _, base, end] =
        std::array::from_fn(|field| word(file, 8 + 8 * field));
    let size = end.checked_sub(base).filter(|size| *size <= BUFFER_MOST)?;
    let mut buffer = Buffer {
        walker: Walker::Glibc,
        address,
        fd: int(file, FILENO).max(-1),
        mode: mode(flags, base),
        buffer_bytes: size,
        pending_bytes: 0,
        pending: Vec::new(),
        unread_bytes: 0,
        unread: Vec::new(),
    };
    if flags & PUTTING != 0 {
        if base > write_base || write_base > write_ptr || write_ptr > end {
            return None;
        }
        buffer.pending_bytes = write_ptr - write_base;
        buffer.pending = content(memory, write_base, buffer.pending_bytes, PENDING_KEPT)?;
    } else {
        let pushed_back = flags & IN_BACKUP != 0;
        if read_base > read_ptr || read_ptr > read_end || !pushed_back && (base > read_base || read_end > end)
        {
            return None;
        }
        // With bytes pushed back by ungetc(3), those come first and the buffer's own wait in _IO_save_base.
        let parts =
            [(read_ptr, read_end), if pushed_back { (word(file, 72), word(file, 88)) } else { (0, 0) }];
        unread(memory, &mut buffer, parts)?;
    }
    Some(buffer)
}

fn unread(memory: &dyn Memory, buffer: &mut Buffer, parts: [(u64, u64); 2]) -> Option<()> {
    for (from, to) in parts {
        let bytes = to.checked_sub(from).filter(|bytes| *bytes <= BUFFER_MOST)?;
        let room = UNREAD_KEPT - buffer.unread.len() as u64;
        buffer.unread.extend(content(memory, from, bytes, room)?);
        buffer.unread_bytes += bytes;
    }
    Some(())
}

fn mode(flags: u64, base: u64) -> Option<Mode> {
    match flags {
        _ if flags & UNBUFFERED != 0 => Some(Mode::None),
        _ if base == 0 => None,
        _ if flags & LINE_BUFFERED != 0 => Some(Mode::Line),
        _ => Some(Mode::Full),
    }
}
