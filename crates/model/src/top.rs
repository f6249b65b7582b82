//! The result of `weir top`: system calls and pending bytes of all processes (schema weir-top/1).
//!
//! Field names are the interface (docs/schemas/weir-top-1.schema.json).

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::Untrusted;
use crate::trace::RuntimeId;

/// Value of [`TopDocument::schema`].
pub const SCHEMA: &str = "weir-top/1";

/// Calls with a smaller mean size are tiny. Stdio buffers are 8 times as large or more.
pub const TINY_BYTES: f64 = 512.0;

/// All processes over one interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Survey {
    /// Length of the interval in seconds; 0 for the first survey, in which no process has a rate.
    pub elapsed_s: f64,
    /// CPU time of weir in the interval, in seconds.
    pub cost_s: f64,
    /// Number of processes whose buffers were not read, because the survey had no more time or, with `lacks_threads`, no thread.
    pub left_out: usize,
    /// No thread could be started that reads the counters of the left-out processes.
    pub lacks_threads: bool,
    /// /proc hides processes of other users: see hidepid in proc(5).
    pub hides_others: bool,
    /// Running processes by PID, without kernel threads.
    pub processes: Vec<ProcessActivity>,
}

/// The document that `weir top --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopDocument<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// As in [`Survey::elapsed_s`].
    pub elapsed_s: f64,
    /// As in [`Survey::cost_s`].
    pub cost_s: f64,
    /// Name of the sort order.
    pub sort: &'static str,
    /// Filter text; empty without a filter.
    pub filter: &'a str,
    /// Number of processes that match the filter, also those that `processes` leaves out.
    pub found: usize,
    /// Number of these that did not answer: see [`ProcessActivity::unanswered`].
    pub unanswered: usize,
    /// As in [`Survey::left_out`].
    pub left_out: usize,
    /// As in [`Survey::lacks_threads`].
    pub lacks_threads: bool,
    /// As in [`Survey::hides_others`].
    pub hides_others: bool,
    /// The first processes in sort order.
    pub processes: Vec<&'a ProcessActivity>,
}

/// Calls and pending bytes of one process. `None` means unknown.
///
/// The JSON form also has the values of [`Self::tiny_calls_s`], [`Self::calls`], [`Self::pending_bytes`] and
/// [`Self::oldest`].
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)]
pub struct ProcessActivity {
    pub pid: u32,
    /// Start of the process in clock ticks since boot: with the PID it identifies the process. 0 if it does not
    /// answer. Not in the JSON form.
    pub start_ticks: u64,
    pub uid: u32,
    pub comm: Untrusted,
    /// Command line; `comm` for a process without one.
    pub command: Untrusted,
    /// The process belongs to another user, so its calls and buffers cannot be read.
    pub foreign: bool,
    /// weir has CAP_SYS_PTRACE, but the process has a capability that weir lacks. Not in the JSON form.
    pub more_capable: bool,
    /// A read of the process's memory or of its files in /proc blocks or takes too long, so its buffers, and perhaps its
    /// command line and counters, are unknown.
    pub unanswered: bool,
    /// The process has run since its buffers were read, or they were not read yet, and no earlier read has found pending bytes. Not in the
    /// JSON form.
    pub unread: bool,
    /// Calls that read, with those of reaped children that no survey has counted.
    pub reads: Option<CallRate>,
    /// Calls that write, with those of reaped children that no survey has counted.
    pub writes: Option<CallRate>,
    /// Share of one CPU in user mode.
    pub user_share: Option<f64>,
    /// Share of one CPU in the kernel.
    pub system_share: Option<f64>,
    /// Streams with pending bytes; `None` for a process that runs, because its bytes are not stuck.
    pub waiting: Option<Vec<PendingStream>>,
}

/// Rate of calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CallRate {
    /// System calls per second.
    pub calls_s: f64,
    /// Bytes moved per second.
    pub bytes_s: f64,
}

/// A stream of a sleeping process with pending bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingStream {
    /// Runtime that owns the buffer.
    pub walker: RuntimeId,
    /// Descriptor of the stream.
    pub fd: i32,
    /// Target of the descriptor's link in /proc; empty if it is closed or unreadable.
    pub path: Untrusted,
    /// Number of pending bytes.
    pub pending_bytes: u64,
    /// Seconds since weir first saw the bytes pending.
    pub waits_s: f64,
    /// The first survey saw the bytes already, so that they are older than `waits_s`.
    pub from_before: bool,
    /// First pending bytes as text; invalid UTF-8 is replaced, control characters are kept.
    pub preview: Untrusted,
}

impl CallRate {
    /// Returns the mean bytes of a call; `None` without calls.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.calls_s > 0.0).then(|| self.bytes_s / self.calls_s)
    }

    /// Returns the calls per second if their mean size is below [`TINY_BYTES`], else 0.
    pub fn tiny_calls_s(&self) -> f64 {
        if self.mean_bytes().is_some_and(|bytes| bytes < TINY_BYTES) { self.calls_s } else { 0.0 }
    }
}

impl ProcessActivity {
    /// Returns the rate of reads and writes together; `None` if one of them is unknown.
    pub fn calls(&self) -> Option<CallRate> {
        let (reads, writes) = (self.reads?, self.writes?);
        Some(CallRate { calls_s: reads.calls_s + writes.calls_s, bytes_s: reads.bytes_s + writes.bytes_s })
    }

    /// Returns the tiny reads and tiny writes per second.
    pub fn tiny_calls_s(&self) -> f64 {
        [self.reads, self.writes].into_iter().flatten().fold(0.0, |sum, rate| sum + rate.tiny_calls_s())
    }

    /// Returns the pending bytes of all streams.
    pub fn pending_bytes(&self) -> u64 {
        self.waiting.iter().flatten().map(|one| one.pending_bytes).sum()
    }

    /// Returns the stream with the oldest pending bytes.
    pub fn oldest(&self) -> Option<&PendingStream> {
        self.waiting
            .iter()
            .flatten()
            .max_by(|a, b| a.waits_s.total_cmp(&b.waits_s).then(a.pending_bytes.cmp(&b.pending_bytes)))
    }
}

impl Serialize for ProcessActivity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ProcessActivity", 15)?;
        object.serialize_field("pid", &self.pid)?;
        object.serialize_field("uid", &self.uid)?;
        object.serialize_field("comm", &self.comm)?;
        object.serialize_field("command", &self.command)?;
        object.serialize_field("foreign", &self.foreign)?;
        object.serialize_field("unanswered", &self.unanswered)?;
        object.serialize_field("reads", &self.reads)?;
        object.serialize_field("writes", &self.writes)?;
        object.serialize_field("tiny_calls_s", &self.tiny_calls_s())?;
        object.serialize_field("bytes_per_call", &self.calls().and_then(|calls| calls.mean_bytes()))?;
        object.serialize_field("user_share", &self.user_share)?;
        object.serialize_field("system_share", &self.system_share)?;
        object.serialize_field("pending_bytes", &self.waiting.as_ref().map(|_| self.pending_bytes()))?;
        object.serialize_field("waits_s", &self.oldest().map(|stream| stream.waits_s))?;
        object.serialize_field("waiting", &self.waiting)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(calls_s: f64, bytes_s: f64) -> Option<CallRate> {
        Some(CallRate { calls_s, bytes_s })
    }

    #[test]
    fn only_small_calls_are_tiny() {
        let one = |reads, writes| ProcessActivity { reads, writes, ..ProcessActivity::default() };
        assert_eq!(one(rate(100.0, 100.0), rate(10.0, 40960.0)).tiny_calls_s(), 100.0);
        assert_eq!(one(rate(100.0, 51_200.0), rate(0.0, 0.0)).tiny_calls_s(), 0.0, "512 bytes each");
        assert_eq!(one(None, None).tiny_calls_s(), 0.0);
        assert_eq!(one(None, rate(1.0, 1.0)).calls(), None);
        assert_eq!(one(rate(1.0, 2.0), rate(3.0, 4.0)).calls(), rate(4.0, 6.0));
        assert_eq!(
            (rate(0.0, 0.0).unwrap().mean_bytes(), rate(2.0, 3.0).unwrap().mean_bytes()),
            (None, Some(1.5))
        );
    }

    #[test]
    fn the_oldest_pending_bytes_are_found() {
        let waiting = |pending_bytes, waits_s| PendingStream {
            walker: RuntimeId::GLIBC,
            fd: 1,
            path: Untrusted::default(),
            pending_bytes,
            waits_s,
            from_before: false,
            preview: Untrusted::default(),
        };
        let waiting = Some(vec![waiting(9, 1.0), waiting(2, 5.0), waiting(3, 5.0)]);
        let one = ProcessActivity { waiting, ..ProcessActivity::default() };
        assert_eq!((one.pending_bytes(), one.oldest().unwrap().pending_bytes), (14, 3));
    }
}
