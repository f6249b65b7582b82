//! Observes the exit of a Go program through one of its threads.
//!
//! The Go runtime signals its threads all the time, and each signal stops a traced thread. The exception is sysmon, the first
//! thread that the runtime creates: it runs no code of the program and gets no signals. When any thread ends the program,
//! sysmon has an exit stop, and all memory is mapped until it continues.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_model::trace::{Buffer, SnapshotMoment};
use weir_sys::proc::{self, ThreadState};
use weir_sys::{ptrace, syscalls};
use weir_walkers::is_go;

/// How long to wait for the first thread of a running program.
const THREAD_TIMEOUT: Duration = Duration::from_millis(500);

/// The runtime creates sysmon within a fraction of a millisecond, and a short program exits soon after, so polling is fast for
/// this long.
const FAST_POLL_TIME: Duration = Duration::from_millis(5);
const FAST_POLL: Duration = Duration::from_micros(50);
const SLOW_POLL: Duration = Duration::from_millis(1);

/// How long to wait for the other threads at the exit: a busy machine needs most of it. The process is ending meanwhile.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// A thread with more signals than this is not sysmon, and is detached.
const MAX_SIGNALS: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct GoExitWatch {
    pid: u32,
    /// Signals received so far.
    signals: u32,
}

/// The threads that are traced for the exit of their process.
#[derive(Debug, Default)]
pub(super) struct GoExitWatches {
    /// Watch of each thread, by TID.
    threads: HashMap<u32, GoExitWatch>,
    /// Tracees that have executed a Go program and created no thread yet.
    without_thread: HashSet<u32>,
    /// Processes that are not traced and whose first thread is polled for, and since when.
    awaited: Vec<(u32, Instant)>,
}

impl GoExitWatches {
    /// Handles the exec stop of a tracee. Returns whether to trace it until it creates a thread.
    pub fn on_exec(&mut self, pid: u32, exe: &Path) -> bool {
        self.without_thread.remove(&pid);
        is_go(exe) && self.without_thread.insert(pid)
    }

    /// Starts to poll for the first thread of a running process, if its image is a Go program.
    pub fn await_thread(&mut self, pid: u32, exe: &Path) {
        if is_go(exe) {
            self.awaited.push((pid, Instant::now()));
        }
    }

    /// Handles a thread that a tracee has created. Returns true if it is the first one: the caller then detaches from
    /// the tracee.
    pub fn first_thread(&mut self, pid: u32, thread: u32) -> bool {
        let is_first = self.without_thread.remove(&pid);
        if is_first {
            self.threads.insert(thread, GoExitWatch { pid, signals: 0 });
        }
        is_first
    }

    /// Returns whether the exit of a process is watched already. Attaching to its thread again could wait for ever:
    /// execve(2) holds the lock that attaching takes until the other threads have exited, and a tracee among them exits only
    /// when its tracer, which would be waiting, continues it.
    pub fn is_watched(&self, pid: u32) -> bool {
        self.without_thread.contains(&pid) || self.threads.values().any(|watch| watch.pid == pid)
    }

    /// Attaches to the awaited threads that exist by now. Returns the processes that have ended before, or have another tracer.
    pub fn seize(&mut self) -> Vec<u32> {
        let (threads, mut missed) = (&mut self.threads, Vec::new());
        self.awaited.retain(|&(pid, since)| {
            let first = proc::threads(pid).into_iter().filter(|tid| *tid != pid).min();
            let is_awaited = first.is_none() && since.elapsed() < THREAD_TIMEOUT && proc::exists(pid);
            match first {
                Some(first) if threads.contains_key(&first) => {}
                Some(first) if ptrace::seize_for_exit(first).is_ok() => {
                    threads.insert(first, GoExitWatch { pid, signals: 0 });
                }
                _ if is_awaited => {}
                _ => missed.push(pid),
            }
            is_awaited
        });
        missed
    }

    /// Returns when to call [`Self::seize`] again; None if no thread is awaited.
    pub fn poll_interval(&self) -> Option<Duration> {
        let fast = self.awaited.iter().any(|(_, since)| since.elapsed() < FAST_POLL_TIME);
        (!self.awaited.is_empty()).then_some(if fast { FAST_POLL } else { SLOW_POLL })
    }

    /// Returns the process whose exit the thread shows; None for all other threads.
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        self.threads.get(&tid).map(|watch| watch.pid)
    }

    /// Returns whether this is another thread of a watched process, which ptrace(2) attached to automatically.
    pub fn is_other_thread(&self, tid: u32) -> bool {
        let is_watched = |process: u32| process != tid && self.threads.values().any(|one| one.pid == process);
        let is_watch = self.threads.is_empty() || self.threads.contains_key(&tid);
        !is_watch && proc::process_of(tid).is_some_and(is_watched)
    }

    /// Counts a signal. Returns false if the thread has got too many and must be detached.
    pub fn count_signal(&mut self, tid: u32) -> bool {
        let Some(watch) = self.threads.get_mut(&tid) else { return true };
        watch.signals += 1;
        let keep = watch.signals <= MAX_SIGNALS;
        if !keep {
            self.threads.remove(&tid);
        }
        keep
    }

    /// Forgets a process or thread that has exited.
    pub fn remove(&mut self, id: u32) {
        self.threads.remove(&id);
        self.without_thread.remove(&id);
    }
}

/// Returns the moment of the exit stop: another thread may be in execve(2), which ends all other threads.
pub(super) fn moment(pid: u32, status: u64) -> SnapshotMoment {
    match () {
        () if ends_in_execve(pid) => SnapshotMoment::Exec,
        () if status & 0x7f == 0 => SnapshotMoment::Exit,
        () => SnapshotMoment::Signal,
    }
}

/// Returns whether a thread of an ending process waits in execve(2). It still runs for a moment after it has ended the others.
fn ends_in_execve(pid: u32) -> bool {
    let end = Instant::now() + EXIT_TIMEOUT;
    loop {
        let is_running = proc::is_running(pid);
        if has_thread_in_execve(pid) {
            return true;
        }
        if !is_running || Instant::now() > end {
            return false;
        }
        std::thread::sleep(FAST_POLL);
    }
}

/// Returns whether a thread of the process waits in execve(2).
pub(super) fn has_thread_in_execve(pid: u32) -> bool {
    let executes = |tid: &u32| match proc::thread_state(*tid) {
        ThreadState::Waiting { number, .. } => syscalls::executes(number),
        _ => false,
    };
    proc::threads(pid).iter().any(executes)
}

/// Waits until all threads of a process but `tid`, which is in its exit stop, have exited. Returns whether they have.
pub(super) fn await_other_threads(pid: u32, tid: u32) -> bool {
    let end = Instant::now() + EXIT_TIMEOUT;
    // The first thread stays as a zombie until the last one has exited.
    while proc::threads(pid).into_iter().any(|other| other != tid && !proc::is_dead(other)) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(FAST_POLL);
    }
    true
}

/// Removes from a snapshot at the exit the memory `written`: what the threads that ended in a write(2) have written. Also removes the
/// bytes of each buffer that may have been written, and returns whether there are any: the buffers in `flushing`, and full ones,
/// because a bufio.Writer is full only while a thread writes it. The buffers stay: an earlier snapshot shows less than this one.
pub(super) fn remove_written(buffers: &mut [Buffer], written: &Range<u64>, flushing: &[u64]) -> bool {
    let mut is_unknown = false;
    for buffer in buffers.iter_mut().filter(|buffer| buffer.pending_bytes > 0) {
        let pending = buffer.address..buffer.address + buffer.pending_bytes;
        let is_flushed = buffer.pending_bytes >= buffer.buffer_bytes || flushing.contains(&buffer.address);
        let bytes = match pending.contains(&written.start) {
            true => (written.end - buffer.address).min(buffer.pending_bytes),
            false if is_flushed => {
                is_unknown = true;
                buffer.pending_bytes
            }
            false => 0,
        };
        buffer.pending_bytes -= bytes;
        buffer.pending.drain(..buffer.pending.len().min(bytes as usize));
    }
    is_unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_gets_many_signals_is_detached() {
        let mut watches = GoExitWatches::default();
        watches.without_thread.insert(7);
        assert!(!watches.first_thread(8, 80) && watches.first_thread(7, 70) && !watches.first_thread(7, 71));
        assert_eq!((watches.process_of(70), watches.process_of(71)), (Some(7), None));
        watches.without_thread.insert(9);
        assert!(watches.is_watched(7) && watches.is_watched(9) && !watches.is_watched(70));
        let kept = (0..2 * MAX_SIGNALS).take_while(|_| watches.count_signal(70)).count();
        assert_eq!((kept as u32, watches.process_of(70)), (MAX_SIGNALS, None));
    }

    #[test]
    fn a_first_thread_is_polled_for_fast_at_first() {
        let mut watches = GoExitWatches::default();
        assert_eq!(watches.poll_interval(), None);
        let long_since = Instant::now().checked_sub(FAST_POLL_TIME).expect("the machine is up that long");
        watches.awaited.push((7, long_since));
        assert_eq!(watches.poll_interval(), Some(SLOW_POLL));
        watches.awaited.push((8, Instant::now() + FAST_POLL_TIME));
        assert_eq!(watches.poll_interval(), Some(FAST_POLL));
    }

    #[test]
    fn only_what_a_dead_thread_has_written_is_removed() {
        let buffer = |address, pending_bytes: u64| Buffer {
            buffer_bytes: 100,
            pending_bytes,
            pending: vec![b'x'; pending_bytes as usize],
            found_by_search: true,
            ..Buffer::empty(weir_model::trace::RuntimeId::GO, address, 1)
        };
        let after_flushing = |written: Range<u64>, flushing: &[u64]| {
            let mut buffers = vec![buffer(1000, 100), buffer(2000, 50), buffer(3000, 0)];
            let is_unknown = remove_written(&mut buffers, &written, flushing);
            let left = buffers.iter().map(|one| (one.address, one.pending_bytes, one.pending.len() as u64));
            (is_unknown, left.collect::<Vec<_>>())
        };
        let after = |written| after_flushing(written, &[]);
        let (full, half, empty) = ((1000, 100, 100), (2000, 50, 50), (3000, 0, 0));
        let (no_full, no_half) = ((1000, 0, 0), (2000, 0, 0));
        assert_eq!(after(0..0), (true, vec![no_full, half, empty]));
        assert_eq!(after(1000..1000), (false, vec![full, half, empty]), "a call that wrote nothing");
        assert_eq!(after(1000..1040), (false, vec![(1000, 60, 60), half, empty]));
        assert_eq!(after(1040..1100), (false, vec![(1000, 0, 0), half, empty]), "a second call");
        assert_eq!(after(2000..2050), (true, vec![no_full, no_half, empty]));
        assert_eq!(after_flushing(1000..1000, &[2000]), (true, vec![full, no_half, empty]));
        assert_eq!(after_flushing(2000..2010, &[2000, 3000]), (true, vec![no_full, (2000, 40, 40), empty]));
    }
}
