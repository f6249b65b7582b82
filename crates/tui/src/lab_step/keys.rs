//! Decodes the bytes that a terminal sends into keys.

/// A key that the step viewer knows.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKey {
    Next,
    Back,
    Home,
    End,
    Help,
    Quit,
}

/// Byte sequences of the keys. No sequence is a prefix of another, so their order does not matter. Cursor keys have one
/// sequence in normal mode (CSI) and one in application mode (SS3); see console_codes(4).
const SEQUENCES: [(&[u8], StepKey); 20] = [
    (b"\x1b[C", StepKey::Next),
    (b"\x1bOC", StepKey::Next),
    (b"\x1b[B", StepKey::Next),
    (b" ", StepKey::Next),
    (b"n", StepKey::Next),
    (b"\r", StepKey::Next),
    (b"\x1b[D", StepKey::Back),
    (b"\x1bOD", StepKey::Back),
    (b"\x1b[A", StepKey::Back),
    (b"p", StepKey::Back),
    (b"\x1b[H", StepKey::Home),
    (b"\x1bOH", StepKey::Home),
    (b"\x1b[1~", StepKey::Home),
    (b"\x1b[F", StepKey::End),
    (b"\x1bOF", StepKey::End),
    (b"\x1b[4~", StepKey::End),
    (b"?", StepKey::Help),
    (b"q", StepKey::Quit),
    (b"\x03", StepKey::Quit),
    (b"\x04", StepKey::Quit),
];

/// Returns the keys in `bytes`, in order. Skips every byte that starts no known sequence.
pub fn decode(mut bytes: &[u8]) -> Vec<StepKey> {
    let mut keys = Vec::new();
    while let [_, rest @ ..] = bytes {
        match SEQUENCES.iter().find(|(sequence, _)| bytes.starts_with(sequence)) {
            Some((sequence, key)) => {
                keys.push(*key);
                bytes = &bytes[sequence.len()..];
            }
            None => bytes = rest,
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_may_hold_several_keys() {
        use StepKey::{Back, End, Help, Home, Next, Quit};
        assert_eq!(decode(b"\x1b[Cn\x1b[D?q"), [Next, Next, Back, Help, Quit]);
        assert_eq!(decode(b"\x1b[Hx\x1b[4~"), [Home, End]);
        assert!(decode(b"xyz\x1b").is_empty());
    }
}
