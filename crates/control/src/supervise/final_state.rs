//! The state in which a thread has ended with its process: what it wrote last, its stack and its registers.
//!
//! It is read in the thread's exit stop. A thread that is killed at the moment at which it is resumed leaves its exit stop at once.
//! It executes nothing after the resume, so it has ended with the registers that it was resumed with.

#[cfg(target_arch = "x86_64")]
use weir_sys::clock::now_ns;
#[cfg(target_arch = "x86_64")]
use weir_sys::ptrace::held_exit::ends_alone;
use weir_sys::ptrace::{interrupted_write, registers};
#[cfg(target_arch = "x86_64")]
use weir_walkers::ThreadRegisters;

use super::tracee::TracedProcess;
use crate::delay::skip::SkippedCall;
#[cfg(target_arch = "x86_64")]
use crate::rescue::killed_thread::{KilledThread, StopRegisters};
use crate::rescue::last_write::{self, LastWrite};

/// The longest time between a resume and the end of a thread that was killed at the resume. It may wait for a processor.
#[cfg(target_arch = "x86_64")]
const ENDS_WITHIN_NS: u64 = 50_000_000;

/// The registers with which a thread was resumed.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub(crate) struct ResumedThread {
    registers: StopRegisters,
    resumed_ns: u64,
}

#[cfg(target_arch = "x86_64")]
impl ResumedThread {
    /// Reads the registers of a thread that is resumed next; None if it is gone.
    pub fn read(tid: u32) -> Option<ResumedThread> {
        Some(ResumedThread { registers: StopRegisters::read(tid)?, resumed_ns: now_ns() })
    }

    #[cfg(test)]
    pub fn older_by(self, ns: u64) -> ResumedThread {
        ResumedThread { resumed_ns: self.resumed_ns - ns, ..self }
    }
}

/// The state in which a thread has ended.
pub(super) struct FinalState {
    last_writes: Vec<LastWrite>,
    stack: Option<(u64, [u64; 6])>,
    #[cfg(target_arch = "x86_64")]
    killed: Option<KilledThread>,
    #[cfg(target_arch = "x86_64")]
    registers: Option<ThreadRegisters>,
}

impl FinalState {
    /// Reads the state of a thread in its exit stop.
    pub fn in_exit_stop(tid: u32, skipped_call: Option<&SkippedCall>) -> FinalState {
        let last_write = last_write::read(tid, skipped_call);
        #[cfg(target_arch = "x86_64")]
        let killed =
            KilledThread::read(tid).and_then(|one| after_return(one, skipped_call, last_write.as_ref()));
        FinalState {
            #[cfg(target_arch = "x86_64")]
            registers: final_registers(tid, killed.as_ref()),
            #[cfg(target_arch = "x86_64")]
            killed,
            stack: registers::stack(tid),
            last_writes: last_write.into_iter().chain(interrupted_write::of_thread(tid)).collect(),
        }
    }

    /// Returns the state of a thread that has left its exit stop unseen; None unless it was killed when it was resumed. The
    /// memory is read through another thread of the process.
    #[cfg(target_arch = "x86_64")]
    pub fn at_resume(
        resumed: ResumedThread,
        other_tid: u32,
        skipped_call: Option<&SkippedCall>,
    ) -> Option<FinalState> {
        let ResumedThread { registers: stop, resumed_ns } = resumed;
        (now_ns() < resumed_ns + ENDS_WITHIN_NS).then_some(())?;
        let last_write = last_write::of_registers(other_tid, skipped_call, &stop.general);
        let stack = Some(registers::stack_of(&stop.general));
        let killed =
            KilledThread::of(stop).and_then(|one| after_return(one, skipped_call, last_write.as_ref()));
        let registers = killed.as_ref().map(KilledThread::thread_registers);
        Some(FinalState { last_writes: last_write.into_iter().collect(), stack, killed, registers })
    }

    /// Adds the state to those of the other threads.
    pub fn add_to(self, process: &mut TracedProcess) {
        process.last_writes.extend(self.last_writes);
        process.final_stacks.extend(self.stack);
        #[cfg(target_arch = "x86_64")]
        {
            process.final_registers.extend(self.registers);
            process.killed_threads.extend(self.killed);
        }
    }
}

/// Returns a killed thread as if a partly skipped call had returned to the program.
#[cfg(target_arch = "x86_64")]
fn after_return(
    thread: KilledThread,
    skipped_call: Option<&SkippedCall>,
    last_write: Option<&LastWrite>,
) -> Option<KilledThread> {
    match (skipped_call, last_write) {
        (Some(call), Some(LastWrite::InCall { bytes, .. })) => call.thread_after_return(thread, *bytes),
        _ => Some(thread),
    }
}

/// Returns the registers of a thread that ends with its process; None if it ends alone.
#[cfg(target_arch = "x86_64")]
fn final_registers(tid: u32, killed: Option<&KilledThread>) -> Option<ThreadRegisters> {
    match killed {
        Some(thread) => Some(thread.thread_registers()),
        None if ends_alone(tid) => None,
        None => Some(KilledThread::read_any(tid)?.thread_registers()),
    }
}
