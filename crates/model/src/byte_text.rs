//! Carries any bytes in a `String`, so that arguments and paths that are no UTF-8 are in JSON and in printed commands without loss.
//!
//! A byte that is no part of UTF-8 becomes one private-use character, U+10FE00 plus the byte. Such a character that is really in the
//! text becomes four of them, one for each of its bytes, so that two different inputs never give the same text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The character of byte 0. Bytes below 0x80 are always UTF-8, so only U+10FE80 to U+10FEFF occur.
const FIRST: u32 = 0x10_FE00;

/// Returns the byte that a character stands for; None for any other character.
pub fn carried_byte(letter: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(letter).checked_sub(FIRST)?).ok()?;
    (!byte.is_ascii()).then_some(byte)
}

/// Returns bytes as text, from which [`os_string_of`] returns them.
pub fn text_of_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match carried_byte(letter) {
                Some(_) => letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text.push(carrier(byte))),
                None => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| carrier(*byte)));
    }
    text
}

/// Returns an argument or a path as text, from which [`os_string_of`] returns it.
pub fn text_of(words: impl AsRef<OsStr>) -> String {
    text_of_bytes(words.as_ref().as_bytes())
}

/// Returns the argument or path of which [`text_of`] made this text.
pub fn os_string_of(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match carried_byte(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    OsString::from_vec(bytes)
}

fn carrier(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let cases: [&[u8]; 6] =
            [b"", b"plain", b"a\xff", "gr\u{fc}n\u{fffd}".as_bytes(), b"\xf4\x8f\xbb\xbf", b"\xe2\x82x\x80"];
        for bytes in cases {
            assert_eq!(os_string_of(&text_of_bytes(bytes)).into_vec(), bytes, "{bytes:?}");
        }
        assert_eq!(text_of_bytes(b"a\xff"), "a\u{10feff}");
        assert_ne!(text_of("\u{10feff}"), text_of_bytes(b"\xff"), "a real character is not taken for a byte");
        assert_eq!(text_of("gr\u{fc}n"), "gr\u{fc}n", "UTF-8 stays as it is");
    }
}
