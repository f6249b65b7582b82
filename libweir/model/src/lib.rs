//! Two models of libweir's publish, drain and lock protocol.
//!
//! * x86-64's memory model: [`explorer`] visits every state of two writers, the timer and exit, and of fork, close and
//!   cancellation, without a bound on switches between threads.
//! * The same search with stores that overtake each other where C11 permits it, and then with loads that return old values
//!   as well: in the small extent of all scenarios.
//! * C11's memory model: loom executes the model of this module, access by access. Its number of executions grows faster
//!   than that of states, so most scenarios have a bound on forced switches (preemptions): tests/protocol.rs lists them.
//!   Only "two threads share a stream" and "exit and a thread that returns from a read" are executed without a bound.
//!   "Two threads, the timer and exit" has one of 2, in a full campaign of 3.
//!
//! # States
//!
//! Numbers of states that a full campaign visits, each once, without a bound on switches. "In full" is the large extent, which only the
//! search on x86-64's memory model has; "stores" and "loads" are the searches with these out of order, in the small extent.
//!
//! | scenario | x86-64 | stores | loads |
//! |---|---|---|---|
//! | two writers of lines, the timer and exit | 9,752,173 | 349,807 | 7,355,277 |
//! | two writers of lines and exit | 405,552 | 38,257 | 111,950 |
//! | a stream's own thread with a delay, the timer, exit and, in full, weir_flush_all | 9,490,666 | 488,899 | 3,870,929 |
//! | a stream's own thread, weir_flush_all and exit | 1,228,189 | 1,333,925 | 3,992,634 |
//! | a stream's own thread and the timer | 13,686 | 2,888 | 5,794 |
//! | a writer and the timer that sleeps | 1,460 | 662 | 1,036 |
//! | a writer, fork with WEIR_FORK_FLUSH, exit and, in full, the timer | 13,511,120 | 484,882 | 1,441,465 |
//! | a writer, fork with WEIR_FORK_KEEP, exit and, in full, the timer | 12,729,503 | 461,434 | 1,289,602 |
//! | weir_open between weir_lock and weir_unlock, fork with WEIR_FORK_KEEP and exit | 99,584 | 109,053 | 304,680 |
//! | two writers, a cancellation and exit | 291,049 | 88,640 | 293,958 |
//! | a close, the timer, exit and, in full, weir_flush_all | 17,236,899 | 342,576 | 5,331,084 |
//!
//! The search with loads out of order visits more than all that can be: of ten of these scenarios it forgets the order of
//! the oldest values.
//!
//! # The model for loom
//!
//! It follows `src/private.h`, `src/lock.h`, `src/lock.c`, `src/stale.c`, `src/fill.c` and `src/ending.c`, access
//! by access and with their memory orders. Bytes of the buffer and the file are cells: loom reports an access that is not
//! ordered after the store that it depends on, and two threads in one write.
//!
//! * Memory model: C11, as far as loom has it. A relaxed load may return any value that coherence permits, so the orders
//!   that x86-64 forbids are included. loom does not execute a load before an earlier load's value is known to matter
//!   (load buffering), and treats sequentially consistent accesses as acquire and release.
//! * membarrier(2) is a sequentially consistent fence in both threads, the asymmetric fence of C++ P1202.
//! * futex(2) is a mutex and a condition variable, without the time limit of the C code: a lost wake-up is a deadlock.
//! * Priority of waiters with a time limit, the time limits themselves, and errors are not modelled.

pub mod explorer;
mod lock;
mod stream;

pub use lock::Lock;
pub use stream::{CAPACITY, Stream};

/// A protective step of the protocol. The tests omit each of them and require that the check then fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The offset is published with release order, after its bytes.
    PublishRelease,
    /// A thread that drains loads the offset with acquire order.
    DrainAcquire,
    /// The lock is acquired with acquire order.
    LockAcquire,
    /// The lock is released with release order.
    LockRelease,
    /// A waiter is counted before it looks at the lock again.
    CountWaiter,
    /// A waiter orders its count before its look, by membarrier(2).
    WaiterBarrier,
    /// The owner orders its release before its look at the waiters.
    OwnerBarrier,
    /// The timer locks the stream.
    TimerLock,
    /// The timer looks again at a stream that it no longer checks regularly.
    LateCheck,
    /// Another thread's flush leaves the offsets of a stream with inline calls.
    NoForeignReset,
    /// A reset stores `written` before `drained`.
    ResetOrder,
    /// Bytes stored after a reset become visible after its offsets.
    ResetFence,
    /// A thread that inspects the offsets loads them again after the bytes.
    InspectAgain,
    /// A flush at exit makes calls of the stream's own thread lock.
    SetLocking,
    /// It waits for the end of that thread's running call.
    WaitForCall,
    /// It looks for such a call after a membarrier(2).
    ExitBarrier,
    /// A call looks again whether it must lock, after it was counted.
    EnterAgain,
    /// A call's count is ordered before that look.
    EnterBarrier,
    /// A read that returns waits for a thread that has the lock.
    ReadWaits,
    /// The end of the process keeps the locks.
    HoldAtEnd,
}

impl Step {
    /// Every step once, in the order of the declaration.
    pub const ALL: [Step; 20] = [
        Step::PublishRelease,
        Step::DrainAcquire,
        Step::LockAcquire,
        Step::LockRelease,
        Step::CountWaiter,
        Step::WaiterBarrier,
        Step::OwnerBarrier,
        Step::TimerLock,
        Step::LateCheck,
        Step::NoForeignReset,
        Step::ResetOrder,
        Step::ResetFence,
        Step::InspectAgain,
        Step::SetLocking,
        Step::WaitForCall,
        Step::ExitBarrier,
        Step::EnterAgain,
        Step::EnterBarrier,
        Step::ReadWaits,
        Step::HoldAtEnd,
    ];
}

/// The protocol, complete or without one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Protocol {
    /// The step that the model omits; `None`: the protocol as libweir has it.
    pub without: Option<Step>,
}

impl Protocol {
    fn has(self, step: Step) -> bool {
        self.without != Some(step)
    }
}
