//! The events of a run that the backend could not observe, as sentences for the report.

use std::io;

use weir_model::number::{counted, thousands};
use weir_sys::error::errno_text;
use weir_sys::limits;

/// Sums of the programs' tallies: recorded calls, dropped events, calls that were not decoded or not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tallies {
    pub calls: u64,
    pub lost_events: u64,
    pub compat_calls: u64,
    pub lost_streams: u64,
    /// Children that are not traced.
    pub lost_processes: u64,
    /// Counted calls of which some bytes are in no counter.
    pub unknown_bytes: u64,
    /// Buffer snapshots of a process that had more stdio streams than are read.
    pub cut_walks: u64,
    /// Runs of the programs that the kernel skipped (`recursion_misses` of bpf_prog_info).
    pub skipped_runs: u64,
}

impl Tallies {
    /// Returns an upper limit of the calls that are not in the counters with all their bytes. weir counts the calls that move none by
    /// their events.
    pub fn uncounted_calls(&self) -> u64 {
        self.lost_events + self.lost_streams + self.unknown_bytes + self.compat_calls + self.skipped_runs
    }
}

/// Errors after which the backend went on.
#[derive(Debug, Default)]
pub(super) struct RunErrors {
    /// That ended the reading of the ring buffer.
    pub unreadable: Option<io::Error>,
    /// Of the last attachment of the program at system calls that failed.
    pub unattached: Option<io::Error>,
}

/// Returns a sentence for each kind of loss. `losses` are phrases for what the hooks of this kernel do not show.
pub(super) fn sentences(tallies: &Tallies, errors: &RunErrors, losses: &[&str]) -> Vec<String> {
    let mut blind = Vec::new();
    if tallies.lost_events > 0 {
        blind.push(format!(
            "{} events dropped: ring buffer full; reads and writes are counted exactly, other calls too low",
            thousands(tallies.lost_events)
        ));
    }
    if let Some(error) = &errors.unreadable {
        blind.push(format!(
            "all events after the ring buffer could not be mapped (mmap: {})",
            errno_text(error)
        ));
    }
    if let Some(error) = &errors.unattached {
        blind.push(format!(
            "calls in longer gaps between samples: the BPF program at system calls could not be attached again ({}){}",
            errno_text(error),
            limits::advice(error)
        ));
    }
    if tallies.compat_calls > 0 {
        blind.push(format!("{} calls of 32-bit programs were not decoded", tallies.compat_calls));
    }
    if tallies.lost_streams > 0 {
        blind.push(format!("{} calls were not counted: too many streams", tallies.lost_streams));
    }
    if tallies.lost_processes > 0 {
        blind.push(format!(
            "{} of the processes, and their children: too many processes at the same time",
            thousands(tallies.lost_processes)
        ));
    }
    if tallies.unknown_bytes > 0 {
        blind.push(format!(
            "some bytes of {} calls of recvmsg, recvmmsg or sendmmsg: they had too many segments or messages",
            thousands(tallies.unknown_bytes)
        ));
    }
    if tallies.cut_walks > 0 {
        blind.push(format!(
            "some stdio streams in {}: a process had more of them than weir reads",
            counted(tallies.cut_walks, "buffer snapshot")
        ));
    }
    if tallies.skipped_runs > 0 {
        blind.push(format!(
            "the kernel skipped {} runs of weir's programs, of all processes, while a thread was preempted in one: counts may be too low",
            tallies.skipped_runs
        ));
    }
    blind.extend(losses.iter().map(|&loss| loss.to_owned()));
    blind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_event_may_be_that_of_an_uncounted_call() {
        let tallies = Tallies { calls: 80_000, lost_events: 1_234, ..Tallies::default() };
        assert_eq!(tallies.uncounted_calls(), 1_234);
        let said = "1,234 events dropped: ring buffer full; reads and writes are counted exactly, other calls too low";
        assert_eq!(sentences(&tallies, &RunErrors::default(), &[]), [said]);
    }

    #[test]
    fn children_beyond_the_limit_are_named() {
        let tallies = Tallies { lost_processes: 2_000, ..Tallies::default() };
        let said = "2,000 of the processes, and their children: too many processes at the same time";
        assert_eq!(sentences(&tallies, &RunErrors::default(), &[]), [said]);
    }

    #[test]
    fn an_attachment_that_failed_is_named_with_its_limit() {
        let unattached = Some(io::Error::from_raw_os_error(libc::EMFILE));
        let said = sentences(&Tallies::default(), &RunErrors { unattached, unreadable: None }, &[]);
        assert!(
            said.len() == 1 && said[0].ends_with("raise the limit of open files (ulimit -n)"),
            "{said:?}"
        );
    }
}
