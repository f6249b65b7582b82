//! Bytes that go through a process unchanged: what it reads of one thing it writes to another.

use weir_model::trace::StreamCounts;
use weir_model::{Direction, StreamKind};

use crate::context::Context;

/// An input and an output with the same bytes.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub input: &'a StreamCounts,
    pub output: &'a StreamCounts,
}

/// The first calls of a flow that are seen one by one.
const SEEN_FIRST: usize = 8;

/// Less than this is not worth comparing.
const LEAST: u64 = 256 * 1024;

/// Whether two flows have the same number of bytes. What was seen in part has shares of the totals, which are close.
fn as_many(one: &StreamCounts, other: &StreamCounts) -> bool {
    let apart = one.bytes.abs_diff(other.bytes);
    apart == 0 || (!(one.exact && other.exact) && apart * 100 <= one.bytes.max(other.bytes))
}

impl<'a> Context<'a> {
    /// Passes from one kind of thing to another in every process.
    pub fn passes(&self, from: StreamKind, to: StreamKind) -> Vec<Pass<'a>> {
        let outputs = self.toward(Direction::Out).filter(|out| self.may_pass(out, to));
        outputs
            .filter_map(|output| self.source_of(output, from).map(|input| Pass { input, output }))
            .collect()
    }

    fn may_pass(&self, flow: &StreamCounts, kind: StreamKind) -> bool {
        flow.bytes >= LEAST && flow.jumps == 0 && flow.in_kernel == 0 && self.kind(flow.file) == kind
    }

    fn source_of(&self, output: &StreamCounts, from: StreamKind) -> Option<&'a StreamCounts> {
        let own = || self.flows(output.pid).iter().copied().filter(|flow| flow.image == output.image);
        // A program with the same bytes in two outputs (tee) is not there for nothing.
        let twice = own().filter(|flow| flow.direction == Direction::Out && as_many(flow, output));
        let starts_alike = |flow: &&StreamCounts| self.unchanged(flow, output);
        let inputs = own().filter(|flow| {
            let by_turns = output.first_s <= flow.last_s && flow.first_s <= output.first_s;
            flow.direction == Direction::In && as_many(flow, output) && by_turns && self.may_pass(flow, from)
        });
        let alone =
            twice.filter(|flow| flow.first_s <= output.last_s && flow.last_s >= output.first_s).count() == 1;
        inputs.into_iter().filter(|_| alone).find(starts_alike)
    }

    /// Whether what was seen of the first bytes in and out is the same wherever both are known.
    fn unchanged(&self, input: &StreamCounts, output: &StreamCounts) -> bool {
        let (taken, given) = (self.heads(input), self.heads(output));
        let mut known = 0;
        for (at, head) in &taken {
            let Some((_, other)) = given.iter().find(|(other, _)| other == at) else { continue };
            if head.is_empty() || other.is_empty() {
                continue;
            }
            let common = head.len().min(other.len());
            if head[..common] != other[..common] {
                return false;
            }
            known += 1;
        }
        known >= 2
    }

    /// The first calls' beginnings with the places in the stream where they stand.
    pub fn heads(&self, flow: &StreamCounts) -> Vec<(u64, &'a [u8])> {
        let mut at = 0;
        let here = self.calls(flow.pid).iter().filter(|seen| {
            let moves =
                if flow.direction == Direction::In { seen.call.op.reads() } else { seen.call.op.writes() };
            moves && seen.call.fd == flow.fd && seen.call.file == Some(flow.file) && seen.call.result > 0
        });
        let heads = here.take(SEEN_FIRST).map(|seen| {
            let place = at;
            at += seen.call.result as u64;
            (place, seen.call.head.as_slice())
        });
        heads.collect()
    }
}
