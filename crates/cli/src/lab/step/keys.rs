//! From what a terminal sends to keys.

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Next,
    Back,
    Home,
    End,
    Help,
    Quit,
    /// No key: the screen is to be drawn anew.
    Resized,
}

/// As terminals send them; the longest that fits is meant.
const KEYS: [(&[u8], Key); 20] = [
    (b"\x1b[C", Key::Next),
    (b"\x1bOC", Key::Next),
    (b"\x1b[B", Key::Next),
    (b" ", Key::Next),
    (b"n", Key::Next),
    (b"\r", Key::Next),
    (b"\x1b[D", Key::Back),
    (b"\x1bOD", Key::Back),
    (b"\x1b[A", Key::Back),
    (b"p", Key::Back),
    (b"\x1b[H", Key::Home),
    (b"\x1bOH", Key::Home),
    (b"\x1b[1~", Key::Home),
    (b"\x1b[F", Key::End),
    (b"\x1bOF", Key::End),
    (b"\x1b[4~", Key::End),
    (b"?", Key::Help),
    (b"q", Key::Quit),
    (b"\x03", Key::Quit),
    (b"\x04", Key::Quit),
];

/// The keys in what was read, in order. What is not known is passed over.
pub fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut found = Vec::new();
    while let [_, rest @ ..] = bytes {
        match KEYS.iter().find(|(sent, _)| bytes.starts_with(sent)) {
            Some((sent, key)) => {
                found.push(*key);
                bytes = &bytes[sent.len()..];
            }
            None => bytes = rest,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_in_one_read() {
        assert_eq!(keys(b"\x1b[Cn\x1b[D?q"), [Key::Next, Key::Next, Key::Back, Key::Help, Key::Quit]);
        assert_eq!(keys(b"\x1b[Hx\x1b[4~"), [Key::Home, Key::End]);
        assert!(keys(b"xyz\x1b").is_empty());
    }
}
