//! Finds processes whose buffers no walker can read. Each image is checked soon after it starts and at growing ages; the file of
//! an executable is checked at the end, if a process of it ended before its next check.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use weir_model::trace::{SnapshotMoment, UnreadableBuffers};
use weir_sys::process_access::{self, AccessProblem};
use weir_sys::{proc, process_status};
use weir_walkers::{UNSEARCHED, needs_stops, unreadable, unreadable_of_file};

/// Checks per tick. Most processes of a build end before their turn.
const CHECKS_PER_TICK: usize = 8;
/// After this many processes an executable is not checked again: a check reads all mappings, which takes 0.1 ms, and a
/// build runs its compiler thousands of times.
const CHECKS_PER_EXECUTABLE: u32 = 3;
/// The age at which a process is checked again: the launcher of Java maps the runtime some 10 ms after its start, on a busy machine
/// much later.
const AGAIN_NS: u64 = 300_000_000;
/// The factor between the pauses before a process's next checks.
const PAUSE_GROWTH: u64 = 10;
/// The most executables whose files are read at the end, which delays the report by less than a millisecond each.
const MAX_FILES: usize = 32;

/// The buffers of processes that ended before their memory was read, or that have another tracer.
const UNSTOPPED: &str = "the buffers of processes that weir could not stop";

/// The buffers that a fork(2) may have copied.
const UNSTOPPED_FORK: &str = "the buffers at a fork(2) by a thread that weir could not stop";

/// All buffers: without /proc, weir does not know which programs run.
const WITHOUT_PROC: &str = "buffers of programs (/proc is not mounted)";

/// The next check of a process. The earliest one is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NextCheck {
    /// Time of the check, in nanoseconds of CLOCK_MONOTONIC.
    due_ns: u64,
    pid: u32,
    /// The time since the check before.
    pause_ns: u64,
}

impl NextCheck {
    fn after(now_ns: u64, pid: u32, pause_ns: u64) -> Self {
        NextCheck { due_ns: now_ns.saturating_add(pause_ns), pid, pause_ns }
    }
}

/// The processes to check, and the unreadable buffers found so far.
#[derive(Debug, Default)]
pub(crate) struct UnreadableSearch {
    /// The PID and, where known, the path of the executable.
    unchecked: Vec<(u32, Option<String>)>,
    /// Processes in which a check found nothing.
    unchecked_later: BTreeSet<NextCheck>,
    /// How many processes of an executable were checked.
    checks: HashMap<String, u32>,
    /// Processes that were not checked, by executable.
    skipped: HashMap<String, Vec<u32>>,
    /// The executable of each process that has not ended.
    executables: HashMap<u32, String>,
    /// Processes that were checked, or of which a snapshot was taken at their end.
    read: HashSet<u32>,
    /// Those of which a snapshot was taken at their end.
    read_at_end: HashSet<u32>,
    /// Processes that ended unread, by executable.
    ended_unread: HashMap<String, Vec<u32>>,
    /// Processes that could not be stopped at their end. Of some of them a part of the buffers was read.
    unstopped: BTreeSet<u32>,
    found: BTreeMap<String, BTreeSet<u32>>,
}

impl UnreadableSearch {
    /// Adds a process that starts to be observed, or has called execve(2).
    pub fn begin(&mut self, pid: u32, executable: Option<&str>) {
        self.unchecked.push((pid, executable.map(str::to_owned)));
        self.read.remove(&pid);
        if let Some(executable) = executable {
            self.executables.insert(pid, executable.to_owned());
        }
    }

    /// Notes a buffer snapshot of a process.
    pub fn note_snapshot(&mut self, pid: u32, moment: SnapshotMoment) {
        if matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal) {
            self.read.insert(pid);
            self.read_at_end.insert(pid);
        }
    }

    /// Notes a process whose buffers need stops, and that could not be stopped.
    pub fn note_unstopped(&mut self, pid: u32) {
        self.unstopped.insert(pid);
    }

    /// Notes a process that forked by a thread that could not be stopped.
    pub fn note_unstopped_fork(&mut self, pid: u32) {
        self.add(UNSTOPPED_FORK.into(), pid);
    }

    /// Notes a process of whose memory a search left out a part.
    pub fn note_unsearched(&mut self, pid: u32) {
        self.add(UNSEARCHED.into(), pid);
    }

    /// Notes what a process keeps outside of buffers, as the subject of a sentence.
    pub fn note(&mut self, pid: u32, kept: String) {
        self.add(kept, pid);
    }

    /// As [`Self::end`], for a process that a signal ends: bytes that it put into a buffer after its check are lost.
    pub fn end_by_signal(&mut self, pid: u32) {
        if !self.read_at_end.contains(&pid) {
            self.read.remove(&pid);
        }
        self.end(pid);
    }

    /// Notes the end of a process. The snapshot at its end, if there is one, came before.
    pub fn end(&mut self, pid: u32) {
        self.read_at_end.remove(&pid);
        // It had not loaded its runtime when it was checked, and it is gone before the next check.
        if let Some(next) = self.unchecked_later.iter().find(|next| next.pid == pid).copied() {
            self.unchecked_later.remove(&next);
            self.skip(pid);
        }
        let executable = self.executables.remove(&pid);
        if let Some(executable) = executable.filter(|_| !self.read.remove(&pid)) {
            self.ended_unread.entry(executable).or_default().push(pid);
        }
    }

    /// Checks the youngest processes and skips the others.
    pub fn check(&mut self, now_ns: u64) {
        self.check_by(now_ns, buffers_of);
    }

    /// Checks with `buffers_of`, which returns the unreadable buffers of a process, or None if the process is gone.
    fn check_by(&mut self, now_ns: u64, buffers_of: impl Fn(u32) -> Option<Vec<String>>) {
        self.check_again_by(now_ns, &buffers_of);
        let processes: Vec<_> = self.unchecked.drain(..).rev().collect();
        for (number, (pid, executable)) in processes.into_iter().enumerate() {
            let checks = executable.as_ref().and_then(|executable| self.checks.get(executable));
            let known = checks.is_some_and(|&count| count >= CHECKS_PER_EXECUTABLE);
            let buffers = if known || number >= CHECKS_PER_TICK { None } else { buffers_of(pid) };
            match (buffers, executable) {
                (Some(buffers), executable) => {
                    self.read.insert(pid);
                    if buffers.is_empty() {
                        self.unchecked_later.insert(NextCheck::after(now_ns, pid, AGAIN_NS));
                    }
                    executable.into_iter().for_each(|one| *self.checks.entry(one).or_default() += 1);
                    buffers.into_iter().for_each(|one| self.add(one, pid));
                }
                (None, Some(executable)) => self.skipped.entry(executable).or_default().push(pid),
                (None, None) => {}
            }
        }
    }

    /// Checks again the processes whose time has come.
    fn check_again_by(&mut self, now_ns: u64, buffers_of: impl Fn(u32) -> Option<Vec<String>>) {
        while self.unchecked_later.first().is_some_and(|next| next.due_ns <= now_ns) {
            let Some(NextCheck { pid, pause_ns, .. }) = self.unchecked_later.pop_first() else { return };
            match buffers_of(pid) {
                Some(buffers) if buffers.is_empty() => {
                    let pause_ns = pause_ns.saturating_mul(PAUSE_GROWTH);
                    self.unchecked_later.insert(NextCheck::after(now_ns, pid, pause_ns));
                }
                Some(buffers) => buffers.into_iter().for_each(|one| self.add(one, pid)),
                None => self.skip(pid),
            }
        }
    }

    /// Notes a process whose executable's file is checked at the end instead.
    fn skip(&mut self, pid: u32) {
        if let Some(executable) = self.executables.get(&pid) {
            self.skipped.entry(executable.clone()).or_default().push(pid);
        }
    }

    fn add(&mut self, buffers: String, pid: u32) {
        self.found.entry(buffers).or_default().insert(pid);
    }

    /// Returns all unreadable buffers.
    pub fn finish(mut self) -> Vec<UnreadableBuffers> {
        if !proc::is_mounted() {
            self.found.entry(WITHOUT_PROC.into()).or_default();
        }
        // These processes were not checked again: they still run.
        for next in std::mem::take(&mut self.unchecked_later) {
            buffers_of(next.pid).unwrap_or_default().into_iter().for_each(|one| self.add(one, next.pid));
        }
        self.finish_by(unreadable_of_file, needs_stops)
    }

    /// Finishes with `of_file`, which returns the unreadable buffers of a process with this executable, and with
    /// `needs_stops`, which returns whether the buffers of such a process are read by stopping it.
    fn finish_by(
        mut self,
        of_file: impl Fn(&Path) -> Vec<String>,
        needs_stops: impl Fn(&Path) -> bool,
    ) -> Vec<UnreadableBuffers> {
        self.check_by(0, |_| None);
        for (executable, pids) in std::mem::take(&mut self.skipped).into_iter().take(MAX_FILES) {
            for buffers in of_file(Path::new(&executable)) {
                pids.iter().for_each(|&pid| self.add(buffers.clone(), pid));
            }
        }
        for (executable, pids) in std::mem::take(&mut self.ended_unread).into_iter().take(MAX_FILES) {
            if needs_stops(Path::new(&executable)) {
                pids.into_iter().for_each(|pid| self.add(UNSTOPPED.into(), pid));
            }
        }
        for pid in std::mem::take(&mut self.unstopped) {
            self.add(UNSTOPPED.into(), pid);
        }
        let found = self.found.into_iter();
        found.map(|(buffers, pids)| UnreadableBuffers { buffers, pids: pids.into_iter().collect() }).collect()
    }
}

/// Returns the buffers of a process that cannot be read, for want of a walker or of the right to read its memory. Returns None for a
/// process in execve(2), which gets another image.
fn buffers_of(pid: u32) -> Option<Vec<String>> {
    if process_status::is_executing(pid) {
        return None;
    }
    unreadable(pid).or_else(|| match process_access::check(pid) {
        Err(AccessProblem::Denied { .. }) => {
            Some(vec![format!("the buffers of {}, which weir may not read,", proc::names(pid).1)])
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn pids_of_each(found: &[UnreadableBuffers]) -> Vec<Vec<u32>> {
        found.iter().map(|one| one.pids.clone()).collect()
    }

    #[test]
    fn an_executable_is_checked_three_times() {
        let (mut search, checked) = (UnreadableSearch::default(), RefCell::new(Vec::new()));
        let of = |pid| {
            checked.borrow_mut().push(pid);
            // Process 2 is gone; process 3 has an unreadable buffer.
            (pid != 2).then(|| (pid == 3).then(|| "own".to_string()).into_iter().collect())
        };
        for pid in 1..=9 {
            search.begin(pid, Some("cc1"));
            search.check_by(0, of);
        }
        assert_eq!(*checked.borrow(), [1, 2, 3, 4], "three processes existed");
        for pid in 10..=12 {
            search.begin(pid, None);
            search.check_by(0, of);
        }
        assert_eq!(checked.borrow().len(), 4 + 3, "every process of an unknown executable is checked");
        let found = search.finish_by(|_| vec!["own".into(), "more".into()], |_| false);
        let pids =
            |buffers: &str| found.iter().find(|one| one.buffers == buffers).map(|one| one.pids.clone());
        assert_eq!(pids("more"), Some(vec![2, 5, 6, 7, 8, 9]), "those that were not checked have the file's");
        assert_eq!(pids("own"), Some(vec![2, 3, 5, 6, 7, 8, 9]));
    }

    #[test]
    fn a_process_is_checked_again_once_it_has_loaded_its_runtime() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("java"));
        search.check_by(0, |_| Some(Vec::new()));
        search.check_by(AGAIN_NS - 1, |_| panic!("it is too early"));
        search.check_by(AGAIN_NS, |_| Some(vec!["Java's own buffers".into()]));
        search.check_by(99 * AGAIN_NS, |_| panic!("its buffers are known"));
        let found = search.finish_by(|_| Vec::new(), |_| false);
        assert_eq!(pids_of_each(&found), [[7]]);
    }

    #[test]
    fn a_process_that_loads_its_runtime_late_is_checked_at_growing_ages() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("java"));
        [0, AGAIN_NS].into_iter().for_each(|now_ns| search.check_by(now_ns, |_| Some(Vec::new())));
        search.check_by(11 * AGAIN_NS - 1, |_| panic!("it is too early"));
        search.check_by(11 * AGAIN_NS, |_| Some(vec!["Java's own buffers".into()]));
        let found = search.finish_by(|_| Vec::new(), |_| false);
        assert_eq!(pids_of_each(&found), [[7]]);
    }

    #[test]
    fn a_process_that_ends_before_a_later_check_has_the_buffers_of_its_file() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("java"));
        [0, AGAIN_NS].into_iter().for_each(|now_ns| search.check_by(now_ns, |_| Some(Vec::new())));
        search.end(7);
        let found = search.finish_by(|_| vec!["own".into()], |_| false);
        assert_eq!(pids_of_each(&found), [[7]], "on a busy machine it was still starting");
    }

    #[test]
    fn a_process_that_ends_before_the_second_check_has_the_buffers_of_its_file() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("fortran"));
        search.check_by(0, |_| Some(Vec::new()));
        search.end(7);
        search.check_by(AGAIN_NS, |_| panic!("it is gone"));
        search.begin(8, Some("fortran"));
        search.check_by(AGAIN_NS, |_| Some(Vec::new()));
        search.check_by(2 * AGAIN_NS, |_| None);
        search.end(8);
        let found = search.finish_by(|_| vec!["own".into()], |_| false);
        assert_eq!(pids_of_each(&found), [[7, 8]], "8 was gone before its end was known");
    }

    #[test]
    fn the_youngest_of_many_processes_are_checked() {
        let (mut search, checked) = (UnreadableSearch::default(), RefCell::new(Vec::new()));
        (1..=20).for_each(|pid| search.begin(pid, None));
        (0..2).for_each(|_| {
            search.check_by(0, |pid| {
                checked.borrow_mut().push(pid);
                Some(Vec::new())
            });
        });
        assert_eq!(*checked.borrow(), (13..=20).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_checked_process_did_not_end_at_once() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("static"));
        search.check_by(0, |_| Some(Vec::new()));
        search.end(7);
        assert!(search.finish_by(|_| Vec::new(), |_| true).is_empty(), "it may have no buffers");
    }

    #[test]
    fn a_process_that_could_not_be_stopped_was_not_read() {
        let mut search = UnreadableSearch::default();
        search.begin(7, Some("python3"));
        search.check_by(0, |_| Some(Vec::new()));
        // The kernel has read the C library's streams.
        search.note_snapshot(7, SnapshotMoment::Signal);
        search.end(7);
        search.note_unstopped(7);
        let found = search.finish_by(|_| Vec::new(), |_| true);
        assert_eq!(pids_of_each(&found), [[7]]);
    }

    #[test]
    fn a_process_that_ends_without_a_snapshot_was_not_read() {
        let found = |with_snapshot: bool, stops: bool| {
            let mut search = UnreadableSearch::default();
            search.begin(7, Some("python3"));
            if with_snapshot {
                search.note_snapshot(7, SnapshotMoment::Exit);
            }
            search.end(7);
            search
                .finish_by(|_| Vec::new(), |_| stops)
                .into_iter()
                .flat_map(|one| one.pids)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(false, true), [7]);
        assert!(found(true, true).is_empty(), "it was read");
        assert!(found(false, false).is_empty(), "the kernel reads it");
    }

    #[test]
    fn a_killed_process_was_not_read_before_its_end() {
        let found = |killed: bool, with_snapshot: bool| {
            let mut search = UnreadableSearch::default();
            search.begin(7, Some("python3"));
            search.check_by(0, |_| Some(Vec::new()));
            if with_snapshot {
                search.note_snapshot(7, SnapshotMoment::Signal);
            }
            if killed {
                search.end_by_signal(7)
            } else {
                search.end(7)
            }
            pids_of_each(&search.finish_by(|_| Vec::new(), |_| true)).concat()
        };
        assert_eq!(found(true, false), [7], "a check reads no bytes");
        assert!(found(true, true).is_empty() && found(false, false).is_empty());
    }
}
