//! Records that are received in the buffer of the log, which saves their copy.

use super::LogSink;
use crate::framing::Run;
use crate::options::Flush;

/// The bytes of one write if only one source is ready: they are still in the cache, and the writer of a pipe runs meanwhile.
/// Lines from a pipe of 256 KiB take 1.4 times as long with 512 KiB at a time.
const ALONE: usize = 64 << 10;

impl LogSink {
    /// Says how many sources are ready in this turn: the records of several ones are written together.
    pub(crate) fn set_ready(&mut self, sources: usize) {
        self.write_at = if sources > 1 { usize::MAX } else { ALONE };
    }

    /// Makes room for `bytes` bytes in the buffer. Returns false if the log takes bytes only by [`LogSink::append`]: it
    /// stalls, is a terminal, ends in an open record, would be rotated, or writes each record or no record at once.
    pub(crate) fn make_room(&mut self, bytes: usize) -> bool {
        let gathers = matches!(self.options.flush, Flush::Line | Flush::Full | Flush::Within(_));
        let refuses = self.stall.is_some() || self.file.is_terminal() || self.open_record;
        if !gathers || refuses || bytes > self.options.buffer_bytes / 2 || bytes > self.room() {
            return false;
        }
        if self.file.room() < bytes {
            self.flush();
        }
        // A flush may stall, or open the log anew behind a record of another file.
        self.stall.is_none() && !self.open_record && bytes <= self.room()
    }

    /// Lets `fill` write to a room of `bytes` bytes of the buffer, and accepts the run of whole records that it returns.
    /// Follows a [`LogSink::make_room`] that returned true.
    pub(crate) fn append_in_place(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> Run) {
        let mut run = Run::default();
        let appended = self.file.append_with(bytes, |room| {
            run = fill(&mut room[..bytes]);
            run.bytes
        });
        self.unsynced += run.bytes as u64;
        self.counts.records += run.records as u64;
        self.counts.bytes += run.bytes as u64;
        match appended {
            Err(error) => self.set_stall(&error),
            Ok(()) if self.options.flush == Flush::Line && self.file.pending() >= self.write_at => {
                self.flush()
            }
            Ok(()) => {}
        }
    }
}
