//! Removes bytes from a buffer snapshot that are in the file already: a stream keeps them until its write(2) has returned, and a
//! signal can end the thread before it notes this.

use weir_model::trace::Buffer;
use weir_sys::ptrace::last_write::LastWrite;

/// Removes what the threads of a dead process wrote last from its pending bytes. The memory is read through the thread `tid`, which
/// is in its exit stop.
pub fn remove_written(tid: u32, last_writes: &[LastWrite], buffers: &mut [Buffer]) {
    for buffer in buffers.iter_mut().filter(|buffer| buffer.pending_bytes > 0) {
        let written = |one: &LastWrite| one.written_of(tid, buffer.fd, &buffer.pending, buffer.pending_bytes);
        let bytes = last_writes.iter().map(written).max().unwrap_or(0);
        buffer.pending_bytes -= bytes;
        buffer.pending.drain(..buffer.pending.len().min(bytes as usize));
    }
}
