//! The end of a Go program is seen by one of its threads, and only by that one. Go sends its threads signals all the time,
//! each of which would stop a thread that is traced: but not the first one that it starts, which watches over the others
//! and runs no code of the program. When the program ends, by whichever thread, that one stops on its way out, and all of
//! the memory is there until it goes on.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use weir_model::trace::SnapshotMoment;
use weir_sys::proc::{self, ThreadState};
use weir_sys::ptrace;
use weir_walkers::is_go;

/// How long the first thread is awaited of a program that runs already.
const BEGINNING: Duration = Duration::from_millis(500);

/// It starts that one within a fraction of a millisecond, and may end in the next: so long it is looked for this often.
const HASTE: Duration = Duration::from_millis(5);
const OFTEN: Duration = Duration::from_micros(50);
/// And then so often.
const LATER: Duration = Duration::from_millis(1);

/// A thread that gets more signals than this is another than was thought, and let go.
const SIGNALS_MOST: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct GoExitWatch {
    pid: u32,
    signals: u32,
}

/// The threads that are traced for this, and those that will be.
#[derive(Debug, Default)]
pub(super) struct GoExitWatches {
    threads: HashMap<u32, GoExitWatch>,
    /// Processes that are traced from their execve(2) until they start their first thread.
    founding: HashSet<u32>,
    /// Processes that are not traced, and since when their first thread is sought.
    sought: Vec<(u32, Instant)>,
}

impl GoExitWatches {
    /// A process that is traced stands at its beginning. Whether it is to be traced on, until it starts a thread.
    pub fn found(&mut self, pid: u32, exe: &Path) -> bool {
        self.founding.remove(&pid);
        is_go(exe) && self.founding.insert(pid)
    }

    /// A process that runs has executed this.
    pub fn seek(&mut self, pid: u32, exe: &Path) {
        if is_go(exe) {
            self.sought.push((pid, Instant::now()));
        }
    }

    /// A traced process has started a thread. True: that is traced from here on, and the process not any more.
    pub fn founds(&mut self, pid: u32, thread: u32) -> bool {
        let is = self.founding.remove(&pid);
        if is {
            self.threads.insert(thread, GoExitWatch { pid, signals: 0 });
        }
        is
    }

    /// Seizes those that have been started by now.
    pub fn seize(&mut self) {
        let threads = &mut self.threads;
        self.sought.retain(|&(pid, since)| {
            let first = proc::threads(pid).into_iter().filter(|tid| *tid != pid).min();
            let Some(first) = first else { return since.elapsed() < BEGINNING && proc::exists(pid) };
            if ptrace::seize_for_exit(first).is_ok() {
                threads.insert(first, GoExitWatch { pid, signals: 0 });
            }
            false
        });
    }

    /// How long to wait for something else; None: as long as one likes.
    pub fn patience(&self) -> Option<Duration> {
        let hastes = self.sought.iter().any(|(_, since)| since.elapsed() < HASTE);
        (!self.sought.is_empty()).then_some(if hastes { OFTEN } else { LATER })
    }

    /// Whose end this thread tells of.
    pub fn of(&self, tid: u32) -> Option<u32> {
        self.threads.get(&tid).map(|one| one.pid)
    }

    /// Whether this is a thread that such a one has started before it was known for that: it is not of interest.
    pub fn has_strayed(&self, tid: u32) -> bool {
        let other = |process: u32| process != tid && self.threads.values().any(|one| one.pid == process);
        let known = self.threads.is_empty() || self.threads.contains_key(&tid);
        !known && proc::process_of(tid).is_some_and(other)
    }

    /// It is stopped by a signal. False: it is to be let go for good.
    pub fn bears(&mut self, tid: u32) -> bool {
        let Some(one) = self.threads.get_mut(&tid) else { return true };
        one.signals += 1;
        let bears = one.signals <= SIGNALS_MOST;
        if !bears {
            self.threads.remove(&tid);
        }
        bears
    }

    /// A process or a thread is gone.
    pub fn remove(&mut self, id: u32) {
        self.threads.remove(&id);
        self.founding.remove(&id);
    }
}

/// What a thread's end means to its process: another thread may be about to execute a program.
pub(super) fn moment(pid: u32, status: u64) -> SnapshotMoment {
    let executes = |tid: &u32| match proc::thread_state(*tid) {
        ThreadState::Waiting { number, .. } => number == libc::SYS_execve || number == libc::SYS_execveat,
        _ => false,
    };
    match () {
        () if proc::threads(pid).iter().any(executes) => SnapshotMoment::Exec,
        () if status & 0x7f == 0 => SnapshotMoment::Exit,
        () => SnapshotMoment::Signal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_gets_many_signals_is_let_go() {
        let mut lookouts = GoExitWatches::default();
        lookouts.founding.insert(7);
        assert!(!lookouts.founds(8, 80) && lookouts.founds(7, 70) && !lookouts.founds(7, 71));
        assert_eq!((lookouts.of(70), lookouts.of(71)), (Some(7), None));
        let borne = (0..2 * SIGNALS_MOST).take_while(|_| lookouts.bears(70)).count();
        assert_eq!((borne as u32, lookouts.of(70)), (SIGNALS_MOST, None));
    }

    #[test]
    fn a_first_thread_is_sought_in_haste_for_a_moment() {
        let mut lookouts = GoExitWatches::default();
        assert_eq!(lookouts.patience(), None);
        let long_since = Instant::now().checked_sub(HASTE).expect("the machine is up that long");
        lookouts.sought.push((7, long_since));
        assert_eq!(lookouts.patience(), Some(LATER));
        lookouts.sought.push((8, Instant::now() + HASTE));
        assert_eq!(lookouts.patience(), Some(OFTEN));
    }
}
