//! Detects what the terminals behind standard output and standard error can show.

use std::io;
use std::os::fd::AsFd;

use weir_report::Style;
use weir_sys::file_system::is_terminal;

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

fn detect(stream: &(impl AsFd + anstream::stream::RawStream)) -> Style {
    // anstream calls isatty(3), and tcgetwinsize is an ioctl(2) too: both ask the server of a FUSE file.
    if !is_terminal(stream) {
        return Style { colour: forces_colour(), unicode: true, width: 80, rows: 24 };
    }
    let colour = anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never;
    let size = rustix::termios::tcgetwinsize(stream);
    let columns = size.as_ref().map_or(0, |size| usize::from(size.ws_col));
    let rows = size.as_ref().map_or(0, |size| usize::from(size.ws_row));
    let unicode = supports_unicode();
    let width = if columns == 0 { 80 } else { columns.clamp(MIN_WIDTH, MAX_WIDTH) };
    Style { colour, unicode, width, rows: if rows == 0 { 24 } else { rows } }
}

/// Returns false only for a terminal whose locale names another encoding than UTF-8.
fn supports_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).map(|value| value.to_ascii_uppercase());
    locale.is_none_or(|locale| locale.contains("UTF-8") || locale.contains("UTF8"))
}

/// Returns whether the environment asks for colour also where there is no terminal (bixense.com/clicolors, no-color.org).
fn forces_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("CLICOLOR_FORCE") && !is_set("NO_COLOR")
}
