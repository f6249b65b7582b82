//! A watchpoint of the processor on one word of a thread's memory, by perf_event_open(2): each store into it leaves
//! the thread's registers and the top of its stack in a ring. Nobody is stopped or signalled, and nothing is written
//! into the program.
//!
//! After a few stores the kernel switches it off, until it is set again: a loop of putc(3) loses microseconds.
//! The ring is overwritten from its end backwards, so that the newest sample is always whole and at its head.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use aya_obj::generated;
use weir_sys::breakpoint;

use crate::call_sites::watchpoint_sample::{self, WatchpointSample};

/// So many stores are sampled before it is set again: one call of printf(3) is up to four.
const STORES: u64 = 8;
/// The length of the word.
const WORD_BYTES: u64 = 8;
/// The size of a ring with the stack that is copied into it: one sample is always whole in it. Locked memory is
/// scarce for who has no privilege (perf_event_mlock_kb), so a smaller one is tried behind it.
const SIZES: [(usize, u32); 2] = [(16 << 10, 8 << 10), (8 << 10, 4 << 10)];

/// Of linux/perf_event.h.
const REFRESH: libc::c_ulong = 0x2402;
const PAUSE_OUTPUT: libc::c_ulong = 0x4004_2409;
/// `data_head` of struct perf_event_mmap_page, whose data are in the pages behind it.
const DATA_HEAD: usize = 1024;

/// One, for one thread. Dropped, it is gone.
pub(super) struct Watchpoint {
    tid: u32,
    address: u64,
    /// None: it has ended, or its register was taken when it was to be set again.
    event: Option<Event>,
}

/// What a look at it found.
#[derive(Debug)]
pub(super) struct WatchpointEvents {
    /// The newest sample.
    pub sample: Option<WatchpointSample>,
    /// It has not switched itself off, and no store came while the ring was read.
    pub last: bool,
}

impl Watchpoint {
    /// On the word at `address`. The error is the kernel's: there is no free register (ENOSPC), it is not allowed
    /// (EACCES, EPERM), the thread has ended (ESRCH).
    pub fn set(tid: u32, address: u64) -> io::Result<Watchpoint> {
        Ok(Watchpoint { tid, address, event: Some(Event::set(tid, address)?) })
    }

    /// Whether it sees the next store.
    pub fn is_set(&self) -> bool {
        self.event.is_some()
    }

    /// What it saw since the last call; None: nothing. It has most of its allowance again in any case.
    pub fn news(&mut self) -> Option<WatchpointEvents> {
        let event = self.event.as_mut()?;
        let news = event.news()?;
        // Switched on again by PERF_EVENT_IOC_REFRESH it would see nothing (Linux 6.18): it is made anew.
        if event.told * 2 >= STORES {
            self.event = None;
            self.event = Event::set(self.tid, self.address).ok();
        }
        Some(news)
    }
}

/// A perf event with its ring.
struct Event {
    file: File,
    ring: Ring,
    /// Stores that were told of.
    told: u64,
}

impl Event {
    fn set(tid: u32, address: u64) -> io::Result<Event> {
        let mut why = io::Error::from_raw_os_error(libc::EPERM);
        for (bytes, stack_bytes) in SIZES {
            let event = open(tid, address, stack_bytes)?;
            match Ring::of(&event, bytes) {
                Ok(ring) => {
                    let one = Event { file: File::from(event), ring, told: 0 };
                    one.control(REFRESH, STORES as libc::c_ulong)?;
                    return Ok(one);
                }
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn news(&mut self) -> Option<WatchpointEvents> {
        let stores = self.stores();
        if stores == self.told {
            return None;
        }
        self.pause(true);
        let sample = self.ring.newest().and_then(|record| watchpoint_sample::parse(&record));
        self.pause(false);
        self.told = stores;
        // A store that came meanwhile has left no sample.
        Some(WatchpointEvents { sample, last: self.stores() == stores && stores < STORES })
    }

    fn stores(&self) -> u64 {
        let mut count = [0; 8];
        let read = (&self.file).read(&mut count);
        if read.is_ok_and(|bytes| bytes == 8) { u64::from_ne_bytes(count) } else { self.told }
    }

    fn pause(&self, paused: bool) {
        let _never = self.control(PAUSE_OUTPUT, libc::c_ulong::from(paused));
    }

    fn control(&self, request: libc::c_ulong, number: libc::c_ulong) -> io::Result<()> {
        // SAFETY: a request of perf events that takes a number.
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

/// The memory that the kernel writes samples into, read only: then it goes round for ever.
struct Ring {
    start: NonNull<u8>,
    /// Of the page in front of the data, and of the data, a power of two.
    page: usize,
    bytes: usize,
}

// SAFETY: it is the only owner of its mapping, which is the same from every thread.
unsafe impl Send for Ring {}

impl Ring {
    fn of(event: &OwnedFd, least: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let bytes = least.max(page);
        let (protection, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), page + bytes, protection, flags, event, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { start, page, bytes })
    }

    /// The newest record; to be called while nothing is written.
    fn newest(&self) -> Option<Vec<u8>> {
        // SAFETY: the word lies in the first page of the mapping, aligned; the kernel stores it in one piece.
        let head = unsafe { self.start.add(DATA_HEAD).cast::<AtomicU64>().as_ref() }.load(Ordering::Acquire);
        // It counts down from 0.
        let written = head.wrapping_neg().min(self.bytes as u64) as usize;
        let header = self.copy(head, 8).filter(|_| written >= 8)?;
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        (8..=written).contains(&size).then(|| self.copy(head, size)).flatten()
    }

    fn copy(&self, from: u64, bytes: usize) -> Option<Vec<u8>> {
        let byte = |at: usize| {
            let at = (from as usize).wrapping_add(at) & (self.bytes - 1);
            // SAFETY: `at` is below the size of the data, which lie behind the first page of the mapping.
            unsafe { self.start.add(self.page + at).read_volatile() }
        };
        (bytes <= self.bytes).then(|| (0..bytes).map(byte).collect())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more.
        let _never = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.page + self.bytes) };
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

    /// A thread that stores as often as it is told; None where watchpoints are not to be had.
    fn watched(test: &str, body: impl FnOnce(&mut Watchpoint, &dyn Fn(u64))) {
        let word: &'static Word = Box::leak(Box::new(Word(AtomicU64::new(0))));
        let (orders, todo) = channel::<u64>();
        let (done, answers) = channel();
        let writer = std::thread::spawn(move || {
            // SAFETY: asks for a number.
            done.send(unsafe { libc::gettid() } as u32).unwrap();
            for times in todo {
                (0..times).for_each(|value| store(word, value));
                done.send(0).unwrap();
            }
        });
        let tid = answers.recv().unwrap();
        match Watchpoint::set(tid, word.0.as_ptr() as u64) {
            Ok(mut one) => body(&mut one, &|times| {
                orders.send(times).unwrap();
                answers.recv().unwrap();
            }),
            Err(error) => crate::call_sites::tests::skip(test, &format!("no watchpoints: {error}")),
        }
        drop(orders);
        writer.join().unwrap();
    }

    #[test]
    fn a_store_leaves_where_it_was() {
        watched("a_store_leaves_where_it_was", |one, store_times| {
            assert!(one.news().is_none());
            store_times(1);
            let news = one.news().expect("a store");
            let sample = news.sample.expect("a sample");
            assert!(news.last && !sample.stack.is_empty());
            let code = crate::call_sites::code(std::process::id());
            let own = code.iter().find(|one| (one.start..one.end).contains(&(store as *const () as u64)));
            let own = own.expect("this program's code");
            assert!((own.start..own.end).contains(&sample.registers.ip), "{:x}", sample.registers.ip);
            assert!(one.news().is_none(), "it is told once");
        });
    }

    #[test]
    fn it_switches_itself_off_and_can_be_armed_again() {
        watched("it_switches_itself_off_and_can_be_armed_again", |one, store_times| {
            store_times(100_000);
            let news = one.news().expect("stores");
            assert!(!news.last && news.sample.is_some());
            store_times(3);
            let first = one.news().expect("set again");
            store_times(STORES / 2);
            let second = one.news().expect("within its allowance");
            store_times(STORES - 1);
            let third = one.news().expect("set again with its whole allowance");
            assert!(first.last && second.last && third.last && one.is_set());
            assert!(first.sample.unwrap().ns < second.sample.unwrap().ns);
            store_times(STORES);
            assert!(!one.news().unwrap().last);
        });
    }
}
