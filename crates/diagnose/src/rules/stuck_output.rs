//! stuck-output: bytes stay in a user-space buffer while the program waits for something else.
//!
//! Evidence: for at least a second, snapshots show the same oldest byte of a buffer pending, or the byte is written soon after
//! the last of them; nothing was written there in between; and the program was in a waiting call at most of the snapshots. A
//! snapshot without the buffer is no evidence, and one at the return of a call does not tell whether the program waits. Not
//! reported: a program that waits in a write (its reader is slow), one that computes, bytes inherited at a fork, and bytes for
//! a file that only this process can read.

use std::collections::HashSet;

use weir_model::duration::format_seconds;
use weir_model::trace::{Buffer, FIRST_CALLS, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Finding, Severity};

use crate::context::{BufferSnapshot, RuleContext, same_prefix};
use crate::rule::Supersedes::OnStream;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::{oldest_of, preview};

pub(crate) const RULE: Rule = Rule {
    id: "stuck-output",
    title: "Output does not appear",
    meaning: "bytes stay in a user-space buffer while the program waits for something else",
    position: 40,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    supersedes: &[OnStream("held-output")],
    judge,
    ..Rule::DEFAULT
};

/// Seconds after which a user misses a line.
const PATIENCE_S: f64 = 1.0;
/// Seconds that count as [`PATIENCE_S`], because snapshots are not on time to the millisecond.
const MIN_S: f64 = PATIENCE_S - 0.05;

/// Seconds from which the wait counts as a hang.
const LONG_S: f64 = 30.0;

/// The longest interval between two snapshots of a buffer with pending bytes.
const NEXT_SNAPSHOT_S: f64 = 0.65;

/// The longest time between a call and its snapshot, which the eBPF backend takes within microseconds.
const AT_CALL_S: f64 = 0.0005;

/// A buffer whose oldest pending byte is the same from the first snapshot to the last.
struct PendingSpan<'a> {
    first: BufferSnapshot<'a>,
    last: BufferSnapshot<'a>,
    /// The pending bytes at the first snapshot. Those that came later are younger.
    oldest_bytes: u64,
    /// The buffer at the last snapshot.
    buffer: &'a Buffer,
    snapshots: u32,
    /// The number of snapshots at which the program was in a waiting call.
    waiting: u32,
    /// The number of snapshots at the return of a call, which do not tell whether the program waits.
    at_calls: u32,
    /// The last such call.
    waits_in: &'a str,
}

/// Calls that a stop would end with EINTR, or prolong. `weir run --max-delay` does not interrupt them: a program that always waits in
/// them gets its bytes written late or never.
const UNINTERRUPTED_CALLS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["epoll_pwait2", "rt_sigtimedwait"]
} else {
    &["epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait"]
};

fn judge(context: &RuleContext) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    let spans = pids.flat_map(|pid| longest_spans(context, pid));
    spans.filter_map(|span| finding(context, &span)).collect()
}

/// Returns the longest span of each descriptor of a process, the longest first; none if its snapshots cover too little time for a finding.
fn longest_spans<'a>(context: &RuleContext<'a>, pid: u32) -> Vec<PendingSpan<'a>> {
    let snapshots = context.snapshots(pid);
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { return Vec::new() };
    // Bytes are known to be pending from a snapshot on, and at most until a write soon after another one.
    if last.at_s - first.at_s + NEXT_SNAPSHOT_S < MIN_S {
        return Vec::new();
    }
    let mut open: Vec<PendingSpan> = Vec::new();
    let mut all: Vec<PendingSpan> = Vec::new();
    for snapshot in snapshots {
        let mut next = Vec::new();
        let pending =
            snapshot.buffers.iter().filter(|buffer| context.own_pending_bytes(snapshot, buffer) > 0);
        for buffer in pending {
            let same = open.iter().position(|span| continues(context, span, snapshot, buffer));
            let span = same.map(|index| open.swap_remove(index));
            next.push(PendingSpan::extended(context, span, snapshot, buffer));
        }
        let (kept, ended): (Vec<_>, Vec<_>) = open.into_iter().partition(|span| span.is_absent_in(snapshot));
        next.extend(kept);
        all.extend(ended);
        open = next;
    }
    all.extend(open);
    let mut spans: Vec<(f64, PendingSpan)> =
        all.into_iter().map(|span| (span.length_s(context), span)).collect();
    spans.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut seen = HashSet::new();
    spans.retain(|(_, span)| seen.insert(span.buffer.fd));
    spans.into_iter().map(|(_, span)| span).collect()
}

impl<'a> PendingSpan<'a> {
    /// Returns a span with one more snapshot, or a new one.
    fn extended(
        context: &RuleContext<'a>,
        span: Option<Self>,
        snapshot: &BufferSnapshot<'a>,
        buffer: &'a Buffer,
    ) -> Self {
        let new = || Self {
            first: *snapshot,
            last: *snapshot,
            oldest_bytes: buffer.pending_bytes,
            buffer,
            snapshots: 0,
            waiting: 0,
            at_calls: 0,
            waits_in: "",
        };
        let mut span = span.unwrap_or_else(new);
        (span.last, span.buffer, span.snapshots) = (*snapshot, buffer, span.snapshots + 1);
        if is_waiting_call(snapshot.waits_in) {
            (span.waiting, span.waits_in) = (span.waiting + 1, snapshot.waits_in);
        }
        span.at_calls += u32::from(is_at_call(context, snapshot));
        span
    }

    /// Returns whether the program was in a waiting call at most of the snapshots. Snapshots at the return of a call count only
    /// if the process computed for half of the span, or if that is unknown.
    fn waits(&self, context: &RuleContext) -> bool {
        let process = context.process(self.first.pid).filter(|process| process.ended_s.is_some());
        let computed_s = process.map_or(f64::INFINITY, |process| process.user_s + process.system_s);
        let is_idle = computed_s * 2.0 < self.length_s(context);
        let telling = if is_idle { self.snapshots - self.at_calls } else { self.snapshots };
        self.waiting > 0 && self.waiting * 2 >= telling
    }

    fn length_s(&self, context: &RuleContext) -> f64 {
        self.end_s(context) - self.first.at_s
    }

    /// Returns the time at which the bytes were written if that was soon after the last snapshot, else the last snapshot.
    fn end_s(&self, context: &RuleContext) -> f64 {
        let (pid, fd, last_s) = (self.first.pid, self.buffer.fd, self.last.at_s);
        let mut busy = outputs(context, pid, fd);
        if busy.any(|out| out.first_s <= last_s && out.last_s > last_s && out.calls > u64::from(FIRST_CALLS))
        {
            return last_s;
        }
        let calls = context.calls_between(pid, last_s, last_s + NEXT_SNAPSHOT_S).iter();
        let writes = calls.filter(|timed| {
            let call = timed.call;
            call.fd == fd && call.op.writes() && call.result > 0
        });
        let counted = outputs(context, pid, fd).flat_map(|stream| [stream.first_s, stream.last_s]);
        let later = writes.map(|timed| timed.at_s).chain(counted).filter(|&at_s| at_s > last_s);
        let written_s = later.fold(f64::INFINITY, f64::min);
        if written_s <= last_s + NEXT_SNAPSHOT_S { written_s } else { last_s }
    }

    /// Returns whether a snapshot does not have this buffer, because it read those of another runtime.
    fn is_absent_in(&self, snapshot: &BufferSnapshot) -> bool {
        let present = snapshot.buffers.iter().any(|buffer| buffer.address == self.buffer.address);
        snapshot.moment == SnapshotMoment::Sample && !present
    }
}

/// Returns whether a backend took a snapshot at the return of a recorded call.
fn is_at_call(context: &RuleContext, snapshot: &BufferSnapshot) -> bool {
    let (from_s, to_s) = (snapshot.at_s - AT_CALL_S, snapshot.at_s + AT_CALL_S);
    snapshot.moment == SnapshotMoment::Sample
        && snapshot.waits_in.is_empty()
        && !context.calls_between(snapshot.pid, from_s, to_s).is_empty()
}

/// Returns the output streams of a descriptor.
fn outputs<'a>(context: &RuleContext<'a>, pid: u32, fd: i32) -> impl Iterator<Item = &'a StreamCounts> {
    let streams = context.streams_of(pid).iter().copied();
    streams.filter(move |stream| stream.fd == fd && stream.direction != Direction::In)
}

/// Returns whether a buffer's oldest pending byte is still the one of a span.
fn continues(context: &RuleContext, span: &PendingSpan, snapshot: &BufferSnapshot, buffer: &Buffer) -> bool {
    let before = span.buffer;
    let image = |at_s| context.image_at(snapshot.pid, at_s).map(|(index, _)| index);
    before.address == buffer.address
        && before.fd == buffer.fd
        && same_prefix(&before.pending, &buffer.pending)
        && buffer.pending_bytes >= before.pending_bytes
        && image(span.last.at_s) == image(snapshot.at_s)
        && !context.wrote_between(snapshot.pid, buffer.fd, span.last.at_s, snapshot.at_s)
        && (before.pending_bytes == buffer.pending_bytes
            || !may_miss_writes(context, span, snapshot, buffer.fd))
}

/// Returns whether writes to a descriptor between a span's last snapshot and the next one may be missing from the recording.
fn may_miss_writes(context: &RuleContext, span: &PendingSpan, snapshot: &BufferSnapshot, fd: i32) -> bool {
    outputs(context, snapshot.pid, fd).any(|stream| {
        let around = stream.first_s <= span.last.at_s && stream.last_s >= snapshot.at_s;
        around && stream.calls > u64::from(FIRST_CALLS)
    })
}

/// Calls that wait for the reader of these very bytes, or for the device.
const OUTPUT_CALLS: &[&str] = &["write", "send", "splice", "tee", "copy_file_range", "sync", "running"];

/// Returns whether a process in this system call waits for something other than its output.
fn is_waiting_call(call: &str) -> bool {
    !call.is_empty() && !OUTPUT_CALLS.iter().any(|output| call.contains(output))
}

/// Returns the length of a span for a sentence. If weir was attached later than the bytes were written, it is a lower bound.
fn describe_length(context: &RuleContext, span: &PendingSpan) -> String {
    let length = format_seconds(span.length_s(context));
    if context.recording.command.is_empty() && span.first.at_s < PATIENCE_S / 2.0 {
        return format!("at least {length} (since weir attached)");
    }
    format!("{length}, since {} into the run", format_seconds(span.first.at_s))
}

/// Returns the command that makes a stream write its lines, for a process that waits in [`UNINTERRUPTED_CALLS`]; None if it waits in
/// another call, if the pending text is no whole line, or if nothing makes the stream write lines.
fn line_command(context: &RuleContext, span: &PendingSpan, file: Option<u32>) -> Option<String> {
    let (pid, at_s) = (span.first.pid, span.first.at_s);
    let is_line =
        span.buffer.pending.get(..span.oldest_bytes as usize).is_some_and(|text| text.ends_with(b"\n"));
    if !is_line || !UNINTERRUPTED_CALLS.contains(&span.waits_in) {
        return None;
    }
    context.weir_run(context.line_option(&[span.buffer.fd], file?)?, pid, at_s)
}

fn finding(context: &RuleContext, span: &PendingSpan) -> Option<Finding> {
    let length_s = span.length_s(context);
    let (pid, fd, bytes) = (span.first.pid, span.buffer.fd, span.buffer.pending_bytes);
    let file = context.file_at(pid, fd, span.last.at_s);
    let discarded =
        file.is_some_and(|file| context.is_null(file) || context.is_private(file, span.first.at_s));
    if length_s < MIN_S || !span.waits(context) || discarded {
        return None;
    }
    let severity = if length_s >= LONG_S { Severity::High } else { Severity::Warn };
    let pending = &span.buffer.pending;
    let oldest = &pending[..pending.len().min(span.oldest_bytes as usize)];
    let why = format!(
        "{} {} been in {} for {}, while it waits in {}: {}.",
        oldest_of(span.oldest_bytes, bytes),
        if span.oldest_bytes == 1 { "has" } else { "have" },
        context.buffer_name(span.buffer, pid, span.first.at_s),
        describe_length(context, span),
        span.waits_in,
        preview(oldest)
    );
    let code = context.flush_fix(pid, span.first.at_s, file, span.buffer);
    let drain = || context.drain_command(RunOption::MaxDelay, (pid, span.first.at_s), span.buffer);
    let command = line_command(context, span, file).or_else(drain);
    let finding = context.finding(&RULE, severity, pid, fd, file).count("pending_bytes", bytes);
    let finding = finding.figure("waited_s", length_s).figure("since_s", span.first.at_s);
    let finding = finding.count("buffer_bytes", span.buffer.buffer_bytes);
    let finding = finding.count("looks", span.snapshots.into());
    let call_site = context.recording.write_site(pid, span.buffer.address, span.last.at_s);
    Some(finding.call_site(call_site).build_with_command(why, command, code))
}
