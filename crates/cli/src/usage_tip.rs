//! Tips about a negative number that follows an option, and about an empty value.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The tip about an empty value, which clap calls a value that was not supplied.
const EMPTY: &str = "the value is empty: name one; in a script, is a variable of the shell unset?";

/// Adds a tip to an error about an empty value, and replaces that of an error about a negative number. For `--size -1` clap takes
/// `-1` for an option, and advises `-- -1`, which does not pass it to `--size`; `--size=-1` does.
pub fn with_value_tip(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let is_empty = |value: &ContextValue| matches!(value, ContextValue::String(text) if text.is_empty());
    if error.kind() == ErrorKind::InvalidValue && error.get(ContextKind::InvalidValue).is_some_and(is_empty) {
        let gave_empty = std::env::args_os().any(|argument| argument.is_empty() || ends_empty(&argument));
        if gave_empty {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![EMPTY.into()]));
        }
        return error;
    }
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return error };
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(option) = option_before(found, &arguments, command)
    {
        let tip = format!("to pass '{found}' as a value, use '{option}={found}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns whether an argument is an option with an empty value, such as `--json=`.
fn ends_empty(argument: &std::ffi::OsStr) -> bool {
    let argument = argument.as_encoded_bytes();
    argument.starts_with(b"--") && argument.iter().position(|byte| *byte == b'=') == Some(argument.len() - 1)
}

/// Returns the long option before the negative number `found`, if a verb has an option of that name with a value.
fn option_before<'a>(found: &str, arguments: &'a [String], command: &clap::Command) -> Option<&'a str> {
    let is_number = found.strip_prefix('-')?.starts_with(|c: char| c.is_ascii_digit())
        && found.chars().all(|c| c == '-' || c == '.' || c.is_ascii_alphanumeric());
    if !is_number {
        return None;
    }
    let pair = arguments.windows(2).find(|pair| pair[1].starts_with(found))?;
    let name = pair[0].strip_prefix("--")?;
    takes_value(command, name).then_some(pair[0].as_str())
}

fn takes_value(command: &clap::Command, name: &str) -> bool {
    let is_it = |arg: &clap::Arg| arg.get_long() == Some(name) && arg.get_action().takes_values();
    command.get_arguments().any(is_it) || command.get_subcommands().any(|verb| takes_value(verb, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tip_names_the_option_of_the_number() {
        let size = clap::Arg::new("size").long("size");
        let quiet = clap::Arg::new("quiet").long("quiet").action(clap::ArgAction::SetTrue);
        let command = clap::Command::new("weir").subcommand(clap::Command::new("bench").args([size, quiet]));
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(Into::into).collect();
            option_before("-1", &words, &command).map(str::to_string)
        };
        assert_eq!(of("weir bench --size -1").as_deref(), Some("--size"));
        assert_eq!(of("weir bench --size -1M").as_deref(), Some("--size"));
        assert_eq!(of("weir bench --quiet -1"), None);
        assert_eq!(of("weir bench -1"), None);
    }
}
