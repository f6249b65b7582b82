//! What the terminal can show, and printing to it.

use std::io::{self, IsTerminal, Write};

use weir_report::Style;

/// Widest screen that tables are laid out for; wider ones are hard to read across.
const MAX_WIDTH: usize = 120;

/// Colour only on terminals and never with NO_COLOR; the terminal's width, 80 elsewhere.
pub fn style() -> Style {
    let colour = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let width = rustix::termios::tcgetwinsize(io::stdout()).map_or(80, |size| usize::from(size.ws_col));
    Style { colour, unicode: unicode(), width: if width == 0 { 80 } else { width.clamp(40, MAX_WIDTH) } }
}

/// False only where the locale says that the terminal shows something else.
fn unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).map(|value| value.to_ascii_uppercase());
    locale.is_none_or(|locale| {
        locale.contains("UTF-8") || locale.contains("UTF8") || !io::stdout().is_terminal()
    })
}

/// Prints to standard output. A reader that went away has seen enough: that is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
