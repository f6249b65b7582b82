//! Quotes names for messages as a shell would read them, as cp does.

use std::borrow::Cow;

/// Returns a name in single quotes. Bytes that a terminal would obey, and bytes that are no UTF-8, become `$'…'`.
pub fn quote(name: &[u8]) -> String {
    let text = match std::str::from_utf8(name) {
        Ok(text) if !text.chars().any(weir_model::obeyed_by_terminals) => Cow::Borrowed(text),
        _ => return quote_bytes(name),
    };
    match (text.contains('\''), text.contains(['"', '$', '`', '\\', '!'])) {
        (false, _) => format!("'{text}'"),
        (true, false) => format!("\"{text}\""),
        (true, true) => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Quotes a name with the escapes of `$'…'` where they are needed.
fn quote_bytes(name: &[u8]) -> String {
    let mut quoted = String::from("'");
    let mut escapes = false;
    let mut switch = |quoted: &mut String, wanted: bool| {
        if wanted != escapes {
            quoted.push_str(if wanted { "'$'" } else { "''" });
            escapes = wanted;
        }
    };
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let is_special = weir_model::obeyed_by_terminals(letter);
            switch(&mut quoted, is_special);
            match letter {
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '\r' => quoted.push_str("\\r"),
                '\'' => quoted.push_str("'\\''"),
                _ if is_special => {
                    let mut bytes = [0; 4];
                    letter.encode_utf8(&mut bytes).bytes().for_each(|byte| push_octal(&mut quoted, byte));
                }
                _ => quoted.push(letter),
            }
        }
        for byte in chunk.invalid() {
            switch(&mut quoted, true);
            push_octal(&mut quoted, *byte);
        }
    }
    quoted.push('\'');
    quoted
}

fn push_octal(quoted: &mut String, byte: u8) {
    quoted.push_str(&format!("\\{byte:03o}"));
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn names_are_quoted_as_cp_quotes_them() {
        assert_eq!(quote(b"a b"), "'a b'");
        assert_eq!(quote(b"it's"), "\"it's\"");
        assert_eq!(quote(b"new\nline"), "'new'$'\\n''line'");
        assert_eq!(quote(b"\xff"), "''$'\\377'");
        assert_eq!(quote("ä".as_bytes()), "'ä'");
        assert_eq!(quote(b"it's $x"), "'it'\\''s $x'");
    }
}
