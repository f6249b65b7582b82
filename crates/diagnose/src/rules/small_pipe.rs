//! small-pipe: a pipe's capacity makes both sides wait for each other.
//!
//! Evidence: the writer hands over more at a time than the pipe holds, so it waits while the reader works, and
//! the reader waits while it makes the next. The reader's pace within a block tells how long its own work is, which is
//! no less than the processor time that it had; the rest of the time is the writer's. With room for a whole block both would work at once, and the longer of
//! the two is what remains. Where the pace is not known, the processor times stand for the work. A writer that only
//! hands a file on has no other work than to read it, however long it was kept from it. Never High.

use std::collections::HashMap;

use weir_model::trace::{Op, StreamCounts};
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::Context;
use crate::flags::F_SETPIPE_SZ;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::count;

pub(crate) const RULE: Rule = Rule {
    id: "small-pipe",
    title: "Pipe too small",
    meaning: "a pipe's capacity makes its writer and its reader wait for each other",
    position: 250,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::WaitTime,
    judge,
    ..Rule::DEFAULT
};

/// What a pipe holds if nobody says otherwise.
const CAPACITY: u64 = 65_536;

/// What anybody may set it to.
const ALLOWED: u64 = 1 << 20;

fn judge(context: &Context) -> Vec<Finding> {
    let mut readers: HashMap<String, Vec<&StreamCounts>> = HashMap::new();
    for flow in context.toward(Direction::In).filter(|flow| context.kind(flow.file) == StreamKind::Pipe) {
        readers.entry(context.target(flow.file)).or_default().push(flow);
    }
    let writers = context.toward(Direction::Out).filter(|flow| context.kind(flow.file) == StreamKind::Pipe);
    let hops = writers.filter_map(|writer| {
        let reader = readers
            .get(&context.target(writer.file))?
            .iter()
            .copied()
            .filter(|reader| reader.pid != writer.pid);
        found(context, writer, reader.max_by_key(|reader| reader.bytes)?)
    });
    hops.collect()
}

/// What room for a whole block would save, in seconds.
fn saved_s(context: &Context, writer: &StreamCounts, reader: &StreamCounts, capacity: u64) -> f64 {
    let span = (reader.last_s.max(writer.last_s) - reader.first_s.min(writer.first_s)).min(context.run_s());
    let waits = 1.0 - capacity as f64 / writer.asked_max.min(ALLOWED) as f64;
    let handed_on = context
        .passes(StreamKind::File, StreamKind::Pipe)
        .into_iter()
        .find(|pass| pass.output.pid == writer.pid && pass.output.file == writer.file);
    let most = handed_on.map_or(f64::INFINITY, |pass| context.whole_s(pass.input));
    if let Some(pace) = pace_s(context, reader) {
        let worked = context.cpu_s(reader.pid).unwrap_or(0.0);
        let reading = (pace * reader.calls as f64).max(worked).min(span);
        return (reading * waits).min(span - reading).min(most).max(0.0);
    }
    let (Some(writing), Some(reading)) = (context.cpu_s(writer.pid), context.cpu_s(reader.pid)) else {
        return 0.0;
    };
    (writing.min(most).min(reading) * waits).min(span - writing.max(reading)).max(0.0)
}

/// The time from one read to the next in which the reader works on what it got, as it is when nothing disturbs it: a busy
/// machine, and a look at the first calls, make some of these times longer and none shorter.
fn pace_s(context: &Context, reader: &StreamCounts) -> Option<f64> {
    let reads =
        context.calls_on(reader.file).iter().filter(|seen| seen.pid == reader.pid && seen.call.op.reads());
    let times: Vec<f64> = reads.map(|seen| seen.at_s).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    (gaps.len() >= 4).then(|| gaps[gaps.len() / 4])
}

/// What the pipe holds: as it was set in this run, as it was seen, or as it is by itself.
fn capacity(context: &Context, writer: &StreamCounts, reader: &StreamCounts) -> u64 {
    let ends = [writer.file, reader.file];
    let calls = ends.iter().flat_map(|&end| context.calls_on(end)).filter(|seen| {
        seen.call.op == Op::Fcntl && seen.call.args[1] == F_SETPIPE_SZ && seen.call.result > 0
    });
    let set = calls.map(|seen| seen.call.result as u64).max();
    let seen = || ends.iter().filter_map(|&end| context.file(end)?.pipe_bytes).max();
    set.or_else(seen).unwrap_or(CAPACITY).max(1)
}

fn found(context: &Context, writer: &StreamCounts, reader: &StreamCounts) -> Option<Finding> {
    let capacity = capacity(context, writer, reader);
    let large = writer.asked.total().saturating_sub(writer.asked.below(capacity * 2));
    if writer.asked_max < capacity * 2 || large == 0 || writer.bytes < capacity * 16 {
        return None;
    }
    let saved = saved_s(context, writer, reader, capacity);
    let severity = RULE.severity_of(context, saved)?;
    let why = format!(
        "{} hands {} at a time to {} through a pipe that holds {}: each waits while the other works.",
        context.name(writer.pid),
        count(writer.asked_max, "byte"),
        context.name(reader.pid),
        count(capacity, "byte")
    );
    let fix = format!(
        "fcntl(fd, F_SETPIPE_SZ, {}) on either end (Python: subprocess.Popen(…, pipesize=…)); \
            /proc/sys/fs/pipe-max-size is the limit.",
        writer.asked_max.next_power_of_two().min(ALLOWED)
    );
    let draft = context.draft(&RULE, severity, writer.pid, writer.fd, Some(writer.file));
    let draft = draft
        .count("pipe_bytes", capacity)
        .count("asked_bytes", writer.asked_max)
        .count("bytes", writer.bytes);
    let draft = draft.count("short_writes", writer.short).count("reader", reader.pid.into());
    Some(draft.gain(Gain { elapsed_s: saved, calls: 0 }).say(why, fix))
}
