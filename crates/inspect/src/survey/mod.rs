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
use weir_sys::proc::numbers;

use proc_files::ProcFiles;
use process::{ProcessRead, SurveyedProcess};
use process_reader::ProcessReader;
use snapshot_schedule::SnapshotSchedule;

/// The time that one sample may take for command lines and buffers. Reading those of a thousand processes takes less.
const SAMPLE_LIMIT: Duration = Duration::from_secs(2);

/// The processes to survey, and how thoroughly.
#[derive(Debug, Clone, Default)]
pub struct SurveyScope {
    /// The PIDs to survey; None for all.
    pub pids: Option<Vec<u32>>,
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
        self.read();
        self.snapshots.take_due(&mut self.processes, &mut self.reader, now.duration_since(since));
        let processes = self.activities();
        let spent_ns = thread_cpu_ns() + self.reader.cpu_ns();
        let cost_ns = self.previous.map_or(0, |(_, before)| spent_ns - before);
        self.previous = Some((now, spent_ns));
        let elapsed_s = now.duration_since(since).as_secs_f64();
        let left_out = |one: &&SurveyedProcess| one.is_shown() && one.streams.is_left_out();
        let left_out = self.processes.values().filter(left_out).count();
        Survey { elapsed_s, cost_s: cost_ns as f64 / 1e9, left_out, processes }
    }

    fn read(&mut self) {
        let pids = self.scope.pids.clone().unwrap_or_else(|| numbers("/proc"));
        let mut before = std::mem::take(&mut self.processes);
        let mut exited = Vec::new();
        for pid in pids {
            let mut one = before.remove(&pid);
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
    }

    fn activities(&self) -> Vec<ProcessActivity> {
        let shown = self.processes.iter().filter(|(_, one)| one.is_shown());
        let mut found: Vec<ProcessActivity> = shown.map(|(pid, one)| one.activity(*pid)).collect();
        found.sort_by_key(|one| one.pid);
        found
    }
}
