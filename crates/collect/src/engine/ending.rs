//! The end of the engine: reads what was sent, writes it, and sums up.

use std::time::Instant;

use super::Engine;
use crate::error::{Error, bytes_are};
use crate::options::SyncPolicy;
use crate::source::SourceProgress;
use crate::summary::LogSummary;

impl Engine {
    /// Begins the end: the sources are read on until they pause for QUIET, at most for the time of --drain.
    pub(super) fn begin_end(&mut self) {
        if self.ending.is_some() {
            return;
        }
        crate::notify::stopping();
        self.ending = Some(Instant::now() + self.collector.options.drain);
        for (_, entry) in &mut self.sources {
            entry.source.begin_end();
        }
    }

    /// Ends all sources, after none of them had bytes to read.
    pub(super) fn finish_all(&mut self) {
        // A source may have synced at its end.
        if self.collector.sink.sync_error().is_some() {
            self.acknowledge(None);
        }
        let numbers: Vec<usize> = self.sources.iter().map(|(number, _)| number).collect();
        for number in numbers {
            if self.sources[number].source.finish(&mut self.collector) == SourceProgress::Ended {
                self.remove(number);
            }
        }
    }

    pub(super) fn close(
        mut self,
        report: &mut dyn FnMut(&str),
        result: Result<(), Error>,
    ) -> (LogSummary, Result<(), Error>) {
        self.collector.sink.flush(); // the log may take more bytes than at the last attempt
        self.finish_all();
        self.collector.sink.flush();
        self.collector.finish_spent_files();
        let unwritten = self.collector.save_unwritten();
        for (_, entry) in &mut self.sources {
            entry.source.save_backlog(&mut self.collector);
        }
        self.collector.leave_spent_files();
        let mut totals = self.collector.ended;
        let mut left = unwritten;
        for (_, entry) in &self.sources {
            if let Some(intake) = entry.source.intake() {
                totals.add(intake.counts);
                left += intake.saved + intake.held_bytes() as u64;
            }
        }
        let acks = self.collector.options.ack && self.collector.options.sync != SyncPolicy::None;
        if acks && self.collector.sink.sync_now() {
            self.acknowledge(Some(self.collector.sink.counts().records));
        }
        self.collector.sink.flush();
        self.write_metrics(Instant::now());
        let closed = self.collector.sink.close();
        for message in self.collector.messages.iter().chain(&closed.messages) {
            report(message);
        }
        let summary = LogSummary::new(&closed, totals, self.started.elapsed(), self.collector.command_status);
        let lost =
            (left > 0).then(|| Err(Error::text(format!("{} received but not in the log", bytes_are(left)))));
        (summary, result.and(closed.result).and(lost.unwrap_or(Ok(()))))
    }
}
