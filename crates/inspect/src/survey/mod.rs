//! A look over all processes, again and again: calls, bytes and times from /proc, and what waits in the buffers of
//! those that sleep. Nothing is stopped and no privilege is needed; of other users' processes less is seen.

mod proc_files;
mod process;
mod snapshot_schedule;
mod streams;

use std::collections::HashMap;
use std::time::Instant;

use weir_model::top::{ProcessActivity, Survey};
use weir_sys::clock::thread_cpu_ns;
use weir_sys::proc::numbers;

use proc_files::ProcFiles;
use process::{ProcessRead, SurveyedProcess};
use snapshot_schedule::SnapshotSchedule;

/// Whose processes are looked over, and how thoroughly.
#[derive(Debug, Clone, Default)]
pub struct SurveyScope {
    /// These; None: all.
    pub pids: Option<Vec<u32>>,
    /// Every buffer at every look, whatever that costs. Otherwise looks into buffers take a small part of one
    /// processor, and each process waits for its turn.
    pub thorough: bool,
}

/// Surveys the processes again and again.
#[derive(Debug)]
pub struct Surveyor {
    scope: SurveyScope,
    files: ProcFiles,
    looks: SnapshotSchedule,
    processes: HashMap<u32, SurveyedProcess>,
    last: Option<(Instant, u64)>,
}

impl Surveyor {
    /// Nothing was seen yet.
    pub fn new(scope: SurveyScope) -> Surveyor {
        let looks = SnapshotSchedule::new(scope.thorough);
        Surveyor { scope, files: ProcFiles::new(), looks, processes: HashMap::new(), last: None }
    }

    /// What the processes did since the last time; the first time only who they are.
    pub fn sample(&mut self) -> Survey {
        let now = Instant::now();
        let since = self.last.map_or(now, |(then, _)| then);
        self.read();
        self.looks.look(&mut self.processes, now.duration_since(since));
        let processes = self.activities();
        let spent_ns = thread_cpu_ns();
        let cost_ns = self.last.map_or(0, |(_, before)| spent_ns - before);
        self.last = Some((now, spent_ns));
        let elapsed_s = now.duration_since(since).as_secs_f64();
        Survey { elapsed_s, cost_s: cost_ns as f64 / 1e9, processes }
    }

    fn read(&mut self) {
        let pids = self.scope.pids.clone().unwrap_or_else(|| numbers("/proc"));
        let mut before = std::mem::take(&mut self.processes);
        let mut gone = Vec::new();
        for pid in pids {
            let mut one = before.remove(&pid);
            match one.as_mut().map(|one| one.read(pid)) {
                Some(ProcessRead::Same) => {}
                Some(ProcessRead::Gone) => {
                    gone.extend(one.take());
                    one = SurveyedProcess::begin(pid, &mut self.files);
                }
                None => one = SurveyedProcess::begin(pid, &mut self.files),
            }
            self.processes.extend(one.map(|one| (pid, one)));
        }
        gone.extend(before.into_values());
        for ended in gone {
            self.files.give_back(ended.kept_files());
            // Waiting for a child adds all its calls to its parent's: those that were shown as the child's own
            // are not shown once more. What it did since the last sample is its parent's, as it is in time(1).
            let parent = self.processes.get_mut(&ended.parent());
            if let Some((parent, counters)) = parent.zip(ended.counters()) {
                parent.leave_out(counters);
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
