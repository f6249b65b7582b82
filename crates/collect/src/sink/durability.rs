//! Syncs the log as the policy demands, and notes which bytes and records each sync covers.

use std::time::Instant;

use rustix::fd::OwnedFd;

use super::{LastGroup, LogSink, SyncDone};
use crate::options::{Flush, SyncPolicy};

impl LogSink {
    pub(super) fn schedule_sync(&mut self, now: Instant) {
        match self.options.sync {
            SyncPolicy::None => {
                let written = self.unsynced > 0 && self.pending_bytes() == 0;
                if self.has_budget() && written && !self.syncer.is_busy() {
                    self.sync_at = Some(now);
                }
            }
            SyncPolicy::Interval(interval) => {
                if self.unsynced > 0 && self.sync_at.is_none() {
                    self.sync_at = Some(now + interval);
                }
            }
            SyncPolicy::Bytes(bytes) => {
                if self.unsynced >= bytes {
                    self.request_sync();
                }
            }
            SyncPolicy::Record => {
                self.sync_at = None;
                if self.unsynced > 0 && !self.syncer.is_busy() {
                    let hold = self.options.ack.then(|| self.group.holds(now)).flatten();
                    match hold {
                        Some(until) => self.sync_at = Some(until),
                        None => self.request_sync(),
                    }
                }
            }
        }
    }

    pub(super) fn has_budget(&self) -> bool {
        matches!(self.options.flush, Flush::Budget(_))
    }

    /// Requests a sync of all that was accepted. While a sync runs, the next one gathers (group commit).
    pub(crate) fn request_sync(&mut self) {
        if self.syncer.is_busy() || self.sync_failed.is_some() {
            return;
        }
        // A budget counts each write, so a sync must not begin one.
        if !self.has_budget() {
            self.flush();
        }
        if self.stall.is_none()
            && let Some(fd) = self.file.sync_fd()
        {
            self.unsynced = if self.has_budget() { self.pending_bytes() } else { 0 };
            self.counts.syncs += 1;
            let mut files = std::mem::take(&mut self.rotated);
            files.push(fd);
            self.group.begin(Instant::now());
            self.syncer.request(files, self.counts.records);
        }
    }

    /// Writes and syncs everything now, and waits for it. Returns whether it is durable.
    pub(crate) fn sync_now(&mut self) -> bool {
        self.wait_for_sync();
        self.request_sync();
        self.wait_for_sync() && self.sync_failed.is_none()
    }

    /// Waits for the sync in progress. Returns whether there was one.
    fn wait_for_sync(&mut self) -> bool {
        let Some(done) = self.syncer.wait() else { return false };
        // The kernel reports an error once, so no result may be dropped.
        self.note_sync(&done, Instant::now());
        true
    }

    /// Returns whether sources should wait for the end of a sync, because it is short and acknowledges records.
    pub(crate) fn is_in_short_sync(&self) -> bool {
        let acknowledges = self.options.ack && self.options.sync == SyncPolicy::Record;
        // A sync that failed has no end for the group.
        acknowledges && self.syncer.is_busy() && self.group.is_in_short_sync()
    }

    /// Notes that a sender has records in the group that the next sync covers.
    pub(crate) fn note_sender(&mut self, sender: &mut LastGroup) {
        self.group.add(sender);
    }

    /// Takes the result of a sync: how many records of the log it covers.
    pub(crate) fn sync_done(&mut self, now: Instant) -> Option<SyncDone> {
        let done = self.syncer.take_done()?;
        self.note_sync(&done, now);
        self.schedule_sync(now);
        Some(done)
    }

    pub(super) fn note_sync(&mut self, done: &SyncDone, now: Instant) {
        match &done.result {
            Ok(()) => {
                self.last_sync = Some(now);
                self.group.end(now);
                self.durable_records = done.records;
            }
            Err(error) => {
                let text = format!(
                    "fdatasync {}: {}: the device may have lost records; no more syncs are promised",
                    self.file.name(),
                    weir_sys::errno_text(error)
                );
                self.messages.push(text.clone());
                self.sync_failed = Some(text);
                self.rotated.clear();
            }
        }
    }

    /// Keeps the file for the next sync, because another file takes its place.
    pub(super) fn remember_unsynced(&mut self) {
        if self.options.sync != SyncPolicy::None && self.unsynced > 0 && self.sync_failed.is_none() {
            self.rotated.extend(self.file.sync_fd());
        }
    }

    pub(crate) fn last_sync(&self) -> Option<Instant> {
        self.last_sync
    }

    /// Returns how many records of the log are durable.
    pub(crate) fn durable_records(&self) -> u64 {
        self.durable_records
    }

    /// Returns the error that made the last sync fail. The kernel reports it once, so it is final for this file.
    pub(crate) fn sync_error(&self) -> Option<&str> {
        self.sync_failed.as_deref()
    }

    /// Returns the descriptor that is readable when a sync has ended.
    pub(crate) fn sync_event(&self) -> &OwnedFd {
        self.syncer.event()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LogOptions;
    use crate::sink::SinkOptions;

    #[test]
    fn a_sync_that_failed_keeps_no_rotated_file_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = LogOptions::of_lines(&dir.path().join("log"));
        options.sync = SyncPolicy::Interval(std::time::Duration::from_secs(3600));
        let mut sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
        let rotate = |sink: &mut LogSink| {
            sink.append(b"one\n", 1).expect("accepted");
            sink.rotate();
            sink.rotated.len()
        };
        assert_eq!(rotate(&mut sink), 1, "the next sync covers it");
        let result = Err(std::io::Error::from_raw_os_error(5));
        sink.note_sync(&SyncDone { records: 1, result }, Instant::now());
        assert!(sink.rotated.is_empty() && sink.sync_error().is_some());
        assert_eq!(rotate(&mut sink), 0, "there is no next sync");
        assert_eq!(sink.counts().rotations, 2);
    }
}
