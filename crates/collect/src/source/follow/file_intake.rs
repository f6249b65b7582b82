//! A followed file and the intake of its records.

use std::time::Instant;

use super::position::FollowedFile;
use crate::collector::Collector;
use crate::intake::Intake;

pub(super) struct FileIntake {
    pub(super) followed: FollowedFile,
    pub(super) intake: Intake,
    /// The path leads to another file now.
    pub(super) renamed: bool,
    pub(super) last_growth: Instant,
    pub(super) at_end: bool,
    /// A sentence about records that may be lost, until the log has it.
    pub(super) loss: Option<String>,
}

impl FileIntake {
    /// Says what happened to the file while no collector ran. Returns false if the log did not take the notice.
    pub(super) fn report_loss(&mut self, collector: &mut Collector) -> bool {
        let Some(text) = self.loss.take() else { return true };
        if !collector.put_loss(&text) {
            self.loss = Some(text);
            return false;
        }
        collector.messages.push(text);
        true
    }

    /// Reads a file from its beginning if it was truncated (copytruncate): it is shorter than the position in it, or begins
    /// differently. Returns false if the log did not take the last record before that, or the notice.
    pub(super) fn check_truncation(&mut self, collector: &mut Collector) -> bool {
        if !self.followed.was_truncated() {
            return true;
        }
        let name = &self.intake.name;
        let text = format!("weir: {name} was truncated; an unknown number of records is lost");
        if !collector.end_record(&mut self.intake) || !collector.put_loss(&text) {
            return false;
        }
        collector.messages.push(text);
        self.followed.restart();
        true
    }

    /// Ends the record of a file that has not grown until [`Intake::idle_deadline`]. Returns whether the log then covers more of
    /// the file.
    pub(super) fn end_idle(&mut self, now: Instant, collector: &mut Collector) -> bool {
        let before = self.intake.unaccepted_bytes();
        collector.end_idle(&mut self.intake, now);
        self.intake.unaccepted_bytes() != before
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::framing::Framing;
    use crate::options::{LogOptions, Overflow};
    use crate::sink::{LogSink, SinkOptions};

    #[test]
    fn the_end_of_a_truncated_file_does_not_join_its_new_begin() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("followed");
        std::fs::write(&path, "1234567812").expect("written");
        let options = LogOptions {
            framing: Framing::Length(8),
            overflow: Overflow::DropNewest,
            ..LogOptions::of_lines(&dir.path().join("log"))
        };
        let sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
        let mut collector = Collector::new(options, sink);
        let mut file = FileIntake {
            followed: FollowedFile::open(&path, &path).expect("opened"),
            intake: Intake::new("followed".into(), None, &collector.options),
            renamed: false,
            last_growth: Instant::now(),
            at_end: false,
            loss: None,
        };
        collector.receive(&mut file.intake, |buffer| file.followed.read(buffer));
        assert_eq!(file.intake.held, b"12");
        std::fs::write(&path, "abcdefgh").expect("truncated");
        collector.sink.stall_for(Duration::from_secs(3600));
        assert!(!file.check_truncation(&mut collector), "the log takes no record now");
        assert!(file.followed.was_truncated() && file.intake.held == b"12", "nothing is read before");
        collector.sink.flush();
        assert!(file.check_truncation(&mut collector) && file.intake.held.is_empty());
    }
}
