//! `--coalesce`: writes the bytes in the arena when their process dies, or when they are old.

use std::collections::HashMap;
use std::time::Duration;

use weir_model::run::RescuedBytes;
use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::proc;

use super::{Arena, ArenaDrain, EXIT_WRITE_TIMEOUT, UnwrittenBytes};
use crate::rescue::{self, save};
use crate::supervise::{LifecycleHandler, Tracees};

/// Drains the arena. It must run before the rescue: gathered bytes are older than those of a stream.
pub struct CoalesceHandler {
    arena: Arena,
    interval: Duration,
    /// The drains of processes in their exit stop that wait for the reader of a full pipe, with the end of each wait in ns.
    waiting: HashMap<u32, (ArenaDrain, u64)>,
}

impl CoalesceHandler {
    /// Makes a handler for an arena with this delay.
    pub fn new(arena: Arena, delay: Duration) -> CoalesceHandler {
        let interval = (delay / 4).max(Duration::from_millis(1));
        CoalesceHandler { arena, interval, waiting: HashMap::new() }
    }

    /// Frees the slots of ended processes whose exit stop weir does not see, because another program traces them.
    fn free_ended(&mut self, tracees: &mut Tracees) {
        let losses = self.arena.free_ended(|owner| tracees.processes.contains_key(&owner));
        losses.into_iter().for_each(|loss| tracees.add_limitation(loss));
    }
}

impl LifecycleHandler for CoalesceHandler {
    fn tick_interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn service(&self) -> Option<&'static str> {
        Some("gathered")
    }

    fn on_end(&mut self, tracees: &mut Tracees) {
        self.arena.close();
        self.free_ended(tracees);
    }

    fn on_tick(&mut self, tracees: &mut Tracees, now: u64) {
        self.arena.tick(now / 1000);
        self.free_ended(tracees);
    }

    fn on_reaped(&mut self, tracees: &mut Tracees, pid: u32) {
        self.waiting.remove(&pid);
        // A process that is killed at the moment of its resume can leave out its exit stop.
        let losses = self.arena.free_ended(|owner| owner != pid);
        losses.into_iter().for_each(|loss| tracees.add_limitation(loss));
    }

    fn on_exit(&mut self, tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let exit = Exit::of_status(status);
        let begin = || (ArenaDrain::default(), now_ns() + EXIT_WRITE_TIMEOUT.as_nanos() as u64);
        let (mut drained, until_ns) = self.waiting.remove(&pid).unwrap_or_else(begin);
        let is_last = tracees.saves_at_once || now_ns() >= until_ns;
        if !self.arena.advance_drain(pid, &mut drained, is_last) {
            self.waiting.insert(pid, (drained, until_ns));
            return false;
        }
        if let Some(error) = drained.unreturned {
            tracees.add_limitation(format!(
                "process {pid} ({}) has read bytes ahead that its program did not use, and the offset of the file could not be \
                 moved back: {}",
                proc::comm(pid),
                weir_sys::error::errno_text(&error)
            ));
        }
        if let Some(error) = drained.unreported {
            let process = format!("{pid} ({})", proc::comm(pid));
            tracees.add_limitation(super::unreported(&process, &error));
        }
        let missed = |left: &UnwrittenBytes| !rescue::save::has_no_reader(exit, &left.why);
        if let Some(left) = drained.left.filter(missed) {
            save_unwritten(tracees, pid, tid, exit, &left);
        }
        true
    }
}

/// Saves bytes that their file did not take, as a rescue does.
fn save_unwritten(tracees: &mut Tracees, pid: u32, tid: u32, exit: Exit, left: &UnwrittenBytes) {
    let mut rescued = RescuedBytes {
        pid,
        comm: proc::names(tid).1,
        fd: left.fd,
        path: proc::descriptor(tid, left.fd).unwrap_or_default(),
        bytes: left.bytes.len() as u64,
        exit,
        saved: None,
    };
    let why = weir_sys::error::errno_text(&left.why);
    save::save_or_report(tracees, &mut rescued, save::owner_of(tid), &left.bytes, why);
    tracees.add_rescued(rescued);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::supervise::TracedProcess;

    /// Returns a handler with 5 gathered bytes of a process that has ended, and the number of the process.
    fn with_ended_owner() -> (CoalesceHandler, u32) {
        let mut ended = std::process::Command::new("true").spawn().expect("true");
        ended.wait().expect("its end");
        let delay = Duration::from_secs(1);
        let handler = CoalesceHandler::new(Arena::create(delay).expect("an arena"), delay);
        handler.arena.map.region(0).head.store(1 << 32 | 5, Relaxed);
        handler.arena.map.header().owners[0].store(ended.id(), Relaxed);
        (handler, ended.id())
    }

    #[test]
    fn slots_are_freed_without_an_exit_stop() {
        let mut tracees = Tracees::new(1, None).expect("a timer");
        let (mut handler, pid) = with_ended_owner();
        tracees.processes.insert(pid, TracedProcess::new(pid));
        handler.on_tick(&mut tracees, 0);
        assert!(
            handler.arena.owned_slots().len() == 1 && tracees.limitations.is_empty(),
            "its exit stop comes"
        );
        handler.on_reaped(&mut tracees, pid);
        let lost = format!("5 gathered bytes of process {pid} are lost: it was killed");
        assert!(
            handler.arena.owned_slots().is_empty() && tracees.limitations.contains(&lost),
            "it is reaped"
        );

        let mut tracees = Tracees::new(1, None).expect("a timer");
        let (mut handler, pid) = with_ended_owner();
        handler.on_tick(&mut tracees, 0);
        let lost = format!("5 gathered bytes of process {pid} are lost: it was killed");
        assert!(
            handler.arena.owned_slots().is_empty() && tracees.limitations.contains(&lost),
            "it is not traced"
        );
    }
}
