//! What a look over all processes shows: who makes how many calls, and whose bytes wait where.

use serde::{Deserialize, Serialize};

use crate::trace::RuntimeId;

/// A call that moves less than this on the average is tiny.
pub const TINY_BYTES: f64 = 512.0;

/// All processes over one interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Survey {
    /// How long the interval was; 0: there was none yet, and no process has a rate.
    pub elapsed_s: f64,
    /// Processor time that weir itself took in it.
    pub cost_s: f64,
    /// By their numbers; no threads of the kernel, and none that has ended.
    pub processes: Vec<Activity>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Activity {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// The name of its program.
    pub comm: String,
    /// Its command line; the name where it has none.
    pub command: String,
    /// It is another user's: its calls and buffers are not to be seen.
    pub foreign: bool,
    /// Its calls that read; those of children that have ended and were not seen themselves are among them. None:
    /// not known, or not yet.
    pub reads: Option<Rate>,
    /// And those that write.
    pub writes: Option<Rate>,
    /// Time in user mode, 1 for one processor all the time. None: not yet known.
    pub user_share: Option<f64>,
    /// And in the kernel.
    pub system_share: Option<f64>,
    /// Streams with bytes that the kernel has not got yet. None: it was not looked at, or it does not sleep, and
    /// then nothing is stuck.
    pub waiting: Option<Vec<Waiting>>,
}

/// Calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rate {
    /// How many a second.
    pub calls_s: f64,
    /// What they moved a second.
    pub bytes_s: f64,
}

/// A stream of a sleeping process that has bytes pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Whose buffer it is.
    pub walker: RuntimeId,
    /// Its descriptor.
    pub fd: i32,
    /// Where that leads; empty where it is closed or cannot be seen.
    pub path: String,
    /// How much waits.
    pub pending_bytes: u64,
    /// For how long weir has seen it wait.
    pub waits_s: f64,
    /// It was there at the first look already: it has waited for longer.
    pub from_before: bool,
    /// Its beginning, what is no text replaced.
    pub preview: String,
}

impl Rate {
    /// What one call moves; None where there are none.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.calls_s > 0.0).then(|| self.bytes_s / self.calls_s)
    }

    /// Calls a second, if they are tiny.
    pub fn tiny_calls_s(&self) -> f64 {
        if self.mean_bytes().is_some_and(|bytes| bytes < TINY_BYTES) { self.calls_s } else { 0.0 }
    }
}

impl Activity {
    /// Both kinds of calls together.
    pub fn calls(&self) -> Option<Rate> {
        let (reads, writes) = (self.reads?, self.writes?);
        Some(Rate { calls_s: reads.calls_s + writes.calls_s, bytes_s: reads.bytes_s + writes.bytes_s })
    }

    /// Tiny calls a second of both kinds.
    pub fn tiny_calls_s(&self) -> f64 {
        [self.reads, self.writes].into_iter().flatten().fold(0.0, |sum, rate| sum + rate.tiny_calls_s())
    }

    /// All bytes that wait in its streams.
    pub fn pending_bytes(&self) -> u64 {
        self.waiting.iter().flatten().map(|one| one.pending_bytes).sum()
    }

    /// The stream whose bytes have waited longest.
    pub fn oldest(&self) -> Option<&Waiting> {
        self.waiting
            .iter()
            .flatten()
            .max_by(|a, b| a.waits_s.total_cmp(&b.waits_s).then(a.pending_bytes.cmp(&b.pending_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(calls_s: f64, bytes_s: f64) -> Option<Rate> {
        Some(Rate { calls_s, bytes_s })
    }

    #[test]
    fn only_small_calls_are_tiny() {
        let one = |reads, writes| Activity { reads, writes, ..Activity::default() };
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
    fn the_oldest_counts() {
        let waiting = |pending_bytes, waits_s| Waiting {
            walker: RuntimeId::Glibc,
            fd: 1,
            path: String::new(),
            pending_bytes,
            waits_s,
            from_before: false,
            preview: String::new(),
        };
        let waiting = Some(vec![waiting(9, 1.0), waiting(2, 5.0), waiting(3, 5.0)]);
        let one = Activity { waiting, ..Activity::default() };
        assert_eq!((one.pending_bytes(), one.oldest().unwrap().pending_bytes), (14, 3));
    }
}
