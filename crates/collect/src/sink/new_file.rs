//! Another file takes the place of the log: because of a rotation, or because another program has renamed it.

use std::time::{Duration, Instant};

use super::log_file::LogFile;
use super::{LogSink, PATH_CHECK};

/// The time between an error of a rotation and the next attempt.
const ROTATE_AGAIN: Duration = Duration::from_secs(10);

impl LogSink {
    /// SIGHUP: reopens the log if another program has renamed or removed it, else rotates.
    pub(crate) fn on_hangup(&mut self) {
        self.flush();
        if !self.check_path(true) {
            self.rotate();
        }
    }

    /// Opens the log anew if its path no longer leads to the open file. Returns whether it did.
    pub(super) fn check_path(&mut self, now: bool) -> bool {
        if !now && self.checked_path.elapsed() < PATH_CHECK {
            return false;
        }
        self.checked_path = Instant::now();
        if self.file.is_at_path() {
            return false;
        }
        // Accepted bytes belong to the renamed file, as far as it takes them.
        if self.write_all_pending().is_err() {
            return false;
        }
        match LogFile::open(&self.options, &mut self.messages) {
            Ok((file, open_record)) => {
                self.remember_unsynced();
                self.file = file;
                self.open_record = open_record;
                self.reported_path = false;
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.reported_path, true) {
                    self.messages.push(format!("{error}: still writing to the renamed file"));
                }
                false
            }
        }
    }

    pub(super) fn rotate_before(&mut self, bytes: usize) {
        if let Some(limit) = self.options.rotation.bytes
            && self.file.bytes() > 0
            && self.file.bytes() + bytes as u64 > limit
            && self.rotate_after.is_none_or(|at| at <= Instant::now())
        {
            self.rotate();
        }
    }

    /// Returns when the log is rotated because of its age. A log that cannot be written is rotated when it is written again.
    pub(super) fn rotate_at(&self) -> Option<Instant> {
        if self.stall.is_some() {
            return None;
        }
        let interval = self.options.rotation.interval.filter(|_| self.file.bytes() > 0)?;
        let at = self.file.since() + interval;
        Some(self.rotate_after.map_or(at, |after| at.max(after)))
    }

    /// Begins a new file. After an error the sink continues the old one, and tries again after ROTATE_AGAIN.
    pub(super) fn rotate(&mut self) {
        self.flush();
        if self.stall.is_some() || self.file.bytes() == 0 {
            return;
        }
        match self.rotator.rotate(&self.file, &self.options) {
            Ok(file) => {
                self.remember_unsynced();
                self.file = file;
                self.open_record = false;
                self.counts.rotations += 1;
                self.rotate_after = None;
            }
            Err(error) => {
                if self.rotate_after.replace(Instant::now() + ROTATE_AGAIN).is_none() {
                    self.messages.push(format!("{error}: the log goes on without rotation"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LogOptions;
    use crate::sink::SinkOptions;

    #[test]
    fn a_stalled_log_waits_for_its_next_attempt_not_for_its_rotation() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = LogOptions::of_lines(&dir.path().join("log"));
        options.rotation.interval = Some(Duration::from_nanos(1));
        let mut sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
        sink.append(b"one\n", 1).expect("accepted");
        sink.flush();
        assert!(sink.deadline().is_some_and(|at| at <= Instant::now()), "the interval has passed");
        sink.stall_for(Duration::from_secs(3600));
        let wait = sink.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        assert!(wait.is_some_and(|wait| wait > Duration::from_secs(1800)), "{wait:?}");
        sink.stall = None;
        sink.on_time(Instant::now());
        assert_eq!(sink.counts().rotations, 1, "afterwards it is rotated");
    }
}
