//! held-output: a program holds its output back though it could have written it; its calls or its input buffer show it, where
//! no snapshot of its output buffer does.
//!
//! Evidence, one of: (1) It writes text in full blocks that end in the middle of lines, a second or more apart, while input
//! arrives in between, or while it waits. A reader that is slow does not cause this: the bytes fit into the pipe. (2) Whole
//! lines of input stay in a buffer that the program uses only when it is full. Output that all follows the end of the input
//! is no evidence, because a sort cannot write earlier, unless (2) shows that the output is what was held, or a signal ended
//! the program before it used the lines. Not reported: programs that copy bytes into blocks (dd), that limit a rate, or whose
//! bytes are no text (gzip). While a program with unreadable buffers still runs and has taken input without any output, the
//! finding says what is not decided, as info.

use weir_model::duration::format_seconds;
use weir_model::pipe::DEFAULT_PIPE_BYTES;
use weir_model::trace::{Buffer, FIRST_CALLS, StreamCounts};
use weir_model::{Direction, Finding, Severity, SourceLanguage, StreamKind};

use crate::awk_program::prints_every_record;
use crate::code_fix::CodeFix;
use crate::context::{RuleContext, TimedCall, same_prefix};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::{count, is_plain, oldest_of, preview, signal_name, thousands};
use crate::unused_input::UnusedInput;

pub(crate) const RULE: Rule = Rule {
    id: "held-output",
    title: "Output appears late",
    meaning: "a program holds output back until a block is full, though its input arrives piece by piece",
    position: 45,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::Warn },
    gain: GainKind::None,
    info_is_undecided: true,
    judge,
    ..Rule::DEFAULT
};

/// Seconds after which a user misses a line. Calls and snapshots are not on time to the millisecond.
const MIN_S: f64 = 0.95;

/// The reads before a write that show input arriving piece by piece: after each of them the program waited for more.
const MIN_READS: usize = 3;

/// Seconds that the recorded reads take at least. A program that reads ahead takes less.
const MIN_SPREAD_S: f64 = 0.1;

/// The buffer sizes of C libraries and runtimes, from 1 KiB to 64 KiB.
const BLOCK_SHIFTS: std::ops::RangeInclusive<u32> = 10..=16;

/// A lower limit for the capacity of a socket.
const MIN_SOCKET_BYTES: u64 = 65_536;
const PAGE_BYTES: u64 = 4096;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let outputs = context
        .streams(Direction::Out)
        .filter(|output| output.calls > 1 && output.last_s >= MIN_S && !context.is_null(output.file));
    let mut found: Vec<Finding> = outputs.filter_map(|output| judge_blocks(context, output)).collect();
    let pids = || context.recording.processes.iter().map(|process| process.pid);
    found.extend(pids().filter_map(|pid| judge_unused_input(context, pid)));
    let unreadable = context.recording.unreadable.iter().flat_map(|one| one.pids.iter().copied());
    found.extend(unreadable.filter_map(|pid| judge_silence(context, pid)));
    found
}

/// Returns the first calls of a stream that moved bytes, all of which are recorded.
fn first_calls<'a>(context: &RuleContext<'a>, stream: &StreamCounts) -> Vec<TimedCall<'a>> {
    let is_own = |timed: &&TimedCall| {
        let call = timed.call;
        let moves = if stream.direction == Direction::In { call.op.reads() } else { call.op.writes() };
        timed.pid == stream.pid && call.fd == stream.fd && moves
    };
    let calls = context.calls_on(stream.file).iter().filter(is_own).take(FIRST_CALLS as usize);
    calls.filter(|timed| timed.call.result > 0).copied().collect()
}

/// The size of the blocks that a program writes.
#[derive(Clone, Copy)]
struct BlockSize {
    bytes: u64,
    /// Every write has exactly this size, and one ends in the middle of a line. Otherwise the sizes differ by less than a
    /// record: a library that writes whole records only.
    exact: bool,
}

impl BlockSize {
    fn of(writes: &[TimedCall]) -> Option<Self> {
        let sizes: Vec<u64> = writes.iter().map(|timed| timed.call.result as u64).collect();
        let is_cut = writes.iter().any(|timed| timed.call.tail.is_some_and(|tail| tail != b'\n'));
        let differ = sizes.windows(2).any(|pair| pair[0] != pair[1]);
        let fits = |bytes: u64| {
            let exact = sizes.iter().all(|&size| size == bytes);
            let near = bytes >= PAGE_BYTES && sizes.iter().all(|size| size.abs_diff(bytes) <= bytes / 8);
            (exact && is_cut || near && differ).then_some(Self { bytes, exact })
        };
        BLOCK_SHIFTS.map(|shift| 1 << shift).find_map(fits)
    }
}

/// Judges an output by evidence (1).
fn judge_blocks(context: &RuleContext, output: &StreamCounts) -> Option<Finding> {
    let mut writes = first_calls(context, output);
    let moving = output.moving_calls();
    if writes.len() as u64 == moving {
        writes.pop(); // what was left at the end, or at a flush
    }
    let first_s = writes.first()?.at_s;
    let block = BlockSize::of(&writes)?;
    if context.is_private(output.file, first_s) || context.writes_blocks_by_option(output.pid, first_s) {
        return None;
    }
    let input = arriving_input(context, output, &writes);
    // Without input the first block may have been there at once.
    let (since_s, held) =
        input.map_or((first_s, &writes[1..]), |input| (input.since_s, &writes[input.write..]));
    let last_s = held.last()?.at_s;
    let starts = std::iter::once(since_s).chain(held.iter().map(|timed| timed.at_s));
    let spans: Vec<f64> = held.iter().zip(starts).map(|(timed, start_s)| timed.at_s - start_s).collect();
    let long = spans.iter().filter(|&&span_s| span_s >= MIN_S).count();
    // One block that ends in the middle of a line is enough if pieces of input came before and after it.
    let least = if input.is_some() && block.exact { 1 } else { 2 };
    if long < least
        || long * 2 <= spans.len()
        || !is_text(&writes)
        || context.has_gap(output.pid, since_s, last_s)
    {
        return None;
    }
    let waits = input.is_some() || is_idle(context, output, [since_s, last_s]);
    if !waits || !fits_its_pipe(context, output, &writes) {
        return None;
    }
    let held_s = spans.iter().copied().fold(0.0, f64::max);
    Some(blocks_finding(context, output, block, held_s, (since_s, input.map(|input| input.stream))))
}

/// Input that arrives piece by piece before a write, until long after it.
#[derive(Clone, Copy)]
struct ArrivingInput<'a> {
    stream: &'a StreamCounts,
    /// The index of the write, and the time of the first piece since the write before.
    write: usize,
    since_s: f64,
}

/// Returns the input of which pieces came both before a write and after it.
fn arriving_input<'a>(
    context: &RuleContext<'a>,
    output: &StreamCounts,
    writes: &[TimedCall],
) -> Option<ArrivingInput<'a>> {
    let first_s = writes.first()?.at_s;
    let mut inputs = context.streams_of(output.pid).iter().copied().filter(|input| {
        let is_input = input.direction == Direction::In && input.image == output.image;
        is_input && arrives(context, input) && input.last_s >= first_s + MIN_S
    });
    inputs.find_map(|stream| {
        let reads = first_calls(context, stream);
        let usable = is_text(&reads) && !fills_a_block(&reads);
        let of_write = |write: usize| {
            let since_s = pieces_before(&reads, writes, write)?;
            let ends_later = stream.last_s >= writes[write].at_s + MIN_S;
            ends_later.then_some(ArrivingInput { stream, write, since_s })
        };
        (0..writes.len()).filter(|_| usable).find_map(of_write)
    })
}

/// Returns the time of the first read between a write and the one before, if the reads show that input arrives in pieces.
fn pieces_before(reads: &[TimedCall], writes: &[TimedCall], write: usize) -> Option<f64> {
    let written_s = writes[write].at_s;
    let before_s = if write == 0 { f64::NEG_INFINITY } else { writes[write - 1].at_s };
    let begin = reads.partition_point(|timed| timed.at_s <= before_s);
    let end = reads.partition_point(|timed| timed.at_s < written_s);
    let pieces = reads.get(begin..end)?;
    let (first_s, last_s) = (pieces.first()?.at_s, pieces.last()?.at_s);
    // If more reads came than are recorded, these must have taken some time; otherwise they cover most of the time.
    let spread_s = if end == FIRST_CALLS as usize { MIN_SPREAD_S } else { (written_s - first_s) / 2.0 };
    (pieces.len() >= MIN_READS && last_s - first_s >= spread_s).then_some(first_s)
}

/// Returns whether bytes come into an open file over time: a regular file has them all.
fn arrives(context: &RuleContext, stream: &StreamCounts) -> bool {
    matches!(context.kind(stream.file), StreamKind::Pipe | StreamKind::Socket | StreamKind::Terminal)
}

/// Returns whether most reads ask for what the read before left of a block: the program collects bytes in blocks, as dd does
/// on request.
fn fills_a_block(reads: &[TimedCall]) -> bool {
    let continues = |pair: &&[TimedCall]| {
        pair[0].call.requested_bytes.checked_sub(pair[0].call.result as u64)
            == Some(pair[1].call.requested_bytes)
    };
    reads.windows(2).filter(continues).count() * 2 + 1 > reads.len()
}

/// Returns whether the first bytes of all calls are text.
fn is_text(calls: &[TimedCall]) -> bool {
    calls.iter().all(|timed| timed.call.head.iter().all(|byte| is_plain(*byte)))
}

/// Returns whether a process mostly waits between two times, and does not pass on an input at a limited rate. An input that
/// was read long before the first output is no such input: runtimes read their own files at the start.
fn is_idle(context: &RuleContext, output: &StreamCounts, [since_s, last_s]: [f64; 2]) -> bool {
    let Some(process) = context.process(output.pid) else { return false };
    let busy_s = process.user_s + process.system_s + process.queued_s.unwrap_or(0.0);
    let copies = |input: &&StreamCounts| {
        let is_read = input.direction == Direction::In && input.last_s + MIN_S >= since_s;
        is_read && input.bytes >= output.bytes / 2
    };
    busy_s < (last_s - since_s) / 2.0
        && !context.streams_of(output.pid).iter().copied().any(|input| copies(&input))
}

/// Returns whether no write can have waited for a reader.
fn fits_its_pipe(context: &RuleContext, output: &StreamCounts, writes: &[TimedCall]) -> bool {
    let bytes: u64 = writes.iter().map(|timed| (timed.call.result as u64).next_multiple_of(PAGE_BYTES)).sum();
    let capacity = match context.kind(output.file) {
        StreamKind::Pipe => {
            context.file(output.file).and_then(|file| file.pipe_bytes).unwrap_or(DEFAULT_PIPE_BYTES)
        }
        StreamKind::Socket => MIN_SOCKET_BYTES,
        StreamKind::Terminal => return false,
        _ => return true,
    };
    let key = context.target_key(output.file);
    let is_other =
        |stream: &&StreamCounts| stream.pid != output.pid && context.target_key(stream.file) == key;
    let others: u64 = context.streams(Direction::Out).filter(is_other).map(|stream| stream.bytes).sum();
    bytes + others <= capacity
}

fn blocks_finding(
    context: &RuleContext,
    output: &StreamCounts,
    block: BlockSize,
    held_s: f64,
    (since_s, input): (f64, Option<&StreamCounts>),
) -> Finding {
    let about = if block.exact { "" } else { "about " };
    let meanwhile = match input {
        Some(_) => "while input arrives in between",
        None => "and waits in between",
    };
    let why = format!(
        "{} writes only full blocks of {about}{} bytes, up to {} apart, {meanwhile}: a line can appear {} late.",
        context.name_at(output.pid, since_s),
        thousands(block.bytes),
        format_seconds(held_s),
        format_seconds(held_s)
    );
    let code = flush_advice(context, output, since_s);
    let finding = context.finding(&RULE, Severity::Warn, output.pid, output.fd, Some(output.file));
    let finding =
        finding.count("block_bytes", block.bytes).figure("held_s", held_s).figure("since_s", since_s);
    finding.count("reads", input.map_or(0, |input| input.calls)).build_with_command(why, None, code)
}

/// Returns how the code lets its lines out: a flush, in a language whose library has buffers that no walker reads. In other
/// languages the buffer is the program's own.
fn flush_advice(context: &RuleContext, output: &StreamCounts, since_s: f64) -> String {
    let stream = (output.fd, Some(output.file));
    match context.language(output.pid, since_s) {
        SourceLanguage::Cpp | SourceLanguage::Java | SourceLanguage::Rust | SourceLanguage::Go => {
            context.code_fix(output.pid, since_s, stream, CodeFix::Flush).to_string()
        }
        _ => OWN_BUFFER.to_string(),
    }
}

/// The advice for a buffer of the program's own.
const OWN_BUFFER: &str = "write each line when it is complete, at least before the program waits for more";

/// Judges a process by evidence (2).
fn judge_unused_input(context: &RuleContext, pid: u32) -> Option<Finding> {
    let span = UnusedInput::longest(context, pid).filter(|span| span.length_s() >= MIN_S)?;
    let (buffer, since_s, held_s) = (span.buffer, span.first.at_s, span.length_s());
    let own = context.streams_of(pid).iter().copied();
    let input = own.clone().find(|input| input.direction == Direction::In && input.fd == buffer.fd)?;
    let later = own
        .filter(|output| output.direction == Direction::Out && output.bytes > 0 && output.last_s > since_s);
    let output = later.max_by_key(|output| output.bytes);
    let killed = span.ended_by(context).map(|number| (number, severity_of_loss(context, &span)));
    let severity = match (output, killed) {
        (Some(output), _) => severity_of_output(context, input, output, buffer),
        (None, None) if context.process(pid)?.ended_s.is_none() => Some(Severity::Info),
        _ => None,
    };
    let severity = severity.max(killed.and_then(|(_, severity)| severity))?;
    let why = format!(
        "{} has held {} of input unused for {}{}: it waits until its input buffer of {} bytes is full. They begin {}.{}",
        context.name_at(pid, since_s),
        oldest_of(span.oldest_bytes, buffer.unread_bytes),
        format_seconds(held_s),
        killed.map_or(String::new(), |(number, _)| format!(", until {} ended it", signal_name(number))),
        thousands(buffer.buffer_bytes),
        preview(&buffer.unread),
        match (killed, severity) {
            (None, _) => "",
            (_, Severity::Info) => " If it would have written something for them, that is lost.",
            _ => " What it would have written for them is lost.",
        }
    );
    let command = context.weir_run(RunOption::MaxDelay, pid, since_s);
    let stream = output.unwrap_or(input);
    let finding = context.finding(&RULE, severity, pid, stream.fd, Some(stream.file));
    let finding = finding.count("unused_bytes", buffer.unread_bytes).figure("held_s", held_s);
    let finding = finding.figure("since_s", since_s).count("buffer_bytes", buffer.buffer_bytes);
    Some(finding.build_with_command(
        why,
        command,
        "mawk -W interactive instead of mawk, if the input has no NUL bytes",
    ))
}

/// Returns how certain it is that output is missing because a signal ended the process before it used its input: certain if the
/// program prints every record. None if the output is discarded.
fn severity_of_loss(context: &RuleContext, span: &UnusedInput) -> Option<Severity> {
    let (pid, at_s) = (span.last.pid, span.last.at_s);
    let output = context.file_at(pid, 1, at_s);
    if output.is_some_and(|file| context.is_null(file)) {
        return None;
    }
    let is_read = output.is_none_or(|file| !context.readers_exited(file, at_s));
    let prints = context.image_at(pid, at_s).is_some_and(|(_, image)| prints_every_record(image));
    Some(if prints && is_read { Severity::Warn } else { Severity::Info })
}

/// Returns how certain it is that earlier use of the input would have made this output earlier; None for a program such as
/// a counter, which writes a few bytes at the end of its input.
fn severity_of_output(
    context: &RuleContext,
    input: &StreamCounts,
    output: &StreamCounts,
    held: &Buffer,
) -> Option<Severity> {
    let writes = first_calls(context, output);
    let heads = || writes.iter().flat_map(|timed| &timed.call.head);
    let copied = output.bytes == input.bytes
        && writes.first().is_some_and(|timed| same_prefix(&timed.call.head, &held.unread));
    if output.first_s + MIN_S <= input.last_s || copied {
        return Some(Severity::Warn);
    }
    let lines = heads().filter(|&&byte| byte == b'\n').count();
    (lines > 1 && output.bytes >= input.bytes / 4).then_some(Severity::Info)
}

/// Judges a process that still runs, has taken input piece by piece for a second, and has written nothing.
fn judge_silence(context: &RuleContext, pid: u32) -> Option<Finding> {
    context.process(pid).filter(|process| process.ended_s.is_none())?;
    let own = || context.streams_of(pid).iter().copied();
    let input = own().find(|input| {
        let taken_s = input.last_s - input.first_s;
        input.direction == Direction::In && arrives(context, input) && taken_s >= MIN_S
    })?;
    let (reads, taken_s) = (first_calls(context, input).len(), input.last_s - input.first_s);
    if reads < MIN_READS || own().any(|stream| stream.direction == Direction::Out && stream.bytes > 0) {
        return None;
    }
    let why = format!(
        "{} has read {} in {} and written nothing. It holds its output back, or it answers only at the end of its input: its \
         buffers cannot be read.",
        context.stream_name(input),
        count(input.bytes, "byte"),
        format_seconds(taken_s)
    );
    let fix = format!("If it should have answered: {OWN_BUFFER}.");
    let finding = context.finding(&RULE, Severity::Info, pid, input.fd, Some(input.file));
    Some(finding.count("reads", input.calls).figure("held_s", taken_s).build(why, fix))
}
