//! An explicit-state search of libweir's protocol on x86-64's memory model.
//!
//! [`machine`], [`run`] and [`search`] are independent of libweir's steps: they execute programs of atomic steps, in
//! every order, without a bound on switches between threads, and visit each reachable state once. [`steps`],
//! [`threads`] and [`endings`] are libweir's C code as such programs; each step quotes the code that it stands for,
//! and a test finds the quotes in the C functions. [`scenario`] puts threads together. [`promises`] says what must be
//! true; `run` and `system_calls` call its checks.
//!
//! * Memory model: x86-TSO. Each thread has a buffer of stores, which reach the memory in order at any later time.
//!   Locked instructions, futex(2), fork(2), munmap(2) and exit_group(2) wait until the thread's own buffer is empty;
//!   membarrier(2) waits until every thread's buffer has been empty once. The compiler's order is the order of the C
//!   code: signal fences and atomic accesses keep it.
//! * [`run::Memory::Relaxed`] also lets stores of different cells reach the memory out of order, unless the C code
//!   gives them release order. A compare and exchange orders older stores only if the C code gives it release order.
//!   This models C11's store reordering. Loads stay in order.
//! * [`run::Memory::Unordered`] also models C11's load reordering. A load may return any value that the cell has had
//!   since the thread's last barrier, or since the store that its last acquire load returned, but never one older
//!   than a value that the thread has already read or written there. Processors that execute loads early and have one
//!   memory for all threads do this, such as aarch64's. The search keeps the order of the newest [`history::ORDERED`]
//!   replaced values per thread. Older values may be returned at any time, so it visits impossible states but misses
//!   no possible one. The tests print in which scenarios a thread had older values: another thread changed a cell
//!   again and again between two of its barriers. Of several equal old values a load returns the oldest, which leaves
//!   every choice to later loads.
//! * Not modelled: a store that is executed before an earlier load of the thread (load buffering), which needs a
//!   guess of the loaded value; and stores that reach one thread before another. C11 permits both. x86-64 permits
//!   neither. aarch64 permits the first. The model for loom has the second.
//! * A step is one access, one byte that write(2) copies, or one decision of the kernel. Steps that no other thread can
//!   notice are executed together with the step before them.
//! * Not modelled either: timeouts (every call of a thread ends at some time), errors, reads, records, recursive locks,
//!   file locks, io_uring, a process with one thread.
//! * "It ends" means: from every reachable state some continuation ends. A lock that is never released and a lost
//!   wake-up break it, although the C code would go on after a timeout. The continuation loads no old values.

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
