//! small-pipe: a pipe's capacity makes its writer and its reader wait for each other.
//!
//! Evidence: the writer hands over more at a time than the pipe holds, so it waits while the reader works, and the reader waits
//! while the writer makes the next block. The reader's pace within a block, or its CPU time if that is longer, tells the length
//! of its own work; the rest of the time is the writer's. With room for a whole block both would work at once, and the longer
//! of the two would remain. If the pace is unknown, CPU times replace it. Neither of them can save more time than it waits at the
//! pipe: one that hardly waits is the bottleneck. In a longer pipeline, time saved at one pipe is waited for at the next, as far
//! as the program waits there already. A writer that only copies a file does no other work
//! than reading it, however long it waited for a CPU. The severity is at most warn.

use std::collections::HashMap;

use weir_model::pipe::{DEFAULT_PIPE_BYTES, MAX_PIPE_BYTES};
use weir_model::trace::{Op, StreamCounts};
use weir_model::{Direction, Finding, Gain, Severity, StreamKind};

use crate::context::RuleContext;
use crate::flags::F_SETPIPE_SZ;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::count;

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

fn judge(context: &RuleContext) -> Vec<Finding> {
    let pipes = |direction| {
        let streams = context.streams(direction);
        streams.filter(|stream| context.kind(stream.file) == StreamKind::Pipe)
    };
    let mut readers: HashMap<String, Vec<&StreamCounts>> = HashMap::new();
    for stream in pipes(Direction::In) {
        readers.entry(context.target_key(stream.file)).or_default().push(stream);
    }
    let findings = pipes(Direction::Out).filter_map(|writer| {
        let readers = readers.get(&context.target_key(writer.file))?;
        let readers = readers.iter().copied().filter(|reader| reader.pid != writer.pid);
        finding(context, writer, readers.max_by_key(|reader| reader.bytes)?)
    });
    findings.collect()
}

/// Returns the seconds that room for a whole block would save.
fn saved_s(context: &RuleContext, writer: &StreamCounts, reader: &StreamCounts, capacity: u64) -> f64 {
    let span_s = (reader.last_s.max(writer.last_s) - reader.first_s.min(writer.first_s)).min(context.run_s());
    let waiting_share = 1.0 - capacity as f64 / writer.asked_max.min(MAX_PIPE_BYTES) as f64;
    let copies = context.pass_throughs(StreamKind::File, StreamKind::Pipe);
    let copy =
        copies.into_iter().find(|copy| copy.output.pid == writer.pid && copy.output.file == writer.file);
    let most_s = copy.map_or(f64::INFINITY, |copy| context.total_s(copy.input));
    let most_s = most_s.min(waits_s(context, writer, reader));
    if let Some(pace_s) = pace_s(context, reader) {
        let cpu_s = context.cpu_s(reader.pid).unwrap_or(0.0);
        let reading_s = (pace_s * reader.calls as f64).max(cpu_s).min(span_s);
        return (reading_s * waiting_share).min(span_s - reading_s).min(most_s).max(0.0);
    }
    let (Some(writing_s), Some(reading_s)) = (context.cpu_s(writer.pid), context.cpu_s(reader.pid)) else {
        return 0.0;
    };
    let overlap_s = writing_s.min(most_s).min(reading_s) * waiting_share;
    overlap_s.min(span_s - writing_s.max(reading_s)).min(most_s).max(0.0)
}

/// Returns the seconds for which the one that waits less waits at the pipe and not at other pipes; infinite if that was not
/// measured.
fn waits_s(context: &RuleContext, writer: &StreamCounts, reader: &StreamCounts) -> f64 {
    let elsewhere_s = |pid: u32, direction: Direction| {
        let others = context.streams(direction).filter(|stream| {
            stream.pid == pid && matches!(context.kind(stream.file), StreamKind::Pipe | StreamKind::Socket)
        });
        others.filter_map(|stream| stream.wait_s).sum::<f64>()
    };
    let (Some(writing_s), Some(reading_s)) = (writer.wait_s, reader.wait_s) else { return f64::INFINITY };
    let writing_s = writing_s - elsewhere_s(writer.pid, Direction::In);
    writing_s.min(reading_s - elsewhere_s(reader.pid, Direction::Out)).max(0.0)
}

/// Returns the seconds from one read to the next in which the reader works on what it got: the lower quartile, because other
/// load and tracing make some of these times longer and none shorter.
fn pace_s(context: &RuleContext, reader: &StreamCounts) -> Option<f64> {
    let reads =
        context.calls_on(reader.file).iter().filter(|timed| timed.pid == reader.pid && timed.call.op.reads());
    let times: Vec<f64> = reads.map(|timed| timed.at_s).collect();
    let mut intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    intervals.sort_by(f64::total_cmp);
    (intervals.len() >= 4).then(|| intervals[intervals.len() / 4])
}

/// Returns the capacity of a pipe: as fcntl(2) set it in this run, else as recorded, else the default.
fn capacity(context: &RuleContext, writer: &StreamCounts, reader: &StreamCounts) -> u64 {
    let ends = [writer.file, reader.file];
    let calls = ends.iter().flat_map(|&end| context.calls_on(end)).filter(|timed| {
        let call = timed.call;
        call.op == Op::Fcntl && call.args[1] == F_SETPIPE_SZ && call.result > 0
    });
    let set = calls.map(|timed| timed.call.result as u64).max();
    let recorded = || ends.iter().filter_map(|&end| context.file(end)?.pipe_bytes).max();
    set.or_else(recorded).unwrap_or(DEFAULT_PIPE_BYTES).max(1)
}

fn finding(context: &RuleContext, writer: &StreamCounts, reader: &StreamCounts) -> Option<Finding> {
    let capacity = capacity(context, writer, reader);
    let large_writes = writer.asked.total().saturating_sub(writer.asked.below(capacity * 2));
    if writer.asked_max < capacity * 2 || large_writes == 0 || writer.bytes < capacity * 16 {
        return None;
    }
    let saved_s = saved_s(context, writer, reader, capacity);
    let severity = RULE.severity_of(context, writer.pid, saved_s)?;
    let why = format!(
        "{} hands {} at a time to {} through a pipe that holds {}: each waits while the other works.",
        context.stream_name(writer),
        count(writer.asked_max, "byte"),
        context.stream_name(reader),
        count(capacity, "byte")
    );
    let fix = format!(
        "fcntl(fd, F_SETPIPE_SZ, {}) on either end (Python: subprocess.Popen(…, pipesize=…)); \
            /proc/sys/fs/pipe-max-size is the limit.",
        writer.asked_max.next_power_of_two().min(MAX_PIPE_BYTES)
    );
    let finding = context.finding(&RULE, severity, writer.pid, writer.fd, Some(writer.file));
    let finding = finding.count("pipe_bytes", capacity).count("asked_bytes", writer.asked_max);
    let finding = finding.count("bytes", writer.bytes).count("short_writes", writer.short);
    let finding = finding.count("reader", reader.pid.into());
    Some(finding.gain(Gain { elapsed_s: saved_s, calls: 0 }).build(why, fix))
}
