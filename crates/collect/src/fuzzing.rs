//! Entry points of fuzz/ into what `weir log` reads from others: streams of records, and its own files after a crash.

use crate::framing::{Framing, Oversize, SplitStep, Splitter};
use crate::source::follow::position;

/// Parses a state file.
pub fn state(text: &str) {
    let _positions = position::parse(text);
}

/// Parses the first line of a spill file.
pub fn spill_header(start: &[u8]) {
    crate::backlog::fuzz_header(start);
}

/// Parses a message of syslog, and makes a line of it.
pub fn syslog(message: &[u8]) {
    if let Some(parsed) = crate::syslog::parse(message) {
        let line = parsed.line();
        assert!(!line.contains(&b'\n') && parsed.text.len() <= message.len());
    }
}

/// Parses a request of a client of the metrics.
pub fn request(request: &[u8]) {
    let _path = crate::metrics::path(request);
}

/// Divides bytes that arrive in two parts into records. Every byte is in exactly one step.
pub fn records(bytes: &[u8], kind: u8, first_part: usize) {
    let framings = [
        Framing::Delimiter(b'\n'),
        Framing::Delimiter(0),
        Framing::Length(1 + usize::from(kind / 16)),
        Framing::Prefix(1),
        Framing::Prefix(2),
        Framing::Prefix(4),
    ];
    let treatments = [Oversize::Split, Oversize::Cut, Oversize::Refuse];
    let framing = framings[usize::from(kind) % framings.len()];
    let mut splitter = Splitter::new(framing, 64, treatments[usize::from(kind) % treatments.len()]);
    let mut begin = 0;
    for end in [first_part.min(bytes.len()), bytes.len()] {
        loop {
            let data = &bytes[begin..end];
            let run = splitter.run(data, 256);
            assert!(run.bytes <= data.len() && run.records <= run.bytes);
            begin += run.bytes;
            match splitter.next(&bytes[begin..end]) {
                SplitStep::NeedMore => break,
                SplitStep::Record { bytes: record, consumed, .. } => {
                    assert!(record.len() <= consumed && consumed <= end - begin);
                    begin += consumed;
                }
                SplitStep::Skip { consumed, .. } => begin += consumed,
            }
        }
    }
    let _rest = splitter.last(&bytes[begin..]);
}
