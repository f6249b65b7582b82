//! Text that another process chose, such as its name, its arguments and the paths of its files.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::byte_text::{carried_byte, os_string_of, text_of, text_of_bytes};

/// Text of another process. It is displayed on one line, with escapes for control characters and invisible characters,
/// because a terminal would interpret them. In JSON it is exact; a byte that is no UTF-8 is there one private-use character
/// (see [`crate::text_of`]).
///
/// Only [`Untrusted::exact`] and [`Untrusted::part`] give access to the exact text as `str`, so that unescaped text does not get
/// to a screen by mistake.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted(Cow<'static, str>);

impl Untrusted {
    /// Returns text of any bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        text_of_bytes(bytes).into()
    }

    /// Returns an argument or a path.
    pub fn of_os(word: impl AsRef<OsStr>) -> Self {
        text_of(word).into()
    }

    /// Returns the path with the bytes that the process gave it.
    pub fn to_path(&self) -> PathBuf {
        os_string_of(&self.0).into()
    }

    /// Returns the text as the process has it, for comparison. Never display it; open [`Untrusted::to_path`].
    pub fn exact(&self) -> &str {
        &self.0
    }

    /// Returns a constant, which is shown where the text of the process is unknown.
    pub const fn placeholder(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Returns a part of the text, which is as untrusted as the whole.
    pub fn part(&self, choose: impl FnOnce(&str) -> &str) -> Self {
        choose(&self.0).into()
    }

    /// Returns texts with a separator between them, escaped for display.
    pub fn join<'t>(texts: impl IntoIterator<Item = &'t Self>, separator: &str) -> String {
        texts.into_iter().map(Self::to_string).collect::<Vec<_>>().join(separator)
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns whether a character is displayed as an escape: a terminal would interpret it, or hide it.
pub fn obeyed_by_terminals(letter: char) -> bool {
    letter.is_control() || is_invisible(letter) || carried_byte(letter).is_some()
}

/// Returns the bytes of a character, or the one that it stands for.
pub(crate) fn bytes_of(letter: char) -> Vec<u8> {
    match carried_byte(letter) {
        Some(byte) => vec![byte],
        None => letter.encode_utf8(&mut [0; 4]).bytes().collect(),
    }
}

/// Returns whether a character is invisible and changes how its neighbours are shown, such as one that turns the direction of text
/// or breaks a line.
pub fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes text on one line with escapes for control characters and invisible characters. A backslash stays, so the text
/// cannot be read back.
fn write_escaped(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    for letter in text.chars() {
        match letter {
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            '\r' => out.write_str("\\r")?,
            _ if obeyed_by_terminals(letter) => {
                bytes_of(letter).into_iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
            }
            _ => out.write_char(letter)?,
        }
    }
    Ok(())
}

/// Returns text with escapes for all but newlines: for a message of weir of several lines that may quote other processes.
/// A name alone needs [`Untrusted`]: its newline would begin a line of its own.
pub fn escaped_lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            escaped.push('\n');
        }
        // Writing to a String does not fail.
        let _written = write_escaped(line, &mut escaped);
    }
    escaped
}

impl fmt::Display for Untrusted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaped = String::with_capacity(self.0.len());
        write_escaped(&self.0, &mut escaped)?;
        out.pad(&escaped)
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.0)
    }
}

impl From<String> for Untrusted {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Untrusted {
    fn from(text: &str) -> Self {
        Self(text.to_string().into())
    }
}

impl From<&Untrusted> for Untrusted {
    fn from(text: &Untrusted) -> Self {
        text.clone()
    }
}

impl PartialEq<Untrusted> for str {
    fn eq(&self, other: &Untrusted) -> bool {
        other == self
    }
}

impl PartialEq<Untrusted> for &str {
    fn eq(&self, other: &Untrusted) -> bool {
        other == self
    }
}

impl PartialEq<str> for Untrusted {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Untrusted {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// Unescaped text does not get to a screen:
///
/// ```compile_fail
/// let name = weir_model::Untrusted::from("name");
/// let text: &str = &name;
/// ```
///
/// ```compile_fail
/// let name = weir_model::Untrusted::from("name");
/// let text: String = name.into();
/// ```
///
/// ```compile_fail
/// let name = weir_model::Untrusted::from("name");
/// print!("{}", std::path::Path::new(&name).display());
/// ```
///
/// ```
/// let name = weir_model::Untrusted::from("name");
/// assert_eq!((name.to_string(), name.exact()), ("name".to_string(), "name"));
/// ```
#[cfg(doctest)]
pub struct ExamplesOfUntrusted;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_character() {
        let name = Untrusted::from("a\u{1b}[31m\r\n\t\u{9b}\u{202e}ü\\");
        assert_eq!(name.to_string(), r"a\x1b[31m\r\n\t\xc2\x9b\xe2\x80\xaeü\");
        assert_eq!(format!("{:>3}|{:<3}", Untrusted::from("a"), Untrusted::from("b")), "  a|b  ");
        assert!(!format!("{name:?}").contains('\u{1b}'));
        assert_eq!(Untrusted::of_bytes(b"a\xff").to_string(), r"a\xff");
        assert_eq!(escaped_lines("a\u{7}\nb"), "a\\x07\nb");
        for letter in ['\u{61c}', '\u{2028}', '\u{2029}', '\u{2066}'] {
            assert!(!Untrusted::from(letter.to_string()).to_string().contains(letter), "{letter:?}");
        }
    }

    #[test]
    fn json_has_the_exact_text() {
        let name = Untrusted::from("a\u{1b}\u{202e}");
        let json = serde_json::to_string(&name).expect("JSON");
        assert_eq!(json, serde_json::to_string(name.exact()).expect("JSON"));
        assert_eq!(serde_json::from_str::<Untrusted>(&json).expect("text"), name);
    }
}
