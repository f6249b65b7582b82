//! One channel of Tcl: `struct ChannelState` and its buffers, as in tclIO.h, and its descriptor.

use std::collections::BTreeSet;

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::layout::{BufferHead, TclLayout};
use super::{ReadLimits, take_one};
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::{PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Size of `ChannelState` up to `nextCSPtr` in the largest layout, and the offsets that all layouts share.
const STATE_BYTES: usize = 232;
const FLAGS: usize = 8;
const FILLED: usize = 96;
const QUEUED: usize = 104;
const READ: usize = 128;
const SIZE: usize = 168;

/// Size of `Channel` up to its type: the state, the data of the type, the type.
const CHANNEL_BYTES: usize = 24;

/// The first position in a new buffer (`BUFFER_PADDING`).
const PADDING: u64 = 16;
/// The most buffers of all channels.
pub(super) const MAX_BUFFERS: usize = 1 << 16;

/// Returns the next state in the list, or 0; None if this is no state.
pub(super) fn next(memory: &dyn Memory, layout: &TclLayout, at: u64) -> Option<u64> {
    let state = structure::<STATE_BYTES>(memory, at)?;
    let knows = |channel: u64| channel != 0 && memory.u64(channel) == Some(at);
    let is_state = knows(word(&state, layout.top)) && knows(word(&state, layout.bottom()));
    is_state.then(|| word(&state, layout.next()))
}

/// Returns whether another channel, such as a compressor, is stacked on the channel with the descriptor.
pub(super) fn is_stacked(memory: &dyn Memory, layout: &TclLayout, at: u64) -> bool {
    let differ = |state: [u8; STATE_BYTES]| word(&state, layout.top) != word(&state, layout.bottom());
    structure(memory, at).is_none_or(differ)
}

/// Reads the stream of a channel, with at most `limits.0` of its pending bytes; None if it has no descriptor.
pub(super) fn stream(
    memory: &dyn Memory,
    layout: &TclLayout,
    at: u64,
    limits: (u64, &ReadLimits),
) -> Option<StreamBuffer> {
    let copy = structure::<STATE_BYTES>(memory, at)?;
    read_stable(memory, at, copy, |state| read(memory, layout, at, state, limits))
}

fn read(
    memory: &dyn Memory,
    layout: &TclLayout,
    at: u64,
    state: &[u8; STATE_BYTES],
    (kept, left): (u64, &ReadLimits),
) -> Option<StreamBuffer> {
    let flags = int(state, FLAGS);
    let (queued, filled) = (word(state, QUEUED), word(state, FILLED));
    let mut written = chain(memory, layout, queued, left)?;
    written.extend(chain(memory, layout, filled, left)?);
    let ahead = chain(memory, layout, word(state, READ), left)?;
    let sum = |parts: &[BufferPart]| parts.iter().map(|one| one.bytes).sum::<u64>();
    let mut stream = StreamBuffer::of(Buffer {
        mode: Some(mode(layout, flags)),
        buffer_bytes: u64::try_from(int(state, SIZE)).ok().filter(|size| *size <= MAX_BUFFER)?,
        pending_bytes: sum(&written),
        pending: contents(memory, &written, kept)?,
        unread_bytes: sum(&ahead),
        unread: contents(memory, &ahead, UNREAD_KEPT)?,
        ..Buffer::empty(RuntimeId::TCL, at, descriptor(memory, layout, word(state, layout.bottom()))?)
    });
    // Tcl itself continues to write the buffers in the queue.
    if let (0, [last]) = (queued, written.as_slice()) {
        stream.drain_stores = layout.positions(last.at, PADDING);
        let removed = layout.removed(last.at);
        let position = StoredValue::WrittenPlus(memory.u64(removed)?);
        stream.partial_stores = vec![PartialStore::new(removed, position)];
    }
    Some(stream)
}

fn mode(layout: &TclLayout, flags: i32) -> Mode {
    match () {
        () if flags & layout.unbuffered() != 0 => Mode::None,
        () if flags & layout.by_line != 0 => Mode::Line,
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
fn chain(memory: &dyn Memory, layout: &TclLayout, first: u64, left: &ReadLimits) -> Option<Vec<BufferPart>> {
    let (mut found, mut visited, mut at) = (Vec::new(), BTreeSet::new(), first);
    while at != 0 {
        if !take_one(&left.buffers) || !visited.insert(at) {
            return None;
        }
        let head = BufferHead::read(memory, layout, at)?;
        let bytes = head
            .added
            .checked_sub(head.removed)
            .filter(|_| head.added <= head.length && head.length <= MAX_BUFFER)?;
        let start = at.checked_add(layout.head_bytes() as u64)?.checked_add(head.removed)?;
        found.extend((bytes > 0).then_some(BufferPart { at, start, bytes }));
        at = head.following;
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
fn descriptor(memory: &dyn Memory, layout: &TclLayout, channel: u64) -> Option<i32> {
    let bytes = structure::<CHANNEL_BYTES>(memory, channel)?;
    let (own, kind) = (word(&bytes, 8), word(&bytes, 16));
    let name = memory.bytes(memory.u64(kind)?, 8);
    let data: [u8; 32] = structure(memory, own).filter(|data| word(data, 0) == channel)?;
    let fd = match name.split(|byte| *byte == 0).next()? {
        b"file" | b"tty" | b"serial" => int(&data, 8),
        // A pipe stores its files as descriptor + 1. A pipe that is only read has no second one.
        b"pipe" => {
            [word(&data, 16), word(&data, 8)].into_iter().find(|file| *file != 0)?.checked_sub(1)? as i32
        }
        b"tcp" => int(&data, layout.socket),
        _ => return None,
    };
    (fd >= 0).then_some(fd)
}
