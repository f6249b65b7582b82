//! `--max-delay` from outside: writes the pending bytes of a stream before they are as old as the delay, where that is safe.
//!
//! Several times within the delay each process's streams are read without stopping it. If bytes are pending since an
//! earlier snapshot, the process is stopped for a moment and the bytes are written. If all threads block in system
//! calls, the stream is emptied; otherwise the bytes are written ahead of the program.
//!
//! A thread in user mode can be between a write(2) and the stream's update, or between two steps of a putc(3). The bytes
//! of such a process are written only if it has made no write since their first snapshot, and if the thread's call on the stream
//! has ended. The call has ended if the stream has more bytes, or if each such thread has gone on and used 100 µs of CPU time, or
//! 20 ms if it has the same registers. Less CPU time does not show it: beside other load a thread can be stopped again and again
//! before its next instruction, and the kernel counts its own work and interrupts too. For streams that a search finds, the
//! walkers show it.

pub(crate) mod ahead_table;
mod compared_streams;
pub(crate) mod fork_flush;
#[cfg(all(test, target_arch = "x86_64"))]
mod move_step_test;
pub(crate) mod outside_streams;
pub(crate) mod skip;
pub(crate) mod write_ahead;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use weir_sys::clock::now_ns;
use weir_sys::file_system::status_of_descriptor;
use weir_sys::open_files::fdinfo;
use weir_sys::ptrace::registers::{SyscallRegisters, digest};
use weir_sys::{proc, process_status};
use weir_walkers::{JoinedStreams, PendingBytes, join_pending};

use crate::foreign_file::TargetThread;
use crate::supervise::{LifecycleHandler, Tracees};
use compared_streams::ComparedStreams;
use write_ahead::{
    ThreadActivity, drain_stream, forget_purged, is_handing_over, is_in_use, reclaim_written_ahead,
    thread_activity,
};

/// The shortest interval of snapshots. A snapshot takes a part of it.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(250);

/// The CPU time after which a thread has ended the call on a stream in which it was. A stop and resume takes less, so that it
/// does not count as progress.
const MOVED_ON_NS: u64 = 100_000;

/// The same for a thread that is at the same instruction with the same registers, as in a loop of one instruction, and for all threads
/// while the stream's lock is held: a thread is then inside a call on it, or the program holds the lock while it computes.
const MOVED_ON_UNSEEN_NS: u64 = 20_000_000;

/// The error of a running thread's CPU time in schedstat: up to one timer tick, at most 10 ms.
const SCHEDSTAT_ERROR_NS: u64 = 10_000_000;

/// The number of ticks between two attempts to reclaim written-ahead bytes. Each attempt stops the process.
const RECLAIM_TICKS: u32 = 8;

/// Bounds the delay of all tracees.
pub(crate) struct DelayHandler {
    interval: Duration,
    /// The age at which pending bytes are written.
    due_age: Duration,
    /// Snapshots by process and stream address.
    snapshots: HashMap<u32, HashMap<u64, PendingSnapshot>>,
    compared: ComparedStreams,
    /// The streams of each process of which a limitation says that weir does not write them early.
    refused: HashMap<u32, HashSet<u64>>,
    ticks: u32,
}

/// A stream's pending bytes at one time.
struct PendingSnapshot {
    bytes: Vec<u8>,
    /// How many of them are in the inner of two joined streams.
    first_len: usize,
    /// The process's writes before the snapshot; None if the kernel does not count them.
    write_count: Option<u64>,
    /// The CPU time of each thread at the snapshot, which may be too low by `error_ns`.
    cpu_ns: HashMap<u32, u64>,
    error_ns: u64,
    /// The hash of each thread's registers; empty if the process was not stopped.
    registers: HashMap<u32, u64>,
    taken_at_ns: u64,
    /// The time after the CPU times were read.
    cpu_read_ns: u64,
}

impl DelayHandler {
    /// Makes a handler for a delay. Interval and age are a fifth of it each, which leaves time to stop and write; the interval
    /// is at least [`SHORTEST_INTERVAL`], so that shorter delays are exceeded.
    pub fn new(most: Duration) -> DelayHandler {
        DelayHandler {
            interval: (most / 5).max(SHORTEST_INTERVAL),
            due_age: most / 5,
            snapshots: HashMap::new(),
            compared: ComparedStreams::default(),
            refused: HashMap::new(),
            ticks: 0,
        }
    }

    fn forget(&mut self, pid: u32) {
        self.snapshots.remove(&pid);
        self.refused.remove(&pid);
        self.compared.forget(pid);
    }

    fn check_process(&mut self, tracees: &mut Tracees, pid: u32, now: u64) {
        let Some(tid) = tracees.live_thread(pid) else { return };
        if process_status::is_executing(tid) {
            return;
        }
        let write_count = tracees.write_count(pid);
        let mut pending = tracees.pending_and_ambiguous(pid, tid);
        self.compared.write_due(tracees, (pid, tid), &pending, self.due_age);
        pending.retain(|one| one.copies.is_empty());
        let pending = join_pending(pending);
        let refused = self.refused.entry(pid).or_default();
        let snapshots = self.snapshots.entry(pid).or_default();
        // The parent writes bytes that a child has inherited. The child may end without writing them.
        let settled = |one: &PendingBytes| {
            let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
            ahead.max(tracees.inherited_len(pid, one))
        };
        let is_refused =
            |one: &PendingBytes| one.outside.early_refusal.is_some() && !refused.contains(&one.stream);
        let waiting: Vec<&PendingBytes> =
            pending.iter().filter(|one| settled(one) < one.early_len() || is_refused(one)).collect();
        snapshots.retain(|stream, _| waiting.iter().any(|one| one.stream == *stream));
        let mut due = false;
        let mut cpu_times: Option<HashMap<u32, u64>> = None;
        for one in waiting {
            match snapshots.get(&one.stream).filter(|before| one.bytes.starts_with(&before.bytes)) {
                Some(before) if now < before.taken_at_ns + self.due_age.as_nanos() as u64 => {}
                Some(_) => match one.outside.early_refusal {
                    Some(why) => {
                        tracees.note_refusal(pid, tid, one.fd, why);
                        refused.insert(one.stream);
                    }
                    None => due = true,
                },
                None => {
                    let snapshot = PendingSnapshot {
                        bytes: one.bytes.clone(),
                        first_len: first_len(one),
                        write_count,
                        cpu_ns: cpu_times.get_or_insert_with(|| threads_cpu_ns(pid)).clone(),
                        error_ns: SCHEDSTAT_ERROR_NS,
                        registers: HashMap::new(),
                        taken_at_ns: now,
                        cpu_read_ns: now_ns(),
                    };
                    snapshots.insert(one.stream, snapshot);
                }
            }
        }
        let is_unsure =
            |one: &PendingBytes| one.found_by_search && one.data_address.is_some() && one.early_len() == 0;
        update_write_counts(
            tracees,
            pid,
            pending.iter().any(is_unsure),
            pending.iter().any(|one| one.found_by_search),
        );
        if due {
            drain_process(tracees, pid, tid, snapshots);
        } else if self.ticks.is_multiple_of(RECLAIM_TICKS) && tracees.written_ahead.contains(pid) {
            reclaim_written_ahead(tracees, pid);
        }
    }
}

impl LifecycleHandler for DelayHandler {
    fn tick_interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn service(&self) -> Option<&'static str> {
        Some("written early")
    }

    fn on_exec(&mut self, _tracees: &mut Tracees, pid: u32) {
        self.forget(pid);
    }

    fn on_reaped(&mut self, _tracees: &mut Tracees, pid: u32) {
        self.forget(pid);
    }

    fn on_detached(&mut self, _tracees: &mut Tracees, pid: u32) {
        self.forget(pid);
    }

    fn on_tick(&mut self, tracees: &mut Tracees, now: u64) {
        // Weir can leave a process only when no bytes are written ahead of it.
        if tracees.is_leaving {
            return;
        }
        self.ticks = self.ticks.wrapping_add(1);
        for pid in tracees.pids() {
            // A deferred fork needs the same bytes in the parent as in the child.
            if !tracees.is_in_fork(pid) {
                self.check_process(tracees, pid, now);
            }
        }
    }
}

/// Counts the writes of a process to each file while needed: `begins` if a search has found a stream whose bytes may be written
/// already, `goes_on` while a search finds streams. Meanwhile the process stops at each system call.
fn update_write_counts(tracees: &mut Tracees, pid: u32, begins: bool, goes_on: bool) {
    let is_counted = tracees.written_ahead.counted_writes(pid).is_some();
    if begins && !is_counted {
        if tracees.hold(pid) {
            tracees.written_ahead.watch(pid, true);
        }
        tracees.release(pid);
    } else if !goes_on && is_counted {
        tracees.written_ahead.watch(pid, false);
    }
}

/// Stops the process and writes the pending bytes of its snapshots.
fn drain_process(tracees: &mut Tracees, pid: u32, tid: u32, snapshots: &mut HashMap<u64, PendingSnapshot>) {
    note_waits(tracees, pid, snapshots);
    if tracees.hold(pid) {
        let pending = join_pending(tracees.pending_when_held(pid, tid));
        forget_purged(tracees, pid, tid, &pending);
        let (activity, thread) = (thread_activity(tracees, pid), TargetThread::new(tid));
        for one in &pending {
            let snapshot =
                snapshots.get_mut(&one.stream).filter(|before| one.bytes.starts_with(&before.bytes));
            let Some(snapshot) = snapshot else { continue };
            let is_elsewhere =
                || activity != ThreadActivity::Blocked && !is_at_position(tracees, pid, tid, one);
            // The other stream may hold a part of a line that is not due, or that is not sure to be unwritten.
            let is_behind = pending.iter().any(|other| {
                one.follows(other)
                    && tracees.written_ahead.prefix_len(pid, other.stream, &other.bytes) < other.bytes.len()
            });
            if is_behind || is_handing_over(tracees, pid, one) || is_in_use(one) || is_elsewhere() {
                continue;
            }
            let most = match &activity {
                ThreadActivity::Writing => continue,
                // The walker has shown that the bytes are complete and not written.
                _ if one.found_by_search => one.early_len(),
                ThreadActivity::Blocked | ThreadActivity::InCalls => one.early_len(),
                ThreadActivity::Running(tids) if has_moved_on(tracees, pid, tids, snapshot, one) => {
                    snapshot.bytes.len().min(one.early_len())
                }
                ThreadActivity::Running(_) => {
                    snapshot.renew(tracees, pid, one);
                    continue;
                }
            };
            drain_stream(tracees, pid, &thread, one, most, activity == ThreadActivity::Blocked);
            snapshots.remove(&one.stream);
        }
    }
    tracees.release(pid);
}

/// Notes the time since which each thread has not run. It shortens the timeout of the call that the next stop interrupts.
fn note_waits(tracees: &mut Tracees, pid: u32, snapshots: &HashMap<u64, PendingSnapshot>) {
    for (tid, now) in threads_cpu_ns(pid) {
        let waits = |one: &&PendingSnapshot| one.cpu_ns.get(&tid) == Some(&now);
        let since_ns = snapshots.values().filter(waits).map(|one| one.cpu_read_ns).min();
        if let Some(thread) = tracees.threads.get_mut(&tid) {
            thread.waits_since_ns = since_ns;
        }
    }
}

/// Returns whether the next write of a stream goes to the file's present position. A runtime that has moved the position without
/// a flush may move it back before that write.
fn is_at_position(tracees: &Tracees, pid: u32, tid: u32, one: &PendingBytes) -> bool {
    let Some(position) = one.position else { return true };
    let is_seek = |call: &SyscallRegisters| call.number == libc::SYS_lseek;
    if tracees.thread_calls(pid).iter().any(|(_, call)| call.as_ref().is_some_and(is_seek)) {
        return false;
    }
    let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes) as u64;
    let is_file = status_of_descriptor(tid, one.fd).is_ok_and(|file| file.is_file());
    fdinfo(tid, one.fd)
        .is_some_and(|about| !is_file || about.appends() || about.position == position.wrapping_add(ahead))
}

impl PendingSnapshot {
    /// Returns the CPU time since the snapshot that shows that a running thread has moved on. `registers` is the hash of its registers
    /// now, `locked` the state of the stream's lock.
    fn progress_ns(&self, tid: u32, registers: Option<u64>, locked: Option<bool>) -> u64 {
        let is_elsewhere = self.registers.get(&tid).is_none_or(|former| registers != Some(*former));
        let least = if is_elsewhere && locked != Some(true) { MOVED_ON_NS } else { MOVED_ON_UNSEEN_NS };
        self.error_ns + least
    }

    /// Replaces all fields but the times. The process is stopped, so the threads' CPU times are exact. A thread that has not gone
    /// on keeps its CPU time, unless the process has written since.
    fn renew(&mut self, tracees: &Tracees, pid: u32, now: &PendingBytes) {
        let write_count = tracees.write_count(pid);
        let is_same = self.write_count == write_count && self.first_len == first_len(now);
        let registers: HashMap<u32, u64> =
            tracees.live_threads(pid).filter_map(|tid| Some((tid, digest(tid)?))).collect();
        let kept = |tid: u32| {
            let stays =
                is_same && self.registers.get(&tid).is_some_and(|former| registers.get(&tid) == Some(former));
            self.cpu_ns.get(&tid).copied().filter(|_| stays)
        };
        let cpu_ns =
            threads_cpu_ns(pid).into_iter().map(|(tid, cpu)| (tid, kept(tid).unwrap_or(cpu))).collect();
        (self.write_count, self.cpu_ns, self.error_ns, self.registers) = (write_count, cpu_ns, 0, registers);
        (self.bytes, self.first_len) = (now.bytes.clone(), first_len(now));
    }
}

/// Returns how many bytes are in the inner of two joined streams.
fn first_len(one: &PendingBytes) -> usize {
    one.joined.as_ref().map_or(0, JoinedStreams::first_len)
}

/// Returns whether the snapshot's bytes are complete in the stream and not yet written: see the module.
fn has_moved_on(
    tracees: &Tracees,
    pid: u32,
    running: &[u32],
    before: &PendingSnapshot,
    now: &PendingBytes,
) -> bool {
    // A thread that has handed bytes over since may still have them in the outer of two joined streams.
    let has_handed_over = before.first_len != first_len(now);
    if has_handed_over || before.write_count.is_none() || before.write_count != tracees.write_count(pid) {
        return false;
    }
    let has_run = |tid: &u32| {
        let then = before.cpu_ns.get(tid).copied().unwrap_or(u64::MAX / 2);
        let least = before.progress_ns(*tid, digest(*tid), now.locked);
        cpu_ns(pid, *tid).is_some_and(|now| now >= then + least)
    };
    now.bytes.len() > before.bytes.len() || running.iter().all(has_run)
}

fn threads_cpu_ns(pid: u32) -> HashMap<u32, u64> {
    proc::threads(pid).into_iter().filter_map(|tid| Some((tid, cpu_ns(pid, tid)?))).collect()
}

/// Reads a thread's CPU time, which is exact unless the thread is running.
fn cpu_ns(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside other load, a thread was stopped again and again right after its write, and used 100 µs of CPU time by the stops alone:
    /// the bytes that it had just written were written once more.
    #[test]
    fn a_thread_that_has_executed_nothing_has_not_moved_on() {
        let snapshot = |error_ns, registers| PendingSnapshot {
            bytes: Vec::new(),
            first_len: 0,
            write_count: Some(1),
            cpu_ns: HashMap::new(),
            error_ns,
            registers,
            taken_at_ns: 0,
            cpu_read_ns: 0,
        };
        let stopped = snapshot(0, HashMap::from([(7, 1)]));
        let progress = |registers, locked| stopped.progress_ns(7, registers, locked);
        assert_eq!(progress(Some(2), Some(false)), MOVED_ON_NS, "it is at another instruction");
        assert_eq!(progress(Some(2), None), MOVED_ON_NS, "a stream without a lock");
        assert_eq!(progress(Some(1), Some(false)), MOVED_ON_UNSEEN_NS);
        assert_eq!(progress(Some(2), Some(true)), MOVED_ON_UNSEEN_NS, "a thread is inside the stream");
        let running = snapshot(SCHEDSTAT_ERROR_NS, HashMap::new());
        assert_eq!(running.progress_ns(7, Some(1), Some(false)), SCHEDSTAT_ERROR_NS + MOVED_ON_NS);
    }
}
