//! The cost of a stream's calls, the saving by larger calls, and the severity of wasted time.

use weir_model::trace::{Recording, StreamCounts};
use weir_model::{Direction, Gain, Severity, StreamKind};

use crate::call_patterns::TINY;
use crate::context::RuleContext;

/// Bytes that a program with a large buffer moves with one call.
pub(crate) const BUFFER: u64 = 65_536;

/// The least cost of a record that passes through a buffer: one library call. An estimate.
const BUFFERED_RECORD_NS: f64 = 40.0;

/// The most that a large record costs in a buffer: the copying of its bytes. An estimate.
const COPIED_BYTE_NS: f64 = 0.1;

/// The share of a program's user time that larger calls save, for a program that does little but make calls: the
/// language's path to the call, and cache misses after it. Measured on seventeen programs in six languages against twins
/// with a buffer: 0.33 to 0.95, with 0.68 as the median; nothing for one program.
const AROUND_SHARE: f64 = 0.6;

/// The most that this user time can be, as a multiple of the kernel's time for the calls. The highest measured ratio is
/// 1.8, for node's console.log; the rest is the program's own work.
const MAX_AROUND: f64 = 1.5;

/// Returns the seconds that the calls of a stream cost by the price list.
pub(crate) fn priced_s(recording: &Recording, stream: &StreamCounts) -> f64 {
    let kind = recording.file(stream.file).map_or(StreamKind::Other, |file| file.kind);
    recording.prices.transfer_s(kind, stream.direction != Direction::In, stream.calls, stream.bytes)
}

impl RuleContext<'_> {
    /// Returns the seconds of the run without the cost of tracing.
    pub fn run_s(&self) -> f64 {
        let elapsed = self.recording.elapsed_s.max(1e-6);
        (elapsed - self.recording.overhead.cost_s.max(0.0)).max(elapsed / 10.0)
    }

    /// Returns the share of the run that these seconds are, from 0 to 1.
    pub fn share(&self, seconds: f64) -> f64 {
        (seconds / self.run_s()).clamp(0.0, 1.0)
    }

    /// Returns the share that these seconds of a process are of the run without the time in which the process waited for a
    /// processor, which other load causes.
    pub fn share_when_idle(&self, pid: u32, seconds: f64) -> f64 {
        let queued_s = self.process(pid).and_then(|process| process.queued_s).unwrap_or(0.0);
        let run_s = (self.run_s() - queued_s).max(self.cpu_s(pid).unwrap_or(0.0)).max(1e-6);
        (seconds / run_s.min(self.run_s())).clamp(0.0, 1.0)
    }

    /// Returns the CPU seconds of a process, or None if they are unknown.
    pub fn cpu_s(&self, pid: u32) -> Option<f64> {
        let process = self.process(pid)?;
        Some(process.user_s + process.system_s).filter(|&cpu| cpu > 0.0)
    }

    /// Returns the CPU seconds of a process in user mode, or None if its CPU time is unknown. The kernel can count all CPU time of a
    /// short process as its own.
    pub fn user_s(&self, pid: u32) -> Option<f64> {
        self.cpu_s(pid).and(self.process(pid)).map(|process| process.user_s)
    }

    /// Returns how many of these seconds a process waited for a device or another process, or None if that is unknown. Time
    /// in the run queue does not count, because other load causes it.
    pub fn waited_s(&self, pid: u32, span_s: f64) -> Option<f64> {
        let queued_s = self.process(pid)?.queued_s?;
        let tracing_s = self.recording.overhead.cost_s.max(0.0);
        Some((span_s - self.cpu_s(pid)? - queued_s - tracing_s).max(0.0))
    }

    /// Limits seconds to the CPU time of the process and to the length of the run.
    pub fn cap_to_cpu(&self, pid: u32, seconds: f64) -> f64 {
        seconds.min(self.cpu_s(pid).unwrap_or(f64::INFINITY)).min(self.run_s())
    }

    /// Returns the seconds that the kernel spends on the calls of a stream.
    pub fn calls_s(&self, stream: &StreamCounts) -> f64 {
        let seconds = priced_s(self.recording, stream) * self.price_scale(stream.pid);
        self.cap_to_cpu(stream.pid, seconds.max(self.socket_s(stream)))
    }

    /// Returns the kernel's seconds for a socket of a process that makes hardly any other calls, else 0. The cost of a call
    /// on a socket depends on the protocol and on the peer, so the price list does not have it.
    fn socket_s(&self, stream: &StreamCounts) -> f64 {
        let all = self.call_count(stream.pid);
        let Some(process) = self.process(stream.pid) else { return 0.0 };
        let mostly = self.kind(stream.file) == StreamKind::Socket && stream.calls * 10 >= all * 9;
        if mostly && stream.calls >= 1000 { process.system_s * stream.calls as f64 / all as f64 } else { 0.0 }
    }

    /// Returns the user seconds that a process spends around the calls of a stream.
    pub fn around_calls_s(&self, stream: &StreamCounts) -> f64 {
        // The programs of which MAX_AROUND was measured move a few bytes with each call.
        self.around_part_s(stream, self.calls_s(stream) * self.entering_share(stream))
    }

    /// As [`Self::around_calls_s`], where the kernel spends `calls_s` on the calls.
    pub fn around_part_s(&self, stream: &StreamCounts, calls_s: f64) -> f64 {
        let all = self.call_count(stream.pid);
        let user_s = self.process(stream.pid).map_or(0.0, |process| process.user_s);
        let part = stream.calls as f64 / all.max(1) as f64;
        (user_s * part * AROUND_SHARE).min(calls_s * MAX_AROUND)
    }

    /// Returns the share of the price of a stream's calls that does not depend on their bytes.
    fn entering_share(&self, stream: &StreamCounts) -> f64 {
        let (kind, writes) = (self.kind(stream.file), stream.direction != Direction::In);
        let entering_ns = self.recording.prices.small_call_ns(kind, writes) * stream.calls as f64;
        let bytes_ns = self.recording.prices.large_byte_ns(kind) * stream.bytes as f64;
        if entering_ns > 0.0 { entering_ns / (entering_ns + bytes_ns) } else { 1.0 }
    }

    /// Returns the CPU seconds of a stream's calls: those of the kernel and those of the process around the calls.
    pub fn total_s(&self, stream: &StreamCounts) -> f64 {
        self.cap_to_cpu(stream.pid, self.calls_s(stream) + self.around_calls_s(stream))
    }

    /// Returns the size of calls on a stream from which larger ones gain almost nothing on this machine, by the price list.
    pub fn knee_bytes(&self, stream: &StreamCounts) -> u64 {
        self.recording.prices.knee_bytes(self.kind(stream.file), stream.direction != Direction::In)
    }

    /// Returns what calls of the knee's size, or of [`BUFFER`] bytes if that is more, would save on a stream.
    pub fn gathering_gain(&self, stream: &StreamCounts) -> Gain {
        let prices = &self.recording.prices;
        let calls = stream.bytes.div_ceil(self.knee_bytes(stream).max(BUFFER)) + 1;
        let writes = stream.direction != Direction::In;
        let large_s = prices.transfer_s(self.kind(stream.file), writes, calls, stream.bytes)
            * self.price_scale(stream.pid);
        // Tiny pieces are copied through a buffer; a block is made larger instead.
        let record_ns = match stream.mean_bytes() {
            mean if mean < TINY as f64 => {
                (mean * prices.buffered_byte_ns).min(BUFFERED_RECORD_NS + mean * COPIED_BYTE_NS)
            }
            _ => 0.0,
        };
        let buffered_s = large_s + record_ns * stream.calls as f64 / 1e9;
        Gain {
            elapsed_s: (self.total_s(stream) - buffered_s).max(0.0),
            calls: stream.calls.saturating_sub(calls),
        }
    }

    /// Returns the seconds that a process spends inside the calls of a stream: those for which they block, and the stream's
    /// share of the kernel's CPU time. Returns None if the backend does not measure for how long calls block.
    pub fn in_calls_s(&self, stream: &StreamCounts) -> Option<f64> {
        let share = stream.calls as f64 / self.call_count(stream.pid).max(1) as f64;
        let working_s = self.process(stream.pid).map_or(0.0, |process| process.system_s) * share.min(1.0);
        Some((stream.wait_s? + working_s).min(self.run_s()))
    }

    /// Returns for how many seconds the calls of a stream blocked, as measured; else how long its process waited at all during
    /// them.
    pub fn stream_waited_s(&self, stream: &StreamCounts) -> f64 {
        let process_s = || self.waited_s(stream.pid, self.span_s(stream)).unwrap_or(0.0);
        stream.wait_s.unwrap_or_else(process_s)
    }

    /// Returns the seconds from the first to the last call of a stream. No wait between its calls is longer.
    pub fn span_s(&self, stream: &StreamCounts) -> f64 {
        (stream.last_s - stream.first_s).clamp(0.0, self.recording.elapsed_s.max(0.0))
    }

    /// Returns the severity of seconds that a process wastes, or None if they are not worth reporting. It does not depend on
    /// the load by others.
    pub fn severity(&self, pid: u32, wasted_s: f64) -> Option<Severity> {
        let share = self.share_when_idle(pid, wasted_s);
        match () {
            () if !wasted_s.is_finite() => None,
            () if share >= 0.30 && wasted_s >= 0.1 => Some(Severity::High),
            () if share >= 0.05 && wasted_s >= 0.02 => Some(Severity::Warn),
            () if share >= 0.01 && wasted_s >= 0.005 => Some(Severity::Info),
            // Most of a run as short as a textbook's example with ten thousand calls.
            () if share >= 0.20 && wasted_s >= 0.002 => Some(Severity::Info),
            () => None,
        }
    }
}
