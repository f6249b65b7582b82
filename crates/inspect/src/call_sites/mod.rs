//! Finds the call site that last wrote to a buffer. A [`watchpoint`] on a word that each write to the stream
//! changes gives samples ([`stack_sample`]). At the end of the recording the stacks of the reported ones
//! are unwound ([`unwind`]) and named ([`image`], [`symbols`], [`library`], [`naming`]).
//!
//! [`CallSamples`] finds the call sites of small reads and writes.
//!
//! A watched thread pays a few microseconds each time it is scheduled, and two of the CPU's four debug
//! registers. Where no register is available, the recording has no call sites and is otherwise the same.

mod call_sampler;
#[doc(hidden)] // for fuzz/ only
pub mod fuzzing;
mod image;
mod library;
mod naming;
mod perf_event;
mod small_calls;
mod stack_sample;
mod symbols;
#[cfg(test)]
pub(crate) mod tests;
mod unwind;
mod watch_quota;
mod watched_stream;
mod watchpoint;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use naming::MAX_NAMED_WRITES;
pub use small_calls::CallSamples;
use stack_sample::StackSample;
pub(crate) use watch_quota::WatchQuota;
use watched_stream::WatchedStream;
use weir_model::trace::{Buffer, SnapshotMoment, WriteSite};
use weir_sys::clock::now_ns;
use weir_sys::maps::{MappedRegion, MappingKind as Mapped, parse_regions, text};
use weir_sys::proc;

/// Limit of watched streams in a process: a CPU has four debug registers, and breakpoints of a backend may use
/// two.
pub const MAX_WATCHED_STREAMS: usize = 2;
/// Age from which pending bytes need a call site, as in finding stuck-output.
const OLD_NS: u64 = 800_000_000;
/// The mappings are read again if a write comes this long after the last read.
const MAPPINGS_VALID_NS: u64 = 1_000_000_000;

/// A child is watched like its parent if it has not called execve(2) for this long: most children of a build do
/// so earlier.
const CHILD_EXEC_NS: u64 = 10_000_000;

/// A sampled write, which may become a call site of the recording.
#[derive(Debug, Clone)]
struct ObservedWrite {
    pid: u32,
    stream: u64,
    sample: StackSample,
    /// The code mappings at about the time of the write.
    code: Arc<[MappedRegion]>,
    last: bool,
    /// CLOCK_MONOTONIC time of the next write or execve(2).
    until_ns: Option<u64>,
}

/// The watched streams of a process, and its code mappings.
struct WatchedProcess {
    streams: Vec<WatchedStream>,
    code: Arc<[MappedRegion]>,
    code_ns: u64,
    /// Text of /proc/PID/maps that was read but not parsed, to save time while the process is stopped.
    maps: Option<Vec<u8>>,
}

/// A child of a watched process before its first execve(2).
struct ForkedChild {
    pid: u32,
    forked_ns: u64,
    /// The parent's watched streams (stream address, word address).
    wanted: Vec<(u64, u64)>,
}

/// The watched streams of all processes, and their sampled writes.
#[derive(Default)]
pub struct CallSites {
    processes: HashMap<u32, WatchedProcess>,
    /// Streams (PID, address) of living processes with old pending bytes, or with pending bytes at a fork or exit. Only their
    /// writes are reported.
    reported: HashSet<(u32, u64)>,
    /// The writes to report of streams that are no longer watched, at most twice as many as are named.
    writes: Vec<ObservedWrite>,
    children: Vec<ForkedChild>,
    image_quota: WatchQuota,
    fork_quota: WatchQuota,
}

impl CallSites {
    /// Watches exactly these streams of a process, each by the address of the word that a write changes.
    pub fn watch(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        self.collect(pid);
        let known = self.processes.get(&pid).map_or(&[][..], |process| &process.streams);
        let same = known.len() == wanted.len() && known.iter().all(|one| wanted.contains(&one.key()));
        if !same && !wanted.is_empty() && self.image_quota.take(now_ns()) {
            self.replace_streams(pid, wanted);
        }
        self.follow_threads(pid);
    }

    /// Watches the streams of a new image that this tracer has stopped before its first instruction. The caller then
    /// calls [`CallSites::read_mappings`].
    pub fn watch_new_image(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        if !wanted.is_empty() && self.image_quota.take(now_ns()) {
            self.set_streams(pid, wanted);
            let process = self.processes.get_mut(&pid);
            process.into_iter().flat_map(|process| &mut process.streams).for_each(|one| one.follow(&[pid]));
        }
    }

    /// Reads the code mappings of a process if they are unknown.
    pub fn read_mappings(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid).filter(|process| process.code.is_empty()) {
            (process.maps, process.code_ns) = (Some(text(pid)), now_ns());
        }
    }

    /// Returns whether the stream is watched.
    pub fn has(&self, pid: u32, stream: u64) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| process.streams.iter().any(|one| one.stream == stream))
    }

    /// Removes the watchpoints of a busy process until the next [`CallSites::watch`]. With a data watchpoint
    /// `rep movs` is slow, in the kernel too: a read of 64 KiB takes ten times as long.
    pub fn suspend(&mut self, pid: u32) {
        self.collect(pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.streams.iter_mut().for_each(WatchedStream::suspend);
        }
    }

    fn follow_threads(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let threads = proc::threads(pid);
        process.streams.iter_mut().for_each(|one| one.follow(&threads));
    }

    fn replace_streams(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        if may_be_watched(pid) {
            self.set_streams(pid, wanted);
            self.read_mappings(pid);
        }
    }

    fn set_streams(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        let now = now_ns();
        let new = WatchedProcess { streams: Vec::new(), code: Arc::from([]), code_ns: now, maps: None };
        let before = self.processes.insert(pid, new).map_or_else(Vec::new, |process| process.streams);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let (stay, go): (Vec<_>, Vec<_>) = before.into_iter().partition(|one| wanted.contains(&one.key()));
        process.streams = stay;
        for &(stream, word) in wanted {
            if !process.streams.iter().any(|one| one.key() == (stream, word)) {
                process.streams.push(WatchedStream::new(stream, word, now));
            }
        }
        // The writes to a stream that is no longer watched, or has moved in memory, are unknown from now on.
        self.keep_reported(pid, go, Some(now));
    }

    /// Reads the samples of a process's watchpoints.
    fn collect(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        for one in &mut process.streams {
            let Some((sample, last)) = one.take_sample() else { continue };
            if let Some(maps) = process.maps.take() {
                process.code = code_in(&maps);
            }
            let unknown = !process.code.iter().any(|at| (at.start..at.end).contains(&sample.registers.ip));
            if unknown || sample.ns > process.code_ns + MAPPINGS_VALID_NS {
                let now = code(pid);
                if !now.is_empty() {
                    (process.code, process.code_ns) = (now, now_ns());
                }
            }
            let (stream, code) = (one.stream, Arc::clone(&process.code));
            one.add(ObservedWrite { pid, stream, sample, code, last, until_ns: None });
        }
    }

    /// Notes a child, which has a copy of its parent's streams. It is watched only if it does not call
    /// execve(2) soon.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let streams = self.processes.get(&parent).map(|process| &process.streams);
        let wanted: Vec<(u64, u64)> = streams.into_iter().flatten().map(WatchedStream::key).collect();
        if !wanted.is_empty() && self.fork_quota.take(now_ns()) {
            self.children.push(ForkedChild { pid: child, forked_ns: now_ns(), wanted });
        }
    }

    /// Watches the children that still run their parents' image. The caller calls it every few milliseconds.
    pub fn tick(&mut self, now_ns: u64) {
        let is_old = |child: &mut ForkedChild| now_ns.saturating_sub(child.forked_ns) >= CHILD_EXEC_NS;
        let old: Vec<_> = self.children.extract_if(.., is_old).collect();
        for ForkedChild { pid, wanted, .. } in old {
            if !self.processes.contains_key(&pid) {
                self.replace_streams(pid, &wanted);
                self.follow_threads(pid);
            }
        }
    }

    /// Ends watching the old image of a process, which called execve(2) at `at_ns`.
    pub fn exec(&mut self, pid: u32, at_ns: u64) {
        self.children.retain(|child| child.pid != pid);
        self.collect(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        // The new image may already be watched before this event arrives.
        let (old, new) =
            std::mem::take(&mut process.streams).into_iter().partition(|one| one.since_ns < at_ns);
        process.streams = new;
        self.keep_reported(pid, old, Some(at_ns));
    }

    /// Ends watching a process that has exited.
    pub fn end(&mut self, pid: u32) {
        self.children.retain(|child| child.pid != pid);
        self.collect(pid);
        let streams = self.processes.remove(&pid).map_or_else(Vec::new, |process| process.streams);
        self.keep_reported(pid, streams, None);
        self.reported.retain(|(of, _)| *of != pid);
    }

    /// Keeps the writes of streams that are no longer watched, if they are to be reported.
    fn keep_reported(&mut self, pid: u32, streams: Vec<WatchedStream>, at_ns: Option<u64>) {
        let writes_to_report = streams.into_iter().filter(|one| self.reported.contains(&(pid, one.stream)));
        self.writes.extend(writes_to_report.flat_map(|one| one.end(at_ns)));
        // Each has a copy of a stack, and a server can fork for days.
        if self.writes.len() > 2 * MAX_NAMED_WRITES {
            self.writes.sort_by_key(|one| std::cmp::Reverse(one.sample.ns));
            self.writes.truncate(MAX_NAMED_WRITES);
        }
    }

    /// Notes a buffer snapshot. Pending bytes need a call site if it is the last snapshot, or if they are old.
    pub fn note_snapshot(&mut self, pid: u32, moment: SnapshotMoment, buffers: &[Buffer], at_ns: u64) {
        let streams = self.processes.get_mut(&pid).map_or(&mut [][..], |process| &mut process.streams);
        for buffer in buffers.iter().filter(|buffer| buffer.pending_bytes > 0) {
            let mut watched = streams.iter_mut().filter(|one| one.stream == buffer.address);
            let reported = match moment {
                SnapshotMoment::Sample => watched.next().is_some_and(|one| one.note_pending(at_ns)),
                SnapshotMoment::Call => false,
                _ => true,
            };
            if reported {
                self.reported.insert((pid, buffer.address));
            }
        }
    }

    /// Returns the call sites to report. `began_ns` is time 0 of the recording.
    pub fn finish(mut self, began_ns: u64) -> Vec<WriteSite> {
        let living: Vec<u32> = self.processes.keys().copied().collect();
        living.into_iter().for_each(|pid| self.end(pid));
        naming::named(&self.writes, began_ns)
    }
}

/// Reads the code mappings of a process.
fn code(pid: u32) -> Arc<[MappedRegion]> {
    code_in(&text(pid))
}

/// Returns the code mappings in the text of /proc/PID/maps.
fn code_in(maps: &[u8]) -> Arc<[MappedRegion]> {
    let is_code = |one: &MappedRegion| one.executable && matches!(one.kind, Mapped::File(_));
    parse_regions(maps).into_iter().filter(is_code).collect()
}

/// Returns whether no other tracer traces the process: a debugger may need the debug registers.
fn may_be_watched(pid: u32) -> bool {
    let own =
        |tracer: i32| tracer == 0 || std::fs::exists(format!("/proc/self/task/{tracer}")).unwrap_or(false);
    proc::status(pid).is_some_and(|status| own(status.tracerpid))
}
