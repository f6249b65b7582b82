//! The recursive lock of a stream, without its recursion: `src/lock.h` and `src/lock.c`.

use crate::{Protocol, Step};
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
use loom::sync::{Condvar, Mutex};

/// The lock. Each thread has a number other than 0.
pub struct Lock {
    protocol: Protocol,
    owner: AtomicUsize,
    waiters: AtomicUsize,
    kernel: Mutex<()>,
    wake: Condvar,
}

impl Lock {
    /// Makes a free lock.
    pub fn new(protocol: Protocol) -> Lock {
        let (owner, waiters) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Lock { protocol, owner, waiters, kernel: Mutex::new(()), wake: Condvar::new() }
    }

    /// Locks if the lock is free.
    pub fn try_acquire(&self, me: usize) -> bool {
        let order = if self.protocol.has(Step::LockAcquire) { Ordering::Acquire } else { Ordering::Relaxed };
        self.owner.compare_exchange(0, me, order, Ordering::Relaxed).is_ok()
    }

    /// Locks. Waits while another thread has the lock.
    pub fn acquire(&self, me: usize) {
        if self.try_acquire(me) {
            return;
        }
        if self.protocol.has(Step::CountWaiter) {
            self.waiters.fetch_add(1, Ordering::Relaxed);
        }
        if self.protocol.has(Step::WaiterBarrier) {
            fence(Ordering::SeqCst);
        }
        while !self.try_acquire(me) {
            let owner = self.owner.load(Ordering::Relaxed);
            if owner != 0 {
                self.futex_wait(owner);
            }
        }
        if self.protocol.has(Step::CountWaiter) {
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Unlocks, and wakes a waiter if there is one.
    pub fn release(&self) {
        let order = if self.protocol.has(Step::LockRelease) { Ordering::Release } else { Ordering::Relaxed };
        self.owner.store(0, order);
        if self.protocol.has(Step::OwnerBarrier) {
            fence(Ordering::SeqCst);
        }
        if self.waiters.load(Ordering::Relaxed) > 0 {
            let _queue = self.kernel.lock();
            self.wake.notify_one();
        }
    }

    /// The kernel compares the value and puts the thread to sleep in one step.
    fn futex_wait(&self, expected: usize) {
        let queue = self.kernel.lock();
        if self.owner.load(Ordering::Relaxed) == expected {
            drop(self.wake.wait(queue.expect("no thread panics with the mutex")));
        }
    }
}
