//! Parses MODE of `--stdin`, `--stdout`, `--stderr` and `--file`: weir's words, and the letters and sizes of stdbuf(1).

use weir_control::plan::request::BufferMode;
use weir_model::Size;
use weir_model::size::SizeError;

/// A buffering mode; `None` is `auto`, which leaves the mode to the program.
pub type RequestedMode = Option<BufferMode>;

/// Parses `none`, `line`, `full[:SIZE]`, `auto`, or as in stdbuf(1) `0`, `L` or a size, also after blanks.
pub fn parse(text: &str) -> Result<RequestedMode, String> {
    match text.trim_start() {
        "auto" => Ok(None),
        "none" | "0" => Ok(Some(BufferMode::None)),
        "line" | "L" => Ok(Some(BufferMode::Line)),
        "full" => Ok(Some(BufferMode::Full(None))),
        _ => {
            let size = text.strip_prefix("full:").unwrap_or(text);
            let size = stdbuf_size(size).unwrap_or_else(|| size.parse()).map_err(|error| {
                format!("{error}; modes: none, line, full, full:SIZE, auto, or 0, L, SIZE as in stdbuf")
            })?;
            Ok(Some(if size.0 == 0 { BufferMode::None } else { BufferMode::Full(Some(size)) }))
        }
    }
}

/// Parses a size of stdbuf(1): a number, a multiplier such as `K`, `KiB` or `KB`, or both. A multiplier alone means one
/// of it. Returns None if the text is no such size.
fn stdbuf_size(text: &str) -> Option<Result<Size, SizeError>> {
    let unsigned = text.trim_start().strip_prefix('+').unwrap_or(text.trim_start());
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let signed = unsigned.len() != text.trim_start().len();
    if digits.is_empty() && (suffix.is_empty() || signed) {
        return None;
    }
    let factor = factor(suffix)?;
    // More digits than a u128 has are too many for a size anyway.
    let number = if digits.is_empty() { Some(1) } else { digits.parse::<u128>().ok() };
    let bytes = number.and_then(|number| number.checked_mul(factor));
    let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok());
    Some(bytes.map(|bytes| Size(bytes as u64)).ok_or_else(|| SizeError::TooLarge(text.into())))
}

/// Returns the bytes of a multiplier of stdbuf(1); None for another word.
fn factor(suffix: &str) -> Option<u128> {
    if suffix.is_empty() {
        return Some(1);
    }
    let power = match suffix.chars().next()? {
        'k' => 1,
        letter => "KMGTPEZY".find(letter)? as u32 + 1,
    };
    match &suffix[1..] {
        "" | "iB" => Some(1024u128.pow(power)),
        "B" => Some(1000u128.pow(power)),
        _ => None,
    }
}

/// Parses a mode of standard input, which has no line mode.
pub fn parse_input(text: &str) -> Result<RequestedMode, String> {
    match parse(text)? {
        Some(BufferMode::Line) => {
            Err("line buffering of standard input is meaningless; use none, full or full:SIZE".into())
        }
        mode => Ok(mode),
    }
}

/// Parses `GLOB=MODE`. The pattern may contain further `=`.
pub fn parse_file(text: &str) -> Result<(String, RequestedMode), String> {
    let (glob, mode) = text.rsplit_once('=').ok_or("write GLOB=MODE, such as '*.log=line'")?;
    if glob.is_empty() || glob.contains('\n') {
        return Err("write one line of text before '=', such as '*.log=line'".into());
    }
    Ok((glob.into(), parse(mode)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_words_or_as_in_stdbuf() {
        for (text, mode) in [
            ("auto", None),
            ("none", Some(BufferMode::None)),
            ("0", Some(BufferMode::None)),
            ("line", Some(BufferMode::Line)),
            ("L", Some(BufferMode::Line)),
            ("full", Some(BufferMode::Full(None))),
            ("full:64K", Some(BufferMode::Full(Some(Size(65536))))),
            ("1MB", Some(BufferMode::Full(Some(Size(1_000_000))))),
        ] {
            assert_eq!(parse(text), Ok(mode), "{text}");
        }
        assert!(parse("lines").is_err() && parse("full:").is_err() && parse("").is_err());
        assert!(parse_input("L").is_err() && parse_input("0").is_ok());
    }

    #[test]
    fn sizes_are_those_of_stdbuf() {
        let size = |text| match parse(text) {
            Ok(Some(BufferMode::Full(Some(size)))) => size.0,
            other => panic!("{text}: {other:?}"),
        };
        for (text, bytes) in [
            ("K", 1024),
            ("k", 1024),
            ("KB", 1000),
            ("kB", 1000),
            ("KiB", 1024),
            ("1K", 1024),
            ("1kiB", 1024),
            ("1M", 1 << 20),
            ("MB", 1_000_000),
            ("G", 1 << 30),
            ("1T", 1 << 40),
            ("P", 1 << 50),
            ("1E", 1 << 60),
            ("+5", 5),
            (" 5", 5),
            ("full:K", 1024),
            ("1.5K", 1536),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
        assert_eq!(parse("0K"), Ok(Some(BufferMode::None)));
        assert_eq!(parse(" L"), Ok(Some(BufferMode::Line)));
        for text in ["Z", "1Y", "99999999999999999999", "99999999999999999999999999999999999999999"] {
            assert!(parse(text).is_err_and(|error| error.contains("more than")), "{text}");
        }
        for text in ["B", "iB", "KK", "1KK", "LL", "l", "0L", "-1", "+", "+K", "0x10", "Q", "1c", "5 5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_has_a_pattern_and_a_mode() {
        assert_eq!(parse_file("a=b.log=line"), Ok(("a=b.log".into(), Some(BufferMode::Line))));
        assert!(parse_file("x").is_err() && parse_file("=line").is_err() && parse_file("x=y").is_err());
    }
}
