//! What a flow costs, what its cure would cost, and how bad that is.

use weir_model::trace::{Recording, StreamCounts};
use weir_model::{Direction, Gain, Severity, StreamKind};

use crate::context::Context;

/// Bytes that a cured program moves with one call.
pub(crate) const BUFFER: u64 = 65_536;

/// A record passed through a buffer costs at least this call in the program itself …
const BUFFERED_RECORD_NS: f64 = 40.0;

/// … and a large one no more than the copying of its bytes.
const COPIED_BYTE_NS: f64 = 0.1;

/// Of the time that a program which does little but make calls takes outside of the kernel, what goes into making them:
/// its language's way down to the call and back, and caches that the kernel used meanwhile. Measured on seventeen programs
/// in six languages against twins that gather: a third to 0.95 of it was gone, 0.68 in the middle; of one, nothing.
const OWN_PART: f64 = 0.6;

/// Never more than this for what the kernel takes for the calls: node's console.log, the dearest way, is at 1.8. What
/// is more is the program's work.
const OWN_MOST: f64 = 1.5;

/// What the prices say that the calls of a flow cost, in seconds.
pub(crate) fn priced_s(recording: &Recording, flow: &StreamCounts) -> f64 {
    let kind = recording.file(flow.file).map_or(StreamKind::Other, |file| file.kind);
    recording.prices.transfer_s(kind, flow.direction != Direction::In, flow.calls, flow.bytes)
}

impl Context<'_> {
    /// Seconds of the run that are the program's, without what watching added.
    pub fn run_s(&self) -> f64 {
        let elapsed = self.recording.elapsed_s.max(1e-6);
        (elapsed - self.recording.overhead.cost_s.max(0.0)).max(elapsed / 10.0)
    }

    /// Share of the run that these seconds are.
    pub fn share(&self, seconds: f64) -> f64 {
        (seconds / self.run_s()).clamp(0.0, 1.0)
    }

    /// Processor seconds of a process, where known.
    pub fn cpu_s(&self, pid: u32) -> Option<f64> {
        let process = self.process(pid)?;
        Some(process.user_s + process.system_s).filter(|&cpu| cpu > 0.0)
    }

    /// Seconds of these that a process neither had a processor nor stood in line for one: it waited for a device or for
    /// somebody. What others keep a processor from it is not the fault of its calls. None: not known.
    pub fn waited_s(&self, pid: u32, span_s: f64) -> Option<f64> {
        let queued_s = self.process(pid)?.queued_s?;
        let watching_s = self.recording.overhead.cost_s.max(0.0);
        Some((span_s - self.cpu_s(pid)? - queued_s - watching_s).max(0.0))
    }

    /// Seconds that cannot be more than the process had the processor, nor than the run lasted.
    pub fn at_most_cpu(&self, pid: u32, seconds: f64) -> f64 {
        seconds.min(self.cpu_s(pid).unwrap_or(f64::INFINITY)).min(self.run_s())
    }

    /// Seconds that the calls of a flow cost.
    pub fn flow_s(&self, flow: &StreamCounts) -> f64 {
        let seconds = priced_s(self.recording, flow) * self.price_scale(flow.pid);
        self.at_most_cpu(flow.pid, seconds.max(self.socket_s(flow)))
    }

    /// What a call on a socket costs depends on the protocol and on who waits at the other end: no price knows
    /// it, but the kernel's time for a process that makes hardly any other calls does.
    fn socket_s(&self, flow: &StreamCounts) -> f64 {
        let all = self.calls_by(flow.pid);
        let Some(process) = self.process(flow.pid) else { return 0.0 };
        let mostly = self.kind(flow.file) == StreamKind::Socket && flow.calls * 10 >= all * 9;
        if mostly && flow.calls >= 1000 { process.system_s * flow.calls as f64 / all as f64 } else { 0.0 }
    }

    /// Seconds that the process itself, outside of the kernel, takes to make the calls of a flow.
    pub fn own_s(&self, flow: &StreamCounts) -> f64 {
        self.own_part_s(flow, self.flow_s(flow))
    }

    /// The same, where the kernel takes `calls_s` for them.
    pub fn own_part_s(&self, flow: &StreamCounts, calls_s: f64) -> f64 {
        let all = self.calls_by(flow.pid);
        let user_s = self.process(flow.pid).map_or(0.0, |process| process.user_s);
        let part = flow.calls as f64 / all.max(1) as f64;
        (user_s * part * OWN_PART).min(calls_s * OWN_MOST)
    }

    /// Seconds that the calls of a flow take, in the kernel and in the process.
    pub fn whole_s(&self, flow: &StreamCounts) -> f64 {
        self.at_most_cpu(flow.pid, self.flow_s(flow) + self.own_s(flow))
    }

    /// What gathering a flow's calls into large ones would save.
    pub fn gathered(&self, flow: &StreamCounts) -> Gain {
        let prices = &self.recording.prices;
        let calls = flow.bytes.div_ceil(BUFFER) + 1;
        let writes = flow.direction != Direction::In;
        let large = prices.transfer_s(self.kind(flow.file), writes, calls, flow.bytes);
        let record_ns = (flow.mean_bytes() * prices.buffered_byte_ns)
            .min(BUFFERED_RECORD_NS + flow.mean_bytes() * COPIED_BYTE_NS);
        let cured = large + record_ns * flow.calls as f64 / 1e9;
        Gain { elapsed_s: (self.whole_s(flow) - cured).max(0.0), calls: flow.calls.saturating_sub(calls) }
    }

    /// Seconds from the first to the last call of a flow: what waits in between cannot be longer.
    pub fn span_s(&self, flow: &StreamCounts) -> f64 {
        (flow.last_s - flow.first_s).clamp(0.0, self.recording.elapsed_s.max(0.0))
    }

    /// How bad wasted seconds are; None when they are not worth a word.
    pub fn severity(&self, wasted_s: f64) -> Option<Severity> {
        let share = self.share(wasted_s);
        match () {
            () if !wasted_s.is_finite() => None,
            () if share >= 0.30 && wasted_s >= 0.1 => Some(Severity::High),
            () if share >= 0.05 && wasted_s >= 0.02 => Some(Severity::Warn),
            () if share >= 0.01 && wasted_s >= 0.005 => Some(Severity::Info),
            // A textbook's ten thousand calls: most of a run that takes no longer.
            () if share >= 0.20 && wasted_s >= 0.002 => Some(Severity::Info),
            () => None,
        }
    }
}
