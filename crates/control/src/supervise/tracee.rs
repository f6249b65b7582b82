//! The state of one traced thread and of one traced process.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_sys::clock::now_ns;
use weir_sys::ptrace::repeat::RepeatedCall;
use weir_walkers::{UnconvertedBytes, Walker, walkers};

#[cfg(target_arch = "x86_64")]
use super::final_state::ResumedThread;
use super::inherited_bytes::InheritedBytes;
use crate::delay::skip::SkippedCall;
use crate::rescue::last_write::LastWrite;

/// The ages of an image, in milliseconds, at which its walkers are searched again. Most images have loaded their libraries
/// and set up an interpreter at the first ages; a loader that gets no processor can need the last ones.
pub(super) const SEARCH_AGES_MS: [u64; 11] = [5, 15, 30, 60, 100, 200, 400, 700, 1000, 2000, 5000];

/// The age of an image, in nanoseconds, from which on its loader counts as finished.
const LOADED_NS: u64 = 2_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TraceeState {
    #[default]
    Running,
    /// In a ptrace stop that is being handled or is queued.
    Stopped,
    /// Stopped by job control, and listening (PTRACE_LISTEN).
    GroupStopped,
}

#[derive(Debug, Default)]
pub(crate) struct TracedThread {
    /// The process to which the thread belongs.
    pub pid: u32,
    pub state: TraceeState,
    /// PTRACE_INTERRUPT was sent, and its stop has not come.
    pub stop_requested: bool,
    pub repeated_call: RepeatedCall,
    /// The thread has not run since this time (CLOCK_MONOTONIC); None if that is not known. A stop takes the value.
    pub waits_since_ns: Option<u64>,
    /// A stop has ended one of its receives with EINTR, so its sockets may have timeouts.
    pub times_receives: bool,
    /// The thread has reached its exit stop.
    pub exiting: bool,
    /// It has reached it because its process was killed or ends, and not by its own exit(2).
    pub ended_with_process: bool,
    /// The partly skipped call that the thread is in.
    pub skipped_call: Option<SkippedCall>,
    /// The registers with which the thread was resumed last, if its process has streams.
    #[cfg(target_arch = "x86_64")]
    pub resumed: Option<ResumedThread>,
}

pub(crate) struct TracedProcess {
    pub threads: BTreeSet<u32>,
    /// The process that owns the memory: another one after vfork(2) or clone(2) with CLONE_VM.
    pub memory_owner: u32,
    /// The process still has weir's image, because the command is not executed yet. Handlers do not see it.
    pub before_exec: bool,
    /// The program or a library of it imports ptrace(2). Its threads stop at system calls, and those of its children until their execve(2).
    pub may_trace: bool,
    /// The image's libraries have been searched for ptrace(2). Its first fork does so.
    pub knows_libraries: bool,
    /// Another program wants to trace the process: weir detaches from each thread at its next stop.
    pub detaching: bool,
    /// A fork has made the process, and it has executed no other image since.
    pub(super) forked: bool,
    /// The same number for all processes that forks have made of one image.
    pub(super) family: u64,
    /// The bytes that were pending in the parent's streams at the fork.
    pub(super) inherited_bytes: Vec<InheritedBytes>,
    /// The bytes that were pending at forks of children, which have copies of them.
    pub(super) given_bytes: Vec<InheritedBytes>,
    /// As [`Tracees::write_count`], at the last fork at which bytes were pending.
    pub(super) writes_at_fork: Option<u64>,
    /// As `inherited_bytes`, of the bytes that the program still converts.
    pub(super) inherited_unconverted: Vec<UnconvertedBytes>,
    /// The handlers have handled the exit. A thread that becomes known later does not repeat it.
    pub exit_reported: bool,
    /// The parent that is suspended in vfork(2) until this process executes or exits.
    pub vfork_parent: Option<u32>,
    /// The time at which weir saw the first stop of the image (CLOCK_MONOTONIC).
    pub(super) image_started_ns: u64,
    /// The number of writes that were skipped completely or partly.
    pub skipped_writes: u64,
    /// The number of writes that the process's own threads have made for weir. `/proc/PID/io` counts them too.
    pub foreign_writes: u64,
    pub(super) walkers: Vec<Box<dyn Walker>>,
    /// The last read of the pending bytes left out streams, because there are more bytes than weir reads.
    pub partly_read: bool,
    /// One more than the number of [`SEARCH_AGES_MS`] that had passed at the last walker search; 0 before the first search.
    pub(super) search_stage: usize,
    /// The age of the image at the last walker search.
    pub(super) search_age_ns: u64,
    /// The last writes of threads in their exit stop.
    pub last_writes: Vec<LastWrite>,
    /// The stack pointers and callee-saved registers of threads in their exit stop, as in `ptrace::registers::stack`.
    pub final_stacks: Vec<(u64, [u64; 6])>,
    /// The threads that were killed, in their exit stop.
    #[cfg(target_arch = "x86_64")]
    pub killed_threads: Vec<crate::rescue::killed_thread::KilledThread>,
    /// The registers of all threads that ended with the process, in their exit stop.
    #[cfg(target_arch = "x86_64")]
    pub final_registers: Vec<weir_walkers::ThreadRegisters>,
}

/// Returns the number of a family of its own.
fn new_family() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl TracedProcess {
    pub fn new(memory_owner: u32) -> TracedProcess {
        TracedProcess {
            threads: BTreeSet::new(),
            memory_owner,
            before_exec: false,
            may_trace: false,
            knows_libraries: false,
            detaching: false,
            forked: false,
            family: new_family(),
            inherited_bytes: Vec::new(),
            given_bytes: Vec::new(),
            writes_at_fork: None,
            inherited_unconverted: Vec::new(),
            exit_reported: false,
            vfork_parent: None,
            image_started_ns: now_ns(),
            skipped_writes: 0,
            foreign_writes: 0,
            walkers: Vec::new(),
            partly_read: false,
            search_stage: 0,
            search_age_ns: 0,
            last_writes: Vec::new(),
            final_stacks: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            killed_threads: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            final_registers: Vec::new(),
        }
    }

    /// Forgets everything about the former image, after an execve(2). The counts of writes are those of the process.
    pub fn reset_image(&mut self) {
        (self.walkers, self.search_stage, self.search_age_ns) = (Vec::new(), 0, 0);
        self.image_started_ns = now_ns();
        (self.forked, self.may_trace, self.knows_libraries, self.partly_read) = (false, false, false, false);
        self.family = new_family();
        self.inherited_bytes.clear();
        self.given_bytes.clear();
        self.last_writes.clear();
        self.final_stacks.clear();
        #[cfg(target_arch = "x86_64")]
        {
            self.killed_threads.clear();
            self.final_registers.clear();
        }
    }

    /// Returns whether the last walker search found walkers and came after the loader had finished, judged by the image's age.
    pub(super) fn has_final_walkers(&self) -> bool {
        !self.walkers.is_empty() && self.search_age_ns >= LOADED_NS
    }

    /// Searches the walkers again if the image has reached the next of [`SEARCH_AGES_MS`]. An image without walkers is searched
    /// each time, until it has reached the last one.
    pub(super) fn update_walkers(&mut self, tid: u32) {
        let none_yet = self.walkers.is_empty() && self.search_stage <= SEARCH_AGES_MS.len();
        if self.current_stage() > self.search_stage || none_yet {
            let former = self.search_walkers(tid);
            for (walker, one) in
                self.walkers.iter().flat_map(|walker| former.iter().map(move |one| (walker, one)))
            {
                if let Some(searches) = one.searches().filter(|_| one.runtime() == walker.runtime()) {
                    walker.adopt_searches(searches);
                }
            }
        }
    }

    /// Searches the walkers through `tid`, a thread of the process or of a child with the same image. The new walkers get the
    /// objects that the former ones have found. Returns the former ones.
    pub(super) fn search_walkers(&mut self, tid: u32) -> Vec<Box<dyn Walker>> {
        self.search_age_ns = now_ns().saturating_sub(self.image_started_ns);
        self.search_stage = self.current_stage();
        let former = std::mem::replace(&mut self.walkers, walkers(tid));
        self.continue_searches(&former);
        former
    }

    /// Gives the walkers the objects that other walkers of the same image have found.
    pub(super) fn continue_searches(&self, others: &[Box<dyn Walker>]) {
        for walker in &self.walkers {
            let same = others.iter().filter(|other| other.runtime() == walker.runtime());
            walker.continue_search(same.flat_map(|other| other.found_objects()).collect());
        }
    }

    fn current_stage(&self) -> usize {
        let age_ms = now_ns().saturating_sub(self.image_started_ns) / 1_000_000;
        1 + SEARCH_AGES_MS.iter().filter(|search| age_ms >= **search).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tracees;
    use super::*;

    /// New walkers know no streams, and would search all memory of the process while it is stopped.
    #[test]
    fn the_walkers_of_a_stopped_process_stay() {
        let pid = std::process::id();
        let mut tracees = Tracees::new(pid, None).expect("a timer");
        tracees.processes.insert(pid, TracedProcess::new(pid));
        let stage = |tracees: &Tracees| tracees.processes[&pid].search_stage;
        tracees.pending_and_ambiguous_when_held(pid, pid);
        assert_eq!(stage(&tracees), 0);
        tracees.pending_and_ambiguous(pid, pid);
        assert!(stage(&tracees) > 0, "it searches while the process runs");
    }
}
