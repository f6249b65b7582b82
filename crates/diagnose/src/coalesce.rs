//! Decides whether `weir run --coalesce` helps a stream, so that no fix offers it in vain.

use weir_model::trace::{Op, RuntimeId, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;
use crate::run_advice::RunOption;

/// The most bytes of a call that `weir run --coalesce` gathers (MAX_CALL_BYTES of native/preload/gather.h).
const MOST_BYTES: u64 = 1024;

/// Devices on which a later call has the same effect.
const PASSIVE_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"];

impl RuleContext<'_> {
    /// Returns whether the run shows nothing that keeps `weir run --coalesce` from combining the tiny calls of a stream: the
    /// program had one thread, and its other input did not reveal that output is late. The planner knows the other limits.
    fn can_coalesce(&self, stream: &StreamCounts) -> bool {
        let threads = self.process(stream.pid).is_some_and(|process| process.threads > 1);
        let reads = stream.direction == Direction::In;
        // Bytes read ahead from a pipe, terminal or socket cannot be given back.
        let may_read_ahead = !reads || self.kind(stream.file) == StreamKind::File;
        let asked = if reads { &stream.asked } else { &stream.sizes };
        let small =
            stream.mean_bytes() <= MOST_BYTES as f64 && asked.below(MOST_BYTES * 2) * 10 >= asked.total() * 9;
        small
            && !threads
            && may_read_ahead
            && self.makes_plain_calls(stream)
            && !self.is_musl_stream(stream)
            && (reads || !self.alternates_with_device(stream))
    }

    /// Returns the command that combines the tiny calls of a stream, or None if it does not help.
    pub fn coalesce_command(&self, stream: &StreamCounts) -> Option<String> {
        self.can_coalesce(stream).then(|| self.weir_run(RunOption::Coalesce, stream.pid, stream.first_s))?
    }

    /// Returns whether most recorded calls of a stream are of the kinds that the library gathers: read(2), write(2) and
    /// writev(2), but not send(2) or pread(2).
    fn makes_plain_calls(&self, stream: &StreamCounts) -> bool {
        let calls = self.calls_on(stream.file).iter().filter(|timed| timed.pid == stream.pid);
        let ops: Vec<Op> = calls.map(|timed| timed.call.op).filter(|op| op.reads() || op.writes()).collect();
        let plain = ops.iter().filter(|op| matches!(op, Op::Read | Op::Write | Op::Writev)).count();
        plain * 2 >= ops.len()
    }

    /// Returns whether the stream is one of musl's stdio, whose system calls cannot be interposed.
    fn is_musl_stream(&self, stream: &StreamCounts) -> bool {
        let mut buffers = self.snapshots(stream.pid).iter().flat_map(|snapshot| snapshot.buffers);
        buffers.any(|buffer| buffer.walker == RuntimeId::MUSL && buffer.fd == stream.fd)
    }

    /// Returns whether the process reads from a device about once for every two calls of the stream. The device may react to
    /// the output.
    fn alternates_with_device(&self, stream: &StreamCounts) -> bool {
        self.streams_of(stream.pid).iter().any(|other| {
            other.direction != Direction::Out
                && other.calls * 2 >= stream.calls
                && matches!(self.kind(other.file), StreamKind::Device | StreamKind::Other)
                && !self.is_passive_device(other.file)
        })
    }

    /// Returns whether an open file is a device on which a later call has the same effect.
    pub fn is_passive_device(&self, file: u32) -> bool {
        PASSIVE_DEVICES.contains(&self.file(file).map_or("", |file| file.path.as_str()))
    }
}
