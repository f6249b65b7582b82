//! The verdict at the beginning of the report, and the gaps and the cost of the recording at its end.

use weir_model::StreamKind;
use weir_model::duration::format_seconds;
use weir_model::trace::{BackendKind, Exit, Recording, StreamSum, TraceResult, TraceStream};

use super::labels::{bytes, counted};
use crate::block::Block;
use crate::number::percent;

/// Smallest share of tracing cost that is reported as a number; less is within the noise.
const LITTLE: f64 = 0.001;

/// Returns the verdict and how the command ended.
pub(super) fn verdict(trace: &TraceResult, streams: &[TraceStream]) -> Vec<Block> {
    let lines = trace.verdict.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.map(str::to_string).collect();
    if lines.is_empty() {
        lines.push(summary(trace, streams));
    }
    let mut blocks = vec![Block::Verdict(lines)];
    blocks.extend(ending(trace.recording).map(Block::Aside));
    blocks
}

fn summary(trace: &TraceResult, streams: &[TraceStream]) -> String {
    let sum = |of: fn(&TraceStream) -> u64| streams.iter().map(of).sum::<u64>();
    let what = match trace.findings.len() {
        0 => "no problems found".into(),
        number => counted(number as u64, "finding"),
    };
    format!(
        "{what} in {}: {}, {} in {}.",
        counted(streams.len() as u64, "stream"),
        counted(sum(|stream| stream.counts.calls), "call"),
        bytes(sum(|stream| stream.counts.bytes)),
        format_seconds(trace.recording.elapsed_s)
    )
}

/// Returns how the command ended; `None` for status 0.
fn ending(recording: &Recording) -> Option<String> {
    match recording.exit {
        Some(Exit::Code(0)) => None,
        Some(Exit::Code(code)) => Some(format!("The command exited with status {code}.")),
        Some(Exit::Signal(number)) => Some(format!("The command was killed by signal {number}.")),
        None => Some("The command was still running when weir detached.".into()),
    }
}

/// Returns a warning for each gap of the recording.
pub(super) fn gaps(recording: &Recording) -> Vec<Block> {
    let lost = recording.overhead.lost_events;
    // The backend's own sentence says more.
    let told = recording.blind.iter().any(|why| why.contains("dropped: ring buffer full"));
    let dropped = (lost > 0 && !told).then(|| format!("{} dropped: buffer full", counted(lost, "event")));
    let sentences = recording.blind.iter().cloned().chain(dropped);
    sentences.map(|why| Block::Warning(format!("not seen: {why}"))).collect()
}

/// Returns the name of a backend on the command line.
pub(super) fn backend_name(backend: BackendKind) -> &'static str {
    match backend {
        BackendKind::Ebpf => "ebpf",
        BackendKind::Ptrace => "ptrace",
        BackendKind::Sample => "sample",
    }
}

/// Returns how exact the totals of calls and bytes are; `None` if every call was counted, or if no totals are known. The kernel
/// counts by process and direction, but not calls on sockets nor splice(2), so the shares of several streams, sockets and copies within
/// the kernel are estimates.
fn totals(recording: &Recording) -> Option<String> {
    if recording.exact || recording.backend == BackendKind::Sample {
        return None;
    }
    let streams = recording.streams();
    let estimated = || streams.iter().filter(|stream| stream.sum.estimated);
    let is_uncounted = |stream: &StreamSum| {
        let is_socket = recording.file(stream.sum.file).is_some_and(|file| file.kind == StreamKind::Socket);
        is_socket || stream.sum.in_kernel > 0
    };
    let processes = recording.processes_by_pid();
    let has_totals = |pid: u32| processes.get(&pid).is_some_and(|process| process.io.is_some());
    let sampled = || streams.iter().filter(|stream| !stream.sum.exact);
    Some(match () {
        () if !sampled().all(|stream| has_totals(stream.sum.pid)) => return None,
        () if estimated().next().is_none() => "totals exact".into(),
        () if estimated().any(is_uncounted) => "totals estimated".into(),
        () => "sum of each process exact, its streams estimated".into(),
    })
}

/// Returns the backend, the recorded share of the run, and the cost of tracing.
pub(super) fn backend(recording: &Recording) -> Block {
    let overhead = &recording.overhead;
    let mut facts = vec![match recording.backend_reason.as_str() {
        "" => format!("engine {}", backend_name(recording.backend)),
        reason => format!("engine {} ({reason})", backend_name(recording.backend)),
    }];
    let traced_s = overhead.observed_s + overhead.gap_s;
    let whole = recording.exact || (overhead.observed_s > 0.0 && overhead.gap_s <= 0.0);
    // Without lost events, only submitted operations and mapped files can be missing.
    let may_lack_submissions = !recording.exact && overhead.lost_events == 0;
    let lacks_calls = whole && overhead.uncounted_calls > 0;
    facts.push(if lacks_calls {
        format!("at most {} not counted", counted(overhead.uncounted_calls, "call"))
    } else if whole && (may_lack_submissions || recording.other_calls.iter().any(|one| one.submitted > 0)) {
        "calls counted, except operations submitted to the kernel".into()
    } else if whole {
        "every call counted".into()
    } else if overhead.observed_s > 0.0 {
        // The share over all processes; each has its own sampling windows.
        format!(
            "calls sampled, {:.0} % of the time ({})",
            overhead.observed_s / traced_s * 100.0,
            counted(overhead.seen_calls, "call")
        )
    } else {
        "totals only".into()
    });
    facts.extend(totals(recording).filter(|_| !lacks_calls));
    let total_s = overhead.total_s();
    let base = recording.elapsed_s - total_s;
    if total_s > 0.0 && recording.elapsed_s > 0.0 {
        let cost = total_s / base;
        facts.push(match () {
            // No share of the rest says more then. Processes that run beside each other may be stopped for longer than the run.
            () if total_s > base => "cost most of the time of the run".into(),
            () if cost < LITTLE => "cost less than 0.1 %".into(),
            // On a busy machine the processes and the tracer also wait for a processor at each stop.
            () if overhead.stopped_s > overhead.cost_s => format!("cost at least {} %", percent(cost)),
            () => format!("cost about {} %", percent(cost)),
        });
    }
    if overhead.startup_s > 0.0 {
        facts.push(format!("start-up {}", format_seconds(overhead.startup_s)));
    }
    Block::Facts(facts)
}
