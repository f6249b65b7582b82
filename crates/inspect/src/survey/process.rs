//! One surveyed process: its counters, and their growth since the last sample.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use weir_model::Untrusted;
use weir_model::top::{CallRate, ProcessActivity};
use weir_model::trace::IoTotals;
use weir_sys::capabilities::exceed_those_of_the_tracer;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::process_stat::ProcessStat;

use crate::survey::counters::{CounterFiles, CounterJob, Counters, NewProcess, effective_user};
use crate::survey::process_reader::{ProcessReader, Reading};
use crate::survey::streams::PendingStreams;

/// The state of a process at the last sample.
pub(super) struct SurveyedProcess {
    identity: ProcessIdentity,
    files: Arc<CounterFiles>,
    stat: ProcessStat,
    uid: u32,
    comm: Untrusted,
    command: Untrusted,
    foreign: bool,
    more_capable: bool,
    at: Instant,
    counters: Option<IoTotals>,
    /// Activity in the last interval.
    activity: Option<IntervalActivity>,
    pub streams: PendingStreams,
}

/// The growth of the counters in one interval.
#[derive(Debug, Clone, Copy)]
struct IntervalActivity {
    seconds: f64,
    counters: Option<IoTotals>,
    user_ticks: u64,
    system_ticks: u64,
}

impl SurveyedProcess {
    /// Takes the first sample of a process.
    pub fn begin(new: NewProcess, read: Counters, reader: &mut ProcessReader) -> SurveyedProcess {
        let Counters { stat, comm, totals, at } = read;
        let mut process = SurveyedProcess {
            identity: new.identity,
            files: new.files,
            stat,
            uid: new.uid,
            command: comm.clone(),
            comm,
            foreign: totals.as_ref().is_err_and(is_denied),
            more_capable: totals.as_ref().is_err_and(is_denied)
                && exceed_those_of_the_tracer(new.identity.pid()),
            at,
            counters: totals.ok(),
            activity: None,
            streams: PendingStreams::new(Some(stat.parent)),
        };
        process.read_command(new.identity.pid(), reader);
        process
    }

    /// Reads again what execve(2) of a privileged program and setuid(2) change.
    fn read_owner(&mut self, foreign: bool) {
        let pid = self.identity.pid();
        let (uid, more_capable) = (effective_user(pid), foreign && exceed_those_of_the_tracer(pid));
        self.foreign = foreign;
        if self.has_its_number() {
            (self.uid, self.more_capable) = (uid.unwrap_or(self.uid), more_capable);
        }
    }

    /// Returns the job that reads the next sample.
    pub fn job(&self) -> CounterJob {
        let known = (Arc::clone(&self.files), self.stat.start_ticks);
        CounterJob { pid: self.identity.pid(), known: Some(known) }
    }

    /// Reads the arguments. Uses the name if there are none, or they cannot be read.
    fn read_command(&mut self, pid: u32, reader: &mut ProcessReader) {
        self.command.clone_from(&self.comm);
        if !self.is_shown() {
            return;
        }
        let reading = reader.command(pid);
        if !self.has_its_number() {
            return;
        }
        match reading {
            Reading::Answer(command) if !command.is_empty() => self.command = command,
            Reading::Answer(_) => {}
            Reading::NoAnswer => self.streams.set_unanswered(),
            Reading::OutOfTime => self.streams.leave_out(),
        }
    }

    /// Returns whether the process still has its PID, so that data that were read by this PID before belong to it.
    pub fn has_its_number(&self) -> bool {
        self.identity.is_current()
    }

    /// Takes the next sample.
    pub fn update(&mut self, read: Counters, reader: &mut ProcessReader) {
        let Counters { stat, comm, totals, at: now } = read;
        let before = std::mem::replace(&mut self.stat, stat);
        let foreign = totals.as_ref().is_err_and(is_denied);
        let has_new_image = stat.code_start != before.code_start || comm != self.comm;
        if has_new_image || foreign != self.foreign {
            self.read_owner(foreign);
        }
        let counters = totals.ok();
        self.activity = Some(IntervalActivity {
            seconds: now.duration_since(self.at).as_secs_f64(),
            counters: counters.zip(self.counters).map(|(now, before)| now.since(before)),
            user_ticks: stat.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: stat.system_ticks.saturating_sub(before.system_ticks),
        });
        (self.at, self.counters) = (now, counters.or(self.counters));
        if has_new_image {
            self.comm = comm;
            self.streams = PendingStreams::new(None);
            let pid = self.identity.pid();
            reader.forget(pid);
            self.read_command(pid, reader);
        }
    }

    /// Subtracts the calls of a child that wait(2) has just added. A child that was not waited for was not
    /// added.
    pub fn subtract(&mut self, ended: IoTotals) {
        let own = self.activity.as_mut().and_then(|activity| activity.counters.as_mut());
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

    /// Returns whether the process is shown: kernel threads and zombies are not. A main thread may end before the others.
    pub fn is_shown(&self) -> bool {
        !self.stat.is_kernel_thread && !self.stat.has_ended()
    }

    /// Returns whether the buffers can be read now. A running process changes them during the read, and its
    /// bytes are not stuck.
    pub fn is_readable(&self) -> bool {
        self.is_shown() && !self.foreign && self.counters.is_some() && self.stat.state != b'R'
    }

    /// Returns whether the process ran for more than half of the last interval.
    pub fn was_busy(&self) -> bool {
        let half = |activity: IntervalActivity| activity.seconds * procfs::ticks_per_second() as f64 / 2.0;
        self.activity
            .is_some_and(|activity| (activity.user_ticks + activity.system_ticks) as f64 > half(activity))
    }

    /// Returns whether the process used CPU time or I/O calls in the last interval, or may have.
    pub fn was_active(&self) -> bool {
        let calls = |activity: &IntervalActivity| {
            activity.counters.is_none_or(|activity| activity.read_calls + activity.write_calls > 0)
        };
        self.activity
            .is_none_or(|activity| calls(&activity) || activity.user_ticks + activity.system_ticks > 0)
    }

    pub fn activity(&self, pid: u32) -> ProcessActivity {
        let rate = |of: fn(IoTotals) -> (u64, u64)| {
            let activity = self.activity.filter(|activity| activity.seconds > 0.0)?;
            let (calls, bytes) = of(activity.counters?);
            Some(CallRate {
                calls_s: calls as f64 / activity.seconds,
                bytes_s: bytes as f64 / activity.seconds,
            })
        };
        let share = |ticks: fn(&IntervalActivity) -> u64| {
            let activity = self.activity.filter(|activity| activity.seconds > 0.0)?;
            Some(ticks(&activity) as f64 / procfs::ticks_per_second() as f64 / activity.seconds)
        };
        ProcessActivity {
            pid,
            start_ticks: self.stat.start_ticks,
            uid: self.uid,
            comm: self.comm.clone(),
            command: self.command.clone(),
            foreign: self.foreign,
            more_capable: self.foreign && self.more_capable,
            reads: rate(|activity| (activity.read_calls, activity.read_bytes)),
            writes: rate(|activity| (activity.write_calls, activity.written_bytes)),
            user_share: share(|activity| activity.user_ticks),
            system_share: share(|activity| activity.system_ticks),
            unanswered: self.streams.is_unanswered(),
            unread: self.streams.is_unread(),
            waiting: self.streams.waiting(),
        }
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
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
    use crate::survey::counters::CounterRead;
    use crate::survey::proc_files::ProcFiles;

    #[test]
    fn the_user_is_read_again_after_execve_and_setuid() {
        let (files, mut reader) = (ProcFiles::new(), ProcessReader::default());
        let own = CounterJob { pid: std::process::id(), known: None };
        let CounterRead::New(new, counters) = own.read(&files) else { panic!("this process") };
        let mut process = SurveyedProcess::begin(new, counters, &mut reader);
        let uid = process.uid;
        let mut after = |change: &dyn Fn(&mut Counters)| {
            (process.uid, process.more_capable) = (u32::MAX, true);
            let CounterRead::Same(mut counters) = process.job().read(&files) else { panic!("this process") };
            change(&mut counters);
            process.update(counters, &mut reader);
            (process.uid, process.more_capable, process.foreign)
        };
        assert_eq!(after(&|_| {}), (u32::MAX, true, false), "each sample has no time for it");
        assert_eq!(after(&|counters| counters.stat.code_start += 1), (uid, false, false));
        let deny = |counters: &mut Counters| {
            counters.stat.code_start += 1;
            counters.totals = Err(io::Error::from_raw_os_error(libc::EACCES));
        };
        assert_eq!(after(&deny), (uid, false, true));
    }
}
