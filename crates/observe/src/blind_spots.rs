//! The sentences of the report's "not seen" part: what the backend, the recorder and the walkers could not observe.

use std::collections::BTreeSet;

use weir_model::number::counted;
use weir_model::trace::{BackendKind, StreamCounts};
use weir_model::{Size, Untrusted};
use weir_recorder::RecorderOutput;

use crate::unrecorded_calls::unrecorded_calls;

/// Returns the sentences of the report's "not seen" part.
pub(crate) fn blind_spots(
    backend: BackendKind,
    exact: bool,
    mut sentences: Vec<String>,
    unobserved: BTreeSet<String>,
    output: &RecorderOutput,
) -> Vec<String> {
    sentences.extend(unobserved);
    sentences.extend(output.untracked_transfers.iter().cloned());
    sentences.extend(unrecorded_calls(output, exact).filter(|_| backend != BackendKind::Sample));
    sentences.extend(output.unread_descriptors.iter().cloned());
    sentences.extend(unknown_streams(backend, exact, &output.streams, output.snapshot_directory.as_ref()));
    if output.dropped_events > 0 {
        sentences.push(format!(
            "{} events, which were not kept; the counters include them",
            output.dropped_events
        ));
    }
    sentences
}

/// Returns a sentence about the calls whose stream is not known: in gaps, calls on files that were opened and closed
/// in the same gap, or that have no position, such as devices; with the /proc backend, all calls that no file position shows. With
/// `exact` a gap is only where weir could not stop the process, as at its attach.
fn unknown_streams(
    backend: BackendKind,
    exact: bool,
    all_counts: &[StreamCounts],
    snapshot_directory: Option<&Untrusted>,
) -> Option<String> {
    let unknown = || all_counts.iter().filter(|counts| !counts.is_known());
    let sum = |of: fn(&StreamCounts) -> u64| unknown().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|counts| counts.calls), Size(sum(|counts| counts.bytes)));
    if calls == 0 {
        return None;
    }
    let calls = counted(calls, "call");
    let processes = match unknown().map(|counts| counts.pid).collect::<BTreeSet<_>>().len() {
        1 => "a process".to_string(),
        many => format!("{many} processes"),
    };
    if backend == BackendKind::Sample {
        return Some(format!(
            "through which streams {processes} moved about {bytes} in about {calls}: other engines see it"
        ));
    }
    let snapshots = snapshot_directory
        .map(|directory| format!(" (the files open in a snapshot lie below {directory})"))
        .unwrap_or_default();
    Some(if exact {
        format!(
            "through which streams {processes} moved {bytes} in {calls} that weir could not record{snapshots}"
        )
    } else {
        format!(
            "through which streams {processes} moved {bytes} in {calls} between samples: no file position shows \
             it{snapshots}; --exact sees it"
        )
    })
}

#[cfg(test)]
mod tests {
    use weir_model::Direction;

    use super::*;

    #[test]
    fn calls_of_unknown_streams_are_named_with_advice_that_is_left() {
        let unknown = StreamCounts {
            calls: 5,
            bytes: 1580,
            ..StreamCounts::new(7, 0, StreamCounts::UNKNOWN, 0, Direction::In)
        };
        let said = |exact| unknown_streams(BackendKind::Ptrace, exact, std::slice::from_ref(&unknown), None);
        let (sampled, exact) = (said(false).expect("a sentence"), said(true).expect("a sentence"));
        assert!(sampled.contains("in 5 calls between samples") && sampled.ends_with("--exact sees it"));
        assert!(exact.ends_with("in 5 calls that weir could not record"), "{exact}");
        assert_eq!(unknown_streams(BackendKind::Ptrace, true, &[], None), None);
    }
}
