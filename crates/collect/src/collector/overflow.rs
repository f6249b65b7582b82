//! Records that are dropped while the log cannot be written, and the notice of how many.

use super::Collector;
use crate::format::Record;
use crate::framing::Framing;
use crate::intake::{CHUNK, Intake};
use crate::options::Overflow;
use weir_model::number::counted;

impl Collector {
    /// While the sink has stalled: drops records beyond the memory of the source. Returns the new length of the data.
    pub(super) fn keep_within_memory(
        &mut self,
        intake: &mut Intake,
        data: &mut Vec<u8>,
        length: usize,
    ) -> usize {
        let limit = self.options.memory_bytes;
        data.truncate(length);
        if self.options.overflow == Overflow::DropNewest {
            drop_newest(intake, data, limit);
        } else {
            while data.len() > limit {
                let Some(first) = intake.splitter.first_record(data) else { break };
                data.drain(..first.bytes);
                intake.drop_records(first.is_record.into());
            }
        }
        let length = data.len();
        data.resize(length.max(CHUNK), 0);
        length
    }

    /// Says in the log how many records of the source are missing.
    pub(crate) fn report_dropped(&mut self, intake: &mut Intake) {
        if intake.unreported == 0 || self.sink.is_stalled() {
            return;
        }
        let text = format!("weir: {} records of {} dropped", intake.unreported, intake.name);
        if !self.can_say() || self.put_notice(&text) {
            self.messages.push(text);
            intake.unreported = 0;
        }
    }

    /// With `--mark`, says in the log that a record of the source is refused. Returns false if the log did not take the notice.
    pub(super) fn report_refused(&mut self, intake: &Intake) -> bool {
        if !self.options.fields.mark || !self.can_say() {
            return true;
        }
        let most = weir_model::Size(self.options.max_record_bytes as u64);
        self.put_notice(&format!("weir: 1 record of {} refused: longer than {most}", intake.name))
    }

    /// Returns whether a record of these bytes leaves the log divisible: records of one length have this length, and a prefix can
    /// hold the length.
    pub(super) fn fits_log(&self, bytes: &[u8]) -> bool {
        match self.options.framing {
            Framing::Length(length) if self.formatter.passes_bytes() => bytes.len() == length,
            Framing::Prefix(width) if self.formatter.passes_bytes() => bytes.len() as u64 >> (8 * width) == 0,
            Framing::Delimiter(_) | Framing::Length(_) | Framing::Prefix(_) => true,
        }
    }

    /// Counts a record that does not fit the log as refused. Names the first one of its source.
    pub(super) fn refuse(&mut self, intake: &mut Intake, length: usize) {
        intake.counts.refused += 1;
        if intake.counts.refused == 1 {
            let wanted = match self.options.framing {
                Framing::Length(length) => {
                    format!("records of {} only (--record)", counted(length as u64, "byte"))
                }
                _ => "shorter records only (--record)".into(),
            };
            self.messages.push(format!(
                "{}: a record of {} is refused, as further ones will be: the log has {wanted}",
                intake.name,
                counted(length as u64, "byte")
            ));
        }
    }

    /// Returns whether a notice can be a record of the log: not if all records have one length, or a prefix.
    fn can_say(&self) -> bool {
        !self.formatter.passes_bytes() || matches!(self.options.framing, Framing::Delimiter(_))
    }

    /// Appends a notice about a loss, if the log can have one. Returns false if the log did not take it now.
    pub(crate) fn put_loss(&mut self, text: &str) -> bool {
        !self.can_say() || self.put_notice(text)
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
            syslog: None,
        };
        self.line.clear();
        self.formatter.write(&record, &mut self.line);
        self.sink.append(&self.line, 1).is_ok()
    }
}

/// Drops the records that do not fit behind those that are kept.
fn drop_newest(intake: &mut Intake, data: &mut Vec<u8>, limit: usize) {
    let mut at = intake.kept;
    let mut splitter = if at == 0 { intake.splitter.clone() } else { intake.splitter.at_boundary() };
    while let Some(first) = splitter.first_record(&data[at..]) {
        if first.is_record && at + first.bytes <= limit {
            if !first.is_whole {
                break;
            }
            at += first.bytes;
            continue;
        }
        data.drain(at..at + first.bytes);
        intake.drop_records(first.is_record.into());
        if at == 0 {
            intake.splitter = splitter.clone();
        } else if !first.is_whole {
            intake.dropped_rest = Some(splitter.clone());
        }
    }
    intake.kept = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::{Oversize, SplitStep};
    use crate::options::LogOptions;
    use crate::sink::{LogSink, SinkOptions};

    #[test]
    fn a_dropped_record_counts_once_though_it_is_too_long() {
        let dir = tempfile::tempdir().expect("a directory");
        for oversize in [Oversize::Split, Oversize::Cut, Oversize::Refuse] {
            for overflow in [Overflow::DropOldest, Overflow::DropNewest] {
                let mut options = LogOptions::of_lines(&dir.path().join(format!("{oversize:?}{overflow:?}")));
                (options.max_record_bytes, options.oversize) = (10, oversize);
                (options.overflow, options.memory_bytes) = (overflow, 8);
                let sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
                let mut collector = Collector::new(options, sink);
                let mut intake = Intake::new("a".into(), None, &collector.options);
                let mut data = format!("one\n{}\ntwo\n", "x".repeat(30)).into_bytes();
                let length = data.len();
                let kept = collector.keep_within_memory(&mut intake, &mut data, length);
                let expected: (&[u8], u64) = match overflow {
                    Overflow::DropOldest => (b"two\n", 2),
                    _ => (b"one\ntwo\n", 1),
                };
                assert_eq!((&data[..kept], intake.counts.dropped), expected, "{oversize:?} {overflow:?}");
            }
        }
    }

    /// Feeds records in pieces of each size to a stalled sink, and then divides what was kept and the records that follow.
    fn kept_of(options: &LogOptions, input: &[u8], piece: usize) -> (Vec<Vec<u8>>, u64) {
        let sink = LogSink::open(SinkOptions::of(options)).expect("opened");
        let mut collector = Collector::new(options.clone(), sink);
        let mut intake = Intake::new("a".into(), None, options);
        for bytes in input.chunks(piece) {
            let mut data = [&intake.held[..], bytes].concat();
            let length = data.len();
            let length = intake.remove_dropped_rest(&mut data, length);
            let length = collector.keep_within_memory(&mut intake, &mut data, length);
            intake.hold(&data[..length]);
        }
        assert!(intake.dropped_rest.is_none() || intake.kept == intake.held.len());
        let (mut records, mut at) = (Vec::new(), 0);
        loop {
            match intake.splitter.next(&intake.held[at..]) {
                SplitStep::NeedMore => break,
                SplitStep::Skip { consumed, .. } => at += consumed,
                SplitStep::Record { bytes, consumed, .. } => {
                    records.push(bytes.to_vec());
                    at += consumed;
                }
            }
        }
        assert_eq!(at, intake.held.len(), "each record is whole");
        (records, intake.counts.dropped)
    }

    /// A record that is too long is dropped with all its parts, however it comes. Its rest is neither a record nor a prefix.
    #[test]
    fn no_part_of_a_dropped_record_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let long = [b'x'; 50];
        for (framing, name) in [(Framing::Delimiter(b'\n'), "lines"), (Framing::Prefix(1), "prefixed")] {
            let record = |bytes: &[u8]| match framing {
                Framing::Prefix(_) => [&[bytes.len() as u8], bytes].concat(),
                _ => [bytes, b"\n"].concat(),
            };
            let input =
                [record(b"one"), record(&long), record(b"two"), record(&long), record(b"six")].concat();
            for oversize in [Oversize::Split, Oversize::Cut, Oversize::Refuse] {
                for overflow in [Overflow::DropOldest, Overflow::DropNewest] {
                    for piece in 1..=input.len() {
                        let mut options = LogOptions::of_lines(&dir.path().join(name));
                        options.framing = framing;
                        (options.max_record_bytes, options.oversize) = (10, oversize);
                        (options.overflow, options.memory_bytes) = (overflow, 12);
                        let (records, dropped) = kept_of(&options, &input, piece);
                        let case = format!("{name} {oversize:?} {overflow:?} {piece}");
                        let short = records.iter().filter(|record| record.len() == 3).count() as u64;
                        assert_eq!(records.len() as u64, short, "{case}: {records:?}");
                        assert_eq!(short + dropped, 5, "{case}: {records:?}");
                        if overflow == Overflow::DropNewest {
                            assert_eq!(records, [b"one", b"two", b"six"], "{case}");
                        }
                    }
                }
            }
        }
    }
}
