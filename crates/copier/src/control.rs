//! The state of a running copy that its threads share: progress, the stop request, the rate limit.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::{CopyError, CopyResult};

/// The part of a copy that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CopyPhase {
    Copying,
    Syncing,
    Verifying,
}

/// Progress of a copy, its stop request and its rate limit. All threads share one.
#[derive(Debug)]
pub struct CopyControl {
    stop: Arc<AtomicBool>,
    bytes: AtomicU64,
    kept_bytes: AtomicU64,
    total_bytes: AtomicU64,
    files: AtomicU64,
    durable_bytes: AtomicU64,
    phase: AtomicU64,
    current: Mutex<Vec<u8>>,
    /// Incomplete targets that are removed if a thread does not end.
    unfinished: Mutex<Vec<PathBuf>>,
    limiter: Option<Mutex<Limiter>>,
}

impl CopyControl {
    /// Makes the state of a copy that moves at most `limit` bytes per second.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            stop: Arc::default(),
            bytes: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            total_bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            durable_bytes: AtomicU64::new(0),
            phase: AtomicU64::new(0),
            current: Mutex::default(),
            unfinished: Mutex::default(),
            limiter: limit.map(|bytes_per_s| Mutex::new(Limiter::new(bytes_per_s))),
        }
    }

    /// Asks all threads to end. Their unfinished targets are removed.
    pub fn request_stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Returns the flag that requests a stop, for signal handlers.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Notes a new target whose content is not complete.
    pub(crate) fn begin_target(&self, path: PathBuf) {
        locked(&self.unfinished).push(path);
    }

    /// Notes that a target is complete, or removed.
    pub(crate) fn end_target(&self, path: &std::path::Path) {
        locked(&self.unfinished).retain(|other| other != path);
    }

    /// Removes incomplete targets, for a process that ends although a thread is blocked by a device.
    pub fn remove_unfinished(&self) {
        for path in locked(&self.unfinished).drain(..) {
            let _removed = std::fs::remove_file(path);
        }
    }

    /// Returns whether a stop was requested.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Fails with [`CopyError::Interrupted`] after a stop request.
    pub fn check(&self) -> CopyResult<()> {
        if self.is_stopping() { Err(CopyError::Interrupted) } else { Ok(()) }
    }

    /// Notes bytes that were copied, and sleeps as the rate limit demands. Fails after a stop request.
    pub(crate) fn advance(&self, bytes: u64) -> CopyResult<()> {
        self.bytes.fetch_add(bytes, Relaxed);
        if let Some(limiter) = &self.limiter {
            let pause = locked(limiter).pause_after(bytes);
            self.sleep(pause)?;
        }
        self.check()
    }

    /// Notes bytes that the target shares with its source: no rate limit counts them, because nothing was moved. Fails after a stop
    /// request.
    pub(crate) fn note_shared(&self, bytes: u64) -> CopyResult<()> {
        self.bytes.fetch_add(bytes, Relaxed);
        self.check()
    }

    /// Notes bytes that are in the target already: the rate limit does not count them.
    pub(crate) fn keep(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.kept_bytes.fetch_add(bytes, Relaxed);
    }

    /// Returns the bytes that were in the targets already.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Relaxed)
    }

    /// Sleeps in short parts, so that a stop request is obeyed soon.
    pub(crate) fn sleep(&self, pause: Duration) -> CopyResult<()> {
        const PART: Duration = Duration::from_millis(50);
        let end = Instant::now() + pause;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(PART));
        }
    }

    /// Returns the largest number of bytes that one call should move, so that a rate limit is kept evenly.
    pub(crate) fn chunk(&self, bytes: usize) -> usize {
        const CALLS_PER_S: u64 = 20;
        const MIN_BYTES: u64 = 4096;
        let Some(limiter) = &self.limiter else { return bytes };
        let rate = locked(limiter).bytes_per_s;
        bytes.min((rate / CALLS_PER_S).max(MIN_BYTES) as usize)
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.total_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_durable(&self, bytes: u64) {
        self.durable_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn set_phase(&self, phase: CopyPhase) {
        self.phase.store(phase as u64, Relaxed);
    }

    pub(crate) fn set_current(&self, path: &[u8]) {
        let mut current = locked(&self.current);
        current.clear();
        current.extend_from_slice(path);
    }

    /// Returns the file that was begun last.
    pub fn current(&self) -> Vec<u8> {
        locked(&self.current).clone()
    }

    /// Returns the bytes copied, the bytes found so far, and the bytes that are durable.
    pub fn bytes(&self) -> (u64, u64, u64) {
        (self.bytes.load(Relaxed), self.total_bytes.load(Relaxed), self.durable_bytes.load(Relaxed))
    }

    /// Returns the number of files that were finished.
    pub fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Returns the part of the copy that runs.
    pub fn phase(&self) -> CopyPhase {
        match self.phase.load(Relaxed) {
            0 => CopyPhase::Copying,
            1 => CopyPhase::Syncing,
            _ => CopyPhase::Verifying,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A token bucket that holds a tenth of a second.
#[derive(Debug)]
struct Limiter {
    bytes_per_s: u64,
    /// The time at which all noted bytes are paid for.
    paid_until: Instant,
}

impl Limiter {
    fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s: bytes_per_s.max(1), paid_until: Instant::now() }
    }

    /// Notes bytes and returns how long the caller must sleep.
    fn pause_after(&mut self, bytes: u64) -> Duration {
        const CREDIT: Duration = Duration::from_millis(100);
        let now = Instant::now();
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        self.paid_until = self.paid_until.max(earliest) + cost;
        self.paid_until.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_demands_a_pause_for_the_bytes_beyond_its_credit() {
        let mut limiter = Limiter::new(1000);
        let pause = limiter.pause_after(10_000);
        assert!(pause > Duration::from_secs(9) && pause <= Duration::from_secs(10), "{pause:?}");
        assert!(limiter.pause_after(1000) > Duration::from_secs(10));
    }

    #[test]
    fn shared_blocks_need_no_pause() {
        let control = CopyControl::new(Some(1));
        let started = Instant::now();
        assert!(control.note_shared(1 << 30).is_ok() && started.elapsed() < Duration::from_secs(60));
        assert_eq!(control.bytes().0, 1 << 30);
        control.request_stop();
        assert!(matches!(control.note_shared(1), Err(CopyError::Interrupted)));
    }

    #[test]
    fn a_stop_request_ends_a_pause() {
        let control = CopyControl::new(Some(1));
        control.request_stop();
        assert!(matches!(control.advance(1 << 30), Err(CopyError::Interrupted)));
    }
}
