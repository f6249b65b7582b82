//! Divides the bytes of the sources into records, formats these, and appends them to the sink.

mod ending;
mod in_place;
mod overflow;
mod spent;
mod spill;

use std::time::Instant;

use crate::backlog::BacklogForm;
use crate::format::{Formatter, Record};
use crate::framing::{Framing, Mark, SplitStep};
use crate::intake::{CHUNK, Intake, IntakeCounts};
use crate::options::{LogOptions, Overflow};
use crate::sink::{LogSink, Stalled};
use crate::stamp::Receipt;
use crate::syslog;

/// The log and the memory for reading, which all sources share.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) options: LogOptions,
    pub(crate) sink: LogSink,
    formatter: Formatter,
    /// The buffer of each read. The held bytes of the source come first.
    scratch: Vec<u8>,
    /// The buffer of each formatted record.
    line: Vec<u8>,
    /// The totals of sources that have ended.
    pub(crate) ended: IntakeCounts,
    pub(crate) messages: Vec<String>,
    /// Spill files whose bytes the sink has accepted and the log may lack.
    spent: Vec<spent::SpentFile>,
    /// [`Collector::save_unwritten`] has saved the bytes that the sink could not write.
    has_saved_unwritten: bool,
    pub(crate) command_status: Option<i32>,
    /// The time of the current batch, which all its records share.
    pub(crate) time: Receipt,
}

/// The result of one read of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The read did not fill the buffer, so there is probably no more.
    Bytes,
    /// The read filled the buffer, so there is probably more.
    Full,
    /// No bytes can be read now, or the backlog of the source is full.
    Nothing,
    /// End of file, or an error after which the source is not read any more.
    End,
}

impl Collector {
    pub(crate) fn new(options: LogOptions, sink: LogSink) -> Self {
        Self {
            formatter: Formatter::new(options.format, options.framing, options.fields),
            options,
            sink,
            scratch: vec![0; CHUNK],
            line: Vec::new(),
            ended: IntakeCounts::default(),
            messages: Vec::new(),
            spent: Vec::new(),
            has_saved_unwritten: false,
            command_status: None,
            time: Receipt::now(),
        }
    }

    /// Reads once from a source with `read`, and appends the whole records.
    pub(crate) fn receive(
        &mut self,
        intake: &mut Intake,
        read: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
    ) -> Received {
        if intake.backlog.is_full() {
            return Received::Nothing;
        }
        if self.can_receive_in_place(intake) {
            return self.receive_in_place(intake, read);
        }
        let mut data = std::mem::take(&mut self.scratch);
        let held = intake.held.len();
        if data.len() < held + CHUNK {
            data.resize(held + CHUNK, 0);
        }
        data[..held].copy_from_slice(&intake.held);
        let result = read(&mut data[held..held + CHUNK]);
        if let Ok(count @ 1..) = result {
            intake.counts.bytes += count as u64;
            self.accept(intake, &mut data, held + count);
        }
        let received = self.classify_read(intake, result);
        // One long record must not keep its memory for ever.
        if data.len() > 8 * CHUNK {
            data.truncate(CHUNK);
            data.shrink_to_fit();
        }
        self.scratch = data;
        received
    }

    /// Returns what a read of at most [`CHUNK`] bytes means for its source. Adds a message about an error.
    fn classify_read(&mut self, intake: &Intake, result: rustix::io::Result<usize>) -> Received {
        match result {
            Ok(0) => Received::End,
            Ok(CHUNK) => Received::Full,
            Ok(_) => Received::Bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Received::Nothing,
            Err(errno) => {
                self.messages.push(format!("read {}: {errno}: the source ends here", intake.name));
                Received::End
            }
        }
    }

    /// Appends the whole records of the first `length` bytes of `data`, and holds the rest. While the sink has stalled, bytes
    /// go to the backlog, are held or are dropped, as [`Overflow`] says.
    fn accept(&mut self, intake: &mut Intake, data: &mut Vec<u8>, length: usize) {
        intake.last_input = Instant::now();
        if self.spills(intake) {
            let form = if intake.is_syslog { BacklogForm::SyslogStream } else { BacklogForm::Stream };
            return self.spill(intake, &data[intake.held.len()..length], form);
        }
        let mut length = intake.remove_dropped_rest(data, length);
        if self.sink.is_stalled() && self.options.overflow != Overflow::Block {
            length = self.keep_within_memory(intake, data, length);
        }
        let consumed = self.divide(intake, &data[..length]);
        intake.hold(&data[consumed..length]);
        if consumed > 0 {
            intake.note_held();
        }
    }

    /// Appends the held records again, after the sink has stalled. Returns false if the source has ended and still has records
    /// that the sink did not take.
    pub(crate) fn resume(&mut self, intake: &mut Intake) -> bool {
        // The notice comes where the dropped records are missing: before the held ones or after them.
        if self.options.overflow == Overflow::DropOldest {
            self.report_dropped(intake);
        }
        self.divide_held(intake);
        self.replay(intake);
        self.report_dropped(intake);
        !intake.ended || self.end(intake)
    }

    /// Appends the whole records of the held bytes.
    pub(super) fn divide_held(&mut self, intake: &mut Intake) {
        let data = std::mem::take(&mut intake.held);
        let consumed = self.divide(intake, &data);
        intake.held = data;
        intake.held.drain(..consumed);
        intake.note_held();
    }

    /// Appends the whole records of `data` until the sink stalls. Returns the length of the bytes that were appended or refused.
    fn divide(&mut self, intake: &mut Intake, data: &[u8]) -> usize {
        let mut at = 0;
        while !self.sink.is_stalled() {
            if self.formatter.passes_bytes() && intake.joiner.is_none() {
                let run = intake.splitter.run(&data[at..], self.sink.room());
                if run.records > 0 {
                    if self.sink.append(&data[at..at + run.bytes], run.records).is_err() {
                        break;
                    }
                    at += run.bytes;
                    self.count(intake, run.records, None);
                    continue;
                }
            }
            let before = intake.splitter.clone();
            let consumed = match intake.splitter.next(&data[at..]) {
                SplitStep::NeedMore => break,
                SplitStep::Skip { consumed, refused } => {
                    if refused > 0 && !self.report_refused(intake) {
                        intake.splitter = before;
                        break;
                    }
                    intake.counts.refused += refused;
                    consumed
                }
                SplitStep::Record { bytes, consumed, mark } => {
                    if self.put_line(intake, bytes, mark).is_err() {
                        intake.splitter = before;
                        break;
                    }
                    consumed
                }
            };
            at += consumed;
            intake.note_input(consumed);
        }
        at
    }

    /// Appends a record, or adds it to a record of several lines.
    pub(super) fn put_line(
        &mut self,
        intake: &mut Intake,
        bytes: &[u8],
        mark: Option<Mark>,
    ) -> Result<(), Stalled> {
        let Some(joiner) = &mut intake.joiner else { return self.put_record(intake, bytes, mark) };
        if let Some(whole) = joiner.take_if_new(bytes)
            && let Err(stalled) = self.put_record(intake, &whole, None)
        {
            if let Some(joiner) = &mut intake.joiner {
                joiner.give_back(whole);
            }
            return Err(stalled);
        }
        if let Some(joiner) = &mut intake.joiner {
            joiner.add(bytes);
        }
        Ok(())
    }

    /// Appends one record, or refuses one that would shift the records after it. The last record of a source has no delimiter
    /// in a raw log.
    pub(crate) fn put_record(
        &mut self,
        intake: &mut Intake,
        bytes: &[u8],
        mark: Option<Mark>,
    ) -> Result<(), Stalled> {
        let syslog =
            if intake.is_syslog && !self.formatter.passes_bytes() { syslog::parse(bytes) } else { None };
        let line;
        let bytes = match &syslog {
            None => bytes,
            Some(message) if self.formatter.is_json() => message.text,
            Some(message) => {
                line = message.line();
                &line
            }
        };
        let record = Record {
            bytes,
            syslog,
            source: &intake.name,
            peer: intake.peer,
            sequence: intake.first_sequence + intake.counts.records,
            time: self.time,
            mark,
        };
        if !self.fits_log(bytes) {
            self.refuse(intake, bytes.len());
            return Ok(());
        }
        let ends_without_delimiter = self.formatter.passes_bytes()
            && mark == Some(Mark::Unfinished)
            && !self.options.fields.mark
            && matches!(self.options.framing, Framing::Delimiter(_));
        if ends_without_delimiter {
            self.sink.append_unfinished(bytes)?;
        } else {
            self.line.clear();
            self.formatter.write(&record, &mut self.line);
            self.sink.append(&self.line, 1)?;
        }
        self.count(intake, 1, mark);
        Ok(())
    }

    /// Counts records that the sink has accepted. For a source with acknowledgements also notes the number of records in the
    /// log with which they become durable.
    fn count(&mut self, intake: &mut Intake, records: usize, mark: Option<Mark>) {
        intake.counts.records += records as u64;
        match mark {
            None => {}
            Some(Mark::Unfinished) => intake.counts.unfinished += 1,
            Some(Mark::Split) => intake.counts.split += 1,
            Some(Mark::Cut) => intake.counts.cut += 1,
        }
        // After a sync that failed no record is acknowledged.
        if intake.acks && self.sink.sync_error().is_none() {
            self.sink.note_sender(&mut intake.last_group);
            let log = self.sink.counts().records;
            match intake.durable.back_mut() {
                Some(last) if last.0 == log => last.1 = intake.counts.records,
                _ => intake.durable.push_back((log, intake.counts.records)),
            }
        }
    }

    /// Adds the counts of a source that is removed.
    pub(crate) fn add_ended(&mut self, counts: IntakeCounts) {
        self.ended.add(counts);
    }
}
