//! Records on a terminal: bytes that it would obey are shown, not sent.

use std::fmt::Write as _;

use crate::framing::Framing;

/// Returns records with their delimiters, and with an escape for each control character and each byte that is no UTF-8.
pub(super) fn escaped(bytes: &[u8], framing: Framing) -> Vec<u8> {
    let Framing::Delimiter(delimiter) = framing else { return escaped_record(bytes).into_bytes() };
    let mut out = Vec::with_capacity(bytes.len());
    for (number, record) in bytes.split(|&byte| byte == delimiter).enumerate() {
        if number > 0 {
            out.push(delimiter);
        }
        out.extend_from_slice(escaped_record(record).as_bytes());
    }
    out
}

fn escaped_record(record: &[u8]) -> String {
    let mut out = String::with_capacity(record.len());
    for chunk in record.utf8_chunks() {
        for (number, part) in chunk.valid().split('\t').enumerate() {
            if number > 0 {
                out.push('\t');
            }
            out.push_str(&weir_model::escaped_lines(part));
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_are_shown() {
        let shown = escaped(b"a\tb\x1b]0;x\x07\ngr\xc3\xbcn\xff\xc2\x9b31m\n", Framing::Delimiter(b'\n'));
        assert_eq!(String::from_utf8_lossy(&shown), "a\tb\\x1b]0;x\\x07\ngrün\\xff\\xc2\\x9b31m\n");
        assert_eq!(escaped(b"\x1bc", Framing::Length(2)), b"\\x1bc");
    }
}
