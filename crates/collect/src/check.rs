//! Checks a log: which records are whole, torn, or contain parts of several writers' records.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use regex::bytes::Regex;
use weir_model::Untrusted;
use weir_model::log::{BadRecord, CHECK_SCHEMA, LogCheckDocument, LogWriter};

use crate::error::Error;
use crate::framing::{Framing, Oversize, SplitStep, Splitter};

/// How records are judged.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How the log is divided.
    pub framing: Framing,
    /// A whole record matches from its start to its end. The group `writer` names the writer, `number` numbers its records.
    pub pattern: Option<Regex>,
    /// Each record consists of one byte, repeated: the byte is the writer.
    pub uniform: bool,
}

/// The longest record that is compared with the pattern, in bytes; a longer one counts as torn.
const MAX_RECORD: usize = 16 << 20;

/// The most bad records in a document, and the bytes of each.
const BAD: usize = 20;
const EXCERPT: usize = 60;

/// The result for one record.
enum Judgement {
    Whole { writer: Vec<u8>, number: Option<u64> },
    Torn,
    Interleaved,
}

/// Counts the records of the log at `path`.
///
/// # Errors
/// The log cannot be read.
pub fn check(path: &Path, options: &CheckOptions) -> Result<LogCheckDocument, Error> {
    let name = crate::error::shown(path);
    let failed = |error: std::io::Error| Error::call("read", &name, &error, "name a log that can be read");
    let mut file = BufReader::with_capacity(256 << 10, File::open(path).map_err(failed)?);
    let whole = options.pattern.as_ref().map(whole_pattern).transpose()?;
    let mut checker = Checker::new(weir_model::text_of(path), options, whole);
    let mut splitter = Splitter::new(options.framing, MAX_RECORD, Oversize::Cut);
    let mut held = Vec::new();
    loop {
        let block = file.fill_buf().map_err(failed)?;
        let count = block.len();
        if count == 0 {
            break;
        }
        held.extend_from_slice(block);
        file.consume(count);
        let mut at = 0;
        loop {
            match splitter.next(&held[at..]) {
                SplitStep::Record { bytes, consumed, mark } => {
                    checker.add(bytes, consumed, mark.is_some());
                    at += consumed;
                }
                SplitStep::Skip { consumed, .. } => {
                    checker.skip(consumed);
                    at += consumed;
                }
                SplitStep::NeedMore => break,
            }
        }
        held.drain(..at);
    }
    Ok(checker.finish(&held))
}

/// Returns the pattern of a record that matches from its start to its end. An alternative that ends earlier must not win.
fn whole_pattern(pattern: &Regex) -> Result<Regex, Error> {
    Regex::new(&format!(r"\A(?:{pattern})\z"))
        // With (?x) a comment at the end of the pattern hides the parenthesis in its line.
        .or_else(|_| Regex::new(&format!("\\A(?:{pattern}\n)\\z")))
        .map_err(|error| Error::text(format!("--pattern '{pattern}': {error}: use a shorter pattern")))
}

struct Checker<'a> {
    options: &'a CheckOptions,
    /// The pattern of whole records.
    whole: Option<Regex>,
    document: LogCheckDocument,
    writers: HashMap<Vec<u8>, usize>,
    /// The last number of each writer.
    numbers: Vec<Option<u64>>,
    last_writer: Option<usize>,
}

impl<'a> Checker<'a> {
    fn new(log: String, options: &'a CheckOptions, whole: Option<Regex>) -> Self {
        let document = LogCheckDocument {
            schema: CHECK_SCHEMA.into(),
            log,
            bytes: 0,
            records: 0,
            whole: 0,
            torn: 0,
            interleaved: 0,
            unfinished_bytes: 0,
            nul_bytes: 0,
            writers: Vec::new(),
            bad: Vec::new(),
            command: Vec::new(),
            environment: BTreeMap::new(),
        };
        let (writers, numbers) = (HashMap::new(), Vec::new());
        Self { options, whole, document, writers, numbers, last_writer: None }
    }

    fn add(&mut self, bytes: &[u8], consumed: usize, too_long: bool) {
        self.document.records += 1;
        let judgement = if too_long { Judgement::Torn } else { self.judge(bytes) };
        match judgement {
            Judgement::Whole { writer, number } => {
                self.document.whole += 1;
                self.count_writer(writer, number);
            }
            Judgement::Torn => {
                self.document.torn += 1;
                self.add_bad(bytes, "torn");
            }
            Judgement::Interleaved => {
                self.document.interleaved += 1;
                self.add_bad(bytes, "interleaved");
            }
        }
        self.document.bytes += consumed as u64;
    }

    fn skip(&mut self, consumed: usize) {
        self.document.bytes += consumed as u64;
    }

    fn judge(&self, bytes: &[u8]) -> Judgement {
        if self.options.uniform {
            return match bytes.first() {
                Some(first) if bytes.iter().all(|byte| byte == first) => {
                    Judgement::Whole { writer: vec![*first], number: None }
                }
                Some(_) => Judgement::Interleaved,
                None => Judgement::Torn,
            };
        }
        let (Some(pattern), Some(whole)) = (&self.options.pattern, &self.whole) else {
            // NUL bytes in a log of lines are what a power cut leaves.
            let torn = matches!(self.options.framing, Framing::Delimiter(delimiter) if delimiter != 0)
                && bytes.contains(&0);
            return if torn {
                Judgement::Torn
            } else {
                Judgement::Whole { writer: Vec::new(), number: None }
            };
        };
        match whole.captures(bytes) {
            Some(found) => Judgement::Whole {
                writer: found.name("writer").map(|writer| writer.as_bytes().to_vec()).unwrap_or_default(),
                number: found
                    .name("number")
                    .and_then(|number| std::str::from_utf8(number.as_bytes()).ok()?.parse().ok()),
            },
            // A whole record somewhere inside means that another writer came between.
            None if pattern.is_match(bytes) => Judgement::Interleaved,
            None => Judgement::Torn,
        }
    }

    fn count_writer(&mut self, writer: Vec<u8>, number: Option<u64>) {
        let index = match self.writers.get(&writer) {
            Some(&index) => index,
            None => {
                let name = Untrusted::from(String::from_utf8_lossy(&writer).as_ref());
                self.document.writers.push(LogWriter { name, ..LogWriter::default() });
                self.numbers.push(None);
                self.writers.insert(writer, self.document.writers.len() - 1);
                self.document.writers.len() - 1
            }
        };
        let counts = &mut self.document.writers[index];
        counts.records += 1;
        if self.last_writer.replace(index) != Some(index) {
            counts.runs += 1;
        }
        if let Some(number) = number {
            match self.numbers[index] {
                Some(last) if number <= last => counts.repeated += 1,
                Some(last) => {
                    counts.missing += number - last - 1;
                    self.numbers[index] = Some(number);
                }
                None => self.numbers[index] = Some(number),
            }
        }
    }

    fn add_bad(&mut self, bytes: &[u8], kind: &str) {
        // Records behind a bad one begin a new run.
        self.last_writer = None;
        if self.document.bad.len() < BAD {
            let excerpt = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]);
            self.document.bad.push(BadRecord {
                record: self.document.records,
                offset: self.document.bytes,
                bytes: bytes.len() as u64,
                kind: kind.into(),
                excerpt: Untrusted::from(excerpt.as_ref()),
            });
        }
    }

    fn finish(mut self, rest: &[u8]) -> LogCheckDocument {
        let nuls = rest.iter().rev().take_while(|&&byte| byte == 0).count();
        self.document.bytes += rest.len() as u64;
        self.document.nul_bytes = nuls as u64;
        self.document.unfinished_bytes = (rest.len() - nuls) as u64;
        self.document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(content: &[u8], framing: Framing, pattern: Option<&str>, uniform: bool) -> LogCheckDocument {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        std::fs::write(&path, content).expect("written");
        let pattern = pattern.map(|pattern| Regex::new(pattern).expect("a pattern"));
        check(&path, &CheckOptions { framing, pattern, uniform }).expect("checked")
    }

    #[test]
    fn records_of_one_letter_are_counted_by_writer() {
        let log = checked(b"aaabbbaaaabbcc", Framing::Length(3), None, true);
        assert_eq!((log.records, log.whole, log.interleaved, log.unfinished_bytes), (4, 3, 1, 2));
        let writers: Vec<_> =
            log.writers.iter().map(|writer| (writer.name.exact(), writer.records, writer.runs)).collect();
        assert_eq!(writers, [("a", 2, 2), ("b", 1, 1)]);
        assert_eq!((log.bad[0].offset, log.bad[0].record, log.bad[0].kind.as_str()), (9, 4, "interleaved"));
        assert!(!log.is_good());
    }

    #[test]
    fn a_pattern_finds_torn_records_and_gaps() {
        let text = b"w1 #1 text\nw2 #1 text\nw1 #3 text\nw1 w2 #2 text\ntext\nw2 #1 text\n";
        let log =
            checked(text, Framing::Delimiter(b'\n'), Some(r"(?<writer>w\d) #(?<number>\d+) text"), false);
        assert_eq!((log.whole, log.torn, log.interleaved), (4, 1, 1));
        let writers: Vec<_> = log.writers.iter().map(|writer| (writer.missing, writer.repeated)).collect();
        assert_eq!(writers, [(1, 0), (0, 1)]);
    }

    #[test]
    fn a_whole_record_matches_any_alternative() {
        for pattern in ["a|ab", "(?x) a | ab # a comment"] {
            let log = checked(b"ab\na\nabc\nb\n", Framing::Delimiter(b'\n'), Some(pattern), false);
            assert_eq!((log.whole, log.interleaved, log.torn), (2, 1, 1), "{pattern}");
        }
    }

    #[test]
    fn the_end_of_a_crashed_log_is_seen() {
        let log = checked(b"one\ntwo\nthr\0\0\0", Framing::Delimiter(b'\n'), None, false);
        assert_eq!((log.whole, log.unfinished_bytes, log.nul_bytes, log.bytes), (2, 3, 3, 14));
        assert!(checked(b"one\n", Framing::Delimiter(b'\n'), None, false).is_good());
    }
}
