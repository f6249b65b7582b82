//! The sentence about pending bytes in a recording that is too short to show whether they are stuck.

use weir_model::trace::SnapshotMoment;

use crate::context::RuleContext;
use crate::text::count;

/// Seconds of snapshots from which a rule decides whether bytes are stuck.
const DECIDED_S: f64 = 0.95;

/// Returns which bytes are pending in the last snapshots of the processes that still run; None if there are none.
pub(crate) fn pending_now_sentence(context: &RuleContext) -> Option<String> {
    let running = context.recording.processes.iter().filter(|process| process.ended_s.is_none());
    let snapshots = running.map(|process| context.snapshots(process.pid));
    let mut buffers = Vec::new();
    let mut is_decided = false;
    for snapshots in snapshots {
        let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { continue };
        if last.moment != SnapshotMoment::Sample {
            continue;
        }
        let pending = last.buffers.iter().map(|buffer| (buffer.fd, context.own_pending_bytes(last, buffer)));
        let before = buffers.len();
        buffers.extend(pending.filter(|(_, bytes)| *bytes > 0).map(|(fd, bytes)| (last, fd, bytes)));
        is_decided |= buffers.len() > before && last.at_s - first.at_s >= DECIDED_S;
    }
    let (snapshot, fd, bytes) = *buffers.first()?;
    let are = if bytes == 1 { "is" } else { "are" };
    let more = match buffers.len() {
        1 => String::new(),
        all => format!(", and more in {}", count(all as u64 - 1, "other buffer")),
    };
    let why = if is_decided { "" } else { " (observed for too short a time to say whether they are stuck)" };
    let name = context.name_at(snapshot.pid, snapshot.at_s);
    Some(format!("{} {are} pending in fd {fd} of {name}{more}{why}", count(bytes, "byte")))
}
