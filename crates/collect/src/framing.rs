//! Divides a stream of bytes into records.

use std::str::FromStr;

use memchr::{memchr, memchr_iter, memrchr};

/// How the bytes of a source are divided into records. A datagram is one record with each framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each record ends with this byte, which is no part of the record.
    Delimiter(u8),
    /// Each record has this many bytes, at least one.
    Length(usize),
    /// A big-endian number of this many bytes (1, 2 or 4) precedes each record: the record's length.
    Prefix(usize),
}

/// The treatment of a record that is longer than the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// It becomes several records; all but the last are marked.
    #[default]
    Split,
    /// Its first bytes are kept and marked.
    Cut,
    /// It is dropped and counted.
    Refuse,
}

/// The reason why a record differs from the one that its source sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The source ended before the record did.
    Unfinished,
    /// The next record of the source continues this one.
    Split,
    /// The end of the record is missing.
    Cut,
}

impl Mark {
    /// Returns the word for the mark in logs and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Mark::Unfinished => "unfinished",
            Mark::Split => "split",
            Mark::Cut => "cut",
        }
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = "newline, nul, delim:BYTE, len:BYTES, prefix:u8, prefix:u16 or prefix:u32";
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        match (kind, value) {
            ("newline", "") => Ok(Framing::Delimiter(b'\n')),
            ("nul", "") => Ok(Framing::Delimiter(0)),
            ("delim", byte) => parse_byte(byte).map(Framing::Delimiter),
            ("len", bytes) => match bytes.parse() {
                Ok(length) if (1..=MAX_LENGTH).contains(&length) => Ok(Framing::Length(length)),
                _ => Err(format!("'{bytes}' is not a record length: use len:1 to len:{MAX_LENGTH}")),
            },
            ("prefix", "u8") => Ok(Framing::Prefix(1)),
            ("prefix", "u16") => Ok(Framing::Prefix(2)),
            ("prefix", "u32") => Ok(Framing::Prefix(4)),
            _ => Err(format!("'{text}' is not a record format: use {known}")),
        }
    }
}

/// The longest record of a fixed length: the largest buffer of a libweir stream.
const MAX_LENGTH: usize = 1 << 30;

/// Parses one byte: a character, \n, \t, \0, \\ or \xHH.
fn parse_byte(text: &str) -> Result<u8, String> {
    let hex = text.strip_prefix("\\x").filter(|digits| digits.len() == 2);
    match (text.as_bytes(), hex) {
        (_, Some(digits)) => u8::from_str_radix(digits, 16).ok(),
        ([byte], _) => Some(*byte),
        (b"\\n", _) => Some(b'\n'),
        (b"\\t", _) => Some(b'\t'),
        (b"\\0", _) => Some(0),
        (b"\\\\", _) => Some(b'\\'),
        _ => None,
    }
    .ok_or_else(|| format!("'{text}' is not one byte: use a character, \\n, \\t, \\0 or \\xHH"))
}

/// The whole records at the start of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Their length with delimiters or prefixes.
    pub(crate) bytes: usize,
    pub(crate) records: usize,
}

/// The first step in some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SplitStep<'a> {
    /// A record without its delimiter or prefix. `consumed` is its length with them.
    Record { bytes: &'a [u8], consumed: usize, mark: Option<Mark> },
    /// These bytes are no record. `refused` is 1 if they begin a record that is refused.
    Skip { consumed: usize, refused: u64 },
    /// The bytes do not contain a whole record.
    NeedMore,
}

/// The first record in some bytes, with all its parts if it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstRecord {
    /// Its length with delimiter or prefix, as far as it is in the bytes.
    pub(crate) bytes: usize,
    /// False for the rest of a record that is cut or refused.
    pub(crate) is_record: bool,
    /// False if its end is missing. The splitter then skips the rest.
    pub(crate) is_whole: bool,
}

/// Divides the bytes of one source. It keeps no bytes itself.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    framing: Framing,
    max: usize,
    oversize: Oversize,
    /// The rest of the current record is skipped: up to the delimiter, or so many bytes.
    skip: Option<usize>,
    /// Bytes of a record with a prefix that follow, after a split.
    continued: usize,
    /// An empty record is none: a syslog message may end with both of its delimiters.
    skips_empty: bool,
}

impl Splitter {
    /// Returns a splitter for records of at most `max` bytes, without delimiter or prefix.
    pub(crate) fn new(framing: Framing, max: usize, oversize: Oversize) -> Self {
        let max = if let Framing::Length(length) = framing { max.max(length) } else { max };
        Self { framing, max, oversize, skip: None, continued: 0, skips_empty: false }
    }

    /// Returns a splitter for a stream of syslog messages, whose NULs are newlines already.
    pub(crate) fn of_syslog(max: usize, oversize: Oversize) -> Self {
        Self { skips_empty: true, ..Self::new(Framing::Delimiter(b'\n'), max, oversize) }
    }

    /// Returns the whole records at the start of `data`, in at most `limit` bytes, but the first one also if it is longer.
    pub(crate) fn run(&self, data: &[u8], limit: usize) -> Run {
        if self.skip.is_some() || self.continued > 0 || self.skips_empty {
            return Run::default();
        }
        match self.framing {
            Framing::Delimiter(delimiter) => self.delimited_run(data, delimiter, limit),
            Framing::Length(length) => {
                let records = (data.len() / length).min((limit / length).max(1));
                Run { bytes: records * length, records }
            }
            Framing::Prefix(width) => self.prefixed_run(data, width, limit),
        }
    }

    fn delimited_run(&self, data: &[u8], delimiter: u8, limit: usize) -> Run {
        let window = &data[..data.len().min(limit)];
        if window.len() <= self.max
            && let Some(end) = memrchr(delimiter, window)
        {
            // No record in so few bytes is too long, and counting is quicker than a look at each record.
            return Run { bytes: end + 1, records: memchr_iter(delimiter, &window[..=end]).count() };
        }
        let mut run = Run::default();
        for end in memchr_iter(delimiter, data) {
            if end - run.bytes > self.max || (end + 1 > limit && run.records > 0) {
                break;
            }
            run = Run { bytes: end + 1, records: run.records + 1 };
        }
        run
    }

    fn prefixed_run(&self, data: &[u8], width: usize, limit: usize) -> Run {
        let mut run = Run::default();
        while let Some(length) = prefix(&data[run.bytes..], width).filter(|&length| length <= self.max) {
            let end = run.bytes + width + length;
            if end > data.len() || (end > limit && run.records > 0) {
                break;
            }
            run = Run { bytes: end, records: run.records + 1 };
        }
        run
    }

    /// Returns a splitter for bytes that begin with a record.
    pub(crate) fn at_boundary(&self) -> Self {
        Self { skip: None, continued: 0, ..self.clone() }
    }

    /// Returns the first record in `data`, for a caller that removes all of it or nothing. Returns none if its end is missing, unless
    /// it is too long. The caller removes the bytes before the next call.
    pub(crate) fn first_record(&mut self, data: &[u8]) -> Option<FirstRecord> {
        let mut first = FirstRecord { bytes: 0, is_record: false, is_whole: false };
        while !first.is_whole {
            let step = self.next(&data[first.bytes..]);
            let (consumed, counts, mark) = match step {
                SplitStep::NeedMore => break,
                SplitStep::Skip { consumed, refused } => (consumed, refused > 0, None),
                SplitStep::Record { consumed, mark, .. } => (consumed, true, mark),
            };
            first.bytes += consumed;
            first.is_record |= counts;
            first.is_whole = self.skip.is_none() && mark != Some(Mark::Split);
        }
        if first.bytes > 0 && !first.is_whole {
            if self.skip.is_none() {
                let is_delimited = matches!(self.framing, Framing::Delimiter(_));
                self.skip = Some(if is_delimited { usize::MAX } else { std::mem::take(&mut self.continued) });
            }
            while let SplitStep::Skip { consumed, .. } = self.skip_rest(&data[first.bytes..]) {
                first.bytes += consumed;
            }
        }
        (first.bytes > 0).then_some(first)
    }

    /// Returns the first step in `data`. The caller removes the consumed bytes before the next call.
    pub(crate) fn next<'a>(&mut self, data: &'a [u8]) -> SplitStep<'a> {
        if self.skip.is_some() {
            return self.skip_rest(data);
        }
        match self.framing {
            Framing::Delimiter(delimiter) => self.next_delimited(data, delimiter),
            Framing::Length(length) => match data.get(..length) {
                Some(bytes) => SplitStep::Record { bytes, consumed: length, mark: None },
                None => SplitStep::NeedMore,
            },
            Framing::Prefix(width) => self.next_prefixed(data, width),
        }
    }

    fn next_delimited<'a>(&mut self, data: &'a [u8], delimiter: u8) -> SplitStep<'a> {
        // One byte more than the maximum decides whether the record is too long.
        match memchr(delimiter, &data[..data.len().min(self.max + 1)]) {
            Some(0) if self.skips_empty => SplitStep::Skip { consumed: 1, refused: 0 },
            Some(end) => SplitStep::Record { bytes: &data[..end], consumed: end + 1, mark: None },
            None if data.len() <= self.max => SplitStep::NeedMore,
            None => self.oversized(&data[..self.max], 0, None),
        }
    }

    fn next_prefixed<'a>(&mut self, data: &'a [u8], width: usize) -> SplitStep<'a> {
        let (width, length) = match self.continued {
            0 => match prefix(data, width) {
                Some(length) => (width, length),
                None => return SplitStep::NeedMore,
            },
            rest => (0, rest),
        };
        if length <= self.max {
            return match data.get(width..width + length) {
                Some(bytes) => {
                    self.continued = 0;
                    SplitStep::Record { bytes, consumed: width + length, mark: None }
                }
                None => SplitStep::NeedMore,
            };
        }
        match data.get(width..width + self.max) {
            Some(bytes) => self.oversized(bytes, width, Some(length - self.max)),
            None => SplitStep::NeedMore,
        }
    }

    /// Handles a record that is too long: its first `bytes` after a prefix of `width`; `rest` bytes follow, if known.
    fn oversized<'a>(&mut self, bytes: &'a [u8], width: usize, rest: Option<usize>) -> SplitStep<'a> {
        let consumed = width + bytes.len();
        match self.oversize {
            Oversize::Split => {
                self.continued = rest.unwrap_or(0);
                SplitStep::Record { bytes, consumed, mark: Some(Mark::Split) }
            }
            Oversize::Cut => {
                self.skip = Some(rest.unwrap_or(usize::MAX));
                self.continued = 0;
                SplitStep::Record { bytes, consumed, mark: Some(Mark::Cut) }
            }
            Oversize::Refuse => {
                self.skip = Some(rest.unwrap_or(usize::MAX));
                SplitStep::Skip { consumed, refused: 1 }
            }
        }
    }

    fn skip_rest<'a>(&mut self, data: &[u8]) -> SplitStep<'a> {
        if data.is_empty() {
            return SplitStep::NeedMore;
        }
        let consumed = match (self.framing, self.skip) {
            (Framing::Delimiter(delimiter), _) => {
                let end = memchr(delimiter, data);
                self.skip = self.skip.filter(|_| end.is_none());
                end.map_or(data.len(), |end| end + 1)
            }
            (_, rest) => {
                let rest = rest.unwrap_or(0);
                let consumed = rest.min(data.len());
                self.skip = Some(rest - consumed).filter(|&rest| rest > 0);
                consumed
            }
        };
        SplitStep::Skip { consumed, refused: 0 }
    }

    /// Returns the record that `data`, the last bytes of the source, is: none if the source ended with a whole record.
    pub(crate) fn last<'a>(&mut self, data: &'a [u8]) -> Option<&'a [u8]> {
        let skipping = self.skip.take().is_some();
        let continued = std::mem::take(&mut self.continued) > 0;
        let width = if let Framing::Prefix(width) = self.framing { width } else { 0 };
        let bytes = if continued { data } else { data.get(width..).unwrap_or(data) };
        (!skipping && !data.is_empty()).then_some(bytes)
    }
}

/// Returns the length that a prefix of `width` bytes at the start of `data` announces.
fn prefix(data: &[u8], width: usize) -> Option<usize> {
    let bytes = data.get(..width)?;
    Some(bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)))
}

#[cfg(test)]
#[path = "framing_test.rs"]
mod tests;
