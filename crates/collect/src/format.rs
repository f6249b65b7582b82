//! Formats records for the log.

use std::str::FromStr;

use serde::Serialize;

use crate::framing::{Framing, Mark};
use crate::stamp::{Receipt, Stamp, StampWriter, utc_text};
use crate::syslog::SyslogMessage;

/// The form of a record in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The bytes of the record, as the source sent them, with the delimiter or prefix of the framing.
    #[default]
    Raw,
    /// A line: stamp, source and number as asked for, then the bytes.
    Text,
    /// A line of comma-separated values: stamp, source and number as asked for, then the record.
    Csv,
    /// A JSON object on a line, with time, source, number and peer.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "raw" => Ok(Format::Raw),
            "text" => Ok(Format::Text),
            "csv" => Ok(Format::Csv),
            "json" => Ok(Format::Json),
            _ => Err(format!("'{text}' is not a log format: use raw, text, csv or json")),
        }
    }
}

/// The fields of a line beside the record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    /// The time of receipt.
    pub stamp: Option<Stamp>,
    /// The name of the source.
    pub source: bool,
    /// The number of the record in its source, from 1.
    pub sequence: bool,
    /// Why a record is unfinished, split or cut.
    pub mark: bool,
}

/// The process at the other end of a local socket (SO_PEERCRED, SCM_CREDENTIALS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) pid: i32,
    pub(crate) uid: u32,
}

/// One record with its source, sender, number and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) source: &'a str,
    pub(crate) peer: Option<Peer>,
    pub(crate) sequence: u64,
    pub(crate) time: Receipt,
    pub(crate) mark: Option<Mark>,
    /// The header of a message of syslog, whose text is in `bytes`.
    pub(crate) syslog: Option<SyslogMessage<'a>>,
}

/// Formats records for the log, with one form and its fields.
#[derive(Debug)]
pub(crate) struct Formatter {
    format: Format,
    framing: Framing,
    fields: Fields,
    stamp: Option<StampWriter>,
}

impl Formatter {
    pub(crate) fn new(format: Format, framing: Framing, fields: Fields) -> Self {
        Self { format, framing, fields, stamp: fields.stamp.map(StampWriter::new) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Returns whether whole records go to the log as they are received.
    pub(crate) fn passes_bytes(&self) -> bool {
        self.format == Format::Raw
    }

    /// Returns how the records of the log are divided.
    pub(crate) fn log_framing(&self) -> Framing {
        if self.passes_bytes() { self.framing } else { Framing::Delimiter(b'\n') }
    }

    /// Appends `record` to `out`, whole, with its delimiter.
    pub(crate) fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        match self.format {
            Format::Raw => self.write_raw(record, out),
            Format::Text => self.write_text(record, out),
            Format::Csv => self.write_csv(record, out),
            Format::Json => write_json(record, out),
        }
    }

    fn write_raw(&self, record: &Record, out: &mut Vec<u8>) {
        if let Framing::Prefix(width) = self.framing {
            let length = (record.bytes.len() as u64).to_be_bytes();
            out.extend_from_slice(&length[length.len() - width..]);
        }
        out.extend_from_slice(record.bytes);
        if let Framing::Delimiter(delimiter) = self.framing {
            self.write_mark(record, out);
            out.push(delimiter);
        }
    }

    fn write_text(&mut self, record: &Record, out: &mut Vec<u8>) {
        if let Some(stamp) = &mut self.stamp {
            stamp.write(record.time, out);
            out.push(b' ');
        }
        if self.fields.source {
            out.extend_from_slice(record.source.as_bytes());
            if let Some(peer) = record.peer {
                out.extend_from_slice(format!("[{}]", peer.pid).as_bytes());
            }
            out.extend_from_slice(b": ");
        }
        if self.fields.sequence {
            out.extend_from_slice(format!("#{} ", record.sequence).as_bytes());
        }
        out.extend_from_slice(record.bytes);
        self.write_mark(record, out);
        out.push(b'\n');
    }

    fn write_mark(&self, record: &Record, out: &mut Vec<u8>) {
        if let Some(mark) = record.mark.filter(|_| self.fields.mark) {
            out.extend_from_slice(format!(" [weir: {}]", mark.word()).as_bytes());
        }
    }

    fn write_csv(&mut self, record: &Record, out: &mut Vec<u8>) {
        let mut stamp = Vec::new();
        if let Some(writer) = &mut self.stamp {
            writer.write(record.time, &mut stamp);
        }
        let sequence = record.sequence.to_string();
        let mark = record.mark.map_or("", Mark::word);
        let fields = [
            (self.stamp.is_some(), stamp.as_slice()),
            (self.fields.source, record.source.as_bytes()),
            (self.fields.sequence, sequence.as_bytes()),
            (true, record.bytes),
            (self.fields.mark, mark.as_bytes()),
        ];
        let start = out.len();
        // The values of a sensor are already comma-separated: only what would end the record is quoted.
        for (_, field) in fields.into_iter().filter(|(wanted, _)| *wanted) {
            if out.len() > start {
                out.push(b',');
            }
            write_csv_field(field, out);
        }
        out.push(b'\n');
    }
}

/// Appends a field. It is quoted if it contains a quote or the end of a line; commas separate the values within a record.
fn write_csv_field(field: &[u8], out: &mut Vec<u8>) {
    if memchr::memchr3(b'"', b'\n', b'\r', field).is_none() {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for &byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A record as a line of JSON.
#[derive(Serialize)]
struct JsonRecord<'a> {
    time: String,
    source: &'a str,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(flatten)]
    syslog: Option<SyslogMessage<'a>>,
    text: std::borrow::Cow<'a, str>,
    /// All bytes in hexadecimal, if they are no UTF-8: `text` then has replacement characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
}

fn write_json(record: &Record, out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(record.bytes);
    let is_exact = matches!(text, std::borrow::Cow::Borrowed(_));
    let hex = (!is_exact).then(|| record.bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    let line = JsonRecord {
        time: utc_text(record.time.wall),
        source: record.source,
        sequence: record.sequence,
        pid: record.peer.map(|peer| peer.pid),
        uid: record.peer.map(|peer| peer.uid),
        syslog: record.syslog,
        text,
        hex,
        mark: record.mark.map(Mark::word),
    };
    serde_json::to_writer(&mut *out, &line).expect("a struct of strings and numbers, written to memory");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(
        format: Format,
        framing: Framing,
        fields: Fields,
        bytes: &[u8],
        mark: Option<Mark>,
    ) -> String {
        let mut out = Vec::new();
        let peer = Some(Peer { pid: 71, uid: 1000 });
        let record =
            Record { bytes, source: "web", peer, sequence: 3, time: Receipt::now(), mark, syslog: None };
        Formatter::new(format, framing, fields).write(&record, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    const NEWLINE: Framing = Framing::Delimiter(b'\n');

    #[test]
    fn raw_records_keep_their_bytes() {
        let raw = |framing, fields| formatted(Format::Raw, framing, fields, b"a,\"b", Some(Mark::Unfinished));
        assert_eq!(raw(NEWLINE, Fields::default()), "a,\"b\n");
        assert_eq!(raw(Framing::Delimiter(0), Fields::default()), "a,\"b\0");
        assert_eq!(raw(Framing::Length(4), Fields::default()), "a,\"b");
        assert_eq!(raw(Framing::Prefix(2), Fields::default()), "\0\x04a,\"b");
        let marked = Fields { mark: true, ..Fields::default() };
        assert_eq!(raw(NEWLINE, marked), "a,\"b [weir: unfinished]\n");
    }

    #[test]
    fn lines_have_the_fields_that_were_asked_for() {
        let fields = Fields { stamp: None, source: true, sequence: true, mark: true };
        let line = |format, bytes: &[u8]| formatted(format, NEWLINE, fields, bytes, None);
        assert_eq!(line(Format::Text, b"GET /"), "web[71]: #3 GET /\n");
        assert_eq!(line(Format::Csv, b"25.5,40"), "web,3,25.5,40,\n");
        assert_eq!(line(Format::Csv, b"say \"hi\"\nbye"), "web,3,\"say \"\"hi\"\"\nbye\",\n");
        let stamped = formatted(
            Format::Csv,
            NEWLINE,
            Fields { stamp: Some(Stamp::Iso), ..Fields::default() },
            b"25.5",
            None,
        );
        let (time, value) = stamped.split_once(',').expect("a comma");
        assert_eq!((time.len(), value), ("2025-07-22T10:30:00".len(), "25.5\n"));
    }

    #[test]
    fn json_is_exact_for_every_byte() {
        let json = |bytes: &[u8]| -> serde_json::Value {
            let line = formatted(Format::Json, NEWLINE, Fields::default(), bytes, Some(Mark::Cut));
            serde_json::from_str(line.strip_suffix('\n').expect("a line")).expect("JSON")
        };
        let good = json("grün\n\u{1b}[31m".as_bytes());
        assert_eq!(
            (&good["text"], &good["pid"], &good["mark"]),
            (&"grün\n\u{1b}[31m".into(), &71.into(), &"cut".into())
        );
        assert!(good.get("hex").is_none());
        assert_eq!(json(b"\xff1")["hex"], "ff31");
    }
}
