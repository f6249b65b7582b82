//! An explicit-state search of libweir's protocol on x86-64's memory model.
//!
//! [`machine`], [`run`] and [`search`] know nothing of libweir: they execute programs of atomic steps, in every order,
//! without a bound on switches between threads, and visit each reachable state once. [`steps`], [`threads`] and
//! [`endings`] are libweir's C code as such programs; each step quotes the code that it stands for, and a test finds the
//! quotes in the C functions. [`scenario`] puts threads together, and [`promises`] says what must be true.
//!
//! * Memory model: x86-TSO. Each thread has a buffer of stores, which reach the memory in order at any later time;
//!   locked instructions, futex(2), and the call that follows membarrier(2) wait until it is empty. The compiler's order
//!   is the order of the C code: signal fences and atomic accesses keep it.
//! * [`run::Memory::Relaxed`] also lets stores of different cells reach the memory out of order, unless the C code has
//!   release order, and takes no locked instruction for a barrier that C11 does not make one. This is the side of stores
//!   of C11's memory model. Loads stay in order.
//! * [`run::Memory::Unordered`] adds the side of loads: a load may return each value that the cell has had since the thread's
//!   last barrier or the store that its last acquire load has returned, but none that is older than what the thread has loaded
//!   or stored there before. This is what a processor does that executes loads early and has one memory for all, such as
//!   aarch64's. Of each thread the order of the newest [`history::ORDERED`] replaced values is known; the tests print in which
//!   scenarios there were more, because a thread changes a cell again and again while another one stands between two
//!   barriers. A load may return each older value too, at any time: the search then visits states that cannot be, but leaves
//!   out none. Of equal old values a load returns the oldest, which leaves every choice to later loads.
//! * Left out on all of them: a store that is executed before an earlier load of the thread (load buffering), which needs a
//!   guess of the loaded value, and stores that reach one thread before another. C11 permits both; x86-64 neither, aarch64 the
//!   first. The model for loom has the second.
//! * A step is one access, one byte that write(2) copies, or one decision of the kernel. Steps that no other thread can
//!   notice are executed together with the step before them.
//! * Not modelled: limits of time (every thread ends its call at some time), errors, reads, records, recursive locks,
//!   file locks, io_uring, a process with one thread.
//! * "It ends" means: from every reachable state some continuation ends. A lock that is never released and a lost
//!   wake-up break it, although the C code would go on after a limit of time. The continuation loads no old values.

#![allow(missing_docs)] // where a name says all

pub mod endings;
pub mod history;
mod loads;
pub mod machine;
pub mod program;
pub mod promises;
pub mod rules;
pub mod run;
pub mod scenario;
pub mod search;
pub mod steps;
mod system_calls;
pub mod threads;
