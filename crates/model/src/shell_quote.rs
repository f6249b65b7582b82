//! Quotes words for a shell.

use crate::untrusted::{bytes_of, obeyed_by_terminals};

/// Returns a word with the quotes that a shell needs; a byte that is no UTF-8 ([`crate::text_of`]) as an escape.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    if word.contains(obeyed_by_terminals) {
        // A line break would end the line on which the command is shown, and a terminal would obey the others.
        let escaped: String = word.chars().map(escaped).collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns a character as it is written between `$'` and `'`.
fn escaped(c: char) -> String {
    match c {
        '\\' | '\'' => format!("\\{c}"),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\r' => "\\r".into(),
        c if obeyed_by_terminals(c) => bytes_of(c).into_iter().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            (shell_quoted("a.b"), shell_quoted("it's"), shell_quoted("")),
            ("a.b".into(), "'it'\\''s'".into(), "''".into())
        );
        assert_eq!(shell_quoted("a\u{1b}\u{9b}1\u{202e}"), "$'a\\033\\302\\2331\\342\\200\\256'");
        assert_eq!(shell_quoted(&crate::text_of_bytes(b"a\xff1")), r"$'a\3771'");
        assert_eq!(shell_quoted("{ print\n\t\"it's\" }"), "$'{ print\\n\\t\"it\\'s\" }'");
    }
}
