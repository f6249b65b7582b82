//! unaligned-writes: writes over an existing file that begin or end within a block of the page cache.
//!
//! Evidence: a tenth of at least 100 writes do so, and the rest of the block must be kept: the file existed before and is not
//! appended to, or each write waits for the device (O_SYNC, O_DSYNC), which then writes two blocks. The kernel has nothing to
//! read for a new file. Info; warn if the process waited at least half as long as it used CPU time.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Finding, Severity};

use crate::call_patterns::straddles_blocks;
use crate::context::RuleContext;
use crate::flags::O_DSYNC;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::text::{part, total};

pub(crate) const RULE: Rule = Rule {
    id: "unaligned-writes",
    title: "Writes across block boundaries",
    meaning: "writes that begin or end within a block make the kernel read the rest first",
    position: 280,
    severity: SeverityRule::Cost { most: Severity::Warn },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// The page size, which is the block size of the page cache.
const BLOCK: u64 = 4096;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let streams = context.streams(Direction::Out).filter(|stream| straddles_blocks(context, stream));
    streams.filter_map(|stream| finding(context, stream)).collect()
}

fn finding(context: &RuleContext, stream: &StreamCounts) -> Option<Finding> {
    let file = context.file(stream.file)?;
    let span_s = context.span_s(stream);
    context.severity(stream.pid, span_s)?;
    let waited_s = context.stream_waited_s(stream);
    let cpu_s = context.cpu_s(stream.pid).unwrap_or(span_s);
    let waits = waited_s * 2.0 >= cpu_s && context.severity(stream.pid, waited_s) >= Some(Severity::Warn);
    let severity = if waits { RULE.most() } else { Severity::Info };
    let why = format!(
        "{} of {} writes of {}, {:.0} bytes each, begin or end within a block of {BLOCK}: the kernel must \
            read the rest of the block first{}.",
        part(stream, stream.unaligned),
        total(stream, stream.calls),
        context.stream_name(stream),
        stream.mean_bytes(),
        if file.flags & O_DSYNC != 0 { ", and wait for two blocks" } else { "" }
    );
    let aligned = (stream.mean_bytes() as u64).next_multiple_of(BLOCK);
    let fix = format!(
        "slots of {aligned} bytes that begin at multiples of {BLOCK}, or gather records and write whole blocks \
            (dd bs=64K)."
    );
    let finding = context.finding(&RULE, severity, stream.pid, stream.fd, Some(stream.file));
    let finding = finding.count("unaligned", stream.unaligned).count("calls", stream.calls);
    let finding = finding.count("bytes", stream.bytes).figure("mean_bytes", stream.mean_bytes());
    Some(finding.figure("waited_s", waited_s).build(why, fix))
}
