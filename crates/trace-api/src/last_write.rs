//! Removes from a buffer snapshot the bytes that are already in the file: a stream keeps its bytes until write(2) has returned, and
//! a signal can end the thread before the stream notes the return.

use weir_model::trace::Buffer;
use weir_sys::ptrace::last_write::LastWrite;

/// Removes from the pending bytes of a dead process the bytes that its threads wrote last. The memory is read through the thread
/// `tid`, which is in its exit stop.
pub fn remove_written(tid: u32, last_writes: &[LastWrite], buffers: &mut [Buffer]) {
    for buffer in buffers.iter_mut().filter(|buffer| buffer.pending_bytes > 0) {
        let written = |one: &LastWrite| one.written_of(tid, buffer.fd, &buffer.pending, buffer.pending_bytes);
        let bytes = last_writes.iter().map(written).max().unwrap_or(0);
        buffer.pending_bytes -= bytes;
        buffer.pending.drain(..buffer.pending.len().min(bytes as usize));
    }
}

/// Removes the buffers of a dead process for which nothing shows how many bytes were written, and returns whether there were any.
/// `flushing`: the addresses of the buffers that a thread of the runtime was flushing. What such a thread has written is known
/// only if its process ended in the write. Call it before [`remove_written`].
pub fn remove_unknown(
    tid: u32,
    flushing: &[u64],
    last_writes: &[LastWrite],
    buffers: &mut Vec<Buffer>,
) -> bool {
    let all = buffers.len();
    buffers.retain(|buffer| {
        let (address, length) = (buffer.address, buffer.pending_bytes);
        let is_known = |one: &LastWrite| {
            one.written_at(address, length).is_some()
                || one.written_of(tid, buffer.fd, &buffer.pending, length) > 0
        };
        length == 0 || !flushing.contains(&address) || last_writes.iter().any(is_known)
    });
    buffers.len() < all
}
