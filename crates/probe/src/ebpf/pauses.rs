//! Pauses: the program at system calls is taken away and put back. What it has counted by then is taken, so that a number
//! that is given again meanwhile is another stream; and processes are told with their totals at both ends, so that it is
//! known how much each moved in between.

use std::collections::HashSet;
use std::fs;

use weir_model::trace::IoTotals;

use super::Run;
use super::decode;
use super::wire::{Counts, StreamKey};
use crate::engine::now_ns;
use crate::proc;
use crate::raw::{Raw, RawWhat};

/// So many processes are told: those that were born or moved bytes since the last time. Of others it is not known later
/// through which streams their bytes went.
const TOLD_MOST: usize = 48;

/// BPF_EXIST: not what has been taken from the map meanwhile.
const ONLY_IF_THERE: u64 = 2;

/// Who is to be told.
#[derive(Debug, Default)]
pub(super) struct Pause {
    told: HashSet<u32>,
    /// Since the last pause began.
    born: HashSet<u32>,
}

impl Pause {
    pub fn born(&mut self, pid: u32) {
        self.born.insert(pid);
    }

    pub fn ended(&mut self, pid: u32) {
        self.born.remove(&pid);
        self.told.remove(&pid);
    }
}

impl Run<'_> {
    /// Calls are not seen from here on; the burst began at `since`.
    pub(super) fn pause_begins(&mut self, since: u64) {
        // Said first, as a process may end before the pause does, or before all that was seen has been taken.
        (self.sink)(Raw { ns: since, pid: 0, tid: 0, what: RawWhat::Unwatched { until_ns: since } });
        self.engine.loaded.detach_calls();
        self.drain();
        let mut active = self.take_counts();
        active.extend(std::mem::take(&mut self.pause.born));
        self.pause.told.clear();
        for pid in active.into_iter().take(TOLD_MOST) {
            if self.tell_pause(pid, false) {
                self.pause.told.insert(pid);
            }
        }
    }

    /// Calls are about to be seen again.
    pub(super) fn pause_ends(&mut self, since: u64) {
        self.drain();
        (self.sink)(Raw { ns: since, pid: 0, tid: 0, what: RawWhat::Unwatched { until_ns: now_ns() } });
        let told = std::mem::take(&mut self.pause.told);
        // Those that were born meanwhile were told at no beginning.
        for pid in told.into_iter().chain(self.pause.born.drain().take(TOLD_MOST)).collect::<Vec<_>>() {
            self.tell_pause(pid, true);
        }
    }

    fn tell_pause(&mut self, pid: u32, ends: bool) -> bool {
        let Some(totals) = self.totals(pid) else { return false };
        let what = RawWhat::Pause { totals, ends };
        (self.sink)(Raw { ns: now_ns(), pid, tid: pid, what });
        true
    }

    /// A process's own: its threads that live, and what the program in the kernel has of those that have ended.
    fn totals(&self, pid: u32) -> Option<IoTotals> {
        let gone = self.engine.loaded.processes.get(&pid, 0).ok()?;
        let mut sum = IoTotals {
            read_calls: gone.read_calls,
            write_calls: gone.write_calls,
            read_bytes: gone.read_bytes,
            written_bytes: gone.written_bytes,
        };
        for tid in proc::threads(pid) {
            if let Some(one) = of_thread(pid, tid) {
                // Of the command, what it read as a part of weir is less than nothing.
                sum.read_calls = sum.read_calls.wrapping_add(one.read_calls);
                sum.write_calls = sum.write_calls.wrapping_add(one.write_calls);
                sum.read_bytes = sum.read_bytes.wrapping_add(one.read_bytes);
                sum.written_bytes = sum.written_bytes.wrapping_add(one.written_bytes);
            }
        }
        Some(sum)
    }

    /// Reports what the streams have counted, and has them begin anew. Who moved bytes.
    fn take_counts(&mut self) -> HashSet<u32> {
        let streams = &mut self.engine.loaded.streams;
        let keys: Vec<StreamKey> = streams.keys().flatten().collect();
        let mut active = HashSet::new();
        for key in keys {
            let Ok(counts) = streams.get(&key, 0) else { continue };
            if counts.doubted != 0 {
                continue;
            }
            // It may have been closed a moment ago, and told by the kernel.
            if streams.insert(key, emptied(&counts), ONLY_IF_THERE).is_ok() {
                active.insert(key.pid);
                decode::report_counts(&counts, now_ns(), self.sink);
            }
        }
        active
    }

    /// Reports counters that the kernel did not: of high descriptors, those for which there was no room, or all at the end.
    pub(super) fn sweep(&mut self, of: Option<u32>) {
        let streams = &mut self.engine.loaded.streams;
        let keys: Vec<StreamKey> =
            streams.keys().flatten().filter(|key| of.is_none_or(|pid| key.pid == pid)).collect();
        for key in keys {
            if let Ok(counts) = streams.get(&key, 0) {
                decode::report_counts(&counts, now_ns(), self.sink);
            }
            let _ = streams.remove(&key);
        }
    }
}

/// The same stream, which has counted nothing; it is looked at again when it is used.
fn emptied(counts: &Counts) -> Counts {
    Counts {
        bytes: 0,
        errors: 0,
        again: 0,
        zeros: 0,
        shorts: 0,
        newline_ends: 0,
        jumps: 0,
        again_bytes: 0,
        unaligned: 0,
        in_kernel: 0,
        seeks: 0,
        doubted: 1,
        sizes: [0; super::wire::SLOTS],
        asked_other: [0; super::wire::SLOTS],
        ..*counts
    }
}

fn of_thread(pid: u32, tid: u32) -> Option<IoTotals> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/io")).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some(IoTotals {
        read_calls: field("syscr:")?,
        write_calls: field("syscw:")?,
        read_bytes: field("rchar:")?,
        written_bytes: field("wchar:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_this_very_thread() {
        let own = std::process::id();
        let sum: u64 = proc::threads(own)
            .into_iter()
            .filter_map(|tid| of_thread(own, tid))
            .map(|one| one.read_calls)
            .sum();
        assert!(sum > 0);
        assert_eq!(of_thread(own, 0), None);
    }
}
