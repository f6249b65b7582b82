//! musl's FILEs: the three standard ones, and the list of the others.

use std::collections::HashSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, Walker};

use super::Walk;
use super::read::{
    BUFFER_MOST, PENDING_KEPT, STREAMS_MOST, UNREAD_KEPT, content, int, steady, structure, word,
};
use crate::memory::Memory;

/// Of `struct _IO_FILE` up to `lbf`; the same since musl 1.1.
pub(super) const FILE_BYTES: usize = 152;
const RPOS: usize = 8;
const REND: usize = 16;
pub(super) const CLOSE: usize = 24;
const WPOS: usize = 40;
const WBASE: usize = 56;
pub(super) const READ: usize = 64;
pub(super) const WRITE: usize = 72;
pub(super) const SEEK: usize = 80;
pub(super) const BUF: usize = 88;
pub(super) const BUF_SIZE: usize = 96;
pub(super) const PREV: usize = 104;
pub(super) const NEXT: usize = 112;
pub(super) const FD: usize = 120;
const LBF: usize = 144;

/// Before its buffer a stream keeps room for pushed-back bytes.
const UNGET: u64 = 8;

/// The streams of a process with musl.
#[derive(Debug, Clone)]
pub struct Musl {
    /// The addresses of the standard streams that the program has.
    pub(super) standard: Vec<u64>,
    /// Where the list of the other streams is to be found.
    pub(super) others: Others,
}

/// Where `ofl_head` is: a stripped library does not tell.
#[derive(Debug, Clone)]
pub(super) enum Others {
    At(u64),
    /// A word of this memory, which is searched at each look: while no file is open there is nothing to find.
    Within(super::musl_search::Ground),
}

impl Walk for Musl {
    fn walker(&self) -> Walker {
        Walker::Musl
    }

    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let others = match &self.others {
            Others::At(head) => list(memory, memory.u64(*head).unwrap_or(0)),
            Others::Within(ground) => ground.longest_list(memory, &self.standard),
        };
        let plain = self.standard.iter().find_map(|at| stderr_write(memory, *at));
        let all = self.standard.iter().chain(&others);
        all.filter_map(|at| steady(memory, *at, |file| stream(memory, *at, file, plain))).collect()
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walk>> {
        Some(Box::new(self.clone()))
    }
}

/// The addresses of the streams from `first` on; each names the one before it.
pub(super) fn list(memory: &dyn Memory, first: u64) -> Vec<u64> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let (mut before, mut at) = (0, first);
    while at != 0 && found.len() < STREAMS_MOST && seen.insert(at) {
        let Some(file) = structure::<FILE_BYTES>(memory, at) else { break };
        if word(&file, PREV) != before || word(&file, CLOSE) == 0 {
            break;
        }
        found.push(at);
        (before, at) = (at, word(&file, NEXT));
    }
    found
}

/// The write function of ordinary streams: stderr has it from the start.
fn stderr_write(memory: &dyn Memory, at: u64) -> Option<u64> {
    let file = structure::<FILE_BYTES>(memory, at)?;
    (int(&file, FD) == 2).then(|| word(&file, WRITE))
}

fn stream(memory: &dyn Memory, address: u64, file: &[u8; FILE_BYTES], plain: Option<u64>) -> Option<Buffer> {
    let (buf, size) = (word(file, BUF), word(file, BUF_SIZE));
    let end = buf.checked_add(size).filter(|_| size <= BUFFER_MOST)?;
    let (rpos, rend, wbase, wpos) = (word(file, RPOS), word(file, REND), word(file, WBASE), word(file, WPOS));
    let mut buffer = Buffer {
        walker: Walker::Musl,
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
        buffer.pending = content(memory, wbase, buffer.pending_bytes, PENDING_KEPT)?;
    } else if rpos != 0 && rpos < rend {
        if buf.saturating_sub(UNGET) > rpos || rend > end.max(buf.saturating_add(1)) {
            return None;
        }
        buffer.unread_bytes = rend - rpos;
        buffer.unread = content(memory, rpos, buffer.unread_bytes, UNREAD_KEPT)?;
    }
    Some(buffer)
}

/// stdout decides at its first write; until then its `write` is not that of other streams, and `lbf` is set.
fn mode(file: &[u8; FILE_BYTES], plain: Option<u64>) -> Option<Mode> {
    let decided = int(file, FD) != 1 || plain == Some(word(file, WRITE));
    match (word(file, BUF_SIZE), int(file, LBF)) {
        (0, _) => Some(Mode::None),
        (_, lbf) if lbf >= 0 => decided.then_some(Mode::Line),
        _ => Some(Mode::Full),
    }
}
