//! One process from sample to sample: its counters, and what they grew by.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use weir_model::top::{CallRate, ProcessActivity};
use weir_model::trace::IoTotals;
use weir_sys::proc;
use weir_sys::process_stat::{self, MAX_STAT_BYTES, ProcessStat};

use crate::process_buffers::ProcessBuffers;
use crate::survey::proc_files::{OpenProcFile, ProcFiles};
use crate::survey::streams::PendingStreams;

/// What became of a process since the last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessRead {
    /// It is still there.
    Same,
    /// It has ended, and perhaps another has its number.
    Gone,
}

/// A process.
pub(super) struct SurveyedProcess {
    stat_file: OpenProcFile,
    io_file: OpenProcFile,
    stat: ProcessStat,
    uid: u32,
    comm: String,
    command: String,
    foreign: bool,
    at: Instant,
    counters: Option<IoTotals>,
    /// Of the last interval.
    did: Option<Did>,
    pub streams: PendingStreams,
}

/// What a process did in an interval.
#[derive(Debug, Clone, Copy)]
struct Did {
    seconds: f64,
    counters: Option<IoTotals>,
    user_ticks: u64,
    system_ticks: u64,
}

impl SurveyedProcess {
    /// The first sample of a process; None where it has ended already.
    pub fn begin(pid: u32, files: &mut ProcFiles) -> Option<SurveyedProcess> {
        let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
        let stat_file = files.open(format!("/proc/{pid}/stat"));
        let (stat, comm) = read_stat(&stat_file).unzip();
        let Some((stat, comm)) = stat.zip(comm) else {
            files.give_back(usize::from(stat_file.is_open()));
            return None;
        };
        let io_file = files.open(format!("/proc/{pid}/io"));
        let counters = read_io(&io_file);
        let foreign = counters.as_ref().is_err_and(is_denied);
        let command = command(pid, &comm);
        let (counters, at) = (counters.ok(), Instant::now());
        let streams = PendingStreams::new(ProcessBuffers::of_child(None, stat.parent, pid));
        Some(SurveyedProcess {
            stat_file,
            io_file,
            stat,
            uid,
            comm,
            command,
            foreign,
            at,
            counters,
            did: None,
            streams,
        })
    }

    /// The next one.
    pub fn read(&mut self, pid: u32) -> ProcessRead {
        let Some((stat, comm)) = read_stat(&self.stat_file) else { return ProcessRead::Gone };
        if stat.start_ticks != self.stat.start_ticks {
            return ProcessRead::Gone;
        }
        let before = std::mem::replace(&mut self.stat, stat);
        // A zombie has its counters, but what it did is about to be its parent's.
        let counters = read_io(&self.io_file);
        self.foreign = counters.as_ref().is_err_and(is_denied);
        let (now, counters) = (Instant::now(), counters.ok());
        self.did = Some(Did {
            seconds: now.duration_since(self.at).as_secs_f64(),
            counters: counters.zip(self.counters).map(|(now, before)| now.since(before)),
            user_ticks: stat.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: stat.system_ticks.saturating_sub(before.system_ticks),
        });
        (self.at, self.counters) = (now, counters.or(self.counters));
        if stat.code_start != before.code_start || comm != self.comm {
            self.command = command(pid, &comm);
            self.comm = comm;
            self.streams = PendingStreams::new(ProcessBuffers::default());
        }
        ProcessRead::Same
    }

    /// A child's calls that the kernel has just added to its own. A child that nobody waited for was not added.
    pub fn leave_out(&mut self, ended: IoTotals) {
        let own = self.did.as_mut().and_then(|did| did.counters.as_mut());
        if let Some(own) = own.filter(|own| ended.since(**own) == IoTotals::default()) {
            *own = own.since(ended);
        }
    }

    pub fn parent(&self) -> u32 {
        self.stat.parent
    }

    pub fn counters(&self) -> Option<IoTotals> {
        self.counters
    }

    /// Descriptors that it holds.
    pub fn kept_files(&self) -> usize {
        usize::from(self.stat_file.is_open()) + usize::from(self.io_file.is_open())
    }

    /// Has it a memory that may be read, and is it worth a line?
    pub fn is_shown(&self) -> bool {
        !self.stat.is_kernel_thread && !matches!(self.stat.state, b'Z' | b'X' | b'x')
    }

    /// May its buffers be looked into now? In one that runs they change while they are read, and nothing is stuck.
    pub fn may_look(&self) -> bool {
        self.is_shown() && !self.foreign && self.counters.is_some() && self.stat.state != b'R'
    }

    /// Did it run for much of the last interval?
    pub fn was_busy(&self) -> bool {
        let half = |did: Did| did.seconds * procfs::ticks_per_second() as f64 / 2.0;
        self.did.is_some_and(|did| (did.user_ticks + did.system_ticks) as f64 > half(did))
    }

    /// Did it do anything in the last interval, as far as can be told?
    pub fn was_active(&self) -> bool {
        let calls = |did: &Did| did.counters.is_none_or(|did| did.read_calls + did.write_calls > 0);
        self.did.is_none_or(|did| calls(&did) || did.user_ticks + did.system_ticks > 0)
    }

    pub fn activity(&self, pid: u32) -> ProcessActivity {
        let rate = |of: fn(IoTotals) -> (u64, u64)| {
            let did = self.did.filter(|did| did.seconds > 0.0)?;
            let (calls, bytes) = of(did.counters?);
            Some(CallRate { calls_s: calls as f64 / did.seconds, bytes_s: bytes as f64 / did.seconds })
        };
        let share = |ticks: fn(&Did) -> u64| {
            let did = self.did.filter(|did| did.seconds > 0.0)?;
            Some(ticks(&did) as f64 / procfs::ticks_per_second() as f64 / did.seconds)
        };
        ProcessActivity {
            pid,
            uid: self.uid,
            comm: self.comm.clone(),
            command: self.command.clone(),
            foreign: self.foreign,
            reads: rate(|did| (did.read_calls, did.read_bytes)),
            writes: rate(|did| (did.write_calls, did.written_bytes)),
            user_share: share(|did| did.user_ticks),
            system_share: share(|did| did.system_ticks),
            waiting: self.streams.waiting(),
        }
    }
}

fn read_stat(file: &OpenProcFile) -> Option<(ProcessStat, String)> {
    let mut text = [0; MAX_STAT_BYTES];
    let got = file.read(&mut text).ok()?;
    let text = text.get(..got)?;
    Some((process_stat::parse(text)?, String::from_utf8_lossy(process_stat::name(text)?).into_owned()))
}

fn read_io(file: &OpenProcFile) -> io::Result<IoTotals> {
    let mut text = [0; 512];
    let got = file.read(&mut text)?;
    proc::parse_io(&text[..got]).ok_or(io::ErrorKind::InvalidData.into())
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// The arguments with spaces between, as far as one page of them goes; the name where there are none.
fn command(pid: u32, comm: &str) -> String {
    let mut text = vec![0; 4096];
    let read = std::fs::File::open(format!("/proc/{pid}/cmdline"));
    let got = read.and_then(|mut file| io::Read::read(&mut file, &mut text)).unwrap_or(0);
    text.truncate(got);
    while text.last() == Some(&0) {
        text.pop();
    }
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    if text.is_empty() { comm.into() } else { String::from_utf8_lossy(&text).into_owned() }
}

impl std::fmt::Debug for SurveyedProcess {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SurveyedProcess")
            .field("comm", &self.comm)
            .field("stat", &self.stat)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_of_ones_own() {
        let own = command(std::process::id(), "name");
        assert!(own.starts_with(&std::env::args().next().unwrap()), "{own}");
        assert_eq!(command(u32::MAX, "name"), "name");
    }
}
