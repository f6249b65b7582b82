//! Patterns of a stream's calls that several rules ask for.

use weir_model::trace::{Call, Op, OpenFile, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;
use crate::flags::{O_CREAT, O_DIRECT, O_DSYNC, O_TRUNC, RWF_SYNCS, SEEK_CUR};

/// A call that moves fewer bytes is tiny.
pub(crate) const TINY: u64 = 512;

/// A record of this size is worth a call, even if it is one line.
const LONG_LINE: f64 = 1024.0;

/// The number of reads of each byte, on average, from which a file counts as read over and over.
const REREAD_TIMES: u64 = 4;

/// A program that copies its input unchanged in pieces of about 1 KiB or more gains more by a copy in the kernel. The mean is
/// less than the piece, because the last call of a file is shorter.
const COPIED_PIECE: f64 = 900.0;

/// Returns whether a call is an lseek(2) that does more than ask for the offset.
pub(crate) fn moves_offset(call: &Call) -> bool {
    call.op == Op::Lseek && !(call.args[1] == 0 && call.args[2] == SEEK_CUR)
}

/// Returns whether a stream's calls are tiny: most writes move less than half of [`TINY`] bytes, or nearly all reads ask for
/// less than [`TINY`].
pub(crate) fn is_tiny(stream: &StreamCounts) -> bool {
    let asked = if stream.requested_sizes.total() > 0 { &stream.requested_sizes } else { &stream.sizes };
    let most = match stream.direction {
        Direction::In => asked.below(TINY) * 10 >= asked.total() * 9,
        _ => stream.sizes.below(TINY / 2) * 2 >= stream.sizes.total().max(1),
    };
    stream.mean_bytes() < TINY as f64 && most
}

/// Returns whether nearly all calls of a stream are smaller than half the knee of this machine, one after the other. Direct I/O
/// and copies have rules of their own.
pub(crate) fn is_below_knee(context: &RuleContext, stream: &StreamCounts) -> bool {
    let mean = stream.mean_bytes();
    let knee = context.knee_bytes(stream);
    let requests = if stream.direction == Direction::In { &stream.requested_sizes } else { &stream.sizes };
    let small = mean < knee as f64 / 2.0 && requests.below(knee) * 10 >= requests.total() * 9;
    let direct = context.file(stream.file).is_some_and(|file| file.flags & O_DIRECT != 0);
    small
        && !direct
        && stream.jumps * 10 < stream.calls
        && stream.in_kernel == 0
        && (mean < COPIED_PIECE || !context.is_passed_through(stream))
}

/// Returns whether a stream is written line by line.
pub(crate) fn is_line_by_line(stream: &StreamCounts) -> bool {
    let calls = stream.moving_calls();
    calls >= 100 && stream.newline_ends * 10 >= calls * 9 && (2.0..LONG_LINE).contains(&stream.mean_bytes())
}

/// Returns whether each write of a stream waits for the device, by the file's flags or by the calls' own.
pub(crate) fn is_synchronous(context: &RuleContext, stream: &StreamCounts) -> bool {
    let by_file = context.file(stream.file).is_some_and(|file| file.flags & O_DSYNC != 0);
    let calls = context.calls_on(stream.file).iter();
    let mut writes = calls.filter(|timed| timed.pid == stream.pid && timed.call.op.writes()).peekable();
    let by_call = writes.peek().is_some()
        && writes.all(|timed| timed.call.op == Op::Pwritev2 && timed.call.args[5] & RWF_SYNCS != 0);
    by_file || by_call
}

/// Returns whether a stream reads the same bytes of a regular file over and over, with seeks between.
pub(crate) fn rereads(context: &RuleContext, stream: &StreamCounts) -> bool {
    let Some(file) = context.file(stream.file).filter(|file| file.kind == StreamKind::File) else {
        return false;
    };
    let over = file.size_bytes.is_some_and(|size| size > 0 && stream.bytes / REREAD_TIMES >= size);
    let moves = stream.jumps.max(stream.seeks);
    over && stream.again_bytes >= stream.bytes / 2 && moves >= 50 && moves * 5 >= stream.calls
}

/// Returns whether many writes begin or end within a block whose other bytes must be kept, so that their alignment may
/// explain what they cost.
pub(crate) fn straddles_blocks(context: &RuleContext, stream: &StreamCounts) -> bool {
    let Some(file) = context.file(stream.file).filter(|file| file.kind == StreamKind::File) else {
        return false;
    };
    let many = stream.moving_calls() >= 100 && stream.unaligned * 10 >= stream.calls;
    many && stream.mean_bytes() >= TINY as f64
        && (overwrites(context, file, stream) || file.flags & O_DSYNC != 0)
}

/// Returns whether the blocks around the writes held data before. For a file that was open before the run the flags of
/// open(2) are unknown, and only its size shows that: it has more bytes than the stream wrote, those of sampling gaps included.
fn overwrites(context: &RuleContext, file: &OpenFile, stream: &StreamCounts) -> bool {
    let not_new = file.opened_by.is_some() && file.flags & O_CREAT == 0;
    let written = context.with_unassigned(stream);
    let larger = file.size_bytes.is_some_and(|size| size > written.saturating_add(written / 20));
    (not_new || larger) && file.flags & O_TRUNC == 0 && !file.appends()
}
