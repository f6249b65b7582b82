//! Surveys all processes repeatedly for `weir top`: calls, bytes and CPU times from /proc, and the pending
//! bytes of sleeping processes. No process is stopped and no privilege is needed; for other users' processes
//! less is known.

mod counter_reader;
mod counters;
mod proc_files;
mod process;
mod process_reader;
mod snapshot_schedule;
mod streams;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use weir_model::top::{ProcessActivity, Survey};
use weir_sys::clock::thread_cpu_ns;
use weir_sys::proc::{comm, hides_others, numbers};
use weir_sys::process_identity::ProcessIdentity;

use counter_reader::CounterReader;
use counters::{CounterJob, CounterRead, effective_user};
use proc_files::ProcFiles;
use process::SurveyedProcess;
use process_reader::ProcessReader;
use snapshot_schedule::SnapshotSchedule;

/// The time that one sample may take for command lines and buffers. Reading those of a thousand processes takes less.
const SAMPLE_LIMIT: Duration = Duration::from_secs(2);

/// The time that one sample may take for counters. Those of a thousand processes take 30 ms of CPU time; a machine that is
/// busy, or has very many processes, must not keep the user waiting.
const COUNTERS_LIMIT: Duration = Duration::from_secs(5);

/// The processes to survey, and how thoroughly.
#[derive(Debug, Clone, Default)]
pub struct SurveyScope {
    /// The processes to survey, until they end; None for all.
    pub processes: Option<Vec<ProcessIdentity>>,
    /// Reads every buffer at every sample, whatever it costs. Otherwise buffer snapshots take a small part of
    /// one CPU, and processes take turns.
    pub thorough: bool,
}

/// Surveys the processes again and again.
#[derive(Debug)]
pub struct Surveyor {
    scope: SurveyScope,
    files: ProcFiles,
    counters: CounterReader,
    reader: ProcessReader,
    snapshots: SnapshotSchedule,
    processes: HashMap<u32, SurveyedProcess>,
    previous: Option<(Instant, u64)>,
}

impl Surveyor {
    /// Creates a surveyor without samples.
    pub fn new(scope: SurveyScope) -> Surveyor {
        let snapshots = SnapshotSchedule::new(scope.thorough);
        let reader = ProcessReader::default();
        Surveyor {
            scope,
            files: ProcFiles::new(),
            counters: CounterReader::default(),
            reader,
            snapshots,
            processes: HashMap::new(),
            previous: None,
        }
    }

    /// Returns the activity of the processes since the last sample. The first sample has no rates.
    pub fn sample(&mut self) -> Survey {
        let now = Instant::now();
        let since = self.previous.map_or(now, |(then, _)| then);
        self.reader.begin_sample(now + SAMPLE_LIMIT);
        let not_read = self.read(now + COUNTERS_LIMIT);
        self.snapshots.take_due(&mut self.processes, &mut self.reader, now.duration_since(since));
        let processes = self.activities();
        let spent_ns = thread_cpu_ns() + self.reader.cpu_ns() + self.counters.cpu_ns();
        let cost_ns = self.previous.map_or(0, |(_, before)| spent_ns - before);
        self.previous = Some((now, spent_ns));
        let elapsed_s = now.duration_since(since).as_secs_f64();
        let left_out = |one: &&SurveyedProcess| one.is_shown() && one.streams.is_left_out();
        let left_out = not_read + self.processes.values().filter(left_out).count();
        let hides_others = self.scope.processes.is_none() && hides_others();
        let lacks_threads = not_read > 0 && self.counters.lacks_threads();
        let cost_s = cost_ns as f64 / 1e9;
        Survey { elapsed_s, cost_s, left_out, lacks_threads, hides_others, processes }
    }

    /// Reads the counters until the deadline. Returns the number of processes that are not read, and so not shown.
    fn read(&mut self, deadline: Instant) -> usize {
        let pids: Vec<u32> = match &self.scope.processes {
            Some(named) => named.iter().filter(|one| one.is_current()).map(ProcessIdentity::pid).collect(),
            // The survey reports weir's own CPU time separately, as its cost.
            None => numbers("/proc").into_iter().filter(|&pid| pid != std::process::id()).collect(),
        };
        let mut before = std::mem::take(&mut self.processes);
        let asleep = self.counters.unanswered();
        let job =
            |pid: &u32| before.get(pid).map_or(CounterJob { pid: *pid, known: None }, SurveyedProcess::job);
        let jobs = pids.iter().filter(|pid| asleep.binary_search(pid).is_err()).map(job).collect();
        let results = self.counters.read(jobs, &self.files, deadline);
        let unanswered = self.counters.unanswered();
        let not_read = pids.iter().filter(|pid| !results.contains_key(pid) && !unanswered.contains(pid));
        let not_read: BTreeSet<u32> = not_read.copied().collect();
        before.retain(|pid, _| !not_read.contains(pid) && !unanswered.contains(pid));
        self.reader.avoid(unanswered);
        let mut exited = Vec::new();
        for (pid, read) in results {
            let mut known = before.remove(&pid);
            if known.is_some() && !matches!(read, CounterRead::Same(_)) {
                exited.extend(known.take());
                self.reader.forget(pid);
            }
            let one = match (known, read) {
                (Some(mut one), CounterRead::Same(counters)) => {
                    one.update(counters, &mut self.reader);
                    Some(one)
                }
                (_, CounterRead::New(new, counters)) => {
                    Some(SurveyedProcess::begin(new, counters, &mut self.reader))
                }
                _ => None,
            };
            self.processes.extend(one.map(|one| (pid, one)));
        }
        before.keys().for_each(|pid| self.reader.forget(*pid));
        exited.extend(before.into_values());
        for ended in exited {
            // wait(2) adds all calls of a child to its parent, of which those already shown as the child's are
            // subtracted. The child's calls since the last sample count as the parent's, as in time(1).
            let parent = self.processes.get_mut(&ended.parent());
            if let Some((parent, counters)) = parent.zip(ended.counters()) {
                parent.subtract(counters);
            }
        }
        not_read.len()
    }

    fn activities(&mut self) -> Vec<ProcessActivity> {
        let unanswered = self.counters.unanswered().into_iter().filter_map(unanswered);
        let shown = self.processes.iter().filter(|(_, one)| one.is_shown());
        let mut found: Vec<ProcessActivity> =
            shown.map(|(pid, one)| one.activity(*pid)).chain(unanswered).collect();
        found.sort_by_key(|one| one.pid);
        found
    }
}

/// Returns the known facts of a process whose counters do not answer; None if it has ended.
fn unanswered(pid: u32) -> Option<ProcessActivity> {
    let uid = effective_user(pid)?;
    let comm = comm(pid);
    Some(ProcessActivity { pid, uid, command: comm.clone(), comm, unanswered: true, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weir_itself_is_surveyed_only_if_it_is_named() {
        let own = std::process::id();
        let mut all = Surveyor::new(SurveyScope::default());
        all.read(Instant::now() + COUNTERS_LIMIT);
        assert!(!all.processes.is_empty() && !all.processes.contains_key(&own));
    }

    #[test]
    fn after_the_deadline_no_counters_are_read() {
        let own = ProcessIdentity::of(std::process::id());
        let mut surveyor =
            Surveyor::new(SurveyScope { processes: Some(vec![own]), ..SurveyScope::default() });
        assert_eq!(surveyor.read(Instant::now() + COUNTERS_LIMIT), 0);
        assert_eq!(surveyor.processes.len(), 1);
        assert_eq!(surveyor.read(Instant::now()), 1);
        assert_eq!(surveyor.activities(), []);
        assert_eq!(surveyor.read(Instant::now() + COUNTERS_LIMIT), 0);
        assert_eq!(surveyor.processes.len(), 1);
    }
}
