//! Bytes that a process copies unchanged from one open file to another.

use weir_model::trace::{FIRST_CALLS, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;

/// An input and an output of a process with the same bytes.
#[derive(Clone, Copy)]
pub(crate) struct PassThrough<'a> {
    pub input: &'a StreamCounts,
    pub output: &'a StreamCounts,
    /// The bytes of the copy. The streams have fewer of them if the calls of a gap could not be assigned.
    pub bytes: u64,
}

impl PassThrough<'_> {
    /// Returns whether the streams have the bytes of the copy only together with calls of a gap that could not be assigned.
    pub fn has_unassigned(&self) -> bool {
        !same_size(self.input, self.output)
    }

    /// Returns a figure of the whole copy from that of one of its streams.
    pub fn whole(&self, stream: &StreamCounts, figure: f64) -> f64 {
        figure * self.bytes as f64 / stream.bytes.max(1) as f64
    }
}

/// Smaller copies cost too little to compare.
const MIN_BYTES: u64 = 256 * 1024;

/// Returns whether two numbers of bytes are equal to within 1 %.
fn is_close(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= one.max(other) / 100
}

/// Returns whether two streams have the same number of bytes, to within 1 % where the counts are sampled.
fn same_size(one: &StreamCounts, other: &StreamCounts) -> bool {
    let sampled = !(one.exact && other.exact);
    one.bytes == other.bytes || sampled && is_close(one.bytes, other.bytes)
}

impl<'a> RuleContext<'a> {
    /// Returns the copies from one kind of file to another, of all processes.
    pub fn pass_throughs(&self, from: StreamKind, to: StreamKind) -> Vec<PassThrough<'a>> {
        let outputs = self.streams(Direction::Out).filter(|output| self.is_copy_candidate(output, to));
        let copy = |output: &'a StreamCounts| {
            let input = self.source_of(output, from)?;
            Some(PassThrough { input, output, bytes: self.copied_bytes(input, output) })
        };
        outputs.filter_map(copy).collect()
    }

    /// Returns the bytes of a copy: those that both streams have, or those with the bytes of a gap.
    fn copied_bytes(&self, input: &StreamCounts, output: &StreamCounts) -> u64 {
        if same_size(input, output) { input.bytes } else { self.with_unassigned(input) }
    }

    /// Returns whether a stream may have moved this number of bytes: the counted ones, or with those of a gap.
    pub fn may_have_moved(&self, stream: &StreamCounts, bytes: u64) -> bool {
        let most = self.with_unassigned(stream);
        let is_between = stream.bytes <= bytes && bytes <= most;
        let is_near = is_between || is_close(stream.bytes, bytes) || is_close(most, bytes);
        stream.bytes == bytes || !stream.exact && is_near
    }

    /// Returns whether a file and a pipe have the same number of bytes if all calls of the gaps belong to them. That they do
    /// follows from the size of the file: it was read once, to its end, and the process read nothing else meanwhile.
    fn is_whole_file(&self, input: &StreamCounts, output: &StreamCounts) -> bool {
        let whole = self.with_unassigned(input);
        let has_size =
            self.file(input.file).and_then(|file| file.size_bytes).is_some_and(|size| is_close(size, whole));
        let reads_else = || {
            self.streams_of(input.pid).iter().any(|other| {
                let is_other =
                    other.is_known() && other.file != input.file && other.direction == Direction::In;
                is_other && other.image == input.image && other.bytes > 0 && other.last_s > input.first_s
            })
        };
        let is_sampled = !(input.exact && output.exact);
        let to_pipe = self.kind(output.file) == StreamKind::Pipe;
        is_sampled && to_pipe && has_size && is_close(whole, self.with_unassigned(output)) && !reads_else()
    }

    /// Returns whether a process copies the bytes of a stream unchanged to or from another one.
    pub fn is_passed_through(&self, stream: &StreamCounts) -> bool {
        const KINDS: [StreamKind; 3] = [StreamKind::File, StreamKind::Pipe, StreamKind::Socket];
        if stream.direction == Direction::Out {
            let candidate = self.is_copy_candidate(stream, self.kind(stream.file));
            return candidate && KINDS.iter().any(|&from| self.source_of(stream, from).is_some());
        }
        let kind = self.kind(stream.file);
        let is_same = |input: &StreamCounts| (input.fd, input.file) == (stream.fd, stream.file);
        // A program that copies thousands of files has as many outputs: the search for the source of each takes as many steps.
        let outputs = self.streams_of(stream.pid).iter().filter(|output| {
            output.direction == Direction::Out
                && self.may_be_source(stream, output)
                && self.is_copy_candidate(output, self.kind(output.file))
        });
        outputs.filter_map(|output| self.source_of(output, kind)).any(is_same)
    }

    /// Returns whether a process writes what each of its reads returned, and asks for more than it gets: the pieces are those that
    /// arrive, and the process at the other end makes them.
    pub fn passes_on(&self, output: &StreamCounts) -> bool {
        let arrives = |input: &StreamCounts| {
            let kind = self.kind(input.file);
            let asked = input.requested_sizes.below(input.mean_bytes() as u64 * 2);
            matches!(kind, StreamKind::Pipe | StreamKind::Socket | StreamKind::Terminal)
                && asked * 10 < input.requested_sizes.total()
        };
        let as_often = |input: &StreamCounts| {
            let (read, written) = (input.moving_calls(), output.moving_calls());
            // Calls in a gap may be missing from either stream.
            let tolerance =
                if input.exact && output.exact { read.max(written) / 10 } else { read.min(written) };
            read.abs_diff(written) <= tolerance
        };
        let as_much = |input: &StreamCounts| {
            self.may_have_moved(input, output.bytes) || self.may_have_moved(output, input.bytes)
        };
        self.streams_of(output.pid).iter().any(|input| {
            (input.direction, output.direction) == (Direction::In, Direction::Out)
                && input.image == output.image
                && arrives(input)
                && as_often(input)
                && as_much(input)
                && self.same_bytes(input, output)
        })
    }

    fn is_copy_candidate(&self, stream: &StreamCounts, kind: StreamKind) -> bool {
        stream.bytes >= MIN_BYTES
            && stream.jumps == 0
            && stream.in_kernel == 0
            && self.kind(stream.file) == kind
    }

    /// Returns the input whose bytes an output has, unless a second output has them too (tee), because then the copy has a purpose.
    fn source_of(&self, output: &StreamCounts, from: StreamKind) -> Option<&'a StreamCounts> {
        let own = self.streams_of(output.pid);
        let whole = self.with_unassigned(output);
        let outputs = own.iter().filter(|stream| {
            let overlaps = stream.first_s <= output.last_s && stream.last_s >= output.first_s;
            overlaps
                && stream.direction == Direction::Out
                && stream.image == output.image
                && stream.is_known()
                && (same_size(stream, output) || self.may_have_moved(stream, whole))
        });
        if outputs.take(2).count() != 1 {
            return None;
        }
        let mut inputs = own
            .iter()
            .copied()
            .filter(|stream| self.may_be_source(stream, output) && self.is_copy_candidate(stream, from));
        inputs.find(|stream| self.same_bytes(stream, output))
    }

    /// Returns whether an input has the time and the number of bytes of an output's source. The streams are of one process.
    fn may_be_source(&self, input: &StreamCounts, output: &StreamCounts) -> bool {
        let in_turns = output.first_s <= input.last_s && input.first_s <= output.first_s;
        in_turns
            && (input.direction, output.direction) == (Direction::In, Direction::Out)
            && input.image == output.image
            && (same_size(input, output) || self.is_whole_file(input, output))
    }

    /// Returns whether at least two recorded calls at the same position of input and output move the same bytes, and none
    /// moves different ones.
    fn same_bytes(&self, input: &StreamCounts, output: &StreamCounts) -> bool {
        let (read, written) = (self.call_heads(input), self.call_heads(output));
        let mut compared = 0;
        for (position, head) in &read {
            let Some((_, other)) = written.iter().find(|(other, _)| other == position) else { continue };
            if head.is_empty() || other.is_empty() {
                continue;
            }
            let common = head.len().min(other.len());
            if head[..common] != other[..common] {
                return false;
            }
            compared += 1;
        }
        compared >= 2
    }

    /// Returns the first bytes of a stream's first calls, with their positions in the stream.
    pub fn call_heads(&self, stream: &StreamCounts) -> Vec<(u64, &'a [u8])> {
        let calls = self.calls_on(stream.file).iter().filter(|timed| {
            let call = timed.call;
            let moves = if stream.direction == Direction::In { call.op.reads() } else { call.op.writes() };
            moves && timed.pid == stream.pid && call.fd == stream.fd && call.result > 0
        });
        let mut next = 0;
        let heads = calls.take(FIRST_CALLS as usize).map(|timed| {
            let position = next;
            next += timed.call.result as u64;
            (position, timed.call.head.as_slice())
        });
        heads.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::is_close;

    #[test]
    fn sizes_of_one_percent_are_close_at_any_size() {
        assert!(is_close(990_000, 1_000_000));
        assert!(!is_close(989_999, 1_000_000));
        // A sparse file may have this size.
        assert!(!is_close(i64::MAX as u64, 1_000_000));
        assert!(is_close(u64::MAX, u64::MAX - 1));
    }
}
