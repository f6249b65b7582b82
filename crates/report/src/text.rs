//! Text for terminals: removes control characters, measures, wraps, shortens.

use ratatui_core::text::Span;
use weir_model::{carried_byte, is_invisible};

use crate::style::Style;

/// Returns the columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// ASCII for the characters that weir's own texts use; every other character becomes `?`.
const ASCII: &[(char, &str)] = &[
    ('·', "|"),
    ('±', "+-"),
    ('×', "x"),
    ('µ', "u"),
    ('μ', "u"),
    ('–', "-"),
    ('—', "-"),
    ('…', "..."),
    ('’', "'"),
    ('‘', "'"),
    ('“', "\""),
    ('”', "\""),
    ('≤', "<="),
    ('≥', ">="),
    ('≈', "~"),
    ('→', "->"),
    ('◀', "<"),
    ('✓', "+"),
    ('✗', "x"),
];

/// Returns `text` without control characters, because a file name may contain escape sequences; in ASCII if the
/// style allows nothing else.
pub fn clean(text: &str, style: &Style) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        if let Some(byte) = carried_byte(letter) {
            cleaned += &format!("\\x{byte:02x}");
            continue;
        }
        match letter {
            ' '..='~' => cleaned.push(letter),
            '\t' | '\n' | '\r' => cleaned.push(' '),
            _ if letter.is_control() || is_invisible(letter) => cleaned.push('?'),
            _ if style.unicode => cleaned.push(letter),
            _ => cleaned.push_str(ASCII.iter().find(|(from, _)| *from == letter).map_or("?", |(_, to)| to)),
        }
    }
    cleaned
}

/// Units that stay on the line of the number before them.
const UNITS: [&str; 14] =
    ["%", "B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TiB", "s", "ms", "µs", "us", "ns"];

/// Splits `text` into words; a number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let bare = word.trim_end_matches([',', '.', ':', ';', ')', ']', '?']);
        let is_unit = UNITS.contains(&bare);
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.into()),
        }
    }
    words
}

/// Breaks `text` at spaces into lines of at most `width` columns. The first line begins with `first`, the others
/// with `rest`. A line is wider only if a single word is.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    wrap_tokens(words(text), width, first, rest)
}

/// Joins `parts` by `separator` and breaks lines between parts; inside a part only if it is wider than a line.
pub fn wrap_parts(parts: &[String], separator: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let room = width.saturating_sub(self::width(rest).max(self::width(first)));
    let mut tokens: Vec<String> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let part = if number + 1 < parts.len() { format!("{part} {separator}") } else { part.clone() };
        match self::width(&part) <= room {
            true => tokens.push(part),
            false => tokens.extend(words(&part)),
        }
    }
    wrap_tokens(tokens, width, first, rest)
}

fn wrap_tokens(tokens: Vec<String>, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::from(first);
    let mut empty = true;
    for token in tokens {
        if !empty && self::width(&line) + 1 + self::width(&token) > width {
            lines.push(std::mem::replace(&mut line, rest.into()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &token;
        empty = false;
    }
    lines.push(line);
    lines
}

/// Breaks a shell command at spaces outside of quotes, so that the reader can paste it. Each line but the last ends
/// with a backslash.
pub fn wrap_command(command: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    if self::width(first) + self::width(command) <= width {
        return vec![format!("{first}{command}")];
    }
    let mut lines = wrap_tokens(shell_words(command), width.saturating_sub(2), first, rest);
    let last = lines.len() - 1;
    lines[..last].iter_mut().for_each(|line| *line += " \\");
    lines
}

/// Splits a command into words with their quotes: in `'…'` a backslash is literal, in `$'…'` it escapes.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let (mut quoted, mut escaped, mut escapes) = (false, false, true);
    for c in command.chars() {
        if c == '\'' && !escaped {
            quoted = !quoted;
            escapes = !quoted || word.ends_with('$');
        }
        escaped = c == '\\' && !escaped && escapes;
        match c {
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns `text` in at most `width` columns; `…` replaces the end of a longer text.
pub fn shorten(text: &str, width: usize, style: &Style) -> String {
    if self::width(text) <= width {
        return text.into();
    }
    let dots = style.sign("…", "...");
    let room = width.saturating_sub(self::width(dots));
    let mut short = String::new();
    for letter in text.chars() {
        let longer = format!("{short}{letter}");
        if self::width(&longer) > room {
            break;
        }
        short = longer;
    }
    short + dots
}

/// Returns the end of `text` in at most `width` columns; `…` replaces the beginning of a longer text. The cut is before a
/// `/` or a space, unless that leaves less than a third of the columns.
pub fn shorten_front(text: &str, width: usize, style: &Style) -> String {
    if self::width(text) <= width {
        return text.into();
    }
    let dots = style.sign("…", "...");
    let room = width.saturating_sub(self::width(dots));
    let fits = text.char_indices().map(|(at, _)| &text[at..]).find(|end| self::width(end) <= room);
    let fits = fits.unwrap_or("");
    let word = fits.find(['/', ' ']).map(|at| &fits[at..]).filter(|word| self::width(word) * 3 >= room);
    format!("{dots}{}", word.unwrap_or(fits))
}

/// Splits `text` after `columns` columns.
pub fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut end = text.len();
    for (at, letter) in text.char_indices() {
        if width(&text[..at + letter.len_utf8()]) > columns {
            end = at;
            break;
        }
    }
    text.split_at(end)
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNICODE: Style = Style { colour: false, unicode: true, width: 80, rows: 24 };
    const PLAIN: Style = Style { unicode: false, ..UNICODE };

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        assert_eq!(clean("/tmp/\u{1b}[31mred\n\u{202e}x\u{9b}", &UNICODE), "/tmp/?[31mred ?x?");
        assert_eq!(clean("a\u{61c}b\u{2028}c\u{2029}d", &UNICODE), "a?b?c?d");
        assert_eq!(clean("±2 % · 3× µs – ü", &PLAIN), "+-2 % | 3x us - ?");
        assert_eq!(clean("±2 % ü", &UNICODE), "±2 % ü");
    }

    #[test]
    fn wraps_at_spaces_and_indents() {
        assert_eq!(wrap("aa bb cc dd", 7, "- ", "  "), ["- aa bb", "  cc dd"]);
        assert_eq!(wrap("a enormousword b", 6, "", ""), ["a", "enormousword", "b"]);
        assert_eq!(wrap("", 6, "> ", ""), ["> "]);
    }

    #[test]
    fn a_wrapped_command_can_be_pasted() {
        assert_eq!(wrap_command("a b", 9, "- ", "  "), ["- a b"]);
        let lines = wrap_command("weir run -- sh -c 'a b  c d e f' x", 16, "", "  ");
        assert_eq!(lines, ["weir run -- sh \\", "  -c \\", "  'a b  c d e f' \\", "  x"]);
        let odd = r"a '\' $'it\'s b' 'it'\''s c'";
        assert_eq!(shell_words(odd), ["a", r"'\'", r"$'it\'s b'", r"'it'\''s c'"]);
    }

    #[test]
    fn a_unit_stays_with_its_number_and_a_part_together() {
        assert_eq!(wrap("at 16 KiB, 5 % of s", 6, "", ""), ["at", "16 KiB,", "5 % of", "s"]);
        let parts = ["a b".to_string(), "c d e".into(), "f".into()];
        assert_eq!(wrap_parts(&parts, "·", 9, " ", "  "), [" a b ·", "  c d e ·", "  f"]);
        assert_eq!(wrap_parts(&parts, "·", 5, "", ""), ["a b ·", "c d e", "· f"]);
    }

    #[test]
    fn shortens_by_columns_not_bytes() {
        assert_eq!(shorten("abcdef", 4, &UNICODE), "abc…");
        assert_eq!(shorten("日本語", 5, &UNICODE), "日本…");
        assert_eq!(shorten("abcdef", 4, &PLAIN), "a...");
        assert_eq!(shorten("abc", 3, &UNICODE), "abc");
        assert_eq!(shorten_front("/a/long/path", 6, &UNICODE), "…/path");
        assert_eq!(shorten_front("/a", 6, &UNICODE), "/a");
        assert_eq!(shorten_front("/home/u/project/file", 14, &UNICODE), "…/project/file");
        assert_eq!(shorten_front("/home/u/project/file", 12, &UNICODE), "…/file");
        assert_eq!(shorten_front("/home/u/a-long-name", 8, &UNICODE), "…ng-name");
    }

    #[test]
    fn lists() {
        let words = |n: usize| ["a", "b", "c"][..n].iter().map(|w| w.to_string()).collect::<Vec<_>>();
        assert_eq!([list(&words(1)), list(&words(2)), list(&words(3))], ["a", "a and b", "a, b and c"]);
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_line_is_too_wide(words in prop::collection::vec("[a-z·]{1,9}", 0..30), width in 14usize..60) {
            let text = words.join(" ");
            let lines = wrap(&text, width, "  ", "    ");
            prop_assert!(lines.iter().all(|line| super::width(line) <= width), "{:?}", lines);
            let again: Vec<_> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            prop_assert_eq!(again, words);
        }

        #[test]
        fn split_keeps_every_byte(text in ".{0,20}", columns in 0usize..20) {
            let (left, right) = split(&text, columns);
            prop_assert_eq!(format!("{left}{right}"), text.clone());
            prop_assert!(super::width(left) <= columns);
        }
    }
}
