//! `--coalesce`: writes the bytes in the arena when their process dies, or when they are old.

use std::time::Duration;

use weir_model::run::RescuedBytes;
use weir_model::trace::Exit;
use weir_sys::proc;

use super::{Arena, UnwrittenBytes};
use crate::rescue::{self, save};
use crate::supervise::{LifecycleHandler, Tracees};

/// Drains the arena. It must run before the rescue: gathered bytes are older than those of a stream.
pub struct CoalesceHandler {
    arena: Arena,
    interval: Duration,
}

impl CoalesceHandler {
    /// Makes a handler for an arena with this delay.
    pub fn new(arena: Arena, delay: Duration) -> CoalesceHandler {
        CoalesceHandler { arena, interval: (delay / 4).max(Duration::from_millis(1)) }
    }
}

impl LifecycleHandler for CoalesceHandler {
    fn tick_interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn service(&self) -> Option<&'static str> {
        Some("gathered")
    }

    fn on_end(&mut self, _tracees: &mut Tracees) {
        self.arena.close();
    }

    fn on_tick(&mut self, _tracees: &mut Tracees, now: u64) {
        self.arena.tick(now / 1000);
    }

    fn on_exit(&mut self, tracees: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let exit = Exit::of_status(status);
        let drained = self.arena.drain(pid);
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
    if rescued.bytes > 0 {
        tracees.rescued.push(rescued);
    }
}
