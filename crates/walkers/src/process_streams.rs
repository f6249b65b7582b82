//! Reads the streams of one process with all its walkers, within one budget.

use weir_model::trace::Buffer;
use weir_sys::memory::{LimitedContent, LimitedMemory, Memory};

use crate::joined_streams::join_buffers;
use crate::{DueSearch, MAX_BUFFER, PENDING_KEPT, PendingBytes, ThreadRegisters, Walker};

/// The most pending bytes that weir reads of one process, unless the user sets another limit. Real programs have far fewer. Together
/// with other data weir uses at most 64 MiB for a process.
pub const MAX_PENDING: u64 = weir_model::flush::DEFAULT_LIMIT;

/// The pending bytes of a process.
#[derive(Debug, Default)]
pub struct PendingRead {
    /// The streams in the order in which the program would write them at exit.
    pub streams: Vec<PendingBytes>,
    /// Streams were left out, because the process claims more bytes than the limit.
    pub is_partial: bool,
}

/// Returns the buffers of all streams, also of empty ones. Bytes that a stream has handed to another one are shown in its own
/// buffer, before those that it still holds.
pub fn buffers(walkers: &[Box<dyn Walker>], memory: &dyn Memory) -> Vec<Buffer> {
    let streams = walkers.iter().flat_map(|walker| walker.read(memory, PENDING_KEPT));
    join_buffers(streams.filter(|one| !one.is_ambiguous).collect())
}

/// Reads all pending bytes of a process, at most `most`. Leaves out streams that do not fit, those whose bytes cannot
/// be read, and those whose number of bytes is unknown.
pub fn pending(walkers: &[Box<dyn Walker>], memory: &dyn Memory, most: u64) -> PendingRead {
    let mut pending = pending_and_ambiguous(walkers, memory, most);
    pending.streams.retain(|one| !one.is_ambiguous);
    pending
}

/// The last pending bytes of a stream, which the program still converts to another encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnconvertedBytes {
    /// Address of the stream, as in [`Buffer::address`].
    pub stream: u64,
    /// Descriptor in the process.
    pub fd: i32,
    /// The text in UTF-8.
    pub bytes: Vec<u8>,
}

/// Reads the pending bytes that a process still converts, at most `most`. Leaves out streams that do not fit.
pub fn unconverted(walkers: &[Box<dyn Walker>], memory: &dyn Memory, most: u64) -> Vec<UnconvertedBytes> {
    let memory = LimitedMemory::new(memory, most, LimitedContent::WholeOrNothing);
    let streams = walkers.iter().flat_map(|walker| walker.read_in_exit_order(&memory, MAX_BUFFER));
    let last = |Buffer { address, fd, mut pending, pending_bytes, unconverted_bytes, .. }: Buffer| {
        let is_whole = fd >= 0 && pending.len() as u64 == pending_bytes && unconverted_bytes > 0;
        let first = pending_bytes.checked_sub(unconverted_bytes).filter(|_| is_whole)?;
        Some(UnconvertedBytes { stream: address, fd, bytes: pending.split_off(first as usize) })
    };
    streams.filter(|one| !one.is_ambiguous).filter_map(|one| last(one.buffer)).collect()
}

/// As [`pending`], with the streams whose number of bytes is unknown, see [`PendingBytes::copies`].
pub fn pending_and_ambiguous(walkers: &[Box<dyn Walker>], memory: &dyn Memory, most: u64) -> PendingRead {
    read(memory, most, |memory| walkers.iter().flat_map(|walker| walker.pending(memory)).collect())
}

/// As [`pending`], while all threads of the process are stopped in system calls; see [`Walker::pending_of_stopped`].
pub fn pending_of_stopped(
    walkers: &[Box<dyn Walker>],
    memory: &dyn Memory,
    most: u64,
    threads: &[ThreadRegisters],
) -> PendingRead {
    // A search of a large heap would stop the process for a tenth of a second.
    let set_due_search = |how| walkers.iter().for_each(|walker| walker.set_due_search(how));
    set_due_search(DueSearch::Deferred);
    let mut pending = read(memory, most, |memory| {
        walkers.iter().flat_map(|walker| walker.pending_of_stopped(memory, threads)).collect()
    });
    pending.streams.retain(|one| !one.is_ambiguous);
    set_due_search(DueSearch::Now);
    pending
}

fn read(
    memory: &dyn Memory,
    most: u64,
    streams: impl FnOnce(&dyn Memory) -> Vec<PendingBytes>,
) -> PendingRead {
    let memory = LimitedMemory::new(memory, most, LimitedContent::WholeOrNothing);
    let mut streams = streams(&memory);
    // The bytes of an inner stream come first.
    streams.sort_by_key(|one| one.inner.is_some());
    PendingRead { streams, is_partial: memory.is_partial() }
}

/// The buffer of a stream with its first bytes.
#[derive(Debug, Clone)]
pub struct StreamPreview {
    /// Holds the first pending bytes, and the number of all.
    pub buffer: Buffer,
    /// The fields of [`PendingBytes`].
    pub locked: Option<bool>,
    /// The stream can be emptied from outside.
    pub can_be_drained: bool,
}

/// Reads all streams of a process, also empty ones, with at most `each` bytes of one stream and `most` of all. The order is
/// that in which the program would write them at exit.
pub fn previews(
    walkers: &[Box<dyn Walker>],
    memory: &dyn Memory,
    each: u64,
    most: u64,
) -> Vec<StreamPreview> {
    let memory = LimitedMemory::new(memory, most, LimitedContent::Prefix);
    let streams = walkers.iter().flat_map(|walker| walker.read_in_exit_order(&memory, each));
    let preview = |one: crate::stream_buffer::StreamBuffer| StreamPreview {
        locked: one.locked,
        can_be_drained: one.can_be_drained(),
        buffer: one.buffer,
    };
    streams.filter(|one| !one.is_ambiguous).map(preview).collect()
}
