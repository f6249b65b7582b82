//! Records that are dropped while the log cannot be written, and the notice of how many.

use super::Collector;
use crate::format::Record;
use crate::framing::{Framing, SplitStep, Splitter};
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
        let mut splitter = intake.splitter.clone();
        data.truncate(length);
        if self.options.overflow == Overflow::DropNewest {
            let mut at = intake.kept;
            while let Some((consumed, is_record)) = first_step(&mut splitter, &data[at..]) {
                if at + consumed <= limit {
                    at += consumed;
                } else {
                    data.drain(at..at + consumed);
                    intake.drop_records(is_record.into());
                }
            }
            intake.kept = at;
        } else {
            while data.len() > limit {
                let Some((consumed, is_record)) = first_step(&mut intake.splitter, data) else { break };
                data.drain(..consumed);
                intake.drop_records(is_record.into());
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

/// Returns the length of the first whole record, or of a part of one that is too long, and whether it counts as a record: the
/// rest of a record that is cut or refused does not.
fn first_step(splitter: &mut Splitter, data: &[u8]) -> Option<(usize, bool)> {
    match splitter.next(data) {
        SplitStep::NeedMore => None,
        SplitStep::Skip { consumed, refused } => Some((consumed, refused > 0)),
        SplitStep::Record { consumed, .. } => Some((consumed, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Oversize;
    use crate::options::LogOptions;
    use crate::sink::{LogSink, SinkOptions};

    #[test]
    fn a_dropped_record_counts_once_though_it_is_too_long() {
        let dir = tempfile::tempdir().expect("a directory");
        for oversize in [Oversize::Cut, Oversize::Refuse] {
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
}
