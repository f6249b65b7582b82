//! Parses MODE of `--stdin`, `--stdout`, `--stderr` and `--file`: weir's words, and the letters and sizes of stdbuf(1).

use weir_control::plan::request::BufferMode;
use weir_model::Size;

/// A buffering mode; `None` is `auto`, which leaves the mode to the program.
pub type RequestedMode = Option<BufferMode>;

/// Parses `none`, `line`, `full[:SIZE]`, `auto`, or as in stdbuf(1) `0`, `L` or a size.
pub fn parse(text: &str) -> Result<RequestedMode, String> {
    match text {
        "auto" => Ok(None),
        "none" | "0" => Ok(Some(BufferMode::None)),
        "line" | "L" => Ok(Some(BufferMode::Line)),
        "full" => Ok(Some(BufferMode::Full(None))),
        _ => {
            let size = text.strip_prefix("full:").unwrap_or(text);
            let size: Size = size.parse().map_err(|error| {
                format!("{error}; modes: none, line, full, full:SIZE, auto, or 0, L, SIZE as in stdbuf")
            })?;
            Ok(Some(if size.0 == 0 { BufferMode::None } else { BufferMode::Full(Some(size)) }))
        }
    }
}

/// Parses a mode of standard input, which has no line mode.
pub fn parse_input(text: &str) -> Result<RequestedMode, String> {
    match parse(text)? {
        Some(BufferMode::Line) => Err("line: input has no line mode; use none, full or full:SIZE".into()),
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
    fn a_file_has_a_pattern_and_a_mode() {
        assert_eq!(parse_file("a=b.log=line"), Ok(("a=b.log".into(), Some(BufferMode::Line))));
        assert!(parse_file("x").is_err() && parse_file("=line").is_err() && parse_file("x=y").is_err());
    }
}
