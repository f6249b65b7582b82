//! random-without-advice: random reads of a large file while the kernel reads ahead.
//!
//! Evidence: a fifth of at least 500 reads of a large regular file jump, they take a share of the run's time, and the process
//! did not advise POSIX_FADV_RANDOM. Info, because a cached file loses nothing; warn if much more was fetched from devices than
//! the program read, and the process waited long for it. Not reported: the same few blocks over and over (seek-and-reread) and
//! O_DIRECT, which has no read-ahead.

use weir_model::duration::format_seconds;
use weir_model::trace::{Call, Op, StreamCounts};
use weir_model::{Direction, Finding, Severity, Size, StreamKind};

use crate::call_patterns::rereads;
use crate::context::RuleContext;
use crate::flags::{FADV_RANDOM, O_DIRECT};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{part, total};

pub(crate) const RULE: Rule = Rule {
    id: "random-without-advice",
    title: "Read-ahead of no use",
    meaning: "random reads with read-ahead left on",
    position: 240,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// A few read-aheads fetch a smaller file as a whole.
const LARGE: u64 = 4 << 20;

/// Larger reads than this gain nothing from read-ahead.
const LARGE_READ: f64 = 131_072.0;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.streams(Direction::In).filter(|stream| applies(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn applies(context: &RuleContext, stream: &StreamCounts) -> bool {
    let Some(file) = context.file(stream.file) else { return false };
    let large = file.size_bytes.is_some_and(|size| size >= LARGE);
    let jumps = stream.jumps * 5 >= stream.calls;
    let random = stream.moving_calls() >= 500 && jumps && stream.mean_bytes() < LARGE_READ;
    file.kind == StreamKind::File
        && file.flags & O_DIRECT == 0
        && large
        && random
        && !rereads(context, stream)
        && !is_advised(context, stream)
}

fn is_advised(context: &RuleContext, stream: &StreamCounts) -> bool {
    let is_advice = |call: &Call| call.op == Op::Fadvise && call.args[3] == FADV_RANDOM;
    let mut on_descriptor = context.calls(stream.pid).iter().filter(|timed| {
        let call = timed.call;
        call.file.is_none() && call.fd == stream.fd
    });
    context.calls_on(stream.file).iter().any(|timed| is_advice(timed.call))
        || on_descriptor.any(|timed| is_advice(timed.call))
}

/// Returns the bytes that devices delivered for the process, and the share that its calls did not ask for.
fn fetched(context: &RuleContext, stream: &StreamCounts) -> (u64, f64) {
    let fetched = context.process(stream.pid).and_then(|process| process.fetched_bytes).unwrap_or(0);
    let reads = context
        .streams_of(stream.pid)
        .iter()
        .filter(|other| other.direction == Direction::In && context.kind(other.file) == StreamKind::File);
    let asked: u64 = reads.map(|other| other.bytes).sum();
    (fetched, fetched.saturating_sub(asked) as f64 / fetched.max(1) as f64)
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let span_s = context.span_s(stream);
    context.severity(stream.pid, span_s)?;
    let (fetched, unneeded) = fetched(context, stream);
    let waited_s = context.stream_waited_s(stream);
    let wasted_s = waited_s * unneeded;
    let severity = RULE.severity_of(context, stream.pid, wasted_s).unwrap_or(Severity::Info);
    let read_ahead = match unneeded > 0.1 {
        true => format!(": it read ahead and fetched {} from the device", Size(fetched)),
        false => String::new(),
    };
    let why = format!(
        "{} read {} bytes with {} calls, {} of them not at the end of the one before; they took {}, and the kernel \
            got no advice{read_ahead}.",
        context.stream_name(stream),
        total(stream, stream.bytes),
        total(stream, stream.calls),
        part(stream, stream.jumps),
        format_seconds(span_s)
    );
    let fix = "posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) after open (Python: os.posix_fadvise); or sort the \
        positions and read in their order; POSIX_FADV_WILLNEED for positions that are known beforehand.";
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.count("calls", stream.calls).count("jumps", stream.jumps);
    let finding = finding.count("bytes", stream.bytes).count("fetched_bytes", fetched);
    let finding = finding.figure("wasted_s", wasted_s).figure("span_s", span_s);
    Some(finding.figure("waited_s", waited_s).build(why, fix))
}
