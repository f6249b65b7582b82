//! Detects what the terminals behind standard output and standard error can show.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use weir_report::Style;

/// Widest layout in columns; longer table rows are hard to follow with the eye.
const MAX_WIDTH: usize = 120;
/// Narrowest layout in columns; the tables need this much.
const MIN_WIDTH: usize = 40;

/// Returns the style for standard output: colour only on a terminal and never with NO_COLOR, the terminal's width or 80.
pub fn stdout_style() -> Style {
    detect(&io::stdout())
}

/// Returns the style for standard error, by the same rules.
pub fn stderr_style() -> Style {
    detect(&io::stderr())
}

fn detect(stream: &(impl AsFd + IsTerminal + anstream::stream::RawStream)) -> Style {
    let colour = anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never;
    let size = rustix::termios::tcgetwinsize(stream);
    let columns = size.as_ref().map_or(0, |size| usize::from(size.ws_col));
    let rows = size.as_ref().map_or(0, |size| usize::from(size.ws_row));
    let unicode = supports_unicode(IsTerminal::is_terminal(stream));
    let width = if columns == 0 { 80 } else { columns.clamp(MIN_WIDTH, MAX_WIDTH) };
    Style { colour, unicode, width, rows: if rows == 0 { 24 } else { rows } }
}

/// Returns false only for a terminal whose locale names another encoding than UTF-8.
fn supports_unicode(is_terminal: bool) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).map(|value| value.to_ascii_uppercase());
    locale.is_none_or(|locale| locale.contains("UTF-8") || locale.contains("UTF8") || !is_terminal)
}
