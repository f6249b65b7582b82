//! The encoding into which glibc converts the wide characters of a stream.

use weir_sys::memory::Memory;

/// Offsets, in `struct _IO_wide_data`, of the pointer to the conversion step of the output: since glibc 2.31, and before.
const STEPS: [u64; 2] = [160, 240];
/// Offsets of the names in `struct __gconv_step`.
const FROM_NAME: u64 = 24;
const TO_NAME: u64 = 32;
/// glibc's name of wide characters.
const INTERNAL: &[u8] = b"INTERNAL\0";

/// An encoding without a state and without a mark at the start of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Utf8,
    /// Each character is one byte with the same number, up to this one. glibc replaces or refuses all others.
    UpTo(u8),
}

impl Charset {
    /// Returns the encoding of a stream whose wide data are at `wide_data`; None if it is another one, or unknown.
    pub fn of(memory: &dyn Memory, wide_data: u64) -> Option<Charset> {
        let field = |at: u64, offset: u64| memory.u64(at.checked_add(offset)?);
        let step = STEPS.into_iter().filter_map(|offset| field(wide_data, offset)).find(|step| {
            field(*step, FROM_NAME).is_some_and(|name| memory.bytes(name, INTERNAL.len()) == INTERNAL)
        })?;
        // A slash ends the parts of a name; more can follow it.
        let name = memory.bytes(field(step, TO_NAME)?, 20);
        [
            (&b"ISO-10646/UTF8/\0"[..], Charset::Utf8),
            (b"ISO-8859-1//", Charset::UpTo(0xff)),
            (b"ANSI_X3.4-1968//", Charset::UpTo(0x7f)),
        ]
        .into_iter()
        .find_map(|(known, charset)| name.starts_with(known).then_some(charset))
    }

    /// Converts characters exactly as glibc does; None if it would replace or refuse one of them.
    pub fn convert(self, characters: &[u8]) -> Option<Vec<u8>> {
        let numbers = numbers(characters);
        match self {
            Charset::Utf8 => Some(numbers.map(char::from_u32).collect::<Option<String>>()?.into_bytes()),
            Charset::UpTo(last) => {
                numbers.map(|one| u8::try_from(one).ok().filter(|byte| *byte <= last)).collect()
            }
        }
    }
}

/// Returns characters as text for display. Replaces invalid ones.
pub(super) fn as_text(characters: &[u8]) -> Vec<u8> {
    let replaced = |one| char::from_u32(one).unwrap_or(char::REPLACEMENT_CHARACTER);
    numbers(characters).map(replaced).collect::<String>().into_bytes()
}

fn numbers(characters: &[u8]) -> impl Iterator<Item = u32> {
    characters.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{BASE, TestMemory};

    fn wide(text: &[u32]) -> Vec<u8> {
        text.iter().flat_map(|one| one.to_le_bytes()).collect()
    }

    /// Returns the encoding of a stream with this name of it, at the place of the step that `STEPS[index]` has.
    fn named(to: &[u8], from: &[u8], index: usize) -> Option<Charset> {
        let mut words = vec![0u64; 80];
        let at = |word: usize| BASE + 8 * word as u64;
        words[STEPS[index] as usize / 8] = at(40);
        (words[43], words[44]) = (at(50), at(60));
        for (start, name) in [(50, from), (60, to)] {
            for (number, byte) in name.iter().enumerate() {
                words[start + number / 8] |= u64::from(*byte) << (8 * (number % 8));
            }
        }
        Charset::of(&TestMemory::of(&words), BASE)
    }

    #[test]
    fn only_known_encodings_have_a_name() {
        for index in [0, 1] {
            assert_eq!(named(b"ISO-10646/UTF8/", b"INTERNAL", index), Some(Charset::Utf8));
            assert_eq!(named(b"ISO-8859-1//", b"INTERNAL", index), Some(Charset::UpTo(0xff)));
            assert_eq!(named(b"ANSI_X3.4-1968//TRANSLIT", b"INTERNAL", index), Some(Charset::UpTo(0x7f)));
            for other in [&b"UTF-16LE//"[..], b"ISO-8859-15//", b"ISO-10646/UTF8/X", b"", b"ISO-2022-JP//"] {
                assert_eq!(named(other, b"INTERNAL", index), None, "{other:?}");
            }
            assert_eq!(named(b"ISO-10646/UTF8/", b"ISO-8859-1//", index), None, "not from wide characters");
        }
    }

    #[test]
    fn only_characters_of_the_encoding_are_converted() {
        let text = wide(&[0x47, 0xf6, 0x20ac]);
        assert_eq!(Charset::Utf8.convert(&text), Some("Gö€".as_bytes().to_vec()));
        assert_eq!(Charset::UpTo(0xff).convert(&text), None);
        assert_eq!(Charset::UpTo(0xff).convert(&text[..8]), Some(b"G\xf6".to_vec()));
        assert_eq!(Charset::UpTo(0x7f).convert(&text[..8]), None);
        assert_eq!(Charset::UpTo(0x7f).convert(&text[..4]), Some(b"G".to_vec()));
        assert_eq!(Charset::Utf8.convert(&wide(&[0xd800])), None, "glibc refuses it");
        assert_eq!(as_text(&wide(&[0x47, 0xd800])), "G\u{fffd}".as_bytes());
    }
}
