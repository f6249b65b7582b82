//! No byte waits longer in a stream than was wished.
//!
//! Now and then within that time each process's streams are looked at, without stopping it. What waits there since
//! an earlier look is brought out: the process is stopped for a moment, and its bytes are written. Where all its
//! threads wait in system calls, the stream is emptied; else the bytes are written ahead of the program.
//!
//! A thread that stands in its program could be anywhere: right behind a write(2) whose bytes are in the stream
//! still, or between the steps of a putc(3). So nothing is written then unless no write was made since bytes were
//! first seen waiting, and the thread has run on since – or the stream has got more bytes, which says the same.

pub(crate) mod ahead_table;
pub(crate) mod fork_flush;
pub(crate) mod skip;
pub(crate) mod write_ahead;

use std::collections::HashMap;
use std::time::Duration;

use weir_sys::proc;
use weir_walkers::Pending;

use crate::delay::write_ahead::{ThreadActivity, bring_out, doing, forget_purged, settle};
use crate::supervise::Tracees;
use crate::supervise::handler::LifecycleHandler;

/// No finer: a look takes some of it.
const FINEST: Duration = Duration::from_micros(250);

/// A thread that ran this long has left any place in which a stream is not yet what it will be. To be stopped and
/// to go on takes less.
const RAN_NS: u64 = 100_000;

/// The kernel's account of a thread that runs is up to a timer's tick late, which is at most 10 ms.
const LATE_NS: u64 = 10_000_000;

/// How often, in looks, it is tried to take out of streams what was written ahead of them.
const SETTLE_LOOKS: u32 = 8;

/// Bounded delay, from outside.
pub(crate) struct DelayHandler {
    every: Duration,
    /// What was seen so long ago is brought out.
    old: Duration,
    seen: HashMap<u32, HashMap<u64, PendingSnapshot>>,
    looks: u32,
}

/// A stream that had bytes at a look.
struct PendingSnapshot {
    bytes: Vec<u8>,
    /// How many writes the process had made before that look.
    writes: Option<u64>,
    /// How long its threads had run after it, at least so long, and at most so much longer.
    ran_ns: HashMap<u32, u64>,
    late_ns: u64,
    at_ns: u64,
}

impl DelayHandler {
    pub fn new(most: Duration) -> DelayHandler {
        DelayHandler { every: (most / 5).max(FINEST), old: most / 5, seen: HashMap::new(), looks: 0 }
    }

    fn look(&mut self, world: &mut Tracees, pid: u32, now: u64) {
        let Some(tid) = world.task(pid) else { return };
        let writes = world.writes(pid);
        let pending = world.pending(pid, tid);
        let seen = self.seen.entry(pid).or_default();
        // What a child has from its parent and nothing more, the parent writes; the child may end without.
        let known =
            |one: &Pending| world.written.of(pid, one.stream, &one.bytes).max(world.inherited(pid, one));
        let new = |one: &&Pending| known(one) < one.bytes.len();
        let waiting: Vec<&Pending> = pending.iter().filter(new).collect();
        seen.retain(|stream, _| waiting.iter().any(|one| one.stream == *stream));
        let mut due = false;
        let mut ran: Option<HashMap<u32, u64>> = None;
        for one in waiting {
            match seen.get(&one.stream).filter(|before| one.bytes.starts_with(&before.bytes)) {
                Some(before) => due |= now >= before.at_ns + self.old.as_nanos() as u64,
                None => {
                    let ran_ns = ran.get_or_insert_with(|| threads_ran_ns(pid)).clone();
                    let bytes = one.bytes.clone();
                    seen.insert(
                        one.stream,
                        PendingSnapshot { bytes, writes, ran_ns, late_ns: LATE_NS, at_ns: now },
                    );
                }
            }
        }
        if due {
            bring_out_seen(world, pid, tid, seen);
        } else if self.looks.is_multiple_of(SETTLE_LOOKS) && world.written.any(pid) {
            settle(world, pid);
        }
    }
}

impl LifecycleHandler for DelayHandler {
    fn every(&self) -> Option<Duration> {
        Some(self.every)
    }

    fn exec(&mut self, _world: &mut Tracees, pid: u32) {
        self.seen.remove(&pid);
    }

    fn gone(&mut self, _world: &mut Tracees, pid: u32) {
        self.seen.remove(&pid);
    }

    fn tick(&mut self, world: &mut Tracees, now: u64) {
        self.looks = self.looks.wrapping_add(1);
        for pid in world.pids() {
            self.look(world, pid, now);
        }
    }
}

/// Stops the process and writes what was seen waiting in it before.
fn bring_out_seen(world: &mut Tracees, pid: u32, tid: u32, seen: &mut HashMap<u64, PendingSnapshot>) {
    if world.hold(pid) {
        let pending = world.pending(pid, tid);
        forget_purged(world, pid, &pending);
        let doing = doing(world, pid);
        for one in &pending {
            let Some(before) = seen.get_mut(&one.stream).filter(|seen| one.bytes.starts_with(&seen.bytes))
            else {
                continue;
            };
            let most = match &doing {
                ThreadActivity::Writing => continue,
                ThreadActivity::Waiting | ThreadActivity::Calling => one.bytes.len(),
                ThreadActivity::Running(tids) if has_moved_on(world, pid, tids, before, one) => {
                    before.bytes.len()
                }
                ThreadActivity::Running(_) => {
                    before.see_again(world, pid, one);
                    continue;
                }
            };
            bring_out(world, pid, tid, one, most, doing == ThreadActivity::Waiting);
            seen.remove(&one.stream);
        }
    }
    world.release(pid);
}

impl PendingSnapshot {
    /// While the process is held, when the account of its threads is exact.
    fn see_again(&mut self, world: &Tracees, pid: u32, now: &Pending) {
        (self.writes, self.ran_ns, self.late_ns) = (world.writes(pid), threads_ran_ns(pid), 0);
        self.bytes = now.bytes.clone();
    }
}

/// Whether the bytes that were seen before are all there is to them, see above.
fn has_moved_on(world: &Tracees, pid: u32, running: &[u32], before: &PendingSnapshot, now: &Pending) -> bool {
    if before.writes.is_none() || before.writes != world.writes(pid) {
        return false;
    }
    let ran = |tid: &u32| {
        let then = before.ran_ns.get(tid).copied().unwrap_or(u64::MAX / 2);
        ran_ns(pid, *tid).is_some_and(|now| now >= then + before.late_ns + RAN_NS)
    };
    now.bytes.len() > before.bytes.len() || running.iter().all(ran)
}

fn threads_ran_ns(pid: u32) -> HashMap<u32, u64> {
    proc::threads(pid).into_iter().filter_map(|tid| Some((tid, ran_ns(pid, tid)?))).collect()
}

/// How long a thread has been on a processor; exact where it is not on one.
fn ran_ns(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
