//! Surveys all processes repeatedly for `weir top`: calls, bytes and CPU times from /proc, and the pending
//! bytes of sleeping processes. No process is stopped and no privilege is needed; for other users' processes
//! less is known.

mod proc_files;
mod process;
mod process_reader;
mod snapshot_schedule;
mod streams;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_model::top::{ProcessActivity, Survey};
use weir_sys::clock::thread_cpu_ns;
use weir_sys::proc::{hides_others, numbers};
use weir_sys::process_identity::ProcessIdentity;

use proc_files::ProcFiles;
use process::{ProcessRead, SurveyedProcess};
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
            reader,
            snapshots,
            processes: HashMap::new(),
            previous: None,
        }
    }

    /// Returns what the processes did since the last sample. The first sample has no rates.
    pub fn sample(&mut self) -> Survey {
        let now = Instant::now();
        let since = self.previous.map_or(now, |(then, _)| then);
        self.reader.begin_sample(now + SAMPLE_LIMIT);
        let not_read = self.read(now + COUNTERS_LIMIT);
        self.snapshots.take_due(&mut self.processes, &mut self.reader, now.duration_since(since));
        let processes = self.activities();
        let spent_ns = thread_cpu_ns() + self.reader.cpu_ns();
        let cost_ns = self.previous.map_or(0, |(_, before)| spent_ns - before);
        self.previous = Some((now, spent_ns));
        let elapsed_s = now.duration_since(since).as_secs_f64();
        let left_out = |one: &&SurveyedProcess| one.is_shown() && one.streams.is_left_out();
        let left_out = not_read + self.processes.values().filter(left_out).count();
        let hides_others = self.scope.processes.is_none() && hides_others();
        Survey { elapsed_s, cost_s: cost_ns as f64 / 1e9, left_out, hides_others, processes }
    }

    /// Reads the counters until the deadline. Returns the number of processes that are not read, and so not shown.
    fn read(&mut self, deadline: Instant) -> usize {
        let pids = match &self.scope.processes {
            Some(named) => named.iter().filter(|one| one.is_current()).map(ProcessIdentity::pid).collect(),
            None => numbers("/proc"),
        };
        let mut before = std::mem::take(&mut self.processes);
        let mut exited = Vec::new();
        let mut not_read = 0;
        for pid in pids {
            let mut one = before.remove(&pid);
            if Instant::now() >= deadline {
                not_read += 1;
                self.files.release(one.map_or(0, |one| one.open_files()));
                continue;
            }
            match one.as_mut().map(|one| one.read(pid, &mut self.reader)) {
                Some(ProcessRead::Same) => {}
                Some(ProcessRead::Gone) => {
                    exited.extend(one.take());
                    self.reader.forget(pid);
                    one = SurveyedProcess::begin(pid, &mut self.files, &mut self.reader);
                }
                None => one = SurveyedProcess::begin(pid, &mut self.files, &mut self.reader),
            }
            self.processes.extend(one.map(|one| (pid, one)));
        }
        before.keys().for_each(|pid| self.reader.forget(*pid));
        exited.extend(before.into_values());
        for ended in exited {
            self.files.release(ended.open_files());
            // wait(2) adds all calls of a child to its parent, of which those already shown as the child's are
            // subtracted. The child's calls since the last sample count as the parent's, as in time(1).
            let parent = self.processes.get_mut(&ended.parent());
            if let Some((parent, counters)) = parent.zip(ended.counters()) {
                parent.subtract(counters);
            }
        }
        not_read
    }

    fn activities(&self) -> Vec<ProcessActivity> {
        let shown = self.processes.iter().filter(|(_, one)| one.is_shown());
        let mut found: Vec<ProcessActivity> = shown.map(|(pid, one)| one.activity(*pid)).collect();
        found.sort_by_key(|one| one.pid);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
