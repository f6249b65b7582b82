//! The bounds of one input: CPU time, because the machine may be busy, and memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_MEMORY: usize = 64 << 20;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which counts the bytes in use.
pub struct CountedAllocator;

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
}

/// Runs a target on one input. Panics if it needs more than 1 s of CPU time or 64 MiB.
pub fn bounded(run: impl FnOnce()) {
    let (bytes, began) = (NOW.load(Ordering::Relaxed), cpu_time());
    MOST.store(bytes, Ordering::Relaxed);
    run();
    let (time, memory) = (cpu_time() - began, MOST.load(Ordering::Relaxed).saturating_sub(bytes));
    assert!(time <= MAX_TIME, "this input takes {time:?} of CPU time");
    assert!(memory <= MAX_MEMORY, "this input takes {memory} bytes of memory");
}

fn cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time into `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
