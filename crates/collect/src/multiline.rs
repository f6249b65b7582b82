//! Joins lines to a record: a line that matches a pattern begins one, the lines up to the next match continue it.

use regex::bytes::Regex;

/// The record of several lines that a source is sending.
#[derive(Debug)]
pub(crate) struct Joiner {
    start: Regex,
    max: usize,
    record: Option<Vec<u8>>,
    /// The bytes of the source from the begin of the record on: with delimiters, and with what a line that is too long lacks.
    input: usize,
}

impl Joiner {
    pub(crate) fn new(start: Regex, max: usize) -> Self {
        Self { start, max, record: None, input: 0 }
    }

    /// Returns whether lines are held.
    pub(crate) fn has_record(&self) -> bool {
        self.record.is_some()
    }

    /// Notes that the source has sent so many bytes, which the last line or the bytes behind it had.
    pub(crate) fn note_input(&mut self, bytes: usize) {
        self.input += bytes;
    }

    /// Returns how many bytes the source has sent for the held lines.
    pub(crate) fn input_bytes(&self) -> usize {
        self.record.as_ref().map_or(0, |_| self.input)
    }

    /// Returns the record that is whole because `line` begins a new one, or would make it too long.
    pub(crate) fn take_if_new(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let held = self.record.as_ref()?;
        let ends = held.len() + 1 + line.len() > self.max || self.start.is_match(line);
        ends.then(|| self.record.take()).flatten()
    }

    /// Adds a line to the record.
    pub(crate) fn add(&mut self, line: &[u8]) {
        match &mut self.record {
            Some(record) => {
                record.push(b'\n');
                record.extend_from_slice(line);
            }
            None => (self.record, self.input) = (Some(line.to_vec()), 0),
        }
    }

    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.record.take()
    }

    /// Takes back a record that the log did not accept.
    pub(crate) fn give_back(&mut self, record: Vec<u8>) {
        self.record = Some(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matching_line_begins_a_record() {
        let mut joiner = Joiner::new(Regex::new("^[A-Z]").expect("a pattern"), 20);
        let mut records = Vec::new();
        for line in ["Error", " at a", " at b", "Next", " 12345678901234567890", "End"] {
            records.extend(joiner.take_if_new(line.as_bytes()));
            joiner.add(line.as_bytes());
        }
        records.extend(joiner.take());
        let texts: Vec<_> = records.iter().map(|record| String::from_utf8_lossy(record)).collect();
        assert_eq!(texts, ["Error\n at a\n at b", "Next", " 12345678901234567890", "End"]);
    }

    #[test]
    fn a_record_that_is_given_back_has_its_input() {
        let mut joiner = Joiner::new(Regex::new("^[A-Z]").expect("a pattern"), 100);
        assert_eq!(joiner.input_bytes(), 0);
        for line in ["Error", " at a"] {
            joiner.add(line.as_bytes());
            joiner.note_input(line.len() + 1);
        }
        // The rest of a line that was cut.
        joiner.note_input(30);
        assert_eq!(joiner.input_bytes(), 42);
        let record = joiner.take_if_new(b"Next").expect("a record");
        assert_eq!(joiner.input_bytes(), 0);
        joiner.give_back(record);
        assert_eq!(joiner.input_bytes(), 42);
        joiner.take();
        joiner.add(b"Next");
        joiner.note_input(5);
        assert_eq!(joiner.input_bytes(), 5);
    }
}
