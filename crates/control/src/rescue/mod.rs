//! What a death would lose reaches the file, pipe or terminal it was meant for, once and in order.

pub(crate) mod cpython_handoff;
#[cfg(target_arch = "x86_64")]
pub(crate) mod interrupted_store;
pub(crate) mod last_write;
#[cfg(target_arch = "x86_64")]
pub(crate) mod replay;
pub(crate) mod save;
#[cfg(all(test, target_arch = "x86_64"))]
mod single_step_test;

use std::collections::HashMap;

use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
#[cfg(target_arch = "x86_64")]
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc;
use weir_walkers::Pending;

use crate::rescue::cpython_handoff::in_flight;
use crate::supervise::handler::LifecycleHandler;
use crate::supervise::tracee_file::TraceeFile;
use crate::supervise::{RescuedBytes, SavedFile, Tracees};

/// How long a pipe or terminal that takes nothing is waited for.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Rescues at deaths.
#[derive(Default)]
pub(crate) struct RescueHandler {
    /// Of processes that wait for their end.
    jobs: HashMap<u32, Vec<RescueJob>>,
}

/// The bytes of a stream on their way.
struct RescueJob {
    about: RescuedBytes,
    sink: std::io::Result<TraceeFile>,
    bytes: Vec<u8>,
    done: usize,
    /// Since when nothing was taken.
    since: u64,
}

impl LifecycleHandler for RescueHandler {
    fn exits(&mut self, world: &mut Tracees, pid: u32, tid: u32, status: i32) -> bool {
        let mut jobs = match self.jobs.remove(&pid) {
            Some(jobs) => jobs,
            None => self.jobs(world, pid, tid, status),
        };
        while let Some(job) = jobs.first_mut() {
            if !job.goes_on(world) {
                self.jobs.insert(pid, jobs);
                return false;
            }
            let about = jobs.remove(0).about;
            if about.bytes > 0 {
                world.rescued.push(about);
            }
        }
        true
    }

    fn gone(&mut self, _world: &mut Tracees, pid: u32) {
        self.jobs.remove(&pid);
    }
}

impl RescueHandler {
    fn jobs(&self, world: &mut Tracees, pid: u32, tid: u32, status: i32) -> Vec<RescueJob> {
        let pending = world.last_pending(pid, tid);
        let lost = missing(world, pid, tid, pending);
        lost.into_iter().filter_map(|(_, fd, bytes)| RescueJob::new(pid, tid, status, fd, bytes)).collect()
    }
}

/// What a process has not written whose threads have ended or are about to: stream, descriptor and bytes.
pub(crate) fn missing(
    world: &Tracees,
    pid: u32,
    tid: u32,
    pending: Vec<Pending>,
) -> Vec<(u64, i32, Vec<u8>)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(all) = lived_on(world, pid, tid) {
        return all;
    }
    let mut lost: Vec<(u64, i32, Vec<u8>)> = Vec::new();
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    for mut one in pending {
        #[cfg(target_arch = "x86_64")]
        if let Some(process) = world.processes.get(&pid) {
            interrupted_store::stored(tid, &process.torn, &mut one);
        }
        let skipped = last_write::written(world, pid, tid, &one).max(world.inherited(pid, &one));
        lost.push((one.stream, one.fd, one.bytes[skipped.min(one.bytes.len())..].to_vec()));
    }
    for one in in_flight(world, pid, tid) {
        match lost.iter_mut().find(|lost| lost.0 == one.stream) {
            Some(lost) => lost.2.extend(one.bytes),
            None => lost.push((one.stream, one.fd, one.bytes)),
        }
    }
    lost
}

/// The same where a thread was killed inside of a stream of CPython: it is let come out of that, in a copy.
#[cfg(target_arch = "x86_64")]
fn lived_on(world: &Tracees, pid: u32, tid: u32) -> Option<Vec<(u64, i32, Vec<u8>)>> {
    /// How much of a stack is searched for a stream.
    const STACK_BYTES: usize = 16 << 10;
    let (outside, streams) = world.outside(pid, tid)?;
    let memory = ProcessMemory { pid: tid };
    let inside = |torn: &&replay::KilledThread| {
        let stack = memory.bytes(torn.stack(), STACK_BYTES);
        let words = stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.chain(torn.words()).any(|word| streams.contains(&word))
    };
    let torn = world.processes.get(&pid)?.torn.iter().find(inside)?;
    let life = replay::replay(tid, torn, &outside)?;
    let mut all: Vec<(u64, i32, Vec<u8>)> =
        world.pending_in(pid, &life).into_iter().map(|one| (one.stream, one.fd, one.bytes)).collect();
    for (fd, bytes) in life.written.iter().rev() {
        match all.iter_mut().find(|one| one.1 == *fd) {
            Some(one) => drop(one.2.splice(0..0, bytes.iter().copied())),
            None => all.push((0, *fd, bytes.clone())),
        }
    }
    for (stream, fd, bytes) in &mut all {
        let skipped = world.written_before(pid, *stream, *fd, bytes);
        bytes.drain(..skipped);
    }
    Some(all)
}

impl RescueJob {
    /// A descriptor that the program has closed takes nothing, and did not without weir.
    fn new(pid: u32, tid: u32, status: i32, fd: i32, bytes: Vec<u8>) -> Option<RescueJob> {
        let target = proc::descriptor(tid, fd).filter(|_| !bytes.is_empty())?;
        let about = RescuedBytes {
            pid,
            comm: proc::names(tid).1,
            fd,
            path: target,
            bytes: bytes.len() as u64,
            exit: Exit::of_status(status),
            saved: None,
        };
        Some(RescueJob { about, sink: TraceeFile::of(tid, fd), bytes, done: 0, since: now_ns() })
    }

    /// True: it is done, one way or another.
    fn goes_on(&mut self, world: &mut Tracees) -> bool {
        let why = match &self.sink {
            Ok(sink) => {
                let (taken, error) = sink.put(&self.bytes[self.done..]);
                self.done += taken;
                if taken > 0 {
                    self.since = now_ns();
                }
                match error {
                    Ok(()) if self.done == self.bytes.len() => return true,
                    Ok(()) if now_ns() < self.since + PATIENCE_NS => return false,
                    Ok(()) => "it took nothing for 5 s".to_string(),
                    // It died because nobody reads any more, and so nobody misses them.
                    Err(error) if unread(self.about.exit, &error) => {
                        self.about.bytes = self.done as u64;
                        return true;
                    }
                    Err(error) => weir_sys::error::errno_text(&error),
                }
            }
            Err(error) => format!("it could not be opened: {}", weir_sys::error::errno_text(error)),
        };
        self.save(world, why);
        true
    }

    fn save(&mut self, world: &mut Tracees, why: String) {
        let rest = &self.bytes[self.done..];
        match save::save(world.save_in.as_deref(), rest, &self.about, &why) {
            Ok(path) => self.about.saved = Some(SavedFile { path: path.to_string_lossy().into_owned(), why }),
            Err(error) => world.say(format!(
                "{} bytes of process {} ({}) for {} are lost: {why}; and they could not be saved: {}",
                rest.len(),
                self.about.pid,
                self.about.comm,
                self.about.path,
                weir_sys::error::errno_text(&error)
            )),
        }
    }
}

/// Whether a process ended by SIGPIPE and its bytes find a pipe without a reader.
pub(crate) fn unread(exit: Exit, error: &std::io::Error) -> bool {
    exit == Exit::Signal(libc::SIGPIPE) && error.raw_os_error() == Some(libc::EPIPE)
}
