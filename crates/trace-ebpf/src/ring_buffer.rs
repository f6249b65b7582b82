//! The ring in which the kernel leaves events for weir (BPF_MAP_TYPE_RINGBUF, kernel/bpf/ringbuf.c). A part of it is mapped at
//! a time: the kernel fills in each page of a mapping as it is made and takes it back at its end, and for all of the ring
//! that takes longer than the report on a short program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// As much is mapped as is taken out at a time, about.
const WINDOW_BYTES: usize = 1 << 18;
/// In front of each event: its length with two flags, and a word that is the kernel's.
const HEADER_BYTES: usize = 8;
/// Somebody still writes it.
const BUSY: u32 = 1 << 31;
/// Nothing came of it.
const DISCARDED: u32 = 1 << 30;

/// Its only reader.
pub(super) struct RingBuffer {
    ring: OwnedFd,
    /// Of the ring, a power of two.
    bytes: usize,
    page: usize,
    /// How far it has been read: the kernel reads that from here.
    read: Mapping,
    /// How far it has been written.
    written: Mapping,
    window: Window,
    /// A part could not be mapped: what comes from there on is lost.
    pub unreadable: Option<io::Error>,
}

/// A part of the ring, and where it begins. The kernel has the ring there twice in a row, so that no event is in two pieces.
struct Window {
    from: usize,
    mapping: Mapping,
}

/// What is at a place of the ring.
enum Next<'a> {
    /// An event that is not written yet.
    Busy,
    /// So many bytes of which nothing came.
    Discarded(usize),
    Event(&'a [u8]),
}

struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only owner of its pages, which are the same from every thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(of: BorrowedFd<'_>, from: usize, bytes: usize, protection: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, of, from as u64)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The word that a page begins with.
    fn position(&self) -> &AtomicUsize {
        // SAFETY: a page begins aligned and holds a word; whoever shares it stores that in one piece.
        unsafe { self.start.cast::<AtomicUsize>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more. That it stays would harm nobody.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

impl RingBuffer {
    /// Of a ring that has room for so many bytes, and nobody else to read it.
    pub fn of(ring: OwnedFd, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let read = Mapping::new(ring.as_fd(), 0, page, ProtFlags::READ | ProtFlags::WRITE)?;
        let written = Mapping::new(ring.as_fd(), page, page, ProtFlags::READ)?;
        let window =
            Window { from: 0, mapping: Mapping::new(ring.as_fd(), 2 * page, page, ProtFlags::READ)? };
        Ok(Self { ring, bytes, page, read, written, window, unreadable: None })
    }

    /// Appends events to `batch`, each behind its length in four bytes, until there is none left or the batch has more than
    /// `enough` bytes. The kernel has their room back then.
    pub fn take(&mut self, batch: &mut Vec<u8>, enough: usize) {
        let mut at = self.read.position().load(Ordering::Acquire);
        while batch.len() <= enough && self.unreadable.is_none() {
            // Behind the store of what was read: whoever writes now sees either that, or is seen here.
            fence(Ordering::SeqCst);
            if at == self.written.position().load(Ordering::Acquire) {
                return;
            }
            let length = match self.next(at & (self.bytes - 1)) {
                Ok(Next::Busy) => return,
                Ok(Next::Discarded(length)) => length,
                Ok(Next::Event(event)) => {
                    batch.extend_from_slice(&(event.len() as u32).to_le_bytes());
                    batch.extend_from_slice(event);
                    event.len()
                }
                Err(error) => {
                    self.unreadable = Some(error);
                    return;
                }
            };
            at = at.wrapping_add((HEADER_BYTES + length).next_multiple_of(8));
            self.read.position().store(at, Ordering::Release);
        }
    }

    fn next(&mut self, at: usize) -> io::Result<Next<'_>> {
        let header = self.map(at, HEADER_BYTES)?;
        // SAFETY: events begin at multiples of 8, with this word, which is mapped; the kernel stores it in one piece.
        let header = unsafe { header.cast::<AtomicU32>().as_ref() }.load(Ordering::Acquire);
        if header & BUSY != 0 {
            return Ok(Next::Busy);
        }
        let length = (header & !(BUSY | DISCARDED)) as usize;
        if header & DISCARDED != 0 {
            return Ok(Next::Discarded(length));
        }
        let event = self.map(at + HEADER_BYTES, length)?;
        // SAFETY: so much is mapped, and the kernel lets it be until it is told that it was read, which `self` is needed for.
        Ok(Next::Event(unsafe { std::slice::from_raw_parts(event.as_ptr(), length) }))
    }

    /// So many bytes of the ring, mapped.
    fn map(&mut self, at: usize, bytes: usize) -> io::Result<NonNull<u8>> {
        let mapped = self.window.from..self.window.from + self.window.mapping.bytes;
        if !(mapped.contains(&at) && at + bytes <= mapped.end) {
            let from = at & !(self.page - 1);
            // Whoever says that an event ends behind the ring's second time does not speak of an event.
            let room = 2 * self.bytes - from;
            let wanted = (at - from + bytes).next_multiple_of(self.page);
            if wanted > room {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let wanted = wanted.max(WINDOW_BYTES).min(room);
            let mapping = Mapping::new(self.ring.as_fd(), 2 * self.page + from, wanted, ProtFlags::READ)?;
            self.window = Window { from, mapping };
        }
        // SAFETY: it lies within the mapping.
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

    /// What the kernel does, on a file: the two positions, and the ring twice.
    struct Writer {
        file: File,
        bytes: usize,
        page: usize,
        at: usize,
    }

    impl Writer {
        fn new(bytes: usize) -> (Self, RingBuffer) {
            let page = rustix::param::page_size();
            let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
            let file = File::from(file);
            file.set_len((2 * page + 2 * bytes) as u64).unwrap();
            let events = RingBuffer::of(file.try_clone().unwrap().into(), bytes).unwrap();
            (Self { file, bytes, page, at: 0 }, events)
        }

        fn put(&self, at: usize, text: &[u8]) {
            let at = at & (self.bytes - 1);
            let (here, around) = text.split_at(text.len().min(self.bytes - at));
            for (text, at) in [(here, at), (here, self.bytes + at), (around, 0), (around, self.bytes)] {
                self.file.write_all_at(text, (2 * self.page + at) as u64).unwrap();
            }
        }

        fn read(&self) -> usize {
            let mut word = [0; 8];
            self.file.read_exact_at(&mut word, 0).unwrap();
            usize::from_ne_bytes(word)
        }

        /// False: no room.
        fn write(&mut self, event: &[u8], flags: u32) -> bool {
            let more = (HEADER_BYTES + event.len()).next_multiple_of(8);
            if self.at + more - self.read() > self.bytes {
                return false;
            }
            self.put(self.at + HEADER_BYTES, event);
            self.put(self.at, &(event.len() as u32 | flags).to_ne_bytes());
            self.at += more;
            self.file.write_all_at(&self.at.to_ne_bytes(), self.page as u64).unwrap();
            true
        }
    }

    fn taken(events: &mut RingBuffer, enough: usize) -> Vec<Vec<u8>> {
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
    fn what_is_still_written_is_waited_for_and_what_is_discarded_left_out() {
        let (mut writer, mut events) = Writer::new(1 << 16);
        assert!(taken(&mut events, 1 << 20).is_empty());
        writer.write(b"first", 0);
        writer.write(b"nothing", DISCARDED);
        let third = writer.at;
        writer.write(b"third", BUSY);
        writer.write(b"fourth", 0);
        assert_eq!(taken(&mut events, 1 << 20), [b"first"]);
        writer.put(third, &5_u32.to_ne_bytes());
        assert_eq!(taken(&mut events, 1 << 20), [b"third".to_vec(), b"fourth".to_vec()]);
        assert_eq!(events.read.position().load(Ordering::Relaxed), writer.at);
    }

    #[test]
    fn a_length_that_no_event_has_ends_it() {
        let (mut writer, mut events) = Writer::new(1 << 16);
        writer.write(b"first", 0);
        let second = writer.at;
        writer.write(b"second", 0);
        writer.put(second, &(1_u32 << 20).to_ne_bytes());
        assert_eq!(taken(&mut events, 1 << 20), [b"first"]);
        assert_eq!(events.unreadable.as_ref().map(io::Error::kind), Some(io::ErrorKind::InvalidData));
        assert!(taken(&mut events, 1 << 20).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Whatever their lengths, also of one that is larger than what is mapped at a time.
        #[test]
        fn every_event_comes_once_and_in_order(
            lengths in prop::collection::vec(prop_oneof![8 => 0..2_000_usize, 1 => 20_000..280_000_usize], 1..40),
            enough in 1_000..300_000_usize,
        ) {
            let (mut writer, mut events) = Writer::new(1 << 19);
            let (mut written, mut read) = (Vec::new(), Vec::new());
            for (i, length) in lengths.into_iter().enumerate() {
                let event = vec![i as u8; length];
                while !writer.write(&event, 0) {
                    read.extend(taken(&mut events, enough));
                }
                written.push(event);
            }
            while let more @ [_, ..] = taken(&mut events, enough).as_slice() {
                read.extend(more.iter().cloned());
            }
            prop_assert!(events.unreadable.is_none());
            prop_assert_eq!(read, written);
        }
    }
}
