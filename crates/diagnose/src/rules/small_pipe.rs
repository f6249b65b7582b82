//! small-pipe: a pipe's capacity makes both sides wait for each other.
//!
//! Evidence: the writer hands over more at a time than the pipe holds, so it waits while the reader works and
//! the reader waits while it makes the next. With room for a whole block both work at once: what that saves is
//! no more than the processor time of the lesser of the two, nor than the time in which neither had one. Where
//! processor times are not known, only the wakings are counted. Never High.

use std::collections::HashMap;

use weir_model::trace::Flow;
use weir_model::{Direction, Finding, FindingId, Gain, Severity, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::cost::WAKE_CALLS;
use crate::words::count;

pub(crate) const RULE: Rule = Rule { id: FindingId::SmallPipe, judge };

/// What a pipe holds if nobody says otherwise.
const CAPACITY: u64 = 65_536;

/// What anybody may set it to.
const ALLOWED: u64 = 1 << 20;

fn judge(context: &Context) -> Vec<Finding> {
    let mut readers: HashMap<String, Vec<&Flow>> = HashMap::new();
    for flow in context.toward(Direction::In).filter(|flow| context.kind(flow.file) == StreamKind::Pipe) {
        readers.entry(context.target(flow.file)).or_default().push(flow);
    }
    let writers = context.toward(Direction::Out).filter(|flow| context.kind(flow.file) == StreamKind::Pipe);
    let hops = writers.filter_map(|writer| {
        let reader = readers.get(&context.target(writer.file))?.iter().copied().filter(|reader| reader.pid != writer.pid);
        found(context, writer, reader.max_by_key(|reader| reader.bytes)?)
    });
    hops.collect()
}

/// What the pipe could be and the processors could have saved, in seconds.
fn saved_s(context: &Context, writer: &Flow, reader: &Flow, capacity: u64) -> f64 {
    let asked = writer.asked_max.min(ALLOWED);
    let (Some(writing), Some(reading)) = (context.cpu_s(writer.pid), context.cpu_s(reader.pid)) else {
        let wakes = writer.bytes as f64 / capacity as f64 - writer.bytes as f64 / asked as f64;
        return wakes * WAKE_CALLS * context.recording.prices.pipe_ns / 1e9;
    };
    let both = writing.min(reading) * (1.0 - capacity as f64 / asked as f64);
    let span = reader.last_s.max(writer.last_s) - reader.first_s.min(writer.first_s);
    both.min(span - writing.max(reading)).max(0.0)
}

fn found(context: &Context, writer: &Flow, reader: &Flow) -> Option<Finding> {
    let known = [writer, reader].iter().find_map(|flow| context.file(flow.file)?.pipe_bytes);
    let capacity = known.unwrap_or(CAPACITY).max(1);
    let large = writer.asked.total().saturating_sub(writer.asked.below(capacity * 2));
    if writer.asked_max < capacity * 2 || large == 0 || writer.bytes < capacity * 16 {
        return None;
    }
    let saved = saved_s(context, writer, reader, capacity);
    let severity = context.severity(saved)?.min(Severity::Warn);
    let why = format!(
        "{} hands {} at a time to {} through a pipe that holds {}: each waits while the other works.",
        context.name(writer.pid),
        count(writer.asked_max, "byte"),
        context.name(reader.pid),
        count(capacity, "byte")
    );
    let fix = format!(
        "fcntl(fd, F_SETPIPE_SZ, {}) on either end (Python: subprocess.Popen(…, pipesize=…)); /proc/sys/fs/pipe-max-size is the limit.",
        writer.asked_max.next_power_of_two().min(ALLOWED)
    );
    let draft = context.draft(RULE.id, severity, writer.pid, writer.fd, Some(writer.file));
    let draft = draft.count("pipe_bytes", capacity).count("asked_bytes", writer.asked_max).count("bytes", writer.bytes);
    let draft = draft.count("short_writes", writer.short).count("reader", reader.pid.into());
    Some(draft.gain(Gain { elapsed_s: saved, calls: 0 }).say(why, fix))
}
