//! Reads the counters of all processes in threads that the survey can abandon.
//!
//! A process that never leaves execve(2) holds a lock (exec_update_lock) that reads of its /proc/PID/stat and /proc/PID/io
//! wait for, also those of other users. The thread then sleeps until the process continues, or weir ends. After two checks another
//! thread reads the rest, so each such process delays a survey by 40 ms; the last wait is for all of them together.

use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use weir_sys::clock::thread_cpu_ns;
use weir_sys::hang_guard::SURVEY_THREAD;
use weir_sys::process_status;

use crate::survey::counters::{CounterJob, CounterRead};
use crate::survey::proc_files::ProcFiles;

/// The interval of the checks of threads that have not ended. A read takes microseconds, so a thread that sleeps in the same
/// read at two checks is abandoned, and another one reads the rest.
const LOOK: Duration = Duration::from_millis(20);
/// The number of checks at which a thread sleeps in the same read, 1 s, after which the process counts as unanswered. It is read
/// again as soon as the thread returns, so a process that is only slow is left out for a short time.
const MAX_LOOKS: u32 = 50;
/// The most threads that sleep in reads. Each takes a stack of [`STACK_BYTES`].
const MAX_THREADS: usize = 512;
/// The stack of a thread in bytes: several times the need of a read.
const STACK_BYTES: usize = 256 << 10;

/// The threads that still sleep in a read, by the PID of the process that does not answer.
#[derive(Debug, Default)]
pub(super) struct CounterReader {
    asleep: BTreeMap<u32, Arc<ReaderThread>>,
    cpu_ns: u64,
    /// In the last read an attempt to start a thread failed.
    lacks_threads: bool,
}

/// A thread that reads the counters of one process after another.
#[derive(Debug, Default)]
struct ReaderThread {
    /// The number of the thread, once it runs.
    tid: AtomicU32,
    /// The PID of the process that is read now; 0 for none.
    pid: AtomicU32,
    has_ended: AtomicBool,
    /// The CPU time of the thread when it has ended.
    cpu_ns: AtomicU64,
}

/// The work of one sample.
struct Batch {
    jobs: Vec<CounterJob>,
    files: ProcFiles,
    deadline: Instant,
    next: AtomicUsize,
    results: Mutex<BTreeMap<u32, CounterRead>>,
    owner: Thread,
}

/// A thread of this sample, and the results of the last checks of it.
struct WatchedThread {
    thread: Arc<ReaderThread>,
    pid: u32,
    looks: u32,
}

impl CounterReader {
    /// Returns the processes that still do not answer. The caller must not make jobs for them.
    pub fn unanswered(&mut self) -> Vec<u32> {
        self.asleep.retain(|pid, thread| thread.pid.load(Relaxed) == *pid);
        self.asleep.keys().copied().collect()
    }

    /// Returns the CPU time that the threads have used.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Returns whether the last read lacked a thread, because the machine or a limit permits no other one.
    pub fn lacks_threads(&self) -> bool {
        self.lacks_threads
    }

    /// Makes the jobs until the deadline. Returns the results by PID; there are none for processes that do not answer, and for
    /// those that were not reached.
    pub fn read(
        &mut self,
        jobs: Vec<CounterJob>,
        files: &ProcFiles,
        deadline: Instant,
    ) -> BTreeMap<u32, CounterRead> {
        let (files, owner) = (files.clone(), std::thread::current());
        let (next, results) = (AtomicUsize::new(0), Mutex::default());
        let batch = Arc::new(Batch { jobs, files, deadline, next, results, owner });
        let mut threads: Vec<WatchedThread> = Vec::new();
        self.lacks_threads = false;
        loop {
            threads.retain(|one| !self.reap(one));
            let all_sleep = threads.iter().all(|one| one.looks > 0);
            let is_over = !batch.has_jobs() || self.asleep.len() + threads.len() >= MAX_THREADS;
            let needs_thread = all_sleep && !is_over;
            let started = if needs_thread { ReaderThread::start(&batch) } else { None };
            self.lacks_threads |= needs_thread && started.is_none();
            if let Some(thread) = started {
                threads.push(WatchedThread { thread, pid: 0, looks: 0 });
            } else if threads.iter().all(|one| one.looks >= MAX_LOOKS) {
                break;
            }
            std::thread::park_timeout(LOOK);
            threads.iter_mut().for_each(WatchedThread::look);
        }
        self.asleep.extend(threads.into_iter().map(|one| (one.pid, one.thread)));
        std::mem::take(&mut *batch.results.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts the CPU time of a thread that has ended. Returns false for one that has not.
    fn reap(&mut self, one: &WatchedThread) -> bool {
        let has_ended = one.thread.has_ended.load(Acquire);
        self.cpu_ns += if has_ended { one.thread.cpu_ns.load(Relaxed) } else { 0 };
        has_ended
    }
}

impl WatchedThread {
    /// Counts the checks at which the thread sleeps in the read of the same process. A thread that waits for a processor does not sleep.
    fn look(&mut self) {
        let (pid, tid) = (self.thread.pid.load(Relaxed), self.thread.tid.load(Relaxed));
        let is_same = pid != 0 && pid == self.pid;
        let sleeps = is_same && process_status::read(tid).is_some_and(|status| status.state != b'R');
        self.looks = if sleeps { self.looks + 1 } else { 0 };
        self.pid = pid;
    }
}

impl ReaderThread {
    /// Starts a thread that makes jobs of the batch; None if the machine permits no other thread.
    fn start(batch: &Arc<Batch>) -> Option<Arc<ReaderThread>> {
        let thread = Arc::new(ReaderThread::default());
        let (own, batch) = (Arc::clone(&thread), Arc::clone(batch));
        let builder = std::thread::Builder::new().name(SURVEY_THREAD.into()).stack_size(STACK_BYTES);
        builder.spawn(move || own.work(&batch)).ok().map(|_| thread)
    }

    fn work(&self, batch: &Batch) {
        self.tid.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Relaxed);
        while let Some(job) = batch.next_job() {
            self.pid.store(job.pid, Relaxed);
            let result = job.read(&batch.files);
            batch.results.lock().unwrap_or_else(PoisonError::into_inner).insert(job.pid, result);
            self.pid.store(0, Relaxed);
        }
        self.cpu_ns.store(thread_cpu_ns(), Relaxed);
        self.has_ended.store(true, Release);
        batch.owner.unpark();
    }
}

impl Batch {
    fn has_jobs(&self) -> bool {
        self.next.load(Relaxed) < self.jobs.len() && Instant::now() < self.deadline
    }

    fn next_job(&self) -> Option<&CounterJob> {
        if !self.has_jobs() {
            return None;
        }
        self.jobs.get(self.next.fetch_add(1, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(pid: u32) -> CounterJob {
        CounterJob { pid, known: None }
    }

    #[test]
    fn counters_are_read_until_the_deadline() {
        let (own, files) = (std::process::id(), ProcFiles::new());
        let mut reader = CounterReader::default();
        let read =
            reader.read(vec![job(own), job(u32::MAX / 2)], &files, Instant::now() + Duration::from_secs(60));
        assert!(matches!(read.get(&own), Some(CounterRead::New(..))), "{read:?}");
        assert!(matches!(read.get(&(u32::MAX / 2)), Some(CounterRead::Gone)), "{read:?}");
        assert!(reader.cpu_ns() > 0 && reader.unanswered().is_empty());
        assert!(reader.read(vec![job(own)], &files, Instant::now()).is_empty());
    }

    #[test]
    fn a_process_that_answers_again_is_read_again() {
        let thread = Arc::new(ReaderThread::default());
        thread.pid.store(7, Relaxed);
        let mut reader = CounterReader { asleep: [(7, Arc::clone(&thread))].into(), ..Default::default() };
        assert_eq!(reader.unanswered(), [7]);
        thread.pid.store(0, Relaxed);
        assert!(reader.unanswered().is_empty());
    }
}
