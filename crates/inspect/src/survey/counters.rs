//! The counters of one process, from /proc/PID/stat and /proc/PID/io.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Instant;

use weir_model::Untrusted;
use weir_model::trace::IoTotals;
use weir_sys::proc;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::process_stat::{self, MAX_STAT_BYTES, ProcessStat};

use crate::survey::proc_files::{OpenProcFile, ProcFiles};

/// The files of a process that each sample reads.
#[derive(Debug)]
pub(super) struct CounterFiles {
    stat: OpenProcFile,
    io: OpenProcFile,
}

/// A read of the counters of one process.
#[derive(Debug, Clone)]
pub(super) struct CounterJob {
    pub pid: u32,
    /// The files and the start time at the last sample; None for a process without one.
    pub known: Option<(Arc<CounterFiles>, u64)>,
}

/// The counters at one time.
#[derive(Debug)]
#[allow(missing_docs)]
pub(super) struct Counters {
    pub stat: ProcessStat,
    pub comm: Untrusted,
    pub totals: io::Result<IoTotals>,
    pub at: Instant,
}

/// A process at its first sample.
#[derive(Debug)]
pub(super) struct NewProcess {
    pub identity: ProcessIdentity,
    pub files: Arc<CounterFiles>,
    pub uid: u32,
}

/// The result of a [`CounterJob`].
#[derive(Debug)]
pub(super) enum CounterRead {
    /// The process of the last sample.
    Same(Counters),
    /// A process that was not known.
    New(NewProcess, Counters),
    /// There is no process with this number.
    Gone,
}

impl CounterJob {
    /// Reads the counters. Each of the reads can block for ever.
    pub fn read(&self, files: &ProcFiles) -> CounterRead {
        if let Some((known, start_ticks)) = &self.known
            && let Some(counters) = known.read().filter(|now| now.stat.start_ticks == *start_ticks)
        {
            return CounterRead::Same(counters);
        }
        begin(self.pid, files)
            .map_or(CounterRead::Gone, |(process, counters)| CounterRead::New(process, counters))
    }
}

impl CounterFiles {
    /// Reads the counters; None if the process has ended.
    fn read(&self) -> Option<Counters> {
        let (stat, comm) = read_stat(&self.stat)?;
        // A zombie's counters are still readable, but wait(2) is about to add them to its parent.
        let totals = read_io(&self.io);
        Some(Counters { stat, comm, totals, at: Instant::now() })
    }
}

/// Takes the first sample of a process. Returns none if it has exited.
fn begin(pid: u32, files: &ProcFiles) -> Option<(NewProcess, Counters)> {
    let identity = ProcessIdentity::of(pid);
    let uid = effective_user(pid)?;
    let stat = files.open(format!("/proc/{pid}/stat"));
    let known = CounterFiles { stat, io: files.open(format!("/proc/{pid}/io")) };
    let counters = known.read()?;
    // The owner and the files were found by the number.
    let is_same = read_stat(&known.stat).is_some_and(|(now, _)| now.start_ticks == counters.stat.start_ticks);
    is_same.then(|| (NewProcess { identity, files: known.into(), uid }, counters))
}

/// Returns the effective user of a process; None if it has ended.
pub(super) fn effective_user(pid: u32) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|directory| directory.uid())
}

fn read_stat(file: &OpenProcFile) -> Option<(ProcessStat, Untrusted)> {
    let mut text = [0; MAX_STAT_BYTES];
    let got = file.read(&mut text).ok()?;
    let text = text.get(..got)?;
    Some((process_stat::parse(text)?, Untrusted::of_bytes(process_stat::name(text)?)))
}

fn read_io(file: &OpenProcFile) -> io::Result<IoTotals> {
    let mut text = [0; 512];
    let got = file.read(&mut text)?;
    proc::parse_io(&text[..got]).ok_or(io::ErrorKind::InvalidData.into())
}
