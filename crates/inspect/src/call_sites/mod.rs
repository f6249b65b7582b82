//! The place in a program that wrote last into a buffer: watchpoints on what moves in the stream ([`watchpoint`],
//! [`sample`]), then, for what is reported only and when all is over, the stack ([`unwind`]) and its names
//! ([`image`], [`symbols`], [`library`], [`naming`]).
//!
//! It costs a program a few microseconds each time that it has slept, and weir two of the processor's four registers
//! for that. Where those are not to be had, nothing is known, and nothing else is different.

mod image;
mod library;
mod naming;
mod symbols;
#[cfg(test)]
pub(crate) mod tests;
mod unwind;
mod watch_quota;
mod watched_stream;
mod watchpoint;
mod watchpoint_sample;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) use watch_quota::WatchQuota;
use watched_stream::WatchedStream;
use watchpoint_sample::WatchpointSample;
use weir_model::trace::{Buffer, SnapshotMoment, WriteSite};
use weir_sys::clock::now_ns;
use weir_sys::maps::{MappedRegion, MappingKind as Mapped, parse_regions, text};
use weir_sys::proc;

/// So many streams of a process are watched: a processor has four registers, and two may be taken by stops.
pub const STREAMS_MOST: usize = 2;
/// Bytes that have waited so long since they were written are worth a place: see finding stuck-output.
const LONG_NS: u64 = 800_000_000;
/// The mappings are read again when a write comes so long after the last time.
const MAPPINGS_NS: u64 = 1_000_000_000;

/// A child that has lived so long without executing another program is watched as its parent is.
const CHILD_NS: u64 = 10_000_000;

/// A write that may be told of.
#[derive(Debug, Clone)]
struct ObservedWrite {
    pid: u32,
    stream: u64,
    sample: WatchpointSample,
    /// The mappings of code at about that time.
    code: Arc<[MappedRegion]>,
    last: bool,
    /// When the next one came, or the process's next program.
    until_ns: Option<u64>,
}

/// The watched streams of a process.
struct Process {
    streams: Vec<WatchedStream>,
    code: Arc<[MappedRegion]>,
    code_ns: u64,
    /// Where it is was read, but not understood yet: there was no time.
    maps: Option<Vec<u8>>,
}

/// A child of a watched process that may yet execute something else.
struct Child {
    pid: u32,
    forked_ns: u64,
    /// What was watched in its parent.
    wanted: Vec<(u64, u64)>,
}

/// The watched streams of all processes, and what was seen of them.
#[derive(Default)]
pub struct CallSites {
    processes: HashMap<u32, Process>,
    /// Streams in which bytes waited long, or at a fork or an end.
    serious: HashSet<(u32, u64)>,
    seen: Vec<ObservedWrite>,
    children: Vec<Child>,
    programs: WatchQuota,
    forks: WatchQuota,
}

impl CallSites {
    /// Watches these streams of a process, each with the word that moves when it is written to, and no others.
    pub fn watch(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        self.collect(pid);
        let known = self.processes.get(&pid).map_or(&[][..], |process| &process.streams);
        let same = known.len() == wanted.len() && known.iter().all(|one| wanted.contains(&one.key()));
        if !same && !wanted.is_empty() && self.programs.take(now_ns()) {
            self.change(pid, wanted);
        }
        self.follow_threads(pid);
    }

    /// The same of a program that has run no code of its own yet, and waits while its tracer, this process, sees to it. The rest
    /// is for [`CallSites::settle`].
    pub fn begins(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        if !wanted.is_empty() && self.programs.take(now_ns()) {
            self.set_streams(pid, wanted);
            let process = self.processes.get_mut(&pid);
            process.into_iter().flat_map(|process| &mut process.streams).for_each(|one| one.follow(&[pid]));
        }
    }

    /// Reads where a process has its code, if that is not known.
    pub fn settle(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid).filter(|process| process.code.is_empty()) {
            (process.maps, process.code_ns) = (Some(text(pid)), now_ns());
        }
    }

    /// Whether the stream is one of those.
    pub fn has(&self, pid: u32, stream: u64) -> bool {
        let process = self.processes.get(&pid);
        process.is_some_and(|process| process.streams.iter().any(|one| one.stream == stream))
    }

    /// It works, and is left alone until it is watched again. With a watchpoint on data a processor has no fast way to
    /// copy (rep movs), in the kernel neither: a read of 64 KiB took ten times as long.
    pub fn rest(&mut self, pid: u32) {
        self.collect(pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.streams.iter_mut().for_each(WatchedStream::rest);
        }
    }

    fn follow_threads(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let threads = proc::threads(pid);
        process.streams.iter_mut().for_each(|one| one.follow(&threads));
    }

    fn change(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        if may_be_watched(pid) {
            self.set_streams(pid, wanted);
            self.settle(pid);
        }
    }

    fn set_streams(&mut self, pid: u32, wanted: &[(u64, u64)]) {
        let now = now_ns();
        let new = Process { streams: Vec::new(), code: Arc::from([]), code_ns: now, maps: None };
        let before = self.processes.insert(pid, new).map_or_else(Vec::new, |process| process.streams);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let (stay, go): (Vec<_>, Vec<_>) = before.into_iter().partition(|one| wanted.contains(&one.key()));
        process.streams = stay;
        for &(stream, word) in wanted {
            if !process.streams.iter().any(|one| one.key() == (stream, word)) {
                process.streams.push(WatchedStream::new(stream, word, now));
            }
        }
        // Of a stream that is not watched any more, or has moved in memory, nobody knows what is written from now on.
        self.take(pid, go, Some(now));
    }

    /// Takes what the watchpoints of a process saw.
    fn collect(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        for one in &mut process.streams {
            let Some((sample, last)) = one.news() else { continue };
            if let Some(maps) = process.maps.take() {
                process.code = code_in(&maps);
            }
            let unknown = !process.code.iter().any(|at| (at.start..at.end).contains(&sample.registers.ip));
            if unknown || sample.ns > process.code_ns + MAPPINGS_NS {
                let now = code(pid);
                if !now.is_empty() {
                    (process.code, process.code_ns) = (now, now_ns());
                }
            }
            let (stream, code) = (one.stream, Arc::clone(&process.code));
            one.add(ObservedWrite { pid, stream, sample, code, last, until_ns: None });
        }
    }

    /// A child has a copy of its parent's memory, its streams too. Most of a build's execute something at once.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let streams = self.processes.get(&parent).map(|process| &process.streams);
        let wanted: Vec<(u64, u64)> = streams.into_iter().flatten().map(WatchedStream::key).collect();
        if !wanted.is_empty() && self.forks.take(now_ns()) {
            self.children.push(Child { pid: child, forked_ns: now_ns(), wanted });
        }
    }

    /// Watches the children that have gone on with their parents' memory. To be called often.
    pub fn tick(&mut self, now_ns: u64) {
        let is_old = |child: &mut Child| now_ns.saturating_sub(child.forked_ns) >= CHILD_NS;
        let old: Vec<_> = self.children.extract_if(.., is_old).collect();
        for Child { pid, wanted, .. } in old {
            if !self.processes.contains_key(&pid) {
                self.change(pid, &wanted);
                self.follow_threads(pid);
            }
        }
    }

    /// It executes another program, from this time on.
    pub fn exec(&mut self, pid: u32, at_ns: u64) {
        self.children.retain(|child| child.pid != pid);
        self.collect(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        // The new program may have been looked at before its beginning was told of.
        let (old, new) =
            std::mem::take(&mut process.streams).into_iter().partition(|one| one.since_ns < at_ns);
        process.streams = new;
        self.take(pid, old, Some(at_ns));
    }

    /// It has ended.
    pub fn end(&mut self, pid: u32) {
        self.children.retain(|child| child.pid != pid);
        self.collect(pid);
        let streams = self.processes.remove(&pid).map_or_else(Vec::new, |process| process.streams);
        self.take(pid, streams, None);
    }

    /// What is worth to be kept of streams that are watched no more.
    fn take(&mut self, pid: u32, streams: Vec<WatchedStream>, at_ns: Option<u64>) {
        let worth = streams.into_iter().filter(|one| self.serious.contains(&(pid, one.stream)));
        self.seen.extend(worth.flat_map(|one| one.end(at_ns)));
    }

    /// What a look has found: bytes that wait are worth a place if it is the last look, or they have waited long.
    pub fn note(&mut self, pid: u32, moment: SnapshotMoment, buffers: &[Buffer], at_ns: u64) {
        let streams = self.processes.get_mut(&pid).map_or(&mut [][..], |process| &mut process.streams);
        for buffer in buffers.iter().filter(|buffer| buffer.pending_bytes > 0) {
            let mut watched = streams.iter_mut().filter(|one| one.stream == buffer.address);
            let serious = match moment {
                SnapshotMoment::Sample => watched.next().is_some_and(|one| one.waits(at_ns)),
                SnapshotMoment::Call => false,
                _ => true,
            };
            if serious {
                self.serious.insert((pid, buffer.address));
            }
        }
    }

    /// All that is worth it, with names; `began_ns` is the recording's time 0.
    pub fn finish(mut self, began_ns: u64) -> Vec<WriteSite> {
        let living: Vec<u32> = self.processes.keys().copied().collect();
        living.into_iter().for_each(|pid| self.end(pid));
        let worth: Vec<ObservedWrite> =
            self.seen.into_iter().filter(|one| self.serious.contains(&(one.pid, one.stream))).collect();
        naming::named(&worth, began_ns)
    }
}

/// The mappings of a process's code.
fn code(pid: u32) -> Arc<[MappedRegion]> {
    code_in(&text(pid))
}

/// The same of what /proc/PID/maps said.
fn code_in(maps: &[u8]) -> Arc<[MappedRegion]> {
    let is_code = |one: &MappedRegion| one.executable && matches!(one.kind, Mapped::File(_));
    parse_regions(maps).into_iter().filter(is_code).collect()
}

/// Who is traced by somebody else may need the registers for that: a debugger uses them as we do.
fn may_be_watched(pid: u32) -> bool {
    let own =
        |tracer: i32| tracer == 0 || std::fs::exists(format!("/proc/self/task/{tracer}")).unwrap_or(false);
    proc::status(pid).is_some_and(|status| own(status.tracerpid))
}
