//! `--coalesce`: what programs have gathered in the arena is written when they die, and when it gets too old.

use std::time::Duration;

use weir_model::trace::Exit;
use weir_sys::proc;

use crate::coalesce::{Arena, UnwrittenBytes};
use crate::rescue::save;
use crate::supervise::{LifecycleHandler, RescuedBytes, SavedFile, Tracees};

/// Told before weir's other followers: what is in the arena was written before what is in a stream.
pub struct CoalesceHandler {
    arena: Arena,
    every: Duration,
}

impl CoalesceHandler {
    /// Bytes wait in the arena for `delay` at most.
    pub fn new(arena: Arena, delay: Duration) -> CoalesceHandler {
        CoalesceHandler { arena, every: (delay / 4).max(Duration::from_millis(1)) }
    }
}

impl LifecycleHandler for CoalesceHandler {
    fn every(&self) -> Option<Duration> {
        Some(self.every)
    }

    fn tick(&mut self, _world: &mut Tracees, now: u64) {
        self.arena.tick(now / 1000);
    }

    fn exits(&mut self, world: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        match self.arena.drain(pid) {
            Ok(drained) => {
                let missed =
                    |left: &UnwrittenBytes| !crate::rescue::unread(Exit::of_status(status), &left.why);
                if let Some(left) = drained.left.filter(missed) {
                    keep(world, pid, tid, status, &left);
                }
            }
            Err(error) => world.say(format!(
                "what process {pid} ({}) had gathered could not be written: {}",
                proc::names(tid).1,
                weir_sys::error::errno_text(&error)
            )),
        }
        true
    }
}

/// No file took them: they are saved beside a report.
fn keep(world: &mut Tracees, pid: u32, tid: u32, status: i32, left: &UnwrittenBytes) {
    let mut about = RescuedBytes {
        pid,
        comm: proc::names(tid).1,
        fd: left.fd,
        path: proc::descriptor(tid, left.fd).unwrap_or_default(),
        bytes: left.bytes.len() as u64,
        exit: Exit::of_status(status),
        saved: None,
    };
    let why = weir_sys::error::errno_text(&left.why);
    match save::save(world.save_in.as_deref(), &left.bytes, &about, &why) {
        Ok(path) => about.saved = Some(SavedFile { path: path.to_string_lossy().into_owned(), why }),
        Err(error) => world.say(format!(
            "{} bytes of process {pid} ({}) for {} are lost: {why}; and they could not be saved: {}",
            left.bytes.len(),
            about.comm,
            about.path,
            weir_sys::error::errno_text(&error)
        )),
    }
    world.rescued.push(about);
}
