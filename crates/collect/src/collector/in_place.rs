//! Reads a source into the buffer of the log. Whole records stay where they were read, and only the begin of the next one is
//! copied.

use std::time::Instant;

use super::{Collector, Received};
use crate::framing::Run;
use crate::intake::{CHUNK, Intake};

impl Collector {
    /// Returns whether the records of the source go to the log as they are received, and the log has room for a read.
    pub(super) fn can_receive_in_place(&mut self, intake: &Intake) -> bool {
        let passes =
            self.formatter.passes_bytes() && intake.joiner.is_none() && intake.dropped_rest.is_none();
        passes && !self.spills(intake) && self.sink.make_room(intake.held.len() + CHUNK)
    }

    /// Reads once with `read` behind the held bytes, and appends the whole records.
    pub(super) fn receive_in_place(
        &mut self,
        intake: &mut Intake,
        read: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
    ) -> Received {
        let held = intake.held.len();
        let mut run = Run::default();
        let mut result = Err(rustix::io::Errno::AGAIN);
        self.sink.append_in_place(held + CHUNK, |room| {
            result = read(&mut room[held..]);
            if let Ok(count @ 1..) = result {
                room[..held].copy_from_slice(&intake.held);
                let bytes = &room[..held + count];
                run = intake.splitter.run(bytes, bytes.len());
                intake.hold(&bytes[run.bytes..]);
            }
            run
        });
        if let Ok(count @ 1..) = result {
            intake.counts.bytes += count as u64;
            intake.last_input = Instant::now();
            if run.records > 0 {
                self.count(intake, run.records, None);
            }
            // A whole record is left only if it needs more than its bytes, such as one that is too long.
            self.divide_held(intake);
        }
        self.classify_read(intake, result)
    }
}

#[cfg(test)]
#[path = "in_place_test.rs"]
mod tests;
