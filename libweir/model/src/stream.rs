//! A stream: the published offset, the inline call, the timer, and the end of the process.

use crate::{Lock, Protocol, Step};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};

/// Bytes of the buffer.
pub const CAPACITY: usize = 2;

/// A stream over a file. The cells hold what is not atomic in C.
pub struct Stream {
    protocol: Protocol,
    written: AtomicUsize,
    drained: AtomicUsize,
    limit: AtomicUsize,
    lock: Lock,
    locking: AtomicBool,
    in_call: AtomicUsize,
    in_read: AtomicBool,
    buffer: [UnsafeCell<u8>; CAPACITY],
    visible: [AtomicU8; CAPACITY], // a copy of `buffer` for a process that inspects it without any order
    unbuffered: UnsafeCell<bool>,  // part of the state that the lock protects
    file: UnsafeCell<Vec<u8>>,
}

// SAFETY: the cells are accessed as the protocol permits, and loom reports every access that it does not order.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Stream {}

impl Stream {
    /// Makes a stream that locks in each call if `locking`; `inline` opens the inline call.
    pub fn new(protocol: Protocol, locking: bool, inline: bool) -> Stream {
        Stream {
            protocol,
            written: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
            limit: AtomicUsize::new(if inline { CAPACITY } else { 0 }),
            lock: Lock::new(protocol),
            locking: AtomicBool::new(locking),
            in_call: AtomicUsize::new(0),
            in_read: AtomicBool::new(false),
            buffer: std::array::from_fn(|_| UnsafeCell::new(0)),
            visible: std::array::from_fn(|_| AtomicU8::new(0)),
            unbuffered: UnsafeCell::new(false),
            file: UnsafeCell::new(Vec::new()),
        }
    }

    fn enter(&self, me: usize) {
        let calls = self.in_call.load(Ordering::Relaxed);
        if calls == 0 && self.locking.load(Ordering::Relaxed) {
            self.lock.acquire(me);
            return;
        }
        self.in_call.store(calls + 1, Ordering::Relaxed);
        if self.protocol.has(Step::EnterBarrier) {
            fence(Ordering::SeqCst);
        }
        let again = self.protocol.has(Step::EnterAgain);
        if calls == 0 && again && self.locking.load(Ordering::Relaxed) {
            self.in_call.store(0, Ordering::Release);
            self.lock.acquire(me);
        }
    }

    fn leave(&self) {
        match self.in_call.load(Ordering::Relaxed) {
            0 => self.lock.release(),
            calls => self.in_call.store(calls - 1, Ordering::Release),
        }
    }

    fn store_byte(&self, at: usize, byte: u8) {
        // SAFETY: only the owner stores bytes, above the published offset.
        self.buffer[at].with_mut(|cell| unsafe { *cell = byte });
        self.visible[at].store(byte, Ordering::Relaxed);
        let order =
            if self.protocol.has(Step::PublishRelease) { Ordering::Release } else { Ordering::Relaxed };
        self.written.store(at + 1, order);
    }

    fn write(&self, byte: u8) {
        // SAFETY: the protocol lets one thread write at a time.
        self.file.with_mut(|file| unsafe { (*file).push(byte) });
    }

    /// The one write loop.
    fn drain_to(&self, upto: usize) {
        for at in self.drained.load(Ordering::Relaxed)..upto {
            // SAFETY: the byte is below the published offset.
            let byte = self.buffer[at].with(|cell| unsafe { *cell });
            self.write(byte);
            self.drained.store(at + 1, Ordering::Release);
        }
    }

    fn published(&self) -> usize {
        let order = if self.protocol.has(Step::DrainAcquire) { Ordering::Acquire } else { Ordering::Relaxed };
        self.written.load(order)
    }

    fn reset(&self) {
        let (first, second) = match self.protocol.has(Step::ResetOrder) {
            true => (&self.written, &self.drained),
            false => (&self.drained, &self.written),
        };
        first.store(0, Ordering::Release);
        // A process that is killed here has no other stores: weir_recover writes what is between the two.
        let pending = self.written.load(Ordering::Relaxed) > self.drained.load(Ordering::Relaxed);
        assert!(!pending, "a kill during the reset repeats bytes");
        second.store(0, Ordering::Release);
        if self.protocol.has(Step::ResetFence) {
            fence(Ordering::Release);
        }
    }

    fn append_slow(&self, byte: u8) {
        self.drain_and_reset_if(|used| used == CAPACITY);
        // SAFETY: the caller is in a call of the stream.
        if self.unbuffered.with(|cell| unsafe { *cell }) {
            self.drain_and_reset_if(|_| true);
            self.write(byte);
        } else {
            self.store_byte(self.written.load(Ordering::Relaxed), byte);
        }
    }

    fn drain_and_reset_if(&self, condition: impl Fn(usize) -> bool) {
        let used = self.written.load(Ordering::Relaxed);
        if condition(used) {
            self.drain_to(used);
            self.reset();
        }
    }

    /// The inline call, and its slow path. With `armed` the slow path opens the inline call again, as the timer's.
    pub fn putc(&self, me: usize, byte: u8, armed: bool) {
        let at = self.written.load(Ordering::Relaxed);
        if at < self.limit.load(Ordering::Relaxed) {
            self.store_byte(at, byte);
            return;
        }
        self.enter(me);
        if armed {
            self.limit.store(CAPACITY, Ordering::Relaxed);
        }
        self.append_slow(byte);
        self.leave();
    }

    /// Writes a line of two bytes in one call.
    pub fn put_line(&self, me: usize, byte: u8) {
        self.enter(me);
        self.append_slow(byte);
        self.append_slow(byte);
        self.leave();
    }

    /// Flushes from the stream's own thread, or from any thread if the stream is shared.
    pub fn flush(&self, me: usize) {
        self.enter(me);
        self.drain_and_reset_if(|used| used > 0);
        self.leave();
    }

    /// Reads: the thread is blocked, and then uses the stream's state.
    pub fn read_and_putc(&self, me: usize, byte: u8) {
        self.enter(me);
        self.in_read.store(true, Ordering::Release);
        loom::thread::yield_now();
        self.in_read.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let waits = self.protocol.has(Step::ReadWaits) && self.in_call.load(Ordering::Relaxed) > 0;
        if waits && self.locking.load(Ordering::Relaxed) {
            self.in_read.store(true, Ordering::Release);
            self.lock.acquire(me);
            self.in_read.store(false, Ordering::Relaxed);
            self.lock.release();
        }
        self.append_slow(byte);
        self.leave();
    }

    /// One check of the timer. It disarms the stream if nothing is pending.
    pub fn timer_check(&self, me: usize) {
        let locks = self.protocol.has(Step::TimerLock);
        if locks && !self.lock.try_acquire(me) {
            return;
        }
        let armed = self.limit.load(Ordering::Relaxed) > 0;
        let upto = self.published();
        if upto > self.drained.load(Ordering::Relaxed) {
            if armed || self.protocol.has(Step::LateCheck) {
                self.drain_to(upto);
            }
        } else {
            self.limit.store(0, Ordering::Relaxed);
        }
        if locks {
            self.lock.release();
        }
    }

    /// Locks the stream of another thread, as exit does. [`Stream::release`] unlocks it.
    pub fn enter_from_elsewhere(&self, me: usize) {
        if self.protocol.has(Step::SetLocking) {
            self.locking.store(true, Ordering::Release);
        }
        self.lock.acquire(me);
        loop {
            if self.protocol.has(Step::ExitBarrier) {
                fence(Ordering::SeqCst);
            }
            let called = self.in_call.load(Ordering::Acquire) > 0 && !self.in_read.load(Ordering::Acquire);
            if !called || !self.protocol.has(Step::WaitForCall) {
                break;
            }
            loom::thread::yield_now();
        }
    }

    /// Unlocks after [`Stream::enter_from_elsewhere`].
    pub fn release(&self) {
        self.lock.release();
    }

    fn flush_in_place(&self) {
        self.drain_to(self.published());
        if !self.protocol.has(Step::NoForeignReset) {
            self.reset();
        }
    }

    /// The flush at exit: the stream becomes unbuffered.
    pub fn flush_at_exit(&self, me: usize) {
        self.enter_from_elsewhere(me);
        self.flush_in_place();
        // SAFETY: the stream is locked.
        self.unbuffered.with_mut(|cell| unsafe { *cell = true });
        self.limit.store(0, Ordering::Relaxed);
        self.flush_in_place();
        self.release();
    }

    /// The last destructor: keeps the lock, so that no other thread is in a write when the kernel ends it. Returns the
    /// file at that moment. Then unlocks, because each thread of a model must end.
    pub fn hold(&self, me: usize) -> Vec<u8> {
        if self.protocol.has(Step::HoldAtEnd) {
            self.enter_from_elsewhere(me);
            self.flush_in_place();
        }
        let file = self.file();
        if self.protocol.has(Step::HoldAtEnd) {
            self.release();
        }
        file
    }

    /// Returns the file's bytes.
    pub fn file(&self) -> Vec<u8> {
        // SAFETY: no other thread writes.
        self.file.with(|file| unsafe { (*file).clone() })
    }

    /// Returns the pending bytes as another process sees them, or nothing if the offsets changed meanwhile.
    pub fn inspect(&self) -> Option<Vec<u8>> {
        let load = || {
            let drained = self.drained.load(Ordering::Acquire);
            (drained, self.written.load(Ordering::Acquire))
        };
        let (drained, written) = load();
        let bytes =
            (drained..written.max(drained)).map(|at| self.visible[at].load(Ordering::Acquire)).collect();
        fence(Ordering::SeqCst); // a system call per read
        let same = !self.protocol.has(Step::InspectAgain) || load() == (drained, written);
        same.then_some(bytes)
    }
}
