//! Joins lines to a record: a line that matches a pattern begins one, the lines up to the next match continue it.

use regex::bytes::Regex;

/// The record of several lines that a source is sending.
#[derive(Debug)]
pub(crate) struct Joiner {
    start: Regex,
    max: usize,
    record: Option<Vec<u8>>,
}

impl Joiner {
    pub(crate) fn new(start: Regex, max: usize) -> Self {
        Self { start, max, record: None }
    }

    /// Returns whether lines are held.
    pub(crate) fn has_record(&self) -> bool {
        self.record.is_some()
    }

    /// Returns the length of the held lines with their ends.
    pub(crate) fn input_bytes(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.len() + 1)
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
            None => self.record = Some(line.to_vec()),
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
}
