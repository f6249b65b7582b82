//! Pauses: the program at system calls is taken away and put back. What it has counted by then is taken, so that a number
//! that is given again meanwhile is another stream; and processes are told with their totals at both ends, so that it is
//! known how much each moved in between.

use std::collections::HashSet;

use weir_model::trace::IoTotals;
use weir_sys::clock::now_ns;
use weir_sys::{Error, proc};
use weir_trace_api::{RawEvent, RawEventKind};

use super::wire::StreamKey;
use super::{Run, decode};
use crate::overhead_budget::AT_ONCE_NS;

/// So many processes are told: those that were born or moved bytes since the last time. Of others it is not known later
/// through which streams their bytes went.
const TOLD_MOST: usize = 48;

/// BPF_EXIST: not what has been taken from the map meanwhile.
const ONLY_IF_THERE: u64 = 2;

/// Who is to be told.
#[derive(Debug, Default)]
pub(super) struct SamplingGap {
    told: HashSet<u32>,
    /// Since the last pause began.
    born: HashSet<u32>,
    /// Who has closed streams since then: a shell does with each command that it redirects, and may have none just now.
    closed: HashSet<u32>,
}

impl SamplingGap {
    pub fn born(&mut self, pid: u32) {
        self.born.insert(pid);
    }

    pub fn closed(&mut self, pid: u32) {
        self.closed.insert(pid);
    }

    pub fn ended(&mut self, pid: u32) {
        self.born.remove(&pid);
        self.closed.remove(&pid);
        self.told.remove(&pid);
    }
}

impl Run<'_> {
    /// Calls are not seen from here on; the burst began at `since`.
    pub(super) fn pause_begins(&mut self, since: u64) {
        // Said first, as a process may end before the pause does, or before all that was seen has been taken.
        (self.sink)(RawEvent { ns: since, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: since } });
        self.backend.loaded.detach_calls();
        self.backend.loaded.hasten();
        // What was seen takes a while to be taken: by then nothing has been seen for that long.
        let from_ns = now_ns();
        self.drain();
        let mut active = self.take_counts();
        active.extend(std::mem::take(&mut self.pause.born));
        active.extend(std::mem::take(&mut self.pause.closed));
        self.pause.told.clear();
        for pid in active.into_iter().take(TOLD_MOST) {
            if self.tell_pause(from_ns, pid, false) {
                self.pause.told.insert(pid);
            }
        }
    }

    /// Calls are about to be seen again.
    pub(super) fn pause_ends(&mut self, since: u64) {
        self.drain();
        (self.sink)(RawEvent { ns: since, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns: now_ns() } });
        let told = std::mem::take(&mut self.pause.told);
        // Those that were born meanwhile were told at no beginning.
        for pid in told.into_iter().chain(self.pause.born.drain().take(TOLD_MOST)).collect::<Vec<_>>() {
            self.tell_pause(now_ns(), pid, true);
        }
    }

    /// Calls are seen from here on. What went by while the kernel made weir wait for that was seen by nobody.
    pub(super) fn look_again(&mut self) -> Result<(), Error> {
        let since = now_ns();
        self.backend.loaded.attach_calls()?;
        let until_ns = now_ns();
        self.duty.looks(until_ns - since);
        if until_ns - since >= AT_ONCE_NS {
            (self.sink)(RawEvent { ns: since, pid: 0, tid: 0, kind: RawEventKind::Gap { until_ns } });
        }
        Ok(())
    }

    /// With the totals of now, also where nothing was seen since `ns`: where its files stand is looked up now, and goes with
    /// them.
    fn tell_pause(&mut self, ns: u64, pid: u32, ends: bool) -> bool {
        let Some(totals) = self.totals(pid) else { return false };
        let kind = RawEventKind::GapEdge { totals, ends };
        (self.sink)(RawEvent { ns, pid, tid: pid, kind });
        true
    }

    /// A process's own: its threads that live, and what the program in the kernel has of those that have ended.
    fn totals(&self, pid: u32) -> Option<IoTotals> {
        let gone = self.backend.loaded.processes.get(&pid, 0).ok()?;
        let gone = IoTotals {
            read_calls: gone.read_calls,
            write_calls: gone.write_calls,
            read_bytes: gone.read_bytes,
            written_bytes: gone.written_bytes,
        };
        // Of the command, what it read as a part of weir is less than nothing.
        let all = gone.plus(proc::own_io(pid).unwrap_or_default());
        Some(all.since(self.images.read_of(pid)))
    }

    /// Reports what the streams have counted, and has them begin anew. Who moved bytes.
    fn take_counts(&mut self) -> HashSet<u32> {
        let streams = &mut self.backend.loaded.streams;
        let keys: Vec<StreamKey> = streams.keys().flatten().collect();
        let mut active = HashSet::new();
        for key in keys {
            let Ok(counts) = streams.get(&key, 0) else { continue };
            if counts.doubted != 0 {
                continue;
            }
            // It may have been closed a moment ago, and told by the kernel.
            if streams.insert(key, counts.emptied(), ONLY_IF_THERE).is_ok() {
                active.insert(key.pid);
                decode::report_counts(&counts, now_ns(), self.sink);
            }
        }
        active
    }

    /// Reports counters that the kernel did not: of high descriptors, those for which there was no room, or all at the end.
    pub(super) fn sweep(&mut self, of: Option<u32>) {
        let loaded = &mut self.backend.loaded;
        if !loaded.holds_streams() {
            return;
        }
        let keys = loaded.streams.keys().flatten().filter(|key| of.is_none_or(|pid| key.pid == pid));
        for key in keys.collect::<Vec<_>>() {
            if let Ok(counts) = loaded.streams.get(&key, 0) {
                decode::report_counts(&counts, now_ns(), self.sink);
            }
            loaded.forget(key);
        }
    }
}
