//! Wide characters that glibc converts at a flush, as the kernel programs read them.

use crate::shared_types::{self, BufferEvent};

/// Pending wide characters in UTF-8.
pub(super) struct WideText {
    /// The first characters, if no bytes are pending before them.
    pub text: Vec<u8>,
    /// The number of bytes of all characters in UTF-8. Each character that is not in the event counts as one byte, the least.
    pub bytes: u64,
    /// The program will write exactly `text`.
    pub is_exact: bool,
}

impl WideText {
    /// Returns the characters of a stream in a buffer snapshot.
    pub fn of(event: &BufferEvent) -> WideText {
        /// glibc's name of UTF-8.
        const UTF8: &str = "ISO-10646/UTF8/";
        let known = event.wide.min(event.data.len() as u64 / 4);
        let known = if event.pending == 0 { known } else { 0 };
        let characters = event.data.as_chunks::<4>().0.iter().take(known as usize);
        let characters = characters.map(|four| char::from_u32(u32::from_le_bytes(*four)));
        let is_exact = known == event.wide && characters.clone().all(|one| one.is_some());
        let text: String = characters.map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        WideText {
            bytes: (text.len() as u64).saturating_add(event.wide - known),
            text: text.into_bytes(),
            is_exact: is_exact && shared_types::text(&event.charset) == *UTF8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str, wide: u64, charset: &str) -> BufferEvent {
        // SAFETY: any bytes are a valid BufferEvent (see SharedType).
        let mut event: BufferEvent = unsafe { std::mem::zeroed() };
        for (four, one) in event.data.as_chunks_mut::<4>().0.iter_mut().zip(text.chars()) {
            *four = (one as u32).to_le_bytes();
        }
        event.wide = wide;
        event.charset[..charset.len()].copy_from_slice(charset.as_bytes());
        event
    }

    #[test]
    fn characters_are_counted_in_utf8() {
        let counted = |event| {
            let WideText { text, bytes, is_exact } = WideText::of(&event);
            (String::from_utf8(text).unwrap(), bytes, is_exact)
        };
        assert_eq!(counted(event("Größe", 5, "ISO-10646/UTF8/")), ("Größe".into(), 7, true));
        assert_eq!(counted(event("Größe", 5, "UTF-16LE//")), ("Größe".into(), 7, false));
        assert_eq!(counted(event("", 0, "")), (String::new(), 0, false));
        let long = "é".repeat(64);
        assert_eq!(counted(event(&long, 70, "ISO-10646/UTF8/")), (long, 134, false), "at least 6 bytes more");
        let mut after_bytes = event("abcd", 3, "ISO-10646/UTF8/");
        after_bytes.pending = 4;
        assert_eq!(counted(after_bytes), (String::new(), 3, false));
    }
}
