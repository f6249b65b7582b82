//! Small calls between samples whose stream is unknown: they can be a fault that no rule sees.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, Severity};

use crate::call_patterns::TINY;
use crate::context::RuleContext;
use crate::cost::priced_s;
use crate::text::total;

/// Fewer calls are no loop.
const MIN_CALLS: u64 = 1000;

/// Returns a clause about the unattributed small calls that cost most, if their cost is worth a finding.
pub(crate) fn unattributed_calls(context: &RuleContext) -> Option<String> {
    let is_small = |stream: &&StreamCounts| {
        let calls = stream.moving_calls();
        !stream.is_known() && calls >= MIN_CALLS && stream.bytes < calls * TINY
    };
    let cost_s = |stream: &StreamCounts| priced_s(context.recording, stream);
    let small = context.merged_streams_of_all().filter(is_small);
    let worst = small.max_by(|a, b| cost_s(a).total_cmp(&cost_s(b)))?;
    if context.severity(worst.pid, cost_s(worst))? < Severity::Warn {
        return None;
    }
    Some(format!(
        "between samples {} {} {} bytes in {} calls, through streams that were not recorded (--exact records them)",
        context.name_at(worst.pid, worst.first_s),
        if worst.direction == Direction::In { "read" } else { "wrote" },
        total(worst, worst.bytes),
        total(worst, worst.calls)
    ))
}
