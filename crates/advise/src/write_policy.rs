//! The write policies that weir considers: how a program writes its records, and when it flushes and syncs.

use weir_model::advise::{AdviceQuestion, AllowedLoss, Choice, SyncPoint, WriteMethod};
use weir_model::duration::format_seconds;
use weir_model::{Mode, Size};

/// Buffer sizes, in steps of 4: from glibc's usual 4 KiB to 256 KiB; a pipe holds 64 KiB. Larger ones gain nothing that a bench
/// shows and put more bytes at risk.
const BUFFERS: [u64; 4] = [4096, 16_384, 65_536, 262_144];
/// Share of the latency limit that a timer may use; the rest is for the write itself and for scheduling.
const TIMER_SHARE: f64 = 0.8;
/// Shortest interval of a timer. Below it, the wake-ups cost more than the writes that they save.
const SHORTEST_TIMER_S: f64 = 0.001;
/// Interval of a sync that loses at most a second: the rest of the second is for the sync itself.
const SYNC_PERIOD_S: f64 = 0.9;
/// Block of O_DIRECT and of io_uring.
const BLOCK: u64 = 65_536;

/// The method, the buffer, and the times of flushes and syncs.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct WritePolicy {
    pub method: WriteMethod,
    pub mode: Mode,
    /// 0 without a user-space buffer.
    pub buffer_bytes: u64,
    pub sync: SyncPoint,
    /// Interval of the timer that writes the buffer.
    pub flush_period_s: Option<f64>,
    /// Interval of the timer that syncs.
    pub sync_period_s: Option<f64>,
}

impl From<&Choice> for WritePolicy {
    fn from(choice: &Choice) -> Self {
        Self {
            method: choice.method,
            mode: choice.mode,
            buffer_bytes: choice.buffer_bytes,
            sync: choice.sync,
            flush_period_s: choice.flush_period_s,
            sync_period_s: choice.sync_period_s,
        }
    }
}

impl WritePolicy {
    fn new(method: WriteMethod, mode: Mode, buffer_bytes: u64, sync: SyncPoint) -> Self {
        Self { method, mode, buffer_bytes, sync, flush_period_s: None, sync_period_s: None }
    }

    /// Returns the interval of the timer, if the policy has one.
    pub fn timer_s(&self) -> Option<f64> {
        self.flush_period_s.or(self.sync_period_s)
    }

    /// Returns whether the policy collects records in a buffer of the program.
    pub fn gathers(&self) -> bool {
        matches!(self.mode, Mode::Full | Mode::Record)
    }

    /// Returns whether a program that uses the policy must handle what the language's streams handle otherwise.
    pub fn is_for_experts(&self) -> bool {
        use WriteMethod::{Direct, InKernel, IoUring, Mmap};
        matches!(self.method, Mmap | Direct | IoUring | InKernel)
    }

    /// Returns the policy in a few words.
    pub fn name(&self) -> String {
        let how = match self.method {
            WriteMethod::Syscall => "write each record".into(),
            WriteMethod::Stdio if self.mode == Mode::Line => "line-buffered stream".into(),
            WriteMethod::Stdio => format!("buffer of {}", Size(self.buffer_bytes)),
            WriteMethod::Libweir if self.gathers() => {
                format!("libweir, buffer of {}", Size(self.buffer_bytes))
            }
            WriteMethod::Libweir => "libweir, write each record".into(),
            WriteMethod::Mmap => "store into a shared mapping".into(),
            WriteMethod::Direct => format!("O_DIRECT, blocks of {}", Size(self.buffer_bytes)),
            WriteMethod::IoUring => format!("io_uring, blocks of {}", Size(self.buffer_bytes)),
            WriteMethod::InKernel => "copy inside the kernel".into(),
        };
        let flush = match (self.flush_period_s, self.sync) {
            (Some(period), SyncPoint::None) => format!(", flushed every {}", format_seconds(period)),
            _ => String::new(),
        };
        let sync = match (self.sync, self.sync_period_s) {
            (SyncPoint::None, _) => String::new(),
            (SyncPoint::Record, _) => ", fdatasync after each".into(),
            (SyncPoint::ODsync, _) => ", O_DSYNC".into(),
            (SyncPoint::Group, _) => ", one fdatasync for all threads that wait".into(),
            (SyncPoint::Period, period) => {
                let flush = if self.flush_period_s.is_some() { "flush and " } else { "" };
                format!(", {flush}fdatasync every {}", format_seconds(period.unwrap_or_default()))
            }
        };
        how + &flush + &sync
    }
}

/// Returns `seconds` in whole milliseconds below a second, in tenths of a second above, rounded down.
fn round_down(seconds: f64) -> f64 {
    let steps_a_second = if seconds < 1.0 { 1000.0 } else { 10.0 };
    // A product such as 0.7 × 0.8 is a little below its decimal value.
    (seconds * steps_a_second + 1e-6).floor() / steps_a_second
}

/// Returns all policies, also those that cannot hold the limits of the question.
pub fn write_policies(question: &AdviceQuestion) -> Vec<WritePolicy> {
    let least_second = if question.loss == AllowedLoss::Second { SYNC_PERIOD_S } else { f64::INFINITY };
    let flush_s = round_down((question.latency_s * TIMER_SHARE).min(least_second)).max(SHORTEST_TIMER_S);
    let sync_s = SYNC_PERIOD_S;
    let mut policies = per_record_policies(question, sync_s);
    for bytes in BUFFERS.into_iter().filter(|bytes| *bytes >= 2 * question.record_bytes) {
        for method in [WriteMethod::Stdio, WriteMethod::Libweir] {
            // Several writers of a file must not divide a record between two writes.
            let mode = if method == WriteMethod::Libweir && question.sharers > 1 {
                Mode::Record
            } else {
                Mode::Full
            };
            let plain = WritePolicy::new(method, mode, bytes, SyncPoint::None);
            let timed = WritePolicy { flush_period_s: Some(flush_s), ..plain.clone() };
            let period = flush_s.min(sync_s);
            let synced = WritePolicy {
                sync: SyncPoint::Period,
                flush_period_s: Some(period),
                sync_period_s: Some(period),
                ..plain.clone()
            };
            policies.extend([plain, timed, synced]);
        }
    }
    policies.extend(
        [WriteMethod::Direct, WriteMethod::IoUring]
            .map(|method| WritePolicy::new(method, Mode::Full, BLOCK, SyncPoint::None)),
    );
    policies.extend(
        [WriteMethod::Mmap, WriteMethod::InKernel]
            .map(|method| WritePolicy::new(method, Mode::None, 0, SyncPoint::None)),
    );
    policies
}

/// Returns the policies that write each record at once, with each sync point.
fn per_record_policies(question: &AdviceQuestion, sync_s: f64) -> Vec<WritePolicy> {
    let each = |method, sync| WritePolicy::new(method, Mode::None, 0, sync);
    let mut policies = vec![
        each(WriteMethod::Syscall, SyncPoint::None),
        WritePolicy::new(WriteMethod::Stdio, Mode::Line, 4096.max(question.record_bytes), SyncPoint::None),
    ];
    for method in [WriteMethod::Syscall, WriteMethod::Libweir] {
        policies.push(each(method, SyncPoint::Record));
        policies.push(WritePolicy { sync_period_s: Some(sync_s), ..each(method, SyncPoint::Period) });
        if question.sharers > 1 {
            policies.push(each(method, SyncPoint::Group));
        }
    }
    policies.push(each(WriteMethod::Syscall, SyncPoint::ODsync));
    policies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::question;

    #[test]
    fn every_way_has_a_name_of_its_own() {
        let policies = write_policies(&AdviceQuestion { sharers: 4, ..question() });
        let mut names: Vec<_> = policies.iter().map(WritePolicy::name).collect();
        assert!(names.len() > 25, "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), policies.len());
    }

    #[test]
    fn a_buffer_holds_two_records() {
        let large = AdviceQuestion { record_bytes: 40_000, ..question() };
        let buffers = write_policies(&large)
            .into_iter()
            .filter(|policy| policy.method == WriteMethod::Libweir && policy.gathers());
        assert!(
            buffers.clone().count() > 0 && buffers.into_iter().all(|policy| policy.buffer_bytes == 262_144)
        );
    }

    #[test]
    fn a_timer_leaves_room_for_the_write() {
        let timers: Vec<f64> =
            write_policies(&AdviceQuestion { latency_s: 1.0, loss: AllowedLoss::Buffer, ..question() })
                .iter()
                .filter_map(|policy| policy.flush_period_s)
                .collect();
        assert!(!timers.is_empty() && timers.iter().all(|seconds| *seconds == 0.8), "{timers:?}");
        assert_eq!([0.0047, 48.04, 0.7 * 0.8].map(round_down), [0.004, 48.0, 0.56]);
    }
}
