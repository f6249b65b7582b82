//! sync-before-flush: a file is synced while its bytes are still in the program's buffer.
//!
//! Evidence: each sync of the file comes before the first write to it, soon after that the file is written and closed, or the
//! process ends, and nothing is synced any more. "Soon after" is also met by a snapshot that has bytes of the file in a buffer.
//! The program wanted durable data, and called fsync(2) without a flush before it, or before the data was made. A file whose
//! size changed before the sync, or that was read, may have been synced for that.

use weir_model::trace::{Op, StreamCounts};
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext, TimedCall};
use crate::flags::O_DSYNC;
use crate::rule::{GainKind, Rule, SeverityRule};

pub(crate) const RULE: Rule = Rule {
    id: "sync-before-flush",
    title: "Synced before it was written",
    meaning: "fsync(2) is called while the bytes are still in the program's buffer: a power cut loses them",
    position: 168,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// The most seconds from the sync until bytes are in the buffer or written, and from the last write to the close. Later ones are
/// other work.
const SOON_S: f64 = 0.5;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let written = context.streams(Direction::Out).filter(|stream| stream.bytes > 0);
    written.filter_map(|stream| judge_stream(context, stream)).collect()
}

fn judge_stream(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let file = context.file(stream.file)?;
    let plain = context.kind(stream.file) == StreamKind::File && file.flags & O_DSYNC == 0;
    if !plain || context.streams_on(stream.file).len() != 1 || context.has_gap_of_any(0.0, f64::INFINITY) {
        return None;
    }
    let calls = context.calls_on(stream.file);
    let written_s = calls.iter().find(|timed| timed.call.op.writes() && timed.call.result > 0)?.at_s;
    let synced_s = last_sync(calls)?;
    let resized = |timed: &TimedCall| matches!(timed.call.op, Op::Ftruncate | Op::Fallocate);
    let is_mistake = synced_s < written_s
        && pending_at(context, stream, written_s) - synced_s < SOON_S
        && !calls.iter().any(resized)
        && !context.syncs_of(stream.file).any(|sync| sync.at_s >= written_s)
        && ends_soon(context, stream);
    is_mistake.then(|| finding(context, stream, synced_s))
}

/// Returns the time from which bytes are known to be in the buffer of a stream: that of a snapshot, at most that of the first write.
fn pending_at(context: &RuleContext, stream: &StreamCounts, written_s: f64) -> f64 {
    let has_bytes = |snapshot: &&BufferSnapshot| {
        let file = context.file_at(stream.pid, stream.fd, snapshot.at_s);
        let mut own = snapshot.buffers.iter().filter(|buffer| buffer.fd == stream.fd);
        file == Some(stream.file) && own.any(|buffer| context.own_pending_bytes(snapshot, buffer) > 0)
    };
    let first = context.snapshots(stream.pid).iter().find(has_bytes);
    first.map_or(written_s, |snapshot| snapshot.at_s.min(written_s))
}

/// Returns the time of the last sync of an open file.
fn last_sync(calls: &[TimedCall]) -> Option<f64> {
    let syncs = calls
        .iter()
        .filter(|timed| matches!(timed.call.op, Op::Fsync | Op::Fdatasync) && timed.call.result == 0);
    syncs.map(|timed| timed.at_s).reduce(f64::max)
}

/// Returns whether the file was closed, or its process ended, soon after the last write.
fn ends_soon(context: &RuleContext, stream: &StreamCounts) -> bool {
    let soon = |at_s: f64| at_s >= stream.last_s && at_s - stream.last_s < SOON_S;
    let closes =
        |timed: &TimedCall| timed.call.op == Op::Close && timed.call.fd == stream.fd && soon(timed.at_s);
    context.calls(stream.pid).iter().any(closes) || soon(context.ended_at(stream.pid))
}

fn finding(context: &RuleContext, stream: &StreamCounts, synced_s: f64) -> Finding {
    let (pid, fd, file) = (stream.pid, stream.fd, stream.file);
    let why = format!(
        "{} synced the file before it wrote anything, and not after it: the sync stored nothing, and a power cut can lose \
        what was written.",
        context.name_at(pid, synced_s)
    );
    let code = context.code_fix(pid, synced_s, (fd, Some(file)), CodeFix::Flush).code;
    let fix = match code {
        "" => "write the data out before the sync.".to_string(),
        code => format!("before the sync: {code}"),
    };
    let finding = context.finding(&RULE, Severity::Warn, pid, fd, Some(file));
    finding.count("bytes", stream.bytes).figure("at_s", synced_s).build(why, fix)
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Op, SnapshotMoment};

    use crate::testing::*;

    /// Returns a recording in which a file of 40 bytes is synced, written and closed at these times.
    fn synced_at(sync_s: f64, write_s: f64, close_s: f64) -> RecordingBuilder {
        let mut builder = recording(5.0);
        let file = builder.file("/d/settings", File);
        let stream = builder.stream(1, 3, file, Out, 1, 40);
        (stream.first_s, stream.last_s) = (write_s, write_s);
        builder.call(sync_s, 1, Op::Fsync, 3, file, b"").result = 0;
        builder.call(write_s, 1, Op::Write, 3, file, b"settings").result = 40;
        builder.call(close_s, 1, Op::Close, 3, file, b"").result = 0;
        builder
    }

    #[test]
    fn a_sync_before_the_only_write_is_found() {
        let finding = synced_at(1.0, 1.1, 1.2).finding("sync-before-flush");
        assert_eq!(finding.evidence["bytes"], 40.0);
        assert!(finding.why.contains("before it wrote anything"), "{finding:#?}");
    }

    #[test]
    fn bytes_in_the_buffer_at_the_sync_may_be_written_later() {
        let with_snapshot = |at_s: f64, bytes: &[u8]| {
            let mut builder = synced_at(1.0, 3.0, 3.1);
            builder.call(0.5, 1, Op::Openat, -1, 0, b"").result = 3;
            builder.snapshot(at_s, 1, SnapshotMoment::Sample, &[pending(3, bytes)]);
            builder.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
            builder
        };
        assert!(with_snapshot(1.2, b"settings").finding("sync-before-flush").why.contains("before it wrote"));
        with_snapshot(1.2, b"").no_finding("sync-before-flush");
        with_snapshot(1.8, b"settings").no_finding("sync-before-flush");
    }

    #[test]
    fn other_orders_are_not_found() {
        synced_at(1.2, 1.1, 1.3).no_finding("sync-before-flush"); // the right order
        synced_at(1.0, 2.0, 2.1).no_finding("sync-before-flush"); // written much later
        synced_at(1.0, 1.1, 3.0).no_finding("sync-before-flush"); // kept open
    }

    #[test]
    fn a_sync_of_everything_or_of_a_new_size_has_its_purpose() {
        let mut builder = synced_at(1.0, 1.1, 1.2);
        builder.call(1.3, 1, Op::Sync, -1, 0, b"").result = 0;
        builder.no_finding("sync-before-flush");
        let mut builder = synced_at(1.0, 1.1, 1.2);
        builder.call(0.9, 1, Op::Fallocate, 3, 0, b"").result = 0;
        builder.no_finding("sync-before-flush");
    }
}
