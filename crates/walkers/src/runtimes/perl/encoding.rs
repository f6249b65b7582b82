//! The encodings of the layer `:encoding`, whose buffer has Perl's internal form of text, and not the bytes that Perl will write.

use weir_sys::memory::Memory;

use crate::copied_memory::{structure, word};

/// Offset of the encoding's object in `PerlIOEncode`, after `PerlIOBuf`, `bufsv` and `dataSV`.
const ENCODING: u64 = 96;

/// Size of the head of a Perl value, and offsets in it: the body, the flags, and the reference, string or array.
const HEAD_BYTES: usize = 24;
const BODY: usize = 0;
const FLAGS: usize = 12;
const VALUE: usize = 16;
/// Bits of the flags: the type, that of a hash since Perl 5.10, and the mark of a reference and of a string.
const TYPE: u32 = 0xff;
const HASH: u32 = 12;
const IS_STRING: u32 = 0x400;
const IS_REFERENCE: u32 = 0x800;
/// Offsets in the body of a string and of a hash: its length, and the greatest index of its array.
const STRING_LENGTH: u64 = 16;
const GREATEST_INDEX: u64 = 24;
/// An entry of a hash: the next one, the key, the value. A key has a hash value and a length before its text.
const ENTRY_BYTES: usize = 24;
const KEY_TEXT: u64 = 8;

/// Bounds for damaged hashes. The object of an encoding has two or three entries in an array of eight.
const MAX_INDEX: u64 = 63;
const MAX_CHAIN: usize = 16;

/// Change that the layers below a buffer make to its bytes before Perl writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Perl writes the bytes as they are.
    None,
    /// Perl writes valid UTF-8 as it is, and replaces all else by other text.
    StrictUtf8,
    /// Perl converts the bytes to another encoding, or it is unknown.
    Unknown,
}

impl Conversion {
    /// Returns the conversion of a layer `:encoding` together with that of the layers below it.
    pub fn of_layer(memory: &dyn Memory, layer: u64, below: Conversion) -> Conversion {
        let name = encoding_name(memory, layer).unwrap_or_default();
        match (name.as_slice(), below) {
            (_, Conversion::Unknown) => Conversion::Unknown,
            (b"utf-8-strict", _) => Conversion::StrictUtf8,
            // It writes the internal form.
            (b"utf8", below) => below,
            _ => Conversion::Unknown,
        }
    }

    /// Returns whether Perl will write exactly these bytes, the first ones of a buffer.
    pub fn keeps(self, bytes: &[u8]) -> bool {
        match self {
            Conversion::None => true,
            Conversion::StrictUtf8 => is_strict_utf8(bytes),
            Conversion::Unknown => false,
        }
    }
}

/// Returns whether bytes are valid UTF-8, perhaps without the end of the last character. Versions of Encode differ in whether they
/// write the code points that Unicode declares to be no characters.
fn is_strict_utf8(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    let is_noncharacter =
        |one: char| one as u32 & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&one);
    valid.is_some_and(|text| !text.chars().any(is_noncharacter))
}

/// Returns the entry `Name` of the hash that is the object of the layer's encoding. The objects of most encodings but UTF-8 are no
/// hashes.
fn encoding_name(memory: &dyn Memory, layer: u64) -> Option<Vec<u8>> {
    let reference =
        head(memory, memory.u64(layer.checked_add(ENCODING)?)?, |flags| flags & IS_REFERENCE != 0)?;
    let hash = head(memory, word(&reference, VALUE), |flags| flags & TYPE == HASH)?;
    let (array, greatest) = (word(&hash, VALUE), field(memory, word(&hash, BODY), GREATEST_INDEX)?);
    (0..=greatest.min(MAX_INDEX)).find_map(|index| {
        let mut entry = field(memory, array, 8 * index)?;
        for _ in 0..MAX_CHAIN {
            let words = structure::<ENTRY_BYTES>(memory, entry)?;
            if is_name(memory, word(&words, 8)) {
                return string(memory, word(&words, 16));
            }
            entry = word(&words, 0);
        }
        None
    })
}

/// Returns the head of a value whose flags fit.
fn head(memory: &dyn Memory, at: u64, fits: impl Fn(u32) -> bool) -> Option<[u8; HEAD_BYTES]> {
    let flags = |head: &[u8; HEAD_BYTES]| (word(head, 8) >> (8 * (FLAGS - 8))) as u32;
    structure::<HEAD_BYTES>(memory, at).filter(|head| fits(flags(head)))
}

fn field(memory: &dyn Memory, at: u64, offset: u64) -> Option<u64> {
    memory.u64(at.checked_add(offset)?)
}

fn is_name(memory: &dyn Memory, key: u64) -> bool {
    let text = || memory.bytes(key.wrapping_add(KEY_TEXT), 4);
    key.checked_add(4).and_then(|length| memory.i32(length)) == Some(4) && text() == b"Name"
}

fn string(memory: &dyn Memory, at: u64) -> Option<Vec<u8>> {
    const LONGEST: u64 = 64;
    let value = head(memory, at, |flags| flags & IS_STRING != 0)?;
    let length = field(memory, word(&value, BODY), STRING_LENGTH).filter(|length| *length <= LONGEST)?;
    Some(memory.bytes(word(&value, VALUE), length as usize)).filter(|text| text.len() as u64 == length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_characters_are_strict_utf8() {
        for text in ["", "Größe 1\n", "\u{10000}", "\u{fffd}"] {
            assert!(is_strict_utf8(text.as_bytes()), "{text}");
        }
        assert!(is_strict_utf8(b"Gr\xc3"), "the end of a buffer can divide a character");
        for bytes in
            [&b"Gr\xf6\xdfe"[..], b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbf\xbf", b"\xef\xb7\x90"]
        {
            assert!(!is_strict_utf8(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn an_unknown_conversion_keeps_nothing() {
        assert!(!Conversion::Unknown.keeps(b"a"));
        assert!(Conversion::None.keeps(b"\xff") && !Conversion::StrictUtf8.keeps(b"\xff"));
    }
}
