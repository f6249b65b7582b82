//! Requests to a child that reads for weir, through memory that both share.
//!
//! A socket costs two system calls and two context switches for each request. Here each side polls the shared memory for some
//! microseconds before it sleeps (futex(2)), so that a series of reads costs little more than the reads.

use std::convert::Infallible;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::thread::futex;

/// The most bytes of one request or answer. Pages that are not used take no memory.
pub(crate) const DATA_BYTES: usize = 2 << 20;

/// The time for which a side polls before it sleeps: a wakeup takes about as long.
const SPIN: Duration = Duration::from_micros(20);
/// The number of polls between two reads of the clock.
const LOOKS: u32 = 32;
/// The interval at which a silent child is examined.
const CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct ReaderChannel {
    request: Turn,
    answer: Turn,
    operation: AtomicU32,
    result: AtomicI64,
    words: [AtomicU64; 4],
    data: [AtomicU64; DATA_BYTES / 8],
}

/// The number of the last request or answer, and whether the other side sleeps until it changes.
#[derive(Debug)]
struct Turn {
    number: AtomicU32,
    sleeps: AtomicU32,
}

impl Turn {
    /// Sets the next number and wakes the other side.
    fn set(&self, number: u32) {
        self.number.store(number, SeqCst);
        if self.sleeps.load(SeqCst) != 0 {
            let _woken = futex::wake(&self.number, futex::Flags::empty(), 1);
        }
    }

    /// Polls for the time `spin`. Returns whether the number is no longer `old`.
    fn spin(&self, old: u32, spin: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < spin {
            for _ in 0..LOOKS {
                if self.number.load(SeqCst) != old {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Sleeps until the number is other than `old`, or for some time. Returns whether it is.
    fn sleep(&self, old: u32, most: Option<&Timespec>) -> bool {
        self.sleeps.store(1, SeqCst);
        if self.number.load(SeqCst) == old {
            let _changed_or_late = futex::wait(&self.number, futex::Flags::empty(), old, most);
        }
        self.sleeps.store(0, SeqCst);
        self.number.load(SeqCst) != old
    }
}

/// A request as the child sees it.
pub(crate) struct Request<'a> {
    pub operation: u32,
    pub words: [u64; 4],
    channel: &'a ReaderChannel,
}

impl Request<'_> {
    /// Returns the bytes of the request; their number is its first word.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; (self.words[0] as usize).min(DATA_BYTES)];
        self.channel.get(&mut bytes);
        bytes
    }

    /// Returns the memory for the answer's bytes, of [`DATA_BYTES`].
    pub fn room(&self) -> *mut libc::c_void {
        self.channel.data.as_ptr().cast_mut().cast()
    }

    /// Puts bytes into the answer. Returns their number.
    pub fn put(&self, bytes: &[u8]) -> i64 {
        let bytes = &bytes[..bytes.len().min(DATA_BYTES)];
        self.channel.put(bytes);
        bytes.len() as i64
    }
}

impl ReaderChannel {
    /// Answers requests until this process is killed.
    pub fn serve(&self, mut answer: impl FnMut(Request<'_>) -> i64) -> Infallible {
        let (mut done, spin) = (0, spin());
        loop {
            if !self.request.spin(done, spin) {
                while !self.request.sleep(done, None) {}
            }
            done = self.request.number.load(SeqCst);
            let words = self.words.each_ref().map(|word| word.load(Relaxed));
            let request = Request { operation: self.operation.load(Relaxed), words, channel: self };
            self.result.store(answer(request), Relaxed);
            self.answer.set(done);
        }
    }

    /// Makes a request. Returns the result, which is a negative errno or usually a number of bytes: see [`Self::get`].
    /// While there is none, asks `is_silent` every 10 ms whether to give up, and returns None then: the channel must not
    /// be used again.
    pub fn ask(
        &self,
        operation: u32,
        words: [u64; 4],
        bytes: &[u8],
        mut is_silent: impl FnMut() -> bool,
    ) -> Option<i64> {
        let old = self.answer.number.load(SeqCst);
        self.operation.store(operation, Relaxed);
        self.words.iter().zip(words).for_each(|(word, value)| word.store(value, Relaxed));
        self.put(bytes);
        self.request.set(old.wrapping_add(1));
        if !self.answer.spin(old, spin()) {
            while !self.answer.sleep(old, Some(&CHECK)) {
                if is_silent() {
                    return None;
                }
            }
        }
        Some(self.result.load(Relaxed))
    }

    /// Copies the first bytes of the answer.
    pub fn get(&self, into: &mut [u8]) {
        let (words, rest) = into.as_chunks_mut::<8>();
        let count = words.len();
        words.iter_mut().zip(&self.data).for_each(|(word, data)| *word = data.load(Relaxed).to_ne_bytes());
        if let Some(last) = self.data.get(count).filter(|_| !rest.is_empty()) {
            rest.copy_from_slice(&last.load(Relaxed).to_ne_bytes()[..rest.len()]);
        }
    }

    fn put(&self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().zip(&self.data).for_each(|(word, data)| data.store(u64::from_ne_bytes(*word), Relaxed));
        if let Some(last) = self.data.get(words.len()).filter(|_| !rest.is_empty()) {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            last.store(u64::from_ne_bytes(word), Relaxed);
        }
    }
}

/// Returns the time for which a side polls before it sleeps; zero with one processor, which the other side needs.
fn spin() -> Duration {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let processors = PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    if *processors > 1 { SPIN } else { Duration::ZERO }
}
