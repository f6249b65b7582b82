//! The runs of a command that is started at intervals: one at a time, with the starts left out and the failures counted.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use weir_model::number::{counted, thousands};
use weir_model::shell_quoted;

/// The counts of the runs, shared with the sources of the run that has not ended.
#[derive(Clone, Debug)]
pub(super) struct IntervalRuns(Arc<Mutex<RunCounts>>);

#[derive(Debug)]
struct RunCounts {
    /// The option with the command, as a shell would take it.
    label: String,
    ended: u64,
    failed: Count,
    left_out: Count,
    last_failure: String,
    /// The status of a run that a signal ended which perhaps also ends the collector.
    undecided: Option<ExitStatus>,
}

/// A count that is reported at 1, 10, 100 and so on, and at the end.
#[derive(Debug, Default)]
struct Count {
    number: u64,
    reported: u64,
}

impl Count {
    /// Adds one. Returns whether to report the count now.
    fn add(&mut self) -> bool {
        self.number += 1;
        let is_power_of_ten = self.number == 10_u64.pow(self.number.ilog10());
        if is_power_of_ten {
            self.reported = self.number;
        }
        is_power_of_ten
    }

    fn is_unreported(&self) -> bool {
        self.number > self.reported
    }
}

impl IntervalRuns {
    pub(super) fn new(command: &str) -> Self {
        let label = format!("--exec {}", shell_quoted(command));
        let counts = RunCounts {
            label,
            ended: 0,
            failed: Count::default(),
            left_out: Count::default(),
            last_failure: String::new(),
            undecided: None,
        };
        Self(Arc::new(Mutex::new(counts)))
    }

    fn counts(&self) -> MutexGuard<'_, RunCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a run has not ended: its command, or a process that holds its outputs. Each source of a run has a
    /// clone, and the source of the interval has one.
    pub(super) fn is_running(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Counts a start that is left out. Returns a sentence if it is to be reported now.
    pub(super) fn leave_out(&self) -> Option<String> {
        let mut counts = self.counts();
        counts.left_out.add().then(|| counts.left_out_sentence())
    }

    /// Counts a run that has ended. Returns a sentence if it failed and that is to be reported now.
    pub(super) fn end_run(&self, status: ExitStatus) -> Option<String> {
        let mut counts = self.counts();
        // Ctrl-C and timeout(1) send these to a whole process group: the command may end before weir has read its own signal.
        if matches!(status.signal(), Some(SIGHUP | SIGINT | SIGTERM)) {
            counts.undecided = Some(status);
            return None;
        }
        counts.end_run(status)
    }

    /// Counts a run that a signal has ended as failed, because the collector has not got the signal. Returns a sentence if it is to be
    /// reported now.
    pub(super) fn decide(&self) -> Option<String> {
        let mut counts = self.counts();
        let status = counts.undecided.take()?;
        counts.end_run(status)
    }

    /// Returns the counts that were not reported yet, as sentences.
    pub(super) fn summary(&self) -> Vec<String> {
        let mut counts = self.counts();
        let mut sentences = Vec::new();
        if counts.failed.is_unreported() {
            counts.failed.reported = counts.failed.number;
            sentences.push(counts.failed_sentence());
        }
        if counts.left_out.is_unreported() {
            counts.left_out.reported = counts.left_out.number;
            sentences.push(counts.left_out_sentence());
        }
        sentences
    }
}

impl RunCounts {
    fn end_run(&mut self, status: ExitStatus) -> Option<String> {
        self.ended += 1;
        if status.success() {
            return None;
        }
        self.last_failure = match (status.code(), status.signal()) {
            (Some(code), _) => format!("status {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        self.failed.add().then(|| self.failed_sentence())
    }

    fn failed_sentence(&self) -> String {
        let Self { label, last_failure, .. } = self;
        let (failed, ended) = (thousands(self.failed.number), counted(self.ended, "run"));
        format!("{label}: ended with {last_failure}; {failed} of {ended} failed so far")
    }

    fn left_out_sentence(&self) -> String {
        let Self { label, .. } = self;
        let starts = counted(self.left_out.number, "start");
        format!(
            "{label}: the run before had not ended at its interval: {starts} left out so far; one run at a time is started, so \
             use a longer --every or a faster command"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended_with(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn failures_are_reported_at_powers_of_ten_and_at_the_end() {
        let runs = IntervalRuns::new("exit 3");
        assert_eq!(runs.end_run(ended_with(0)), None);
        let said: Vec<String> = (0..120).filter_map(|_| runs.end_run(ended_with(3))).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(said[1], "--exec 'exit 3': ended with status 3; 10 of 11 runs failed so far");
        assert_eq!(runs.summary(), ["--exec 'exit 3': ended with status 3; 120 of 121 runs failed so far"]);
        assert!(runs.summary().is_empty(), "once");
        assert!(runs.end_run(ExitStatus::from_raw(9)).is_none());
        assert!(runs.summary()[0].contains("ended with signal 9; 121 of 122"));
        assert!(runs.end_run(ExitStatus::from_raw(15)).is_none());
        assert!(runs.summary().is_empty(), "the signal may be for the collector, too");
        assert!(runs.decide().is_none() && runs.decide().is_none());
        assert!(runs.summary()[0].contains("ended with signal 15; 122 of 123"), "it was not");
    }

    #[test]
    fn a_run_lasts_as_long_as_one_of_its_sources() {
        let runs = IntervalRuns::new("true");
        assert!(!runs.is_running());
        let of_run = runs.clone();
        assert!(runs.is_running());
        assert!(runs.leave_out().is_some_and(|text| text.contains("1 start left out")));
        assert!(runs.leave_out().is_none());
        drop(of_run);
        assert!(!runs.is_running());
        assert!(runs.summary()[0].contains("2 starts left out"));
    }
}
