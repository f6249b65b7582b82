//! Appends the last record of a source, which may have no delimiter.

use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Instant;

use super::Collector;
use crate::error::{bytes_are, shown};
use crate::framing::{Framing, Mark};
use crate::intake::Intake;
use crate::multiline::Joiner;
use weir_model::number::counted;

impl Collector {
    /// Appends the last record of a source that has ended, and the notice of its losses. Returns whether nothing is left.
    pub(crate) fn end(&mut self, intake: &mut Intake) -> bool {
        intake.ended = true;
        if !self.end_record(intake) {
            return false;
        }
        self.report_dropped(intake);
        intake.unreported == 0
    }

    /// Appends the held bytes as an unfinished record. Returns whether nothing is left.
    pub(crate) fn end_record(&mut self, intake: &mut Intake) -> bool {
        self.divide_held(intake);
        self.replay(intake);
        if self.sink.is_stalled() || !intake.backlog.is_empty() {
            return !intake.has_held();
        }
        let held = std::mem::take(&mut intake.held);
        let before = intake.splitter.clone();
        let put = match intake.splitter.last(&held) {
            Some(bytes)
                if matches!(self.options.framing, Framing::Delimiter(_))
                    || !self.formatter.passes_bytes() =>
            {
                self.put_line(intake, bytes, Some(Mark::Unfinished))
            }
            // Without a delimiter the log could not be divided behind a short record.
            Some(bytes) => {
                self.save_unfinished(intake, bytes);
                Ok(())
            }
            None => Ok(()),
        };
        if put.is_err() {
            intake.splitter = before;
            intake.held = held;
            return false;
        }
        intake.note_input(held.len());
        let is_over = self.end_joined(intake);
        self.take_spent_file(intake);
        is_over
    }

    /// Appends a record of several lines, because no line continues it any more.
    pub(crate) fn end_joined(&mut self, intake: &mut Intake) -> bool {
        let Some(whole) = intake.joiner.as_mut().and_then(Joiner::take) else { return true };
        let put = self.put_record(intake, &whole, None).is_ok();
        if !put && let Some(joiner) = &mut intake.joiner {
            joiner.give_back(whole);
        }
        put
    }

    /// Appends the record that a source has begun, if the source has sent nothing until [`Intake::idle_deadline`].
    pub(crate) fn end_idle(&mut self, intake: &mut Intake, now: Instant) {
        if intake.idle_deadline(&self.options).is_none_or(|at| at > now) {
            return;
        }
        match self.options.idle {
            Some(_) => self.end_record(intake),
            None => self.end_joined(intake),
        };
        intake.last_input = now;
    }

    /// Saves an unfinished record beside a log of records without delimiters.
    fn save_unfinished(&mut self, intake: &mut Intake, bytes: &[u8]) {
        intake.counts.unfinished += 1;
        let Some(log) = &self.options.output else {
            self.messages.push(format!(
                "{}: an unfinished record of {} is dropped",
                intake.name,
                counted(bytes.len() as u64, "byte")
            ));
            return;
        };
        let mut path = log.as_os_str().to_owned();
        path.push(".unfinished");
        let path = std::path::PathBuf::from(path);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let saved =
            std::fs::File::options().append(true).create(true).mode(0o600).custom_flags(flags).open(&path);
        let name = &intake.name;
        self.messages.push(match saved.and_then(|mut file| std::io::Write::write_all(&mut file, bytes)) {
            Ok(()) => {
                let bytes = bytes_are(bytes.len() as u64);
                format!("{name}: ended within a record; its {bytes} in {}", shown(&path))
            }
            Err(error) => format!(
                "{name}: an unfinished record of {} is lost: {}: {error}",
                counted(bytes.len() as u64, "byte"),
                shown(&path)
            ),
        });
    }
}
