//! over-read: a program reads more of a shared input than it uses, so the next program misses the rest.
//!
//! Evidence: its buffer had unread bytes when it ended, executed another program, or at its last snapshot; another program
//! reads the same open file afterwards; and no lseek(2) gave the bytes back. If no walker knows the buffer: the program read
//! in blocks, stopped before end of file, and did not write all that it read; or it read to the end, and the next program of the
//! same shell got nothing (warn, because it is unknown how much it used). dd and head -c read exactly what they write.

use weir_model::trace::{Buffer, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Finding, Severity};

use crate::call_patterns::moves_offset;
use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext};
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{count, preview};

pub(crate) const RULE: Rule = Rule {
    id: "over-read",
    title: "The next program misses input",
    meaning: "a program reads more than it uses from a descriptor that the next program shares",
    position: 90,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnPath("shared-offset")],
    judge,
    ..Rule::DEFAULT
};

/// A read that asks for at least this many bytes asks for a block, not for a record.
const BLOCK: u64 = 1024;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context
        .streams(Direction::In)
        .filter(|stream| stream.bytes > 0 && context.is_shareable_input(stream.file));
    streams
        .filter_map(|stream| {
            let next = next_reader(context, stream)?;
            judge_stream(context, stream, next)
        })
        .collect()
}

/// Returns the stream of the program that reads the same open file after this one's last read. Two programs that read side by
/// side share the file on purpose.
fn next_reader<'a>(context: &RuleContext<'a>, stream: &StreamCounts) -> Option<&'a StreamCounts> {
    let others = context.streams_on(stream.file).iter().copied().filter(|other| {
        let other_program = (other.pid, other.image) != (stream.pid, stream.image);
        let follows = other.pid == stream.pid
            || context.is_descendant(other.pid, stream.pid)
            || context.ended_at(stream.pid) <= other.first_s;
        other.direction == Direction::In && other_program && follows && other.first_s >= stream.last_s
    });
    others.min_by(|a, b| a.first_s.total_cmp(&b.first_s))
}

fn judge_stream(context: &RuleContext, stream: &StreamCounts, next: &StreamCounts) -> Option<Finding> {
    if gave_back(context, stream, next) || inherits_buffer(context, stream, next) {
        return None;
    }
    match last_snapshot(context, stream, next) {
        Some((snapshot, buffer)) => {
            let unread = buffer.unread_bytes;
            let image = context.image_at(snapshot.pid, snapshot.at_s);
            let own = image.is_some_and(|(image, _)| image as u32 == stream.image);
            (unread > 0 && own).then(|| finding(context, stream, next, Some((unread, &buffer.unread))))
        }
        None => {
            let likely = is_likely(context, stream, next) || leaves_nothing(context, stream, next);
            likely.then(|| finding(context, stream, next, None))
        }
    }
}

/// Returns whether the next reader was forked after the last read and runs the same program, so that it has a copy of the
/// buffer with the unread bytes.
fn inherits_buffer(context: &RuleContext, stream: &StreamCounts, next: &StreamCounts) -> bool {
    let forked = next.pid != stream.pid && context.forked_at(next.pid) >= stream.last_s;
    forked && next.image == 0 && context.is_descendant(next.pid, stream.pid)
}

/// Returns whether the program moved the offset by lseek(2) between its last read and the next reader's first.
fn gave_back(context: &RuleContext, stream: &StreamCounts, next: &StreamCounts) -> bool {
    context.calls(stream.pid).iter().any(|timed| {
        let same = timed.call.file.map_or(timed.call.fd == stream.fd, |file| file == stream.file);
        let between = timed.at_s >= stream.last_s && timed.at_s <= next.first_s;
        moves_offset(timed.call) && timed.call.result >= 0 && same && between
    })
}

/// Returns the descriptor's buffer as the program left it to the next reader: at its exec, exit or fork, else at the last
/// snapshot before. A snapshot at the read itself does not have that read's bytes yet.
fn last_snapshot<'a>(
    context: &RuleContext<'a>,
    stream: &StreamCounts,
    next: &StreamCounts,
) -> Option<(BufferSnapshot<'a>, &'a Buffer)> {
    let at_end = |snapshot: &BufferSnapshot| {
        matches!(snapshot.moment, SnapshotMoment::Exec | SnapshotMoment::Exit | SnapshotMoment::Fork)
    };
    let snapshots = context.snapshots(stream.pid).iter().filter(|snapshot| {
        let before_next = snapshot.at_s <= next.first_s || at_end(snapshot) && next.pid != stream.pid;
        snapshot.at_s >= stream.last_s && before_next
    });
    let buffers =
        snapshots.flat_map(|snapshot| snapshot.buffers.iter().map(move |buffer| (*snapshot, buffer)));
    // A stream that is closed before the end has a buffer of one byte, and none of what was in its buffer.
    let buffers = buffers.filter(|(_, buffer)| buffer.fd == stream.fd && buffer.buffer_bytes > 1);
    let ended = context.process(stream.pid).is_some_and(|process| process.ended_s.is_some());
    let buffers: Vec<_> =
        buffers.filter(|(snapshot, buffer)| at_end(snapshot) || buffer.unread_bytes > 0 || !ended).collect();
    buffers.iter().find(|(snapshot, _)| at_end(snapshot)).or(buffers.last()).copied()
}

/// Returns whether a program without a known buffer read in blocks, did not reach end of file, and wrote something else.
fn is_likely(context: &RuleContext, stream: &StreamCounts, next: &StreamCounts) -> bool {
    let size = context.file(stream.file).and_then(|file| file.size_bytes);
    let asks_all = next.bytes == 0 && size.is_some_and(|size| size > 0 && stream.bytes >= size);
    let blocks = asks_all || stream.max_requested_bytes >= BLOCK && stream.requested_sizes.below(BLOCK) == 0;
    blocks && stream.requested_sizes.total() > 0 && stream.zeros == 0 && uses_it_up(context, stream)
}

/// Returns whether a program read a file to its end, wrote something else, and the next program of the same shell got nothing.
fn leaves_nothing(context: &RuleContext, stream: &StreamCounts, next: &StreamCounts) -> bool {
    let parent = |pid: u32| context.process(pid).and_then(|process| process.parent);
    // The shell may have become the last program itself.
    let is_sibling = next.pid != stream.pid
        && parent(stream.pid).is_some_and(|shell| shell == next.pid || parent(next.pid) == Some(shell));
    let got_nothing = next.bytes == 0 && next.zeros > 0 && next.image > 0 && next.fd == stream.fd;
    stream.image > 0 && stream.zeros > 0 && is_sibling && got_nothing && uses_it_up(context, stream)
}

/// Returns whether a program read its input without a seek or an error, and wrote something else.
fn uses_it_up(context: &RuleContext, stream: &StreamCounts) -> bool {
    let wrote_all = |output: &&StreamCounts| {
        output.direction == Direction::Out && output.image == stream.image && output.bytes == stream.bytes
    };
    stream.errors == 0 && stream.seeks == 0 && !context.streams_of(stream.pid).iter().any(wrote_all)
}

fn finding(
    context: &RuleContext,
    stream: &StreamCounts,
    next: &StreamCounts,
    unread: Option<(u64, &Vec<u8>)>,
) -> Finding {
    let severity = if unread.is_some() { Severity::High } else { Severity::Warn };
    let reader = context.name_at(stream.pid, stream.first_s);
    let next_name = context.name_at(next.pid, next.first_s);
    let why = match unread {
        Some((bytes, text)) => format!(
            "{reader} left {} of its input unused in its buffer, and {next_name} reads on after them: it \
                misses {}.",
            count(bytes, "byte"),
            preview(text)
        ),
        None if next.bytes == 0 => format!(
            "{reader} read the last {} of the input in blocks of up to {}; {next_name} reads on after the last \
                block, not after the last used byte, and gets nothing.",
            count(stream.bytes, "byte"),
            count(stream.max_requested_bytes, "byte")
        ),
        None => format!(
            "{reader} read {} of the input in blocks of up to {} and stopped before its end; {next_name} reads \
                on after the last block, not after the last used byte.",
            count(stream.bytes, "byte"),
            count(stream.max_requested_bytes, "byte")
        ),
    };
    let object = (stream.fd, Some(stream.file));
    let code = context.code_fix(stream.pid, stream.first_s, object, CodeFix::ReadUnbuffered);
    let fix = format!(
        "let one program read it all; or read without a buffer up to where the next one begins: {code}, or the \
            shell's read -r; or give the input as a file and lseek(2) back (in C fflush(stdin) does) before the \
            next program starts."
    );
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.count("read_bytes", stream.bytes).count("next_read_bytes", next.bytes);
    let finding = finding.count("next", next.pid.into());
    match unread {
        Some((bytes, _)) => finding.count("unread_bytes", bytes).build(why, fix),
        None => finding.build(why, fix),
    }
}
