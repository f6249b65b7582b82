//! io_uring(7): several chunks are read and written at a time.

use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;

use super::{RangeEnd, RangeResult, Transfer, TransferError, is_refusal};
use crate::buffer::AlignedBuffer;

/// Chunks in flight: enough to keep a device busy while the next ones are read.
const SLOTS: usize = 4;

/// A chunk on its way: read into the buffer, then written to the same offset.
struct Slot {
    buffer: AlignedBuffer,
    offset: u64,
    bytes: usize,
    /// Bytes that this step has moved.
    moved: usize,
    step: SlotStep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotStep {
    Idle,
    Reading,
    Writing,
}

/// The state of a copy of one range.
struct UringCopy {
    ring: IoUring,
    slots: Vec<Slot>,
    /// The offset of the next chunk.
    next: u64,
    /// The source ended here.
    source_end: Option<u64>,
    /// The result of the copy after its first refusal or error; None before.
    failure: Option<RangeResult>,
}

/// Copies a range. The position moves to the offset below which every byte has arrived.
pub(super) fn copy_to(transfer: &mut Transfer, at: &mut u64, end: u64) -> RangeResult {
    let ring = match IoUring::new(2 * SLOTS as u32) {
        Ok(ring) => ring,
        Err(error) => {
            let errno = Errno::from_io_error(&error);
            return Ok(RangeEnd::Refused { call: "io_uring_setup", errno });
        }
    };
    let chunk = transfer.control.chunk(transfer.chunk);
    let slots = (0..SLOTS).map(|_| Slot {
        buffer: AlignedBuffer::new(chunk),
        offset: 0,
        bytes: 0,
        moved: 0,
        step: SlotStep::Idle,
    });
    let mut copy = UringCopy { ring, slots: slots.collect(), next: *at, source_end: None, failure: None };
    let result = copy.run(transfer, at, end, chunk);
    // The kernel may still write into the buffers of chunks in flight.
    copy.drain();
    result?;
    match copy.failure.take() {
        Some(end) => end,
        None if copy.source_end.is_some() => Ok(RangeEnd::SourceEnded),
        None => Ok(RangeEnd::Complete),
    }
}

impl UringCopy {
    fn run(
        &mut self,
        transfer: &mut Transfer,
        at: &mut u64,
        end: u64,
        chunk: usize,
    ) -> Result<(), TransferError> {
        loop {
            self.fill(transfer, end, chunk)?;
            let Some(lowest) = self.lowest() else { break };
            self.note_arrived(transfer, at, lowest)?;
            self.wait(transfer)?;
        }
        let reached = self.source_end.unwrap_or(self.next).min(self.next);
        if self.failure.is_none() {
            self.note_arrived(transfer, at, reached)?;
        }
        Ok(())
    }

    /// Starts reads in idle slots.
    fn fill(&mut self, transfer: &mut Transfer, end: u64, chunk: usize) -> Result<(), TransferError> {
        for number in 0..SLOTS {
            let may_start = self.failure.is_none() && self.source_end.is_none() && self.next < end;
            if self.slots[number].step != SlotStep::Idle || !may_start {
                continue;
            }
            let slot = &mut self.slots[number];
            slot.offset = self.next;
            slot.bytes = usize::try_from(end - self.next).map_or(chunk, |left| left.min(chunk));
            slot.moved = 0;
            slot.step = SlotStep::Reading;
            self.next += slot.bytes as u64;
            self.submit(transfer, number)?;
        }
        Ok(())
    }

    /// Returns the lowest offset that is not in the target yet; None if no chunk is in flight.
    fn lowest(&self) -> Option<u64> {
        let busy = self.slots.iter().filter(|slot| slot.step != SlotStep::Idle);
        busy.map(|slot| slot.offset).min()
    }

    fn note_arrived(&self, transfer: &mut Transfer, at: &mut u64, lowest: u64) -> Result<(), TransferError> {
        // After a failure a hole may be below the lowest busy chunk.
        if self.failure.is_none() && lowest > *at {
            transfer.arrived(*at, lowest - *at)?;
            *at = lowest;
        }
        Ok(())
    }

    fn submit(&mut self, transfer: &mut Transfer, number: usize) -> Result<(), TransferError> {
        let slot = &mut self.slots[number];
        let offset = slot.offset + slot.moved as u64;
        let rest = (slot.bytes - slot.moved) as u32;
        let entry = match slot.step {
            SlotStep::Writing => {
                transfer.tally.call("io_uring write");
                let from = slot.buffer[slot.moved..].as_ptr();
                opcode::Write::new(types::Fd(transfer.target.as_raw_fd()), from, rest).offset(offset).build()
            }
            _ => {
                transfer.tally.call("io_uring read");
                let into = slot.buffer[slot.moved..].as_mut_ptr();
                opcode::Read::new(types::Fd(transfer.source.as_raw_fd()), into, rest).offset(offset).build()
            }
        };
        // SAFETY: the slot's buffer stays where it is until its completion arrives: `drain` waits for all, and the
        // descriptors outlive the copy.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(number as u64)) };
        pushed.map_err(|_| TransferError::Target("io_uring", io::Error::from_raw_os_error(libc::EBUSY)))
    }

    /// Submits what was pushed, waits for a completion and starts the next step of each completed chunk.
    fn wait(&mut self, transfer: &mut Transfer) -> Result<(), TransferError> {
        transfer.tally.call("io_uring_enter");
        match self.ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                return Err(TransferError::Target("io_uring_enter", error));
            }
            _ => {}
        }
        let completed: Vec<(usize, i32)> =
            self.ring.completion().map(|entry| (entry.user_data() as usize, entry.result())).collect();
        for (number, result) in completed {
            if self.complete(number, result) {
                self.submit(transfer, number)?;
            }
        }
        Ok(())
    }

    /// Takes the result of a chunk's step. Returns whether the chunk has a next step.
    fn complete(&mut self, number: usize, result: i32) -> bool {
        let slot = &mut self.slots[number];
        let call = if slot.step == SlotStep::Reading { "io_uring read" } else { "io_uring write" };
        if result == -libc::EINTR || result == -libc::EAGAIN {
            return true;
        }
        if result < 0 || (result == 0 && slot.step == SlotStep::Writing) {
            let errno = if result == 0 { libc::EIO } else { -result };
            let failure = match (Errno::from_raw_os_error(errno), slot.step) {
                (refused, _) if is_refusal(refused) => Ok(RangeEnd::Refused { call, errno: Some(refused) }),
                (errno, SlotStep::Reading) => Err(TransferError::Source(call, errno.into())),
                (errno, _) => Err(TransferError::Target(call, errno.into())),
            };
            slot.step = SlotStep::Idle;
            self.failure.get_or_insert(failure);
            return false;
        }
        slot.moved += result as usize;
        if slot.step == SlotStep::Reading && result == 0 {
            let end = slot.offset + slot.moved as u64;
            self.source_end = Some(self.source_end.map_or(end, |earlier| earlier.min(end)));
            slot.bytes = slot.moved;
        }
        if slot.moved < slot.bytes {
            return true;
        }
        let has_next = slot.step == SlotStep::Reading && slot.bytes > 0;
        slot.step = if has_next { SlotStep::Writing } else { SlotStep::Idle };
        slot.moved = 0;
        has_next
    }

    /// Waits for all chunks in flight.
    fn drain(&mut self) {
        while self.slots.iter().any(|slot| slot.step != SlotStep::Idle) {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                    // The kernel may use the buffers for ever: they are never freed.
                    self.slots.drain(..).for_each(std::mem::forget);
                    return;
                }
                _ => {}
            }
            let completed: Vec<usize> =
                self.ring.completion().map(|entry| entry.user_data() as usize).collect();
            for number in completed {
                self.slots[number].step = SlotStep::Idle;
            }
        }
    }
}
