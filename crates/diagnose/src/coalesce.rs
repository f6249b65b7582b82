//! Decides whether `weir run --coalesce` helps a stream, so that no fix offers it in vain.

use weir_model::trace::{Op, RuntimeId, StreamCounts};
use weir_model::{Direction, Gain, StreamKind};

use crate::context::RuleContext;
use crate::run_advice::RunOption;

/// The most bytes of a call that `weir run --coalesce` gathers (MAX_CALL_BYTES of native/preload/gather.h).
const MAX_BYTES: u64 = 1024;

/// Calls of a session that are made before the library gathers (WARMUP_CALLS of native/preload/gather.h).
pub const SESSION_WARMUP: u64 = 8;

/// System calls at the begin and the end of a session, beside its signal and the large call that moves its bytes: 10 for writes
/// to a file (fcntl, fstat, fstatfs, gettid, two of getpid, rt_sigaction, three of rt_sigprocmask), 11 for reads and 12 for a
/// pipe. tests/trace_advice.rs counts them.
pub const SESSION_CALLS: u64 = 11;

/// Calls that a program makes before it does its work: the loader, and the imports of a language. Python makes about 700.
const START_CALLS: u64 = 1000;

/// A stream with less than this part of another one's calls ends few of the sessions in which those are gathered.
const RARE: u64 = 100;

/// The share of the user time around the calls that is saved although the program still makes them: the caches that the kernel
/// no longer replaces. Measured on programs of the labelled set in C, Python and Perl: 0 to 0.55, see [`GATHERED_AROUND_RANGE`].
/// With 0.25 the promise is within a factor of 1.5 of what a program saves at either end of this range.
const GATHERED_AROUND: f64 = 0.25;

/// The lowest and the highest measured [`GATHERED_AROUND`].
#[cfg(test)]
pub(crate) const GATHERED_AROUND_RANGE: [f64; 2] = [0.0, 0.55];

/// Returns the bytes of the writes and reads that the library makes (WEIR_OUT_BYTES and MAX_READ_AHEAD, and PIPE_BUF and
/// ROOM_TERMINAL for others).
fn piece_bytes(kind: StreamKind, writes: bool) -> f64 {
    match kind {
        StreamKind::Pipe | StreamKind::Socket if writes => 4096.0,
        StreamKind::Terminal if writes => 1024.0,
        _ => 65_536.0,
    }
}

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
        let asked = if reads { &stream.requested_sizes } else { &stream.sizes };
        let small =
            stream.mean_bytes() <= MAX_BYTES as f64 && asked.below(MAX_BYTES * 2) * 10 >= asked.total() * 9;
        small
            && !threads
            && may_read_ahead
            && self.makes_plain_calls(stream)
            && !self.is_musl_stream(stream)
            && (reads || !self.alternates_with_device(stream))
    }

    /// Returns the command that combines the tiny calls of a stream, and what it saves. Returns None if it does not help.
    pub fn coalesce_command(&self, stream: &StreamCounts) -> Option<(String, Gain)> {
        if !self.can_coalesce(stream) {
            return None;
        }
        let gain = self.coalesce_gain(stream).filter(|gain| gain.elapsed_s > 0.0)?;
        Some((self.weir_run(RunOption::Coalesce, stream.pid, stream.first_s)?, gain))
    }

    /// Returns what `weir run --coalesce` saves on a stream: the kernel's work for the gathered calls, less the work of the
    /// library in their place. Returns None if other calls of the process come so often that hardly any call is gathered.
    fn coalesce_gain(&self, stream: &StreamCounts) -> Option<Gain> {
        self.coalesce_gain_with(stream, GATHERED_AROUND)
    }

    /// As [`Self::coalesce_gain`], if this share of the user time around the calls is saved.
    pub(crate) fn coalesce_gain_with(&self, stream: &StreamCounts, saved_around: f64) -> Option<Gain> {
        let prices = &self.recording.prices;
        let sessions = self.session_ends(stream) + 1;
        let gathered = stream.calls.saturating_sub(sessions * SESSION_WARMUP);
        if gathered * 2 < stream.calls {
            return None;
        }
        let share = gathered as f64 / stream.calls as f64;
        let (kind, writes) = (self.kind(stream.file), stream.direction != Direction::In);
        let pieces = ((stream.bytes as f64 * share / piece_bytes(kind, writes)) as u64).max(sessions);
        let scale = self.price_scale(stream.pid);
        let large_s = prices.transfer_s(kind, writes, pieces, (stream.bytes as f64 * share) as u64) * scale;
        let call_ns = prices.gathered_call_ns + stream.mean_bytes() * prices.copied_byte_ns;
        let session_ns = (prices.call_ns * SESSION_CALLS as f64 + prices.signal_ns) * scale;
        let library_s = (gathered as f64 * call_ns + sessions as f64 * session_ns) / 1e9;
        let before_s = self.calls_s(stream) + self.around_calls_s(stream) * saved_around;
        Some(Gain {
            elapsed_s: (before_s * share - large_s - library_s).max(0.0),
            calls: gathered.saturating_sub(pieces),
        })
    }

    /// Returns how many calls of the process end a session of the library, which then writes what it has gathered: all but
    /// those that are gathered too, those of devices that reveal no delay, and those of a program's start. Seeks do, also those in
    /// the stream itself: Python makes one before each write to a file that it opened with `a+`.
    fn session_ends(&self, stream: &StreamCounts) -> u64 {
        // The library gathers the writes of one stream at a time, beside reads.
        let mut outputs = self
            .streams_of(stream.pid)
            .iter()
            .filter(|one| one.direction != Direction::In && one.calls * RARE >= stream.calls);
        let has_one_output = outputs.next().is_some() && outputs.next().is_none();
        let gathered_too = |other: &StreamCounts| match other.direction {
            Direction::In => self.is_passive_device(other.file) || self.can_coalesce(other),
            _ => stream.direction == Direction::In && has_one_output && self.can_coalesce(other),
        };
        let is_itself = |other: &StreamCounts| {
            (other.fd, other.file, other.direction) == (stream.fd, stream.file, stream.direction)
        };
        let meanwhile = |other: &StreamCounts, calls: u64| {
            let last_s = if is_polled(other) { self.ended_at(other.pid) } else { other.last_s };
            let overlap_s = stream.last_s.min(last_s) - stream.first_s.max(other.first_s);
            let share = overlap_s / (last_s - other.first_s).max(1e-9);
            (calls as f64 * share.clamp(0.0, 1.0)) as u64
        };
        let ends = |other: &StreamCounts| {
            let is_gathered = is_itself(other) || gathered_too(other);
            let transfers = if is_gathered { 0 } else { self.calls_with_gaps(other) };
            meanwhile(other, transfers + other.seeks)
        };
        let transfers: u64 = self.streams_of(stream.pid).iter().map(|other| ends(other)).sum();
        let silent = self.recording.other_calls.iter().filter(|other| other.pid == stream.pid);
        let silent: u64 = silent.map(|other| other.calls).sum();
        let counted = (transfers + silent + stream.syncs).saturating_sub(START_CALLS);
        let sampled = transfers.saturating_sub(START_CALLS) + self.silent_calls_with_gaps(stream);
        counted.max(sampled).min(stream.calls)
    }

    /// Returns the calls of a stream, those in gaps included. The recorder has estimated them, but not for a socket without a time of
    /// its last call.
    fn calls_with_gaps(&self, stream: &StreamCounts) -> u64 {
        let is_estimated = stream.estimated || self.kind(stream.file) != StreamKind::Socket;
        if !is_polled(stream) || is_estimated {
            return stream.calls;
        }
        let ended_s = self.ended_at(stream.pid);
        self.calls_in_span(stream.pid, stream.calls, stream.first_s, ended_s).unwrap_or(stream.calls)
    }

    /// Returns how many calls that move no bytes the process makes while it uses the stream, those in gaps included: the kernel has no
    /// totals of them. Returns 0 without gaps.
    fn silent_calls_with_gaps(&self, stream: &StreamCounts) -> u64 {
        let (from_s, to_s) = (stream.first_s, stream.last_s);
        if self.gaps_s(stream.pid, from_s, to_s) <= 0.0 {
            return 0;
        }
        let calls = self.calls_between(stream.pid, from_s, to_s).iter().map(|timed| timed.call);
        let silent = calls.filter(|call| {
            let op = call.op;
            let anonymous = op == Op::Mmap && call.fd < 0;
            !(op.reads() || op.writes() || op.copies() || anonymous)
        });
        self.calls_in_span(stream.pid, silent.count() as u64, from_s, to_s).unwrap_or(0)
    }

    /// Returns how many calls a process made in a span of time of which `recorded` were recorded: they are as frequent in gaps as in
    /// the sampling windows. Returns None if the span is one gap.
    fn calls_in_span(&self, pid: u32, recorded: u64, from_s: f64, to_s: f64) -> Option<u64> {
        let windows_s = to_s - from_s - self.gaps_s(pid, from_s, to_s);
        (windows_s > 0.0).then(|| (recorded as f64 * (to_s - from_s) / windows_s) as u64)
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
        PASSIVE_DEVICES.contains(&self.file(file).map_or("", |file| file.path.exact()))
    }
}

/// Returns whether most calls of a stream return EAGAIN. These do not move the time of the last call.
fn is_polled(stream: &StreamCounts) -> bool {
    stream.again * 2 > stream.calls
}
