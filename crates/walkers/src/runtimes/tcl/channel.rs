//! One channel of Tcl 8.6: `struct ChannelState` and its buffers, as in tclIO.h, and its descriptor.

use std::collections::BTreeSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use crate::copied_memory::{BUFFER_MOST, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Size of `ChannelState` up to `nextCSPtr`, and offsets in it.
const STATE_BYTES: usize = 224;
const FLAGS: usize = 8;
const FILLED: usize = 96;
const QUEUED: usize = 104;
const READ: usize = 128;
const SIZE: usize = 168;
const TOP: usize = 200;
const BOTTOM: usize = 208;
const NEXT: usize = 216;

/// Bits of `flags`: CHANNEL_LINEBUFFERED, CHANNEL_UNBUFFERED.
const BY_LINE: i32 = 1 << 4;
const UNBUFFERED: i32 = 1 << 5;

/// Size of `Channel` up to its type: the state, the data of the type, the type.
const CHANNEL_BYTES: usize = 24;

/// Size of the head of `ChannelBuffer` and offsets in it: reference count, next position to add at, next position to
/// remove from, size, next buffer. The bytes follow.
const BUFFER_HEAD: usize = 24;
const ADDED: usize = 4;
const REMOVED: usize = 8;
const LENGTH: usize = 12;
const FOLLOWING: usize = 16;
/// The first position in a new buffer (`BUFFER_PADDING`).
const PADDING: u64 = 16;
/// A bound for damaged queues.
const BUFFERS_MOST: usize = 1 << 16;

/// Returns the next state in the list, or 0; None if this is no state.
pub(super) fn next(memory: &dyn Memory, at: u64) -> Option<u64> {
    let state = structure::<STATE_BYTES>(memory, at)?;
    let knows = |channel: u64| channel != 0 && memory.u64(channel) == Some(at);
    (knows(word(&state, TOP)) && knows(word(&state, BOTTOM))).then(|| word(&state, NEXT))
}

/// Tells whether another channel, such as a compressor, is stacked on the channel with the descriptor.
pub(super) fn is_stacked(memory: &dyn Memory, at: u64) -> bool {
    structure::<STATE_BYTES>(memory, at).is_none_or(|state| word(&state, TOP) != word(&state, BOTTOM))
}

/// Reads the stream of a channel; None if it has no descriptor.
pub(super) fn stream(memory: &dyn Memory, at: u64, kept: u64) -> Option<StreamBuffer> {
    let copy = structure::<STATE_BYTES>(memory, at)?;
    read_stable(memory, at, copy, |state| read(memory, at, state, kept))
}

fn read(memory: &dyn Memory, at: u64, state: &[u8; STATE_BYTES], kept: u64) -> Option<StreamBuffer> {
    let flags = int(state, FLAGS);
    let (queued, filled) = (word(state, QUEUED), word(state, FILLED));
    let mut written = chain(memory, queued)?;
    written.extend(chain(memory, filled)?);
    let ahead = chain(memory, word(state, READ))?;
    let sum = |parts: &[BufferPart]| parts.iter().map(|one| one.bytes).sum::<u64>();
    let mut stream = StreamBuffer::of(Buffer {
        walker: RuntimeId::TCL,
        address: at,
        fd: descriptor(memory, word(state, BOTTOM))?,
        mode: Some(mode(flags)),
        buffer_bytes: u64::try_from(int(state, SIZE)).ok().filter(|size| *size <= BUFFER_MOST)?,
        pending_bytes: sum(&written),
        pending: contents(memory, &written, kept)?,
        unread_bytes: sum(&ahead),
        unread: contents(memory, &ahead, UNREAD_KEPT)?,
        found_by_search: false,
    });
    // Tcl itself goes on writing the buffers in the queue.
    if let (0, [last]) = (queued, written.as_slice()) {
        let positions = |added: u64, removed: u64| added | removed << 32;
        stream.drain_stores = vec![MemoryStore::u64(last.at + ADDED as u64, positions(PADDING, PADDING))];
        let removed = memory.u64(last.at + REMOVED as u64)?;
        stream.partial_stores =
            vec![PartialStore::new(last.at + REMOVED as u64, StoredValue::WrittenPlus(removed))];
    }
    Some(stream)
}

fn mode(flags: i32) -> Mode {
    match () {
        () if flags & UNBUFFERED != 0 => Mode::None,
        () if flags & BY_LINE != 0 => Mode::Line,
        () => Mode::Full,
    }
}

/// The bytes in one buffer.
struct BufferPart {
    /// Address of the ChannelBuffer.
    at: u64,
    start: u64,
    bytes: u64,
}

/// Returns the non-empty buffers of a queue; None if it is damaged.
fn chain(memory: &dyn Memory, first: u64) -> Option<Vec<BufferPart>> {
    let (mut found, mut visited, mut at) = (Vec::new(), BTreeSet::new(), first);
    while at != 0 {
        if visited.len() >= BUFFERS_MOST || !visited.insert(at) {
            return None;
        }
        let head = structure::<BUFFER_HEAD>(memory, at)?;
        let field = |field| u64::try_from(int(&head, field)).ok();
        let (added, removed, length) = (field(ADDED)?, field(REMOVED)?, field(LENGTH)?);
        let bytes = added.checked_sub(removed).filter(|_| added <= length)?;
        let start = at.checked_add(BUFFER_HEAD as u64 + removed)?;
        found.extend((bytes > 0).then_some(BufferPart { at, start, bytes }));
        at = word(&head, FOLLOWING);
    }
    Some(found)
}

/// Reads the first `most` bytes of buffers.
fn contents(memory: &dyn Memory, pieces: &[BufferPart], most: u64) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for one in pieces {
        all.extend(read_content(memory, one.start, one.bytes, most - all.len() as u64)?);
    }
    Some(all)
}

/// Returns the descriptor that a channel of one of Tcl's own types writes to.
fn descriptor(memory: &dyn Memory, channel: u64) -> Option<i32> {
    let bytes = structure::<CHANNEL_BYTES>(memory, channel)?;
    let (own, kind) = (word(&bytes, 8), word(&bytes, 16));
    let name = memory.bytes(memory.u64(kind)?, 8);
    let data: [u8; 24] = structure(memory, own).filter(|data| word(data, 0) == channel)?;
    let fd = match name.split(|byte| *byte == 0).next()? {
        b"file" | b"tty" | b"serial" => int(&data, 8),
        // A pipe stores its files as descriptor + 1. A pipe that is only read has no second one.
        b"pipe" => {
            [word(&data, 16), word(&data, 8)].into_iter().find(|file| *file != 0)?.checked_sub(1)? as i32
        }
        b"tcp" => int(&data, 16),
        _ => return None,
    };
    (fd >= 0).then_some(fd)
}
