//! copy_file_range(2), sendfile(2) and splice(2): the kernel moves the bytes.

use rustix::fs::{SeekFrom, copy_file_range, seek, sendfile};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use weir_model::pipe::{DEFAULT_PIPE_BYTES, MAX_PIPE_BYTES};

use super::{RangeEnd, RangeResult, Transfer, TransferError, is_refusal};

/// The most that one call moves: a stop request, the rate limit and the progress bar wait no longer.
const CALL_BYTES: usize = 4 << 20;

/// Copies a range by copy_file_range(2). Bytes before the end that the kernel does not copy, without an error, are a
/// refusal: procfs and some FUSE file systems return 0 although there are bytes.
pub(super) fn copy_file_range_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    const CALL: &str = "copy_file_range";
    while *at < end {
        let (mut from, mut to) = (*at, *at);
        let bytes = in_kernel_chunk(transfer, *at, end);
        transfer.tally.call(CALL);
        let call =
            || copy_file_range(transfer.source, Some(&mut from), transfer.target, Some(&mut to), bytes);
        if let Some(refused) = note_moved(transfer, at, CALL, retry_on_intr(call))? {
            return Ok(refused);
        }
    }
    Ok(RangeEnd::Complete)
}

/// Copies a range by sendfile(2), which writes at the target's file offset.
pub(super) fn sendfile_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    const CALL: &str = "sendfile";
    seek(transfer.target, SeekFrom::Start(*at))
        .map_err(|error| TransferError::Target("lseek", error.into()))?;
    while *at < end {
        let mut from = *at;
        let bytes = in_kernel_chunk(transfer, *at, end);
        transfer.tally.call(CALL);
        let moved = retry_on_intr(|| sendfile(transfer.target, transfer.source, Some(&mut from), bytes));
        if let Some(refused) = note_moved(transfer, at, CALL, moved)? {
            return Ok(refused);
        }
    }
    Ok(RangeEnd::Complete)
}

/// Copies a range by splice(2) through a pipe. The position moves when bytes arrive in the target; bytes that are still in
/// the pipe at a refusal are dropped with it and read again.
pub(super) fn splice_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    const CALL: &str = "splice";
    let (pipe_out, pipe_in) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| TransferError::Target("pipe", error.into()))?;
    // A smaller pipe is slower, not wrong.
    let pipe_bytes =
        fcntl_setpipe_size(&pipe_in, MAX_PIPE_BYTES as usize).unwrap_or(DEFAULT_PIPE_BYTES as usize);
    while *at < end {
        let mut from = *at;
        let bytes = in_kernel_chunk(transfer, *at, end).min(pipe_bytes);
        transfer.tally.call(CALL);
        let filled = || splice(transfer.source, Some(&mut from), &pipe_in, None, bytes, SpliceFlags::MOVE);
        let mut held = match retry_on_intr(filled) {
            Ok(0) => return Ok(RangeEnd::Refused { call: CALL, errno: None }),
            Ok(held) => held,
            Err(errno) if is_refusal(errno) => {
                return Ok(RangeEnd::Refused { call: CALL, errno: Some(errno) });
            }
            Err(errno) => return Err(TransferError::Source(CALL, errno.into())),
        };
        while held > 0 {
            let mut to = *at;
            transfer.tally.call(CALL);
            let drained = || splice(&pipe_out, None, transfer.target, Some(&mut to), held, SpliceFlags::MOVE);
            let moved = retry_on_intr(drained);
            if let Some(refused) = note_moved(transfer, at, CALL, moved)? {
                return Ok(refused);
            }
            held -= moved.unwrap_or(0);
        }
    }
    Ok(RangeEnd::Complete)
}

/// Notes the bytes that a call has moved into the target. Returns the end of the range if the kernel refused the call.
fn note_moved(
    transfer: &mut Transfer,
    at: &mut u64,
    call: &'static str,
    moved: Result<usize, Errno>,
) -> Result<Option<RangeEnd>, TransferError> {
    match moved {
        Ok(0) => Ok(Some(RangeEnd::Refused { call, errno: None })),
        Ok(moved) => {
            transfer.arrived(*at, moved as u64)?;
            *at += moved as u64;
            Ok(None)
        }
        Err(errno) if is_refusal(errno) => Ok(Some(RangeEnd::Refused { call, errno: Some(errno) })),
        Err(errno) => Err(TransferError::Target(call, errno.into())),
    }
}

fn in_kernel_chunk(transfer: &Transfer, at: u64, end: u64) -> usize {
    // These calls need no buffer, so that its size is a limit only if the user chose it.
    let wanted = if transfer.chunk_is_chosen { transfer.chunk } else { CALL_BYTES };
    let chunk = transfer.control.chunk(wanted);
    usize::try_from(end - at).map_or(chunk, |left| left.min(chunk))
}
