//! Prints the messages of clap: the help, the version, or the error in the command line.

use std::error::Error as _;
use std::io::{self, Write};

use clap::error::{ContextKind, ContextValue};
use weir_model::{Untrusted, escaped_lines, obeyed_by_terminals};

use crate::console::{check_stdout, stdout_error};
use crate::exit_status;

/// Prints the message and ends weir: with `usage_status` for a wrong command line, with 0 after the help, and with 1 if the help
/// cannot be written. A pipe without a reader (EPIPE) is no error.
pub fn exit(error: clap::Error, usage_status: u8) -> ! {
    if error.use_stderr() {
        print_wrong_usage(error);
        std::process::exit(i32::from(usage_status));
    }
    let written = check_stdout().and_then(|()| error.print()).and_then(|()| io::stdout().flush());
    let status = match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln_lossy!("weir: {}", stdout_error(&error));
            exit_status::FAILED
        }
        _ => 0,
    };
    std::process::exit(i32::from(status));
}

/// Prints what is wrong. An argument with control characters is shown with escapes, and the message without colours.
fn print_wrong_usage(error: clap::Error) {
    let is_plain = |word: std::ffi::OsString| !word.to_string_lossy().contains(obeyed_by_terminals);
    if std::env::args_os().all(is_plain) {
        let _printed = error.print();
    } else {
        let _printed = io::stderr().write_all(escaped_message(error).as_bytes());
    }
}

/// Returns the message with the words of the user on one line each.
fn escaped_message(mut error: clap::Error) -> String {
    let words: Vec<(ContextKind, ContextValue)> =
        error.context().map(|(kind, value)| (kind, value.clone())).collect();
    let mut replaced: Vec<String> = error.source().map(|source| source.to_string()).into_iter().collect();
    for (kind, value) in words {
        let value = match value {
            ContextValue::String(word) => {
                let shown = escaped(&word);
                replaced.push(word);
                ContextValue::String(shown)
            }
            ContextValue::Strings(words) => {
                ContextValue::Strings(words.iter().map(|word| escaped(word)).collect())
            }
            other => other,
        };
        error.insert(kind, value);
    }
    let mut text = error.render().to_string();
    // clap puts suggestions and the messages of value parsers into the text itself, without their escape sequences.
    for word in replaced.iter().filter(|word| word.contains(obeyed_by_terminals)) {
        let shown = clap::builder::StyledStr::from(word.clone()).to_string();
        for (before, after) in [("'", "'"), ("-- ", "'"), (": ", "\n")] {
            let (old, new) = (format!("{before}{shown}{after}"), format!("{before}{}{after}", escaped(word)));
            text = text.replace(&old, &new);
        }
    }
    escaped_lines(&text)
}

fn escaped(word: &str) -> String {
    Untrusted::from(word).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_user_are_shown_on_one_line() {
        let number = |word: &str| word.parse::<u32>().map_err(|_| format!("'{word}' is not a number"));
        let command = || {
            let option = clap::Arg::new("count").long("count").value_parser(number);
            clap::Command::new("weir").arg(option).subcommand(clap::Command::new("run"))
        };
        for (words, shown) in [
            (
                &["--count", "1\n\u{1b}[2Jx"][..],
                &["'1\\n\\x1b[2Jx' for '--count", "'1\\n\\x1b[2Jx' is not a number"][..],
            ),
            (&["--odd\n\u{1b}[2Jx"], &["unexpected argument '--odd\\n\\x1b[2Jx' found"]),
            (&["ru\nx"], &["unrecognized subcommand 'ru\\nx'"]),
        ] {
            let error = command().try_get_matches_from(["weir"].iter().chain(words)).unwrap_err();
            let message = escaped_message(error);
            assert!(shown.iter().all(|part| message.contains(part)), "{message:?}");
            assert!(!message.contains("\nx") && !message.contains('\u{1b}'), "{message:?}");
        }
    }
}
