//! Records that the log accepted and cannot write: at the end they go to a file, and the next collector appends them.

use std::io;

use super::LogSink;
use crate::framing::Framing;

impl LogSink {
    /// Takes the bytes that were accepted and cannot be written, from the begin of a record on. The log then ends with a whole
    /// record, and takes no more bytes.
    ///
    /// # Errors
    /// The bytes cannot be taken, or `save` failed. They are lost then, and the log may end in a torn record.
    pub(crate) fn save_unwritten(&mut self, save: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let (begin, mut bytes) = self.file.take_unwritten(self.options.framing)?;
        bytes.append(&mut self.rest);
        save(&bytes)?;
        self.file.cut(begin)
    }

    /// Appends bytes that an earlier collector saved. Returns whether the log took them.
    pub(crate) fn append_saved(&mut self, bytes: &[u8]) -> bool {
        let ends = match self.options.framing {
            Framing::Delimiter(delimiter) => bytes.ends_with(&[delimiter]),
            Framing::Length(_) | Framing::Prefix(_) => true,
        };
        let records = match self.options.framing {
            Framing::Delimiter(delimiter) => memchr::memchr_iter(delimiter, bytes).count(),
            Framing::Length(length) => bytes.len() / length,
            Framing::Prefix(_) => 1,
        };
        let appended = self.append(bytes, records.max(1)).is_ok();
        self.open_record |= appended && !ends;
        appended
    }
}

#[cfg(test)]
impl LogSink {
    /// Stalls as after a failed write.
    pub(crate) fn stall_for(&mut self, delay: std::time::Duration) {
        self.stall = Some(super::Stall { retry_at: std::time::Instant::now() + delay, delay });
    }
}
