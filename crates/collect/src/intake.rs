//! One source's way into the log: divides its bytes into records and hands them to the sink.

use std::collections::VecDeque;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Instant;

use crate::format::{Formatter, Peer, Record};
use crate::framing::{Framing, Mark, Splitter, Step};
use crate::multiline::Joiner;
use crate::options::{Options, Overflow};
use crate::sink::{Sink, Stalled};
use crate::stamp::Receipt;

/// The most bytes that one read takes, so that sources take turns.
pub(crate) const CHUNK: usize = 256 << 10;

/// The counts of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntakeCounts {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Records that were dropped because the memory was full.
    pub(crate) dropped: u64,
    /// Records that were longer than the maximum and refused.
    pub(crate) refused: u64,
    /// Records in the log with a mark.
    pub(crate) unfinished: u64,
    pub(crate) split: u64,
    pub(crate) cut: u64,
}

/// The bytes of a source that are no record in the log yet, and its counts.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) name: String,
    peer: Option<Peer>,
    splitter: Splitter,
    joiner: Option<Joiner>,
    held: Vec<u8>,
    /// Of the held bytes: so many are whole records that wait for the sink ([`Overflow`] other than block).
    kept: usize,
    /// Dropped records that the log does not mention yet.
    unreported: u64,
    /// The number of the first record.
    first_sequence: u64,
    /// The source has ended; what is held is all that is left.
    ended: bool,
    pub(crate) counts: IntakeCounts,
    pub(crate) last_input: Instant,
    /// For `--ack`: the number of records of this source at a number of records of the log.
    durable: VecDeque<(u64, u64)>,
}

impl Intake {
    pub(crate) fn new(name: String, peer: Option<Peer>, options: &Options) -> Self {
        Self {
            name,
            peer,
            splitter: Splitter::new(options.framing, options.max_record_bytes, options.oversize),
            joiner: options.multiline.clone().map(|start| Joiner::new(start, options.max_record_bytes)),
            held: Vec::new(),
            kept: 0,
            unreported: 0,
            first_sequence: 1,
            ended: false,
            counts: IntakeCounts::default(),
            last_input: Instant::now(),
            durable: VecDeque::new(),
        }
    }

    /// Numbers the records on from those of another intake of the same source.
    pub(crate) fn continue_after(&mut self, before: &Self) {
        self.first_sequence = before.first_sequence + before.counts.records;
    }

    /// Sets the sender of the next record.
    pub(crate) fn set_peer(&mut self, peer: Option<Peer>) {
        self.peer = peer;
    }

    /// Returns whether bytes are held that are no record in the log.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty() || self.joiner.as_ref().is_some_and(Joiner::has_record) || self.unreported > 0
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Returns how many records of this source are durable when the first `records` of the log are.
    pub(crate) fn acknowledge(&mut self, records: u64) -> Option<u64> {
        let mut durable = None;
        while let Some((_, own)) = self.durable.pop_front_if(|(log, _)| *log <= records) {
            durable = Some(own);
        }
        durable
    }

    /// Returns whether records are not acknowledged yet.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        !self.durable.is_empty()
    }
}

/// What all sources share: the log and the memory for reading.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) options: Options,
    pub(crate) sink: Sink,
    formatter: Formatter,
    scratch: Vec<u8>,
    line: Vec<u8>,
    /// The totals of sources that have ended.
    pub(crate) ended: IntakeCounts,
    pub(crate) messages: Vec<String>,
    pub(crate) command_status: Option<i32>,
    /// The time of the current batch, which all its records share.
    pub(crate) time: Receipt,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Bytes,
    Nothing,
    End,
}

impl Collector {
    pub(crate) fn new(options: Options, sink: Sink) -> Self {
        Self {
            formatter: Formatter::new(options.format, options.framing, options.fields),
            options,
            sink,
            scratch: vec![0; CHUNK],
            line: Vec::new(),
            ended: IntakeCounts::default(),
            messages: Vec::new(),
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
        let mut data = std::mem::take(&mut self.scratch);
        let held = intake.held.len();
        if data.len() < held + CHUNK {
            data.resize(held + CHUNK, 0);
        }
        data[..held].copy_from_slice(&intake.held);
        let received = match read(&mut data[held..held + CHUNK]) {
            Ok(0) => Received::End,
            Ok(count) => {
                intake.counts.bytes += count as u64;
                self.accept(intake, &mut data, held + count);
                Received::Bytes
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Received::Nothing,
            Err(errno) => {
                self.messages.push(format!("read {}: {errno}: the source ends here", intake.name));
                Received::End
            }
        };
        // One long record must not keep its memory for ever.
        if data.len() > 8 * CHUNK {
            data.truncate(CHUNK);
            data.shrink_to_fit();
        }
        self.scratch = data;
        received
    }

    /// Divides the first `length` bytes of `data`, and holds the rest.
    fn accept(&mut self, intake: &mut Intake, data: &mut Vec<u8>, length: usize) {
        intake.last_input = Instant::now();
        let mut length = length;
        if self.sink.is_stalled() && self.options.overflow != Overflow::Block {
            length = self.keep_within_memory(intake, data, length);
        }
        let consumed = self.divide(intake, &data[..length]);
        intake.held.clear();
        intake.held.extend_from_slice(&data[consumed..length]);
        if intake.held.capacity() > 2 * CHUNK && intake.held.len() < CHUNK / 2 {
            intake.held.shrink_to_fit();
        }
    }

    /// Appends the held records again, after the sink has stalled. Returns whether none is left.
    pub(crate) fn resume(&mut self, intake: &mut Intake) -> bool {
        if self.options.overflow == Overflow::DropOldest {
            self.report_dropped(intake);
        }
        let data = std::mem::take(&mut intake.held);
        intake.kept = 0;
        let consumed = self.divide(intake, &data);
        intake.held = data;
        intake.held.drain(..consumed);
        if !self.sink.is_stalled() {
            self.report_dropped(intake);
        }
        !intake.ended || self.end(intake)
    }

    /// Appends whole records. Returns the length of the bytes that need not be held.
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
            match intake.splitter.next(&data[at..]) {
                Step::NeedMore => break,
                Step::Skip { consumed, refused } => {
                    intake.counts.refused += refused;
                    at += consumed;
                }
                Step::Record { bytes, consumed, mark } => {
                    if self.put_line(intake, bytes, mark).is_err() {
                        intake.splitter = before;
                        break;
                    }
                    at += consumed;
                }
            }
        }
        at
    }

    /// Appends a record, or adds it to a record of several lines.
    fn put_line(&mut self, intake: &mut Intake, bytes: &[u8], mark: Option<Mark>) -> Result<(), Stalled> {
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

    /// Appends one record. The last record of a source has no delimiter in a raw log.
    pub(crate) fn put_record(
        &mut self,
        intake: &mut Intake,
        bytes: &[u8],
        mark: Option<Mark>,
    ) -> Result<(), Stalled> {
        let record = Record {
            bytes,
            source: &intake.name,
            peer: intake.peer,
            sequence: intake.first_sequence + intake.counts.records,
            time: self.time,
            mark,
        };
        let open = self.formatter.passes_bytes()
            && mark == Some(Mark::Unfinished)
            && !self.options.fields.mark
            && matches!(self.options.framing, Framing::Delimiter(_));
        if open {
            self.sink.append_unfinished(bytes)?;
        } else {
            self.line.clear();
            self.formatter.write(&record, &mut self.line);
            self.sink.append(&self.line, 1)?;
        }
        self.count(intake, 1, mark);
        Ok(())
    }

    fn count(&self, intake: &mut Intake, records: usize, mark: Option<Mark>) {
        intake.counts.records += records as u64;
        match mark {
            None => {}
            Some(Mark::Unfinished) => intake.counts.unfinished += 1,
            Some(Mark::Split) => intake.counts.split += 1,
            Some(Mark::Cut) => intake.counts.cut += 1,
        }
        if self.options.ack {
            let log = self.sink.counts().records;
            match intake.durable.back_mut() {
                Some(last) if last.0 == log => last.1 = intake.counts.records,
                _ => intake.durable.push_back((log, intake.counts.records)),
            }
        }
    }

    /// The source has ended: its last record may have no delimiter. Returns whether nothing is left.
    pub(crate) fn end(&mut self, intake: &mut Intake) -> bool {
        intake.ended = true;
        if !self.end_record(intake) {
            return false;
        }
        self.report_dropped(intake);
        intake.unreported == 0
    }

    /// Appends what is held as an unfinished record. Returns whether nothing is left.
    pub(crate) fn end_record(&mut self, intake: &mut Intake) -> bool {
        let data = std::mem::take(&mut intake.held);
        let consumed = self.divide(intake, &data);
        intake.held = data;
        intake.held.drain(..consumed);
        if self.sink.is_stalled() {
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
        self.end_joined(intake)
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

    /// Saves an unfinished record beside a log of records without delimiters.
    fn save_unfinished(&mut self, intake: &mut Intake, bytes: &[u8]) {
        intake.counts.unfinished += 1;
        let Some(log) = &self.options.output else {
            self.messages.push(format!(
                "{}: {} bytes of an unfinished record are dropped",
                intake.name,
                bytes.len()
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
                format!("{name}: ended within a record; its {} bytes are in {}", bytes.len(), path.display())
            }
            Err(error) => format!(
                "{name}: {} bytes of an unfinished record are lost: {}: {error}",
                bytes.len(),
                path.display()
            ),
        });
    }

    /// While the sink has stalled: drops records beyond the memory of the source. Returns the new length of the data.
    fn keep_within_memory(&mut self, intake: &mut Intake, data: &mut Vec<u8>, length: usize) -> usize {
        let limit = self.options.memory_bytes;
        let mut splitter = intake.splitter.clone();
        data.truncate(length);
        if self.options.overflow == Overflow::DropNewest {
            let mut at = intake.kept;
            while let Some(consumed) = whole(&mut splitter, &data[at..]) {
                if at + consumed <= limit {
                    at += consumed;
                } else {
                    data.drain(at..at + consumed);
                    intake.drop_one();
                }
            }
            intake.kept = at;
        } else {
            while data.len() > limit {
                let Some(consumed) = whole(&mut intake.splitter, data) else { break };
                data.drain(..consumed);
                intake.drop_one();
            }
        }
        let length = data.len();
        data.resize(length.max(CHUNK), 0);
        length
    }

    /// Says in the log how many records of the source are missing.
    fn report_dropped(&mut self, intake: &mut Intake) {
        if intake.unreported == 0 || self.sink.is_stalled() {
            return;
        }
        let text = format!("weir: {} records of {} dropped", intake.unreported, intake.name);
        let can_say = !self.formatter.passes_bytes() || matches!(self.options.framing, Framing::Delimiter(_));
        if !can_say || self.put_notice(&text) {
            self.messages.push(text);
            intake.unreported = 0;
        }
    }

    /// Appends a record of weir itself. Returns whether the log took it.
    pub(crate) fn put_notice(&mut self, text: &str) -> bool {
        let record = Record {
            bytes: text.as_bytes(),
            source: "weir",
            peer: None,
            sequence: 0,
            time: self.time,
            mark: None,
        };
        self.line.clear();
        self.formatter.write(&record, &mut self.line);
        self.sink.append(&self.line, 1).is_ok()
    }

    /// Adds the counts of a source that is removed.
    pub(crate) fn add_ended(&mut self, counts: IntakeCounts) {
        self.ended.add(counts);
    }
}

impl Intake {
    fn drop_one(&mut self) {
        self.counts.dropped += 1;
        self.unreported += 1;
    }
}

impl IntakeCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.refused += other.refused;
        self.unfinished += other.unfinished;
        self.split += other.split;
        self.cut += other.cut;
    }
}

/// Returns the length of the first whole record.
fn whole(splitter: &mut Splitter, data: &[u8]) -> Option<usize> {
    match splitter.next(data) {
        Step::NeedMore => None,
        Step::Skip { consumed, .. } | Step::Record { consumed, .. } => Some(consumed),
    }
}
