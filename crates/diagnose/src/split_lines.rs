//! Lines that a process writes in several calls, and that a write of another process splits.

use std::collections::BTreeMap;

use weir_model::StreamKind;
use weir_model::trace::{FIRST_CALLS, OpenFile, StreamCounts};

use crate::context::{RuleContext, TimedCall};
use crate::text::is_plain;

/// The most writes of one stream that are examined.
const EXAMINED_CALLS: usize = 64;

/// The most calls that write one line on average. A progress line has more dots.
const MAX_PIECES: u64 = 32;

/// A line whose two pieces have a write of another process between them.
pub(crate) struct SplitLine<'a> {
    /// Index of the stream in the list of writers.
    pub writer: usize,
    /// Index of the stream of the write between the pieces.
    pub other: usize,
    pub piece: &'a [u8],
    pub between: &'a [u8],
    pub rest: &'a [u8],
    from_s: f64,
    to_s: f64,
}

/// The line that a stream has begun.
struct OpenLine<'a> {
    from_s: f64,
    last_s: f64,
    /// The last write of the line.
    piece: &'a [u8],
    /// The first write of each other stream after the last piece.
    since: BTreeMap<usize, &'a [u8]>,
    /// The split by each other stream: the piece before its write, the write, and the piece after it.
    splits: BTreeMap<usize, [&'a [u8]; 3]>,
}

impl<'a> OpenLine<'a> {
    fn new(write: &TimedCall<'a>) -> Self {
        let (from_s, piece) = (write.at_s, write.call.head.as_slice());
        OpenLine { from_s, last_s: from_s, piece, since: BTreeMap::new(), splits: BTreeMap::new() }
    }

    /// Adds the next piece of the line. The writes of other streams since the last one have split the line.
    fn add(&mut self, write: &TimedCall<'a>) {
        for (other, between) in std::mem::take(&mut self.since) {
            self.splits.entry(other).or_insert([self.piece, between, &write.call.head]);
        }
        (self.last_s, self.piece) = (write.at_s, &write.call.head);
    }

    /// Returns the splits of the line of this writer, one for each other stream.
    fn into_splits(self, writer: usize) -> impl Iterator<Item = SplitLine<'a>> {
        let (from_s, to_s) = (self.from_s, self.last_s);
        self.splits.into_iter().map(move |(other, [piece, between, rest])| SplitLine {
            writer,
            other,
            piece,
            between,
            rest,
            from_s,
            to_s,
        })
    }
}

/// The unfinished lines of the writers of one target.
///
/// The writes are added in the order of their times. Each one continues the line of its own stream, and is noted in the unfinished
/// lines of other processes. If such a line continues later, this write is in its middle.
struct OpenLines<'w, 'a> {
    writers: &'w [&'w StreamCounts],
    /// By the index of the writer.
    open: Vec<Option<OpenLine<'a>>>,
    /// The splits of finished lines.
    split: Vec<SplitLine<'a>>,
}

impl<'w, 'a> OpenLines<'w, 'a> {
    fn new(writers: &'w [&'w StreamCounts]) -> Self {
        OpenLines { writers, open: writers.iter().map(|_| None).collect(), split: Vec::new() }
    }

    fn add(&mut self, writer: usize, write: &TimedCall<'a>) {
        self.note_in_other_lines(writer, write);
        let line = match self.open[writer].take() {
            Some(mut line) => {
                line.add(write);
                line
            }
            None => OpenLine::new(write),
        };
        if ends_line(write) {
            self.split.extend(line.into_splits(writer));
        } else {
            self.open[writer] = Some(line);
        }
    }

    fn note_in_other_lines(&mut self, writer: usize, write: &TimedCall<'a>) {
        for (line, other) in self.open.iter_mut().zip(self.writers) {
            if let Some(line) = line.as_mut().filter(|_| other.pid != write.pid) {
                line.since.entry(writer).or_insert(&write.call.head);
            }
        }
    }

    /// Returns the splits of all lines, also of those whose end was not recorded.
    fn into_splits(mut self) -> Vec<SplitLine<'a>> {
        for (writer, line) in self.open.into_iter().enumerate() {
            let line = line.filter(|_| ends_lines(self.writers[writer]));
            self.split.extend(line.into_iter().flat_map(|line| line.into_splits(writer)));
        }
        self.split
    }
}

/// Returns the lines of the writers of one target that writes of other processes have split, in recorded order. A process that
/// waits for another one while its own line is unfinished is not split by it.
pub(crate) fn split_lines<'a>(context: &RuleContext<'a>, writers: &[&StreamCounts]) -> Vec<SplitLine<'a>> {
    let mut lines = OpenLines::new(writers);
    for (writer, write) in writes_in_order(context, writers) {
        lines.add(writer, &write);
    }
    let mut lines = lines.into_splits();
    lines.retain(|line| !context.has_gap_of_any(line.from_s, line.to_s));
    let mut lines = keep_concurrent(context, writers, lines);
    lines.dedup_by_key(|line| (line.writer, line.from_s.to_bits()));
    lines
}

/// Returns the first writes of all writers in the order of their times, each with the index of its writer.
fn writes_in_order<'a>(context: &RuleContext<'a>, writers: &[&StreamCounts]) -> Vec<(usize, TimedCall<'a>)> {
    let of = |(writer, stream): (usize, &&StreamCounts)| {
        first_writes(context, stream).into_iter().map(move |write| (writer, write))
    };
    let mut writes: Vec<(usize, TimedCall)> = writers.iter().enumerate().flat_map(of).collect();
    writes.sort_by(|a, b| a.1.at_s.total_cmp(&b.1.at_s));
    writes
}

/// Returns whether a stream writes lines of a few calls each, so that one whose end was not recorded has an end.
fn ends_lines(stream: &StreamCounts) -> bool {
    stream.newline_ends >= 3 && stream.moving_calls() <= stream.newline_ends * MAX_PIECES
}

fn ends_line(write: &TimedCall) -> bool {
    write.call.tail == Some(b'\n')
}

/// Returns the first recorded writes of a stream. Only in gaps can writes between them be missing. Returns none unless it writes
/// lines of text: the calls of a progress line begin with a carriage return, and those of a binary format are no lines.
pub(crate) fn first_writes<'a>(context: &RuleContext<'a>, stream: &StreamCounts) -> Vec<TimedCall<'a>> {
    let is_own = |timed: &&TimedCall| {
        let image = || context.image_at(timed.pid, timed.at_s).map_or(0, |(index, _)| index);
        let call = timed.call;
        let moves = call.op.writes() && call.op.offset_argument(&call.args).is_none() && call.result > 0;
        moves && (timed.pid, call.fd) == (stream.pid, stream.fd) && image() == stream.image as usize
    };
    let own = context.calls_on(stream.file).iter().filter(is_own);
    let mut writes: Vec<TimedCall> = own.copied().collect();
    let all = stream.exact && writes.len() as u64 >= stream.moving_calls();
    writes.truncate(if all { EXAMINED_CALLS } else { FIRST_CALLS as usize });
    let is_text = |write: &TimedCall| {
        let head = &write.call.head;
        !head.is_empty()
            && write.call.tail.is_some()
            && head.iter().all(|&byte| is_plain(byte) && byte != b'\r')
    };
    if !writes.iter().all(is_text) || !(writes.iter().any(ends_line) || ends_lines(stream)) {
        writes.clear();
    }
    writes
}

/// Removes the lines of a process that may have waited for the other one: then the write between is meant to be there. Two processes
/// that split each other's lines do not wait. Without that, only logs count, as standard output may have status lines
/// ("testing … ok"), and no process and its descendant.
fn keep_concurrent<'a>(
    context: &RuleContext,
    writers: &[&StreamCounts],
    lines: Vec<SplitLine<'a>>,
) -> Vec<SplitLine<'a>> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for line in &lines {
        *counts.entry((writers[line.writer].pid, writers[line.other].pid)).or_default() += 1;
    }
    let is_kept = |line: &SplitLine| {
        let (pid, other) = (writers[line.writer].pid, writers[line.other].pid);
        let count = |of: u32, by: u32| counts.get(&(of, by)).copied().unwrap_or(0);
        let mutual = count(pid, other).min(count(other, pid));
        let related = context.is_descendant(pid, other) || context.is_descendant(other, pid);
        let (torn, between) = (writers[line.writer], writers[line.other]);
        let least = if related { 2 } else { 1 };
        let waits_not = mutual >= least || !related && is_log(context, torn, between);
        waits_not && has_one_end(context, torn, between)
    };
    lines.into_iter().filter(is_kept).collect()
}

/// Returns whether each write of both streams goes to the current end of the target, so that none overwrites another.
pub(crate) fn has_one_end(context: &RuleContext, torn: &StreamCounts, other: &StreamCounts) -> bool {
    let is_file = context.kind(torn.file) == StreamKind::File;
    !is_file || torn.file == other.file || appends(context, torn) && appends(context, other)
}

/// Returns whether the target is a file to which both append, and that is not the output that both have inherited.
fn is_log(context: &RuleContext, torn: &StreamCounts, other: &StreamCounts) -> bool {
    let inherited = torn.file == other.file && torn.fd <= 2;
    context.kind(torn.file) == StreamKind::File && appends(context, torn) && !inherited
}

fn appends(context: &RuleContext, stream: &StreamCounts) -> bool {
    context.file(stream.file).is_some_and(OpenFile::appends)
}
