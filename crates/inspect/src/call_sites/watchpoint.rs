//! A hardware watchpoint on one word of a thread's memory (perf_event_open(2)): each store to it puts the
//! thread's registers and the top of its stack into a ring buffer. The thread is neither stopped nor signalled,
//! and its memory is not changed.
//!
//! The kernel disables the event after a few stores, so that a loop of putc(3) loses only microseconds. The
//! ring is written backwards, so the newest sample is always complete and at its head.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use aya_obj::generated;
use weir_sys::breakpoint;

use crate::call_sites::watchpoint_sample::{self, WatchpointSample};

/// Stores until the kernel disables the event: one printf(3) makes up to four.
const STORES: u64 = 8;
/// Size of the watched word.
const WORD_BYTES: u64 = 8;
/// Sizes of the ring and of the copied stack, in bytes. One sample fits. The second pair is tried if an
/// unprivileged user has no locked memory left (perf_event_mlock_kb).
const RING_SIZES: [(usize, u32); 2] = [(16 << 10, 8 << 10), (8 << 10, 4 << 10)];

/// PERF_EVENT_IOC_REFRESH and PERF_EVENT_IOC_PAUSE_OUTPUT of linux/perf_event.h.
const REFRESH: libc::c_ulong = 0x2402;
const PAUSE_OUTPUT: libc::c_ulong = 0x4004_2409;
/// Offset of `data_head` in struct perf_event_mmap_page; the data are in the pages after it.
const DATA_HEAD: usize = 1024;

/// A watchpoint of one thread. It is removed on drop.
pub(super) struct Watchpoint {
    tid: u32,
    address: u64,
    /// None if the thread has exited, or if the debug register was taken when the event was opened again.
    event: Option<PerfEvent>,
}

/// The stores since the last read.
#[derive(Debug)]
pub(super) struct WatchpointEvents {
    pub sample: Option<WatchpointSample>,
    /// The event is still enabled, and no store came while the ring was read: the sample is of the last store.
    pub last: bool,
}

impl Watchpoint {
    /// Watches the word at `address`. Fails with ENOSPC without a free register, with EACCES or EPERM without
    /// permission, and with ESRCH if the thread has exited.
    pub fn set(tid: u32, address: u64) -> io::Result<Watchpoint> {
        Ok(Watchpoint { tid, address, event: Some(PerfEvent::set(tid, address)?) })
    }

    /// Returns whether the next store is sampled.
    pub fn is_set(&self) -> bool {
        self.event.is_some()
    }

    /// Returns the stores since the last call, or none. At least half of [`STORES`] are available afterwards.
    pub fn take_events(&mut self) -> Option<WatchpointEvents> {
        let event = self.event.as_mut()?;
        let events = event.take_events()?;
        // An event that PERF_EVENT_IOC_REFRESH enables again gets no samples (Linux 6.18), so it is opened
        // anew.
        if event.reported * 2 >= STORES {
            self.event = None;
            self.event = PerfEvent::set(self.tid, self.address).ok();
        }
        Some(events)
    }
}

/// A perf event and its ring.
struct PerfEvent {
    file: File,
    ring: SampleRing,
    /// Number of stores that were reported.
    reported: u64,
}

impl PerfEvent {
    fn set(tid: u32, address: u64) -> io::Result<PerfEvent> {
        let mut last_error = io::Error::from_raw_os_error(libc::EPERM);
        for (bytes, stack_bytes) in RING_SIZES {
            let event = open(tid, address, stack_bytes)?;
            match SampleRing::of(&event, bytes) {
                Ok(ring) => {
                    let one = PerfEvent { file: File::from(event), ring, reported: 0 };
                    one.control(REFRESH, STORES as libc::c_ulong)?;
                    return Ok(one);
                }
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    fn take_events(&mut self) -> Option<WatchpointEvents> {
        let stores = self.stores();
        if stores == self.reported {
            return None;
        }
        self.pause_output(true);
        let sample = self.ring.newest().and_then(|record| watchpoint_sample::parse(&record));
        self.pause_output(false);
        self.reported = stores;
        // A store during the read has left no sample.
        Some(WatchpointEvents { sample, last: self.stores() == stores && stores < STORES })
    }

    fn stores(&self) -> u64 {
        let mut count = [0; 8];
        let read = (&self.file).read(&mut count);
        if read.is_ok_and(|bytes| bytes == 8) { u64::from_ne_bytes(count) } else { self.reported }
    }

    fn pause_output(&self, paused: bool) {
        let _ignored = self.control(PAUSE_OUTPUT, libc::c_ulong::from(paused));
    }

    fn control(&self, request: libc::c_ulong, number: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these ioctl(2) requests take an integer.
        let answer = unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, number) };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn open(tid: u32, address: u64, stack_bytes: u32) -> io::Result<OwnedFd> {
    let mut event = breakpoint::attributes(generated::HW_BREAKPOINT_W, address, WORD_BYTES);
    event.sample_type = watchpoint_sample::TYPE;
    event.sample_regs_user = watchpoint_sample::REGISTERS;
    event.sample_stack_user = stack_bytes;
    event.clockid = libc::CLOCK_MONOTONIC;
    event.set_use_clockid(1);
    event.set_write_backward(1);
    event.set_exclude_hv(1);
    breakpoint::open(&event, tid)
}

/// The mapping into which the kernel writes samples. It is read-only, so the kernel overwrites old samples.
struct SampleRing {
    start: NonNull<u8>,
    /// Size of the control page, and of the data after it (a power of two), in bytes.
    page: usize,
    bytes: usize,
}

// SAFETY: the ring owns its mapping, which is valid in every thread.
unsafe impl Send for SampleRing {}

impl SampleRing {
    fn of(event: &OwnedFd, least: usize) -> io::Result<SampleRing> {
        let page = rustix::param::page_size();
        let bytes = least.max(page);
        let (protection, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
        // SAFETY: the kernel chooses the address of the new mapping.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), page + bytes, protection, flags, event, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SampleRing { start, page, bytes })
    }

    /// Returns the newest record. The output of the event must be paused.
    fn newest(&self) -> Option<Vec<u8>> {
        // SAFETY: the word lies in the first page of the mapping, aligned; the kernel stores it in one piece.
        let head = unsafe { self.start.add(DATA_HEAD).cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire);
        // The head counts down from 0.
        let written = head.wrapping_neg().min(self.bytes as u64) as usize;
        let header = self.copy(head, 8).filter(|_| written >= 8)?;
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        (8..=written).contains(&size).then(|| self.copy(head, size)).flatten()
    }

    fn copy(&self, from: u64, bytes: usize) -> Option<Vec<u8>> {
        let byte = |at: usize| {
            let at = (from as usize).wrapping_add(at) & (self.bytes - 1);
            // SAFETY: `at` is below the size of the data, which follow the first page of the mapping.
            unsafe { self.start.add(self.page + at).read_volatile() }
        };
        (bytes <= self.bytes).then(|| (0..bytes).map(byte).collect())
    }
}

impl Drop for SampleRing {
    fn drop(&mut self) {
        // SAFETY: the ring owns the mapping, and no reference to it remains.
        let _ignored = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.page + self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[repr(align(8))]
    struct Word(AtomicU64);

    #[inline(never)]
    fn store(word: &Word, value: u64) {
        word.0.store(value, Ordering::SeqCst);
    }

    /// Runs `body` with a watchpoint and a function that makes a thread store so many times. Skips the test
    /// where watchpoints are not available.
    fn watched(test: &str, body: impl FnOnce(&mut Watchpoint, &dyn Fn(u64))) {
        let word: &'static Word = Box::leak(Box::new(Word(AtomicU64::new(0))));
        let (requests, todo) = channel::<u64>();
        let (done, answers) = channel();
        let writer = std::thread::spawn(move || {
            // SAFETY: gettid(2) has no arguments and cannot fail.
            done.send(unsafe { libc::gettid() } as u32).unwrap();
            for times in todo {
                (0..times).for_each(|value| store(word, value));
                done.send(0).unwrap();
            }
        });
        let tid = answers.recv().unwrap();
        match Watchpoint::set(tid, word.0.as_ptr() as u64) {
            Ok(mut one) => body(&mut one, &|times| {
                requests.send(times).unwrap();
                answers.recv().unwrap();
            }),
            Err(error) => crate::call_sites::tests::skip(test, &format!("no watchpoints: {error}")),
        }
        drop(requests);
        writer.join().unwrap();
    }

    #[test]
    fn a_store_is_sampled_with_its_address() {
        watched("a_store_is_sampled_with_its_address", |one, store_times| {
            assert!(one.take_events().is_none());
            store_times(1);
            let events = one.take_events().expect("a store");
            let sample = events.sample.expect("a sample");
            assert!(events.last && !sample.stack.is_empty());
            let code = crate::call_sites::code(std::process::id());
            let own = code.iter().find(|one| (one.start..one.end).contains(&(store as *const () as u64)));
            let own = own.expect("this program's code");
            assert!((own.start..own.end).contains(&sample.registers.ip), "{:x}", sample.registers.ip);
            assert!(one.take_events().is_none(), "it is reported once");
        });
    }

    #[test]
    fn the_event_disables_itself_and_is_opened_again() {
        watched("the_event_disables_itself_and_is_opened_again", |one, store_times| {
            store_times(100_000);
            let events = one.take_events().expect("stores");
            assert!(!events.last && events.sample.is_some());
            store_times(3);
            let first = one.take_events().expect("set again");
            store_times(STORES / 2);
            let second = one.take_events().expect("with stores left");
            store_times(STORES - 1);
            let third = one.take_events().expect("opened again with all stores available");
            assert!(first.last && second.last && third.last && one.is_set());
            assert!(first.sample.unwrap().ns < second.sample.unwrap().ns);
            store_times(STORES);
            assert!(!one.take_events().unwrap().last);
        });
    }
}
