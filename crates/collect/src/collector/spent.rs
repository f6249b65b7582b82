//! Spill files whose bytes the sink has accepted. Each stays until the log has these bytes: a kill loses the sink's memory, and
//! the next collector appends the file again.

use super::Collector;
use super::spill::NEXT;
use crate::backlog::SpillFile;
use crate::error::{bytes_are, shown};
use crate::intake::Intake;
use crate::options::SyncPolicy;
use crate::sink::LogPosition;

/// A file that is removed when the log has everything before a position.
#[derive(Debug)]
pub(super) struct SpentFile {
    file: SpillFile,
    end: LogPosition,
}

impl Collector {
    /// Takes the file over from a source if the sink has accepted all its bytes. If the source has not ended, held bytes do not
    /// prevent this: they are the beginning of a record, as before the spill.
    pub(super) fn take_spent_file(&mut self, intake: &mut Intake) {
        if (self.sink.is_stalled() || intake.ended) && intake.has_held() {
            return;
        }
        if let Some(file) = intake.backlog.take_spent_file() {
            self.spent.push(SpentFile { file, end: self.sink.progress().accepted });
        }
    }

    /// Removes the spent files whose bytes are in the log, and reports those that an earlier collector left.
    pub(crate) fn remove_spent_files(&mut self) {
        if self.spent.is_empty() {
            return;
        }
        let log = self.sink.progress();
        for spent in self.spent.extract_if(.., |spent| log.is_safe(spent.end)) {
            if let Some(bytes) = spent.file.left {
                let path = shown(&spent.file.path);
                self.messages.push(format!("{path}: its {} in the log now", bytes_are(bytes)));
            }
            spent.file.remove();
        }
        // The policy may sync much later; the next collector would append the files a second time.
        if !self.spent.is_empty() && matches!(self.options.sync, SyncPolicy::Bytes(_)) {
            self.sink.request_sync();
        }
    }

    /// At the end: syncs the log for the spent files, if it is synced at all.
    pub(crate) fn finish_spent_files(&mut self) {
        if !self.spent.is_empty() && self.sink.is_synced() && !self.sink.is_stalled() {
            self.sink.sync_now();
        }
        self.remove_spent_files();
    }

    /// Removes the spent files whose bytes are in the log or in the file of [`Collector::save_unwritten`]. The other files stay,
    /// and a message names them. Called at the end of the collector.
    pub(crate) fn leave_spent_files(&mut self) {
        for SpentFile { file, .. } in std::mem::take(&mut self.spent) {
            if self.has_saved_unwritten && self.sink.sync_error().is_none() {
                file.remove();
                continue;
            }
            let path = shown(&file.path);
            self.messages.push(format!("{path} stays: the log may lack its last bytes; {NEXT}"));
        }
    }
}

/// Returns how many bytes of a source were taken from its backlog and are in no record that the sink has accepted.
pub(super) fn held_bytes(intake: &Intake) -> usize {
    intake.held.len() + intake.joined_bytes()
}
