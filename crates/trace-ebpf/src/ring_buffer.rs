//! The consumer side of BPF_MAP_TYPE_RINGBUF (kernel documentation: bpf/ringbuf.rst).
//!
//! Only a part of the ring is mapped at a time: the kernel populates each page when it creates the mapping, and for the whole
//! ring that takes longer than the report on a short program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes mapped at a time: one batch of `drain.rs`.
const WINDOW_BYTES: usize = 1 << 18;
/// BPF_RINGBUF_HDR_SZ: the length of an event with two flags, and a word for the kernel.
const HEADER_BYTES: usize = 8;
/// BPF_RINGBUF_BUSY_BIT: a program has not submitted the event yet.
const BUSY: u32 = 1 << 31;
/// BPF_RINGBUF_DISCARD_BIT: a program has discarded the event.
const DISCARDED: u32 = 1 << 30;

/// The only consumer of a ring buffer.
pub(super) struct RingBuffer {
    ring: OwnedFd,
    /// Size of the ring, a power of two.
    bytes: usize,
    page: usize,
    /// The page with the consumer's position, which the kernel reads.
    consumer: Mapping,
    /// The page with the producers' position.
    producer: Mapping,
    window: Window,
    /// Why a part of the ring could not be mapped. No event after it is read.
    pub unreadable: Option<io::Error>,
}

/// The mapped part of the ring. The kernel maps the ring twice in a row, so that every event is contiguous.
struct Window {
    /// Offset in the ring.
    from: usize,
    mapping: Mapping,
}

/// The record at a position of the ring.
enum RingRecord<'a> {
    Busy,
    /// Length of the mapping in bytes.
    Discarded(usize),
    Event(&'a [u8]),
}

struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone, and is valid in every thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(of: BorrowedFd<'_>, from: usize, bytes: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address of the new mapping.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, of, from as u64)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The position at the beginning of the page.
    fn position(&self) -> &AtomicUsize {
        // SAFETY: the page is aligned and large enough, and the kernel accesses the position atomically.
        unsafe { self.start.cast::<AtomicUsize>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and all borrows of it have ended.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

impl RingBuffer {
    /// Maps the positions of a ring of `bytes`. There must be no other consumer.
    pub fn new(ring: OwnedFd, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let consumer = Mapping::new(ring.as_fd(), 0, page, ProtFlags::READ | ProtFlags::WRITE)?;
        let producer = Mapping::new(ring.as_fd(), page, page, ProtFlags::READ)?;
        let window =
            Window { from: 0, mapping: Mapping::new(ring.as_fd(), 2 * page, page, ProtFlags::READ)? };
        Ok(Self { ring, bytes, page, consumer, producer, window, unreadable: None })
    }

    /// Returns the size of the ring. A batch of that size has all events that were in the ring when its first one was taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends events to `batch`, each after its length in four bytes, until none is left or the batch has more than
    /// `enough` bytes. Frees their space in the ring.
    pub fn take(&mut self, batch: &mut Vec<u8>, enough: usize) {
        let mut at = self.consumer.position().load(Ordering::Acquire);
        while batch.len() <= enough && self.unreadable.is_none() {
            // Orders the store of the consumer's position before the load: a producer either sees the position and wakes
            // weir, or its event is seen here.
            fence(Ordering::SeqCst);
            let ready = self.producer.position().load(Ordering::Acquire).wrapping_sub(at);
            if ready == 0 {
                return;
            }
            let length = match self.next(at & (self.bytes - 1)) {
                Ok(RingRecord::Busy) => return,
                Ok(RingRecord::Discarded(length)) => length,
                Ok(RingRecord::Event(event)) => {
                    batch.extend_from_slice(&(event.len() as u32).to_le_bytes());
                    batch.extend_from_slice(event);
                    event.len()
                }
                Err(error) => {
                    self.unreadable = Some(error);
                    return;
                }
            };
            let used = (HEADER_BYTES + length).next_multiple_of(8);
            if used > ready {
                // After a corrupt length no later event can be found.
                self.unreadable = Some(io::ErrorKind::InvalidData.into());
                return;
            }
            at = at.wrapping_add(used);
            self.consumer.position().store(at, Ordering::Release);
        }
    }

    fn next(&mut self, at: usize) -> io::Result<RingRecord<'_>> {
        let header = self.map(at, HEADER_BYTES)?;
        // SAFETY: the header is mapped and aligned to 8 bytes, and the kernel accesses its first word atomically.
        let header = unsafe { header.cast::<AtomicU32>().as_ref() }.load(Ordering::Acquire);
        if header & BUSY != 0 {
            return Ok(RingRecord::Busy);
        }
        let length = (header & !(BUSY | DISCARDED)) as usize;
        if header & DISCARDED != 0 {
            return Ok(RingRecord::Discarded(length));
        }
        let event = self.map(at + HEADER_BYTES, length)?;
        // SAFETY: the event is mapped, and the kernel does not overwrite it before the consumer's position passes it, which
        // needs `&mut self`.
        Ok(RingRecord::Event(unsafe { std::slice::from_raw_parts(event.as_ptr(), length) }))
    }

    /// Returns the address of `bytes` of the ring, and maps another part if necessary.
    fn map(&mut self, at: usize, bytes: usize) -> io::Result<NonNull<u8>> {
        let mapped = self.window.from..self.window.from + self.window.mapping.bytes;
        if !(mapped.contains(&at) && at + bytes <= mapped.end) {
            let from = at & !(self.page - 1);
            // An event that ended after the second copy of the ring would be corrupt.
            let room = 2 * self.bytes - from;
            let wanted = (at - from + bytes).next_multiple_of(self.page);
            if wanted > room {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let wanted = wanted.max(WINDOW_BYTES).min(room);
            let mapping = Mapping::new(self.ring.as_fd(), 2 * self.page + from, wanted, ProtFlags::READ)?;
            self.window = Window { from, mapping };
        }
        // SAFETY: the address is inside the mapping.
        Ok(unsafe { self.window.mapping.start.add(at - self.window.from) })
    }
}

impl AsFd for RingBuffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    /// Does what the kernel does, on a file: the two positions, and two copies of the ring.
    struct Producer {
        file: File,
        bytes: usize,
        page: usize,
        at: usize,
    }

    impl Producer {
        fn new(bytes: usize) -> (Self, RingBuffer) {
            let page = rustix::param::page_size();
            let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
            let file = File::from(file);
            file.set_len((2 * page + 2 * bytes) as u64).unwrap();
            let events = RingBuffer::new(file.try_clone().unwrap().into(), bytes).unwrap();
            (Self { file, bytes, page, at: 0 }, events)
        }

        fn put(&self, at: usize, text: &[u8]) {
            let at = at & (self.bytes - 1);
            let (here, wrapped) = text.split_at(text.len().min(self.bytes - at));
            for (text, at) in [(here, at), (here, self.bytes + at), (wrapped, 0), (wrapped, self.bytes)] {
                self.file.write_all_at(text, (2 * self.page + at) as u64).unwrap();
            }
        }

        fn consumer_position(&self) -> usize {
            let mut word = [0; 8];
            self.file.read_exact_at(&mut word, 0).unwrap();
            usize::from_ne_bytes(word)
        }

        /// Returns false if the ring is full.
        fn write(&mut self, event: &[u8], flags: u32) -> bool {
            let more = (HEADER_BYTES + event.len()).next_multiple_of(8);
            if self.at + more - self.consumer_position() > self.bytes {
                return false;
            }
            self.put(self.at + HEADER_BYTES, event);
            self.put(self.at, &(event.len() as u32 | flags).to_ne_bytes());
            self.at += more;
            self.file.write_all_at(&self.at.to_ne_bytes(), self.page as u64).unwrap();
            true
        }
    }

    fn take_all(events: &mut RingBuffer, enough: usize) -> Vec<Vec<u8>> {
        let mut batch = Vec::new();
        events.take(&mut batch, enough);
        let (mut rest, mut all) = (batch.as_slice(), Vec::new());
        while let Some((length, more)) = rest.split_at_checked(4) {
            let (event, more) = more.split_at(u32::from_le_bytes(length.try_into().unwrap()) as usize);
            all.push(event.to_vec());
            rest = more;
        }
        all
    }

    #[test]
    fn busy_events_are_awaited_and_discarded_ones_skipped() {
        let (mut producer, mut events) = Producer::new(1 << 16);
        assert!(take_all(&mut events, 1 << 20).is_empty());
        producer.write(b"first", 0);
        producer.write(b"nothing", DISCARDED);
        let third = producer.at;
        producer.write(b"third", BUSY);
        producer.write(b"fourth", 0);
        assert_eq!(take_all(&mut events, 1 << 20), [b"first"]);
        producer.put(third, &5_u32.to_ne_bytes());
        assert_eq!(take_all(&mut events, 1 << 20), [b"third".to_vec(), b"fourth".to_vec()]);
        assert_eq!(events.consumer.position().load(Ordering::Relaxed), producer.at);
    }

    #[test]
    fn an_impossible_length_ends_the_reading() {
        let (mut producer, mut events) = Producer::new(1 << 16);
        producer.write(b"first", 0);
        let second = producer.at;
        producer.write(b"second", 0);
        producer.put(second, &(1_u32 << 20).to_ne_bytes());
        assert_eq!(take_all(&mut events, 1 << 20), [b"first"]);
        assert_eq!(events.unreadable.as_ref().map(io::Error::kind), Some(io::ErrorKind::InvalidData));
        assert!(take_all(&mut events, 1 << 20).is_empty());
    }

    /// The reader never met the producer's position again, and read for ever.
    #[test]
    fn an_impossible_length_of_a_discarded_event_ends_the_reading() {
        let (mut producer, mut events) = Producer::new(1 << 16);
        producer.write(b"nothing", DISCARDED);
        producer.put(0, &(DISCARDED | 0x0bff_fff3).to_ne_bytes());
        assert!(take_all(&mut events, 1 << 20).is_empty());
        assert_eq!(events.unreadable.as_ref().map(io::Error::kind), Some(io::ErrorKind::InvalidData));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Also if an event is larger than the mapped window.
        #[test]
        fn every_event_comes_once_and_in_order(
            lengths in prop::collection::vec(prop_oneof![8 => 0..2_000_usize, 1 => 20_000..280_000_usize], 1..40),
            enough in 1_000..300_000_usize,
        ) {
            let (mut producer, mut events) = Producer::new(1 << 19);
            let (mut written, mut read) = (Vec::new(), Vec::new());
            for (i, length) in lengths.into_iter().enumerate() {
                let event = vec![i as u8; length];
                while !producer.write(&event, 0) {
                    read.extend(take_all(&mut events, enough));
                }
                written.push(event);
            }
            while let more @ [_, ..] = take_all(&mut events, enough).as_slice() {
                read.extend(more.iter().cloned());
            }
            prop_assert!(events.unreadable.is_none());
            prop_assert_eq!(read, written);
        }
    }
}
