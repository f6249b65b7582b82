//! A hardware watchpoint on one word of a thread's memory (perf_event_open(2)): each store to it puts the
//! thread's registers and the top of its stack into a ring buffer. The thread is neither stopped nor signalled,
//! and its memory is not changed.
//!
//! The kernel disables the event after a few stores, so that a loop of putc(3) loses only microseconds.

use std::io;

use aya_obj::generated;
use weir_sys::breakpoint;

use super::perf_event::{PerfEvent, SampledEvents};

/// Stores until the kernel disables the event: one printf(3) makes up to four.
const STORES: u64 = 8;
/// Size of the watched word.
const WORD_BYTES: u64 = 8;

/// A watchpoint of one thread. It is removed on drop.
pub(super) struct Watchpoint {
    tid: u32,
    address: u64,
    /// None if the thread has exited, or if the debug register was taken when the event was opened again.
    event: Option<PerfEvent>,
}

impl Watchpoint {
    /// Watches the word at `address`. Fails with ENOSPC without a free register, with EACCES or EPERM without
    /// permission, and with ESRCH if the thread has exited.
    pub fn set(tid: u32, address: u64) -> io::Result<Watchpoint> {
        Ok(Watchpoint { tid, address, event: Some(enable(tid, address)?) })
    }

    /// Returns whether the next store is sampled.
    pub fn is_set(&self) -> bool {
        self.event.is_some()
    }

    /// Returns the stores since the last call, or none. At least half of [`STORES`] are available afterwards.
    pub fn take_events(&mut self) -> Option<SampledEvents> {
        let event = self.event.as_mut()?;
        let events = event.take_events()?;
        // An event that PERF_EVENT_IOC_REFRESH enables again gets no samples (Linux 6.18), so it is opened
        // anew.
        if event.reported * 2 >= STORES {
            self.event = None;
            self.event = enable(self.tid, self.address).ok();
        }
        Some(events)
    }
}

fn enable(tid: u32, address: u64) -> io::Result<PerfEvent> {
    let event = breakpoint::attributes(generated::HW_BREAKPOINT_W, address, WORD_BYTES);
    PerfEvent::enable(&event, tid, STORES)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
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
