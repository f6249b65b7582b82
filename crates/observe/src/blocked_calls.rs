//! The calls in which a process is blocked from the attach to the detach. No backend sees them: they neither begin nor end.

use std::time::Instant;

use weir_model::Direction;
use weir_model::trace::Op;
use weir_recorder::Recorder;
use weir_sys::proc::{self, ThreadState};
use weir_sys::syscalls;

/// Threads that are read: each costs two reads of /proc.
const MAX_THREADS: usize = 64;

/// The blocked calls of a process when tracing begins.
pub(crate) struct BlockedCalls {
    pid: u32,
    since: Instant,
    /// Threads by TID, each with its call and the call's arguments.
    calls: Vec<(u32, Op, [u64; 6])>,
}

impl BlockedCalls {
    /// Reads the calls in which the threads of a process are blocked now.
    pub fn of(pid: u32) -> BlockedCalls {
        let threads = proc::threads(pid).into_iter().take(MAX_THREADS);
        let calls = threads.filter_map(|tid| current_call(tid).map(|(op, args)| (tid, op, args))).collect();
        BlockedCalls { pid, since: Instant::now(), calls }
    }

    /// Adds the calls that still block to a recording. The recorder drops those on streams with other calls.
    pub fn add_to(&self, recorder: &mut Recorder) {
        let blocked_s = self.since.elapsed().as_secs_f64();
        for &(tid, op, args) in
            self.calls.iter().filter(|(tid, op, args)| current_call(*tid) == Some((*op, *args)))
        {
            let direction = if op == Op::Read { Direction::In } else { Direction::Out };
            if let Some(fd) =
                syscalls::descriptor(op, &args).filter(|_| proc::process_of(tid) == Some(self.pid))
            {
                recorder.add_blocked_call(self.pid, fd, direction, blocked_s);
            }
        }
    }
}

/// Returns the read(2) or write(2) in which a thread is blocked.
fn current_call(tid: u32) -> Option<(Op, [u64; 6])> {
    let ThreadState::Waiting { number, args } = proc::thread_state(tid) else { return None };
    let op = syscalls::op(number).filter(|op| matches!(op, Op::Read | Op::Write))?;
    Some((op, args))
}
