//! A perf event of one thread that samples its registers and the top of its stack (perf_event_open(2)). The thread is neither
//! stopped nor signalled, and its memory is not changed.
//!
//! The kernel disables the event after a few samples. The ring is written backwards, so the newest sample is always
//! complete and at its head.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use aya_obj::generated::perf_event_attr;
use weir_sys::breakpoint;

use crate::call_sites::stack_sample::{self, StackSample};

/// Sizes of the ring and of the copied stack, in bytes. One sample fits. The second pair is tried if an
/// unprivileged user has no locked memory left (perf_event_mlock_kb).
const RING_SIZES: [(usize, u32); 2] = [(16 << 10, 8 << 10), (8 << 10, 4 << 10)];

/// PERF_EVENT_IOC_REFRESH and PERF_EVENT_IOC_PAUSE_OUTPUT of linux/perf_event.h.
const REFRESH: libc::c_ulong = 0x2402;
const PAUSE_OUTPUT: libc::c_ulong = 0x4004_2409;
/// PERF_RECORD_LOST.
const LOST: u32 = 2;
/// Offset of `data_head` in struct perf_event_mmap_page; the data are in the pages after it.
const DATA_HEAD: usize = 1024;

/// An event of one thread and the ring of its samples. It ends on drop.
pub(super) struct PerfEvent {
    file: File,
    ring: SampleRing,
    /// Events until the kernel disables it.
    limit: u64,
    /// Number of events that were reported.
    pub reported: u64,
    /// Time of the last sample that was returned, in nanoseconds of CLOCK_MONOTONIC.
    returned_ns: u64,
}

/// The events since the last read.
#[derive(Debug)]
pub(super) struct SampledEvents {
    /// The sample of the newest event that has one; None if all of them have none.
    pub sample: Option<StackSample>,
    /// The event is still enabled, and none came while the ring was read: the sample is of the last one.
    pub last: bool,
}

impl PerfEvent {
    /// Enables an event of a thread until it has occurred `limit` times. `event` is disabled; this adds the sample. Fails with
    /// the error of perf_event_open(2).
    pub fn enable(event: &perf_event_attr, tid: u32, limit: u64) -> io::Result<PerfEvent> {
        let mut last_error = io::Error::from_raw_os_error(libc::EPERM);
        for (bytes, stack_bytes) in RING_SIZES {
            let event = breakpoint::open(&with_samples(*event, stack_bytes), tid)?;
            match SampleRing::of(&event, bytes) {
                Ok(ring) => {
                    let one = PerfEvent { file: File::from(event), ring, limit, reported: 0, returned_ns: 0 };
                    one.control(REFRESH, limit as libc::c_ulong)?;
                    return Ok(one);
                }
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Returns the events since the last call, or none.
    pub fn take_events(&mut self) -> Option<SampledEvents> {
        let count = self.count();
        if count == self.reported {
            return None;
        }
        self.pause_output(true);
        let newest = self.ring.newest().and_then(|record| stack_sample::parse(&record));
        self.pause_output(false);
        self.reported = count;
        // An event during an earlier read is counted only now. The newest sample is then that of the event before it.
        let sample = newest.filter(|sample| sample.ns != self.returned_ns);
        self.returned_ns = sample.as_ref().map_or(self.returned_ns, |sample| sample.ns);
        // An event during the read has left no sample.
        Some(SampledEvents { sample, last: self.count() == count && count < self.limit })
    }

    fn count(&self) -> u64 {
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

/// Returns an event that puts registers and the top of the stack into the ring each time.
fn with_samples(mut event: perf_event_attr, stack_bytes: u32) -> perf_event_attr {
    event.sample_type = stack_sample::TYPE;
    event.sample_regs_user = stack_sample::REGISTERS;
    event.sample_stack_user = stack_bytes;
    event.clockid = libc::CLOCK_MONOTONIC;
    event.set_use_clockid(1);
    event.set_write_backward(1);
    event.set_exclude_hv(1);
    event
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

    /// Returns the newest record that is no note about lost ones. The output of the event must be paused.
    fn newest(&self) -> Option<Vec<u8>> {
        // SAFETY: the word lies in the first page of the mapping, aligned; the kernel stores it in one piece.
        let head = unsafe { self.start.add(DATA_HEAD).cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire);
        // The head counts down from 0.
        let written = head.wrapping_neg().min(self.bytes as u64) as usize;
        let newest = self.record(head, written)?;
        // The kernel writes such a note, and behind it the first record after the lost ones.
        let is_note = newest.starts_with(&LOST.to_ne_bytes());
        let behind = |note: &[u8]| self.record(head.wrapping_add(note.len() as u64), written - note.len());
        if is_note { behind(&newest) } else { Some(newest) }
    }

    /// Returns the record at `at`; None if it does not fit into the `written` bytes from there on.
    fn record(&self, at: u64, written: usize) -> Option<Vec<u8>> {
        let header = self.copy(at, 8).filter(|_| written >= 8)?;
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        (8..=written).contains(&size).then(|| self.copy(at, size)).flatten()
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
    use aya_obj::generated;

    use super::*;

    #[test]
    fn an_event_during_a_read_does_not_return_the_sample_before_it() {
        #[repr(align(8))]
        struct Word(AtomicU64);
        let word = Word(AtomicU64::new(0));
        let event = breakpoint::attributes(generated::HW_BREAKPOINT_W, word.0.as_ptr() as u64, 8);
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut one = match PerfEvent::enable(&event, tid, 8) {
            Ok(one) => one,
            Err(error) => {
                let name = "an_event_during_a_read_does_not_return_the_sample_before_it";
                return crate::call_sites::tests::skip(name, &format!("no watchpoints: {error}"));
            }
        };
        word.0.store(1, Ordering::SeqCst);
        let first = one.take_events().expect("a store");
        assert!(first.last && first.sample.is_some());
        one.pause_output(true);
        word.0.store(2, Ordering::SeqCst);
        one.pause_output(false);
        assert_eq!(one.take_events().expect("a store").sample, None);
        word.0.store(3, Ordering::SeqCst);
        let third = one.take_events().expect("a store").sample.expect("a sample");
        assert!(Some(third.ns) > first.sample.map(|sample| sample.ns));
    }
}
