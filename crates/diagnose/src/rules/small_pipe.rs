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

/// A pipe that holds less than its writer hands over at a time.
struct SmallPipe<'c, 'a> {
    context: &'c RuleContext<'a>,
    writer: &'a StreamCounts,
    reader: &'a StreamCounts,
    capacity_bytes: u64,
}

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
        let reader = readers.max_by_key(|reader| reader.bytes)?;
        SmallPipe::between(context, writer, reader)?.finding()
    });
    findings.collect()
}

/// Returns the capacity of a pipe: as fcntl(2) set it in this run, else as recorded, else the default.
fn capacity_bytes(context: &RuleContext, writer: &StreamCounts, reader: &StreamCounts) -> u64 {
    let ends = [writer.file, reader.file];
    let calls = ends.iter().flat_map(|&end| context.calls_on(end)).filter(|timed| {
        let call = timed.call;
        call.op == Op::Fcntl && call.args[1] == F_SETPIPE_SZ && call.result > 0
    });
    let set = calls.map(|timed| timed.call.result as u64).max();
    let recorded = || ends.iter().filter_map(|&end| context.file(end)?.pipe_bytes).max();
    set.or_else(recorded).unwrap_or(DEFAULT_PIPE_BYTES).max(1)
}

impl<'c, 'a> SmallPipe<'c, 'a> {
    /// Returns the pipe of two streams if the writer often hands over at least twice its capacity.
    fn between(
        context: &'c RuleContext<'a>,
        writer: &'a StreamCounts,
        reader: &'a StreamCounts,
    ) -> Option<Self> {
        let capacity_bytes = capacity_bytes(context, writer, reader);
        let large_writes =
            writer.requested_sizes.total().saturating_sub(writer.requested_sizes.below(capacity_bytes * 2));
        let is_small = writer.max_requested_bytes >= capacity_bytes * 2 && large_writes > 0;
        let is_used = writer.bytes >= capacity_bytes * 16;
        (is_small && is_used).then_some(SmallPipe { context, writer, reader, capacity_bytes })
    }

    /// Returns the seconds that room for a whole block would save: those in which the reader works while the writer waits for room, as
    /// far as the writer has work of its own for them. They are known by the reader's pace, else estimated by the CPU times.
    fn saved_s(&self) -> f64 {
        let most_s = self.most_saved_s();
        let saved_s = self.saved_by_pace_s().or_else(|| self.saved_by_cpu_s(most_s)).unwrap_or(0.0);
        saved_s.min(most_s).max(0.0)
    }

    /// Returns the saving by the reader's pace. The writer's own work takes the rest of the time.
    fn saved_by_pace_s(&self) -> Option<f64> {
        let cpu_s = self.context.cpu_s(self.reader.pid).unwrap_or(0.0);
        let reading_s = (self.pace_s()? * self.reader.calls as f64).max(cpu_s).min(self.span_s());
        Some((reading_s * self.waiting_share()).min(self.span_s() - reading_s))
    }

    /// Returns the saving by the CPU times of both processes: at most `most_s` of the writer's can overlap.
    fn saved_by_cpu_s(&self, most_s: f64) -> Option<f64> {
        let (writing_s, reading_s) =
            (self.context.cpu_s(self.writer.pid)?, self.context.cpu_s(self.reader.pid)?);
        let overlap_s = writing_s.min(most_s).min(reading_s) * self.waiting_share();
        Some(overlap_s.min(self.span_s() - writing_s.max(reading_s)))
    }

    /// Returns the seconds in which the pipe was used.
    fn span_s(&self) -> f64 {
        let last_s = self.reader.last_s.max(self.writer.last_s);
        (last_s - self.reader.first_s.min(self.writer.first_s)).min(self.context.run_s())
    }

    /// Returns the share of the reader's work on a block in which the writer still has bytes of the block to write.
    fn waiting_share(&self) -> f64 {
        1.0 - self.capacity_bytes as f64 / self.writer.max_requested_bytes.min(MAX_PIPE_BYTES) as f64
    }

    /// Returns the most seconds that can be saved: the shorter one of the waits at the pipe. A writer that only copies a file saves no
    /// more than its reads of the file take.
    fn most_saved_s(&self) -> f64 {
        let is_writer =
            |output: &StreamCounts| (output.pid, output.file) == (self.writer.pid, self.writer.file);
        let mut copies = self.context.pass_throughs(StreamKind::File, StreamKind::Pipe).into_iter();
        let copy = copies.find(|copy| is_writer(copy.output));
        copy.map_or(f64::INFINITY, |copy| self.context.total_s(copy.input)).min(self.waits_s())
    }

    /// Returns the shorter of the two processes' waits at this pipe, without their waits at other pipes and sockets, in seconds;
    /// infinite if it was not measured.
    fn waits_s(&self) -> f64 {
        let (Some(writing_s), Some(reading_s)) = (self.writer.wait_s, self.reader.wait_s) else {
            return f64::INFINITY;
        };
        let writing_s = writing_s - self.waits_elsewhere_s(self.writer.pid, Direction::In);
        writing_s.min(reading_s - self.waits_elsewhere_s(self.reader.pid, Direction::Out)).max(0.0)
    }

    /// Returns the seconds for which a process waits at pipes and sockets in one direction.
    fn waits_elsewhere_s(&self, pid: u32, direction: Direction) -> f64 {
        let others = self.context.streams(direction).filter(|stream| {
            let kind = self.context.kind(stream.file);
            stream.pid == pid && matches!(kind, StreamKind::Pipe | StreamKind::Socket)
        });
        others.filter_map(|stream| stream.wait_s).sum()
    }

    /// Returns the seconds from one read to the next in which the reader works on what it got: the lower quartile, because other
    /// load and tracing make some of these times longer and none shorter.
    fn pace_s(&self) -> Option<f64> {
        let calls = self.context.calls_on(self.reader.file).iter();
        let reads = calls.filter(|timed| timed.pid == self.reader.pid && timed.call.op.reads());
        let times: Vec<f64> = reads.map(|timed| timed.at_s).collect();
        let mut intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        intervals.sort_by(f64::total_cmp);
        (intervals.len() >= 4).then(|| intervals[intervals.len() / 4])
    }

    fn finding(&self) -> Option<Finding> {
        let SmallPipe { context, writer, reader, capacity_bytes } = *self;
        let saved_s = self.saved_s();
        let severity = RULE.severity_of(context, writer.pid, saved_s)?;
        let why = format!(
            "{} hands {} at a time to {} through a pipe that holds {}: each waits while the other works.",
            context.stream_name(writer),
            count(writer.max_requested_bytes, "byte"),
            context.stream_name(reader),
            count(capacity_bytes, "byte")
        );
        let fix = format!(
            "fcntl(fd, F_SETPIPE_SZ, {}) on either end (Python: subprocess.Popen(…, pipesize=…)); \
            /proc/sys/fs/pipe-max-size is the limit.",
            writer.max_requested_bytes.next_power_of_two().min(MAX_PIPE_BYTES)
        );
        let finding = context.finding(&RULE, severity, writer.pid, writer.fd, Some(writer.file));
        let finding =
            finding.count("pipe_bytes", capacity_bytes).count("asked_bytes", writer.max_requested_bytes);
        let finding = finding.count("bytes", writer.bytes).count("short_writes", writer.short);
        let finding = finding.count("reader", reader.pid.into());
        Some(finding.gain(Gain { elapsed_s: saved_s, calls: 0 }).build(why, fix))
    }
}
