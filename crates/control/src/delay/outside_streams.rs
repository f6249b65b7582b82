//! Reclaims the bytes that were written ahead of a process that computes: it may never make a system call.
//!
//! A thread in user mode can be inside a function of a stream. It is outside if no thread holds the stream's lock and the thread
//! executes code that does not change streams: for glibc, code of a file other than libc, outside of signal handlers; for CPython,
//! the interpreter's loop. Inlined code such as putc_unlocked(3) has the address of the next byte in a register, so that address
//! must not change.

use weir_model::trace::RuntimeId;
use weir_sys::maps::{self, MappedRegion};
use weir_sys::proc;
use weir_sys::ptrace;
use weir_sys::ptrace::registers;
use weir_walkers::{PendingBytes, join_pending};

use super::ahead_table::WrittenAhead;
use super::write_ahead::{
    ThreadActivity, drain_stream, forget_purged, is_handing_over, is_in_use, is_interrupted,
    reclaim_written_ahead, thread_activity,
};
use crate::foreign_file::TargetThread;
use crate::supervise::Tracees;

/// As [`reclaim_written_ahead`], also from a process that computes.
pub(crate) fn reclaim_to_leave(tracees: &mut Tracees, pid: u32) {
    reclaim_written_ahead(tracees, pid);
    if !tracees.written_ahead.contains(pid) {
        return;
    }
    if let (true, Some(tid)) = (tracees.hold(pid), tracees.live_thread(pid)) {
        let pending = join_pending(tracees.pending_when_held(pid, tid));
        forget_purged(tracees, pid, tid, &pending);
        if let Some(running) = running_threads(tracees, pid) {
            pending.iter().for_each(|one| reclaim_stream(tracees, (pid, tid), &running, one));
        }
    }
    tracees.release(pid);
}

/// Returns the threads of a stopped process that are in user mode, if all others block and no other process shares the memory.
fn running_threads(tracees: &Tracees, pid: u32) -> Option<Vec<u32>> {
    let ThreadActivity::Running(running) = thread_activity(tracees, pid) else { return None };
    let blocks = |(_, call): &(u32, Option<registers::SyscallRegisters>)| {
        call.is_none_or(|call| is_interrupted(&call))
    };
    (!tracees.shares_memory(pid) && tracees.thread_calls(pid).iter().all(blocks)).then_some(running)
}

fn reclaim_stream(tracees: &mut Tracees, (pid, tid): (u32, u32), running: &[u32], one: &PendingBytes) {
    let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
    if ahead == 0 || one.locked != Some(false) || is_handing_over(tracees, pid, one) || is_in_use(one) {
        return;
    }
    if one.walker == RuntimeId::CPYTHON {
        let Some((code, _)) = tracees.interpreter_code(pid, tid) else { return };
        let is_in_loop = |tid: &u32| registers::program_counter(*tid).is_some_and(|at| code.contains(&at));
        if running.iter().all(is_in_loop) {
            drain_stream(tracees, pid, &TargetThread::new(tid), one, ahead, true);
        }
    } else if let Some(stores) = one.noted_as_written(ahead)
        && is_outside_libc(pid, running)
        && stores.iter().all(|store| ptrace::write_memory(tid, store.address, &store.bytes))
    {
        tracees.written_ahead.set(pid, WrittenAhead::of(one, 0));
    }
}

/// Returns whether each of these threads in user mode executes code of a file other than libc, outside of signal handlers.
fn is_outside_libc(pid: u32, running: &[u32]) -> bool {
    let regions = maps::regions(pid);
    let handles_no_signal = |tid: u32| proc::status(tid).is_some_and(|status| status.sigblk == 0);
    running.iter().all(|tid| {
        let counter = registers::program_counter(*tid);
        counter.is_some_and(|at| is_other_code(&regions, at)) && handles_no_signal(*tid)
    })
}

/// Returns whether an address is in the code of a file that is neither libc nor weir's library. A static executable contains libc.
fn is_other_code(regions: &[MappedRegion], address: u64) -> bool {
    let is_libc =
        |region: &MappedRegion| ["libc.so", "libc-2."].iter().any(|name| region.name().starts_with(name));
    let region = regions.iter().find(|region| (region.start..region.end).contains(&address));
    let is_other = |region: &MappedRegion| {
        let name = region.name();
        region.executable && !name.is_empty() && !is_libc(region) && !name.starts_with("libweir")
    };
    regions.iter().any(is_libc) && region.is_some_and(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_libc_and_of_static_programs_may_be_inside_a_stream() {
        let maps = |text: &str| maps::parse_regions(text.as_bytes());
        let program = "1000-2000 r-xp 0 08:01 5 /bin/program\n2000-3000 rw-p 0 08:01 5 /bin/program\n";
        let dynamic = maps(&format!(
            "{program}5000-6000 r-xp 0 08:01 6 /usr/lib/libc.so.6\n7000-8000 r-xp 0 00:00 0 \n"
        ));
        let is_other = |at| is_other_code(&dynamic, at);
        assert!(is_other(0x1000) && is_other(0x1fff));
        assert!([0x2000, 0x5000, 0x7000, 0x9000].iter().all(|at| !is_other(*at)));
        assert!(!is_other_code(&maps(program), 0x1000), "a static program");
    }
}
