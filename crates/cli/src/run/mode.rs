//! MODE of --stdin and the others: weir's words, and stdbuf's letters and sizes.

use weir_control::plan::request::BufferMode;
use weir_model::Size;

/// A mode, or none: `auto` leaves it to the program.
pub type Asked = Option<BufferMode>;

/// `none`, `line`, `full[:SIZE]`, `auto`; or as stdbuf(1) has it: `0`, `L`, a size.
pub fn parse(text: &str) -> Result<Asked, String> {
    match text {
        "auto" => Ok(None),
        "none" | "0" => Ok(Some(BufferMode::None)),
        "line" | "L" => Ok(Some(BufferMode::Line)),
        "full" => Ok(Some(BufferMode::Full(None))),
        _ => {
            let size = text.strip_prefix("full:").unwrap_or(text);
            let size: Size = size.parse().map_err(|error| {
                format!(
                    "{error}; a mode is none, line, full, full:SIZE or auto, or 0, L or SIZE as in stdbuf"
                )
            })?;
            Ok(Some(if size.0 == 0 { BufferMode::None } else { BufferMode::Full(Some(size)) }))
        }
    }
}

/// The same for what is read: there are no lines to wait for.
pub fn parse_input(text: &str) -> Result<Asked, String> {
    match parse(text)? {
        Some(BufferMode::Line) => Err("line: input is taken as it comes; use none, full or full:SIZE".into()),
        other => Ok(other),
    }
}

/// `GLOB=MODE`; the pattern may hold further `=`.
pub fn parse_file(text: &str) -> Result<(String, Asked), String> {
    let (glob, mode) = text.rsplit_once('=').ok_or("write GLOB=MODE, such as '*.log=line'")?;
    if glob.is_empty() || glob.contains('\n') {
        return Err("the pattern in front of '=' must be a line of text".into());
    }
    Ok((glob.into(), parse(mode)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_stdbufs_letters() {
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
