//! Reads the text of an awk program, to decide whether it writes something for every record of its input.

use weir_model::trace::Image;

/// Options of mawk that take a value: -F sep, -v name=value, -W option.
const VALUE_OPTIONS: [&str; 3] = ["-F", "-v", "-W"];

/// Returns whether an awk program certainly prints for every record: a rule without a pattern, or with a number other than zero as
/// its pattern, has no action or one that reaches a print statement on every path. False if the text is not known.
pub(crate) fn prints_every_record(image: &Image) -> bool {
    program_text(image).is_some_and(text_prints_every_record)
}

/// Returns the program among an image's arguments, or None if it is in a file or cut.
fn program_text(image: &Image) -> Option<&str> {
    let mut words = image.argv.iter().enumerate().skip(1);
    while let Some((index, word)) = words.next() {
        match word.exact() {
            "--" => return words.next().map(|(_, text)| text.exact()),
            option if VALUE_OPTIONS.contains(&option) => _ = words.next()?,
            option if option.starts_with("--file") || option.starts_with("-f") => return None,
            option if option.len() > 1 && option.starts_with('-') => {}
            text => return (!image.argv_cut || index + 1 < image.argv.len()).then_some(text),
        }
    }
    None
}

fn text_prints_every_record(text: &str) -> bool {
    let text = without_literals(text);
    let mut rest = text.as_str();
    while !rest.trim_start_matches([' ', '\t', '\n', ';']).is_empty() {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        let end = rest.find(['{', '\n', ';']).unwrap_or(rest.len());
        let pattern = rest[..end].trim();
        let is_every = pattern.is_empty() || pattern.parse::<f64>().is_ok_and(|number| number != 0.0);
        if rest[end..].starts_with('{') {
            let Some(length) = block_length(&rest[end..]) else { return false };
            let action = &rest[end + 1..end + length - 1];
            if is_every && action_prints(action) {
                return true;
            }
            // The rules after it may not get the record.
            if words(action).any(|word| SKIPS.contains(&word)) {
                return false;
            }
            rest = &rest[end + length..];
        } else if is_every {
            return true;
        } else {
            rest = &rest[end..];
        }
    }
    false
}

/// Returns the text with each string as `""` and without comments. Regular expressions stay; a brace or a quotation mark in one of
/// them makes the program look incomplete or different, and then no print statement is certain.
fn without_literals(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                plain.push_str("\"\"");
                while let Some(inside) = characters.next().filter(|&inside| inside != '"') {
                    if inside == '\\' {
                        characters.next();
                    }
                }
            }
            '#' => while characters.next_if(|&next| next != '\n').is_some() {},
            '\\' if characters.next_if_eq(&'\n').is_some() => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

/// Returns the length of a block with its braces, or None if it has no end.
fn block_length(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Words after which the rest of the program may not run for a record.
const SKIPS: [&str; 5] = ["next", "nextfile", "exit", "return", "getline"];

/// Words of a statement that makes a following one depend on a condition.
const BRANCHES: [&str; 5] = ["if", "else", "while", "for", "do"];

fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    let is_separator = |character: char| !(character.is_alphanumeric() || character == '_');
    text.split(is_separator).filter(|word| !word.is_empty())
}

/// Returns whether an action reaches a print statement on every path: no statement before it branches.
fn action_prints(body: &str) -> bool {
    let mut depth = 0;
    let is_end = |character: char| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0 && matches!(character, ';' | '\n')
    };
    for statement in body.split(is_end) {
        let mut words = words(statement);
        if matches!(words.clone().next(), Some("print" | "printf")) {
            return true;
        }
        let branches = words.any(|word| BRANCHES.contains(&word) || SKIPS.contains(&word));
        if branches || statement.contains(['{', '}']) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> bool {
        let argv = words.iter().map(|word| (*word).into()).collect();
        prints_every_record(&Image { argv, ..Image::default() })
    }

    #[test]
    fn programs_that_print_every_record() {
        for words in [
            &["mawk", "{print \"m\",$0}"][..],
            &["mawk", "-F", ":", "{ x = $1; printf(\"%s\\n\", x) }"],
            &["mawk", "-vRS=;", "1"],
            &["mawk", "-W", "dump", "--", "1;"],
            &["mawk", "BEGIN { OFS = \"{\" } { $1 = $1; print > \"out\" } END { print n }"],
            &["mawk", "{ n++ }\n{ print # the line }\n}", "file"],
            &["mawk", "END { print n }; { gsub(\";\", \",\"); print }"],
        ] {
            assert!(of(words), "{words:?}");
        }
    }

    #[test]
    fn programs_that_may_print_nothing() {
        for words in [
            &["mawk", "END{print NR}"][..],
            &["mawk", "/error/"],
            &["mawk", "/error/ { print }"],
            &["mawk", "{ if ($1 > 3) print }"],
            &["mawk", "{ n += $1 } END { print n }"],
            &["mawk", "{ if (x) next; print }"],
            &["mawk", "NR == 1 { next } { if (0) { print } }"],
            &["mawk", "!/error/ { next } { print }"],
            &["mawk", "BEGIN { exit } 1"],
            &["mawk", "0"],
            &["mawk", "-f", "program.awk"],
            &["mawk", "function f(x) { print x }"],
            &["mawk", "{ printed = 1 }"],
            &["mawk", "{ \"print\" }"],
            &["mawk", "{ print"],
            &["mawk"],
            &[],
        ] {
            assert!(!of(words), "{words:?}");
        }
    }

    #[test]
    fn a_cut_program_is_not_known() {
        let image = |argv: &[&str]| Image {
            argv: argv.iter().map(|word| (*word).into()).collect(),
            argv_cut: true,
            ..Image::default()
        };
        assert!(!prints_every_record(&image(&["mawk", "{ print }"])));
        assert!(prints_every_record(&image(&["mawk", "{ print }", "fil"])));
    }
}
