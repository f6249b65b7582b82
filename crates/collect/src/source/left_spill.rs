//! Records that an earlier collector of the log left in spill files, because it could not write the log.

use rustix::fd::BorrowedFd;

use super::{Source, SourceProgress};
use crate::backlog::{Backlog, BacklogForm, LeftBacklog};
use crate::collector::Collector;
use crate::intake::Intake;
use crate::options::{LogOptions, Overflow};

/// A spill file that goes into the log.
struct LeftSpill {
    intake: Intake,
    form: BacklogForm,
}

/// Returns the spill files of the log as sources.
pub(crate) fn find(options: &LogOptions) -> Vec<Box<dyn Source>> {
    if options.overflow != Overflow::Spill {
        return Vec::new();
    }
    let left = Backlog::find_left(&options.spill).into_iter();
    left.map(|left| -> Box<dyn Source> { Box::new(LeftSpill::new(left, options)) }).collect()
}

impl LeftSpill {
    fn new(left: LeftBacklog, options: &LogOptions) -> Self {
        let new = match left.form {
            BacklogForm::SyslogStream => Intake::of_syslog_stream,
            _ => Intake::new,
        };
        let mut intake = new(left.source, None, options);
        intake.counts.bytes = left.backlog.bytes();
        intake.backlog = left.backlog;
        intake.is_syslog |= left.form == BacklogForm::Syslog;
        Self { intake, form: left.form }
    }
}

impl Source for LeftSpill {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn read(&mut self, _collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        SourceProgress::Open
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        let is_over = match self.form {
            BacklogForm::Stream | BacklogForm::SyslogStream => collector.end(&mut self.intake),
            BacklogForm::Messages | BacklogForm::Syslog => {
                collector.replay_messages(&mut self.intake);
                !self.intake.has_held()
            }
            BacklogForm::Log => collector.replay_unwritten(&mut self.intake),
        };
        if !is_over {
            return SourceProgress::Open;
        }
        SourceProgress::Ended
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.resume(collector)
    }

    fn save_backlog(&mut self, collector: &mut Collector) {
        collector.save_backlog(&mut self.intake, self.form);
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}
