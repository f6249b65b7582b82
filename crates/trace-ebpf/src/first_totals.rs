//! The I/O totals that a process had when it was first traced: its present totals minus these are what it did since.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use weir_model::trace::IoTotals;
use weir_sys::{proc, process_status};
use weir_trace_api::{RawEvent, RawEventKind};

/// Tries to read the totals of a process in execve(2), 1 ms apart: it takes microseconds, unless a file server does not answer.
const MAX_READS: u32 = 5;

/// The processes whose first totals are unknown. Their later totals have no value to subtract, so they are not reported.
#[derive(Debug, Default)]
pub(super) struct FirstTotals {
    unknown: HashSet<u32>,
}

impl FirstTotals {
    /// Reads the totals of a process that is traced from now on. Those of a command begin at 0.
    pub fn read(&mut self, pid: u32, is_command: bool) -> Option<IoTotals> {
        let totals = if is_command { Some(IoTotals::default()) } else { read_totals(pid) };
        if totals.is_none() {
            self.unknown.insert(pid);
        }
        totals
    }

    /// Returns the totals of the living threads of a process.
    pub fn living(&self, pid: u32) -> Option<IoTotals> {
        if self.unknown.contains(&pid) { None } else { read_totals(pid) }
    }

    /// Removes the totals from the exit of a process whose first ones are unknown.
    pub fn complete_exit(&mut self, raw: &mut RawEvent) {
        if let RawEventKind::Exit { io, .. } = &mut raw.kind
            && self.unknown.remove(&raw.pid)
        {
            *io = None;
        }
    }
}

fn read_totals(pid: u32) -> Option<IoTotals> {
    for _read in 1..MAX_READS {
        match proc::own_io(pid) {
            None if process_status::is_executing(pid) => thread::sleep(Duration::from_millis(1)),
            totals => return totals,
        }
    }
    proc::own_io(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::trace::Exit;

    fn exit(pid: u32) -> RawEvent {
        let kind = RawEventKind::Exit {
            exit: Exit::of_status(0),
            io: Some(IoTotals::default()),
            usage: Default::default(),
        };
        RawEvent { ns: 1, pid, tid: pid, kind }
    }

    #[test]
    fn totals_without_a_first_value_are_not_reported() {
        let (own, gone) = (std::process::id(), u32::MAX / 2);
        let mut totals = FirstTotals::default();
        assert!(totals.read(own, false).is_some() && totals.living(own).is_some());
        assert_eq!(totals.read(gone, true), Some(IoTotals::default()));
        assert_eq!(totals.read(gone, false), None);
        assert_eq!(totals.living(gone), None);
        for (pid, known) in [(own, true), (gone, false), (gone, true)] {
            let mut raw = exit(pid);
            totals.complete_exit(&mut raw);
            let RawEventKind::Exit { io, .. } = raw.kind else { panic!() };
            assert_eq!(io.is_some(), known, "{pid}: another process can get the number later");
        }
    }
}
