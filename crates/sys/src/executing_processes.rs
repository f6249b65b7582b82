//! Processes in execve(2), whose files in /proc do not answer.

use std::collections::{BTreeMap, HashMap};

use crate::process_access::AccessProblem;
use crate::{proc, process_status};

/// The time in execve(2), in nanoseconds, after which a process is reported: a server does not answer the close of one of its
/// files. It is the limit of other reads.
const UNANSWERED_NS: u64 = 2_000_000_000;

/// The processes that were found in execve(2).
#[derive(Debug, Default)]
pub struct ExecutingProcesses {
    /// The time (CLOCK_MONOTONIC) of the first of the successive checks that found a process in execve(2).
    since_ns: HashMap<u32, u64>,
    sentences: BTreeMap<u32, String>,
}

impl ExecutingProcesses {
    /// Returns whether a process is in execve(2) now, so that reads of it can block for ever.
    pub fn check(&mut self, pid: u32, now_ns: u64) -> bool {
        let is_executing = process_status::is_executing(pid);
        match is_executing {
            true => self.note(pid, now_ns),
            false => _ = self.since_ns.remove(&pid),
        }
        is_executing
    }

    /// Notes that a process was found in execve(2) now.
    pub fn note(&mut self, pid: u32, now_ns: u64) {
        let since_ns = *self.since_ns.entry(pid).or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= UNANSWERED_NS {
            let sentence = || AccessProblem::Unanswered { label: proc::label(pid), pid }.to_string();
            self.sentences.entry(pid).or_insert_with(sentence);
        }
    }

    /// Returns a sentence about each process that stayed there, in order of their PIDs.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.sentences.values().cloned()
    }
}
