//! What the terminal can show, and printing to it.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use weir_report::Style;

/// Widest screen that tables are laid out for; wider ones are hard to read across.
const MAX_WIDTH: usize = 120;

/// Colour only on terminals and never with NO_COLOR; the terminal's width, 80 elsewhere.
pub fn style() -> Style {
    style_of(&io::stdout())
}

/// The same for standard error.
pub fn error_style() -> Style {
    style_of(&io::stderr())
}

/// Is standard output a terminal?
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

fn style_of(stream: &(impl AsFd + IsTerminal + anstream::stream::RawStream)) -> Style {
    let colour = anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never;
    let width = rustix::termios::tcgetwinsize(stream).map_or(80, |size| usize::from(size.ws_col));
    let unicode = unicode(IsTerminal::is_terminal(stream));
    Style { colour, unicode, width: if width == 0 { 80 } else { width.clamp(40, MAX_WIDTH) } }
}

/// False only where the locale says that the terminal shows something else.
fn unicode(terminal: bool) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).map(|value| value.to_ascii_uppercase());
    locale.is_none_or(|locale| locale.contains("UTF-8") || locale.contains("UTF8") || !terminal)
}

/// Prints to standard output. A reader that went away has seen enough: that is no error.
pub fn print(text: &str) -> io::Result<()> {
    print_to(&mut io::stdout().lock(), text)
}

/// Prints to standard error in one piece; on a terminal on a new line, whatever a program left there.
pub fn print_error(text: &str) -> io::Result<()> {
    let start = if io::stderr().is_terminal() { "\n" } else { "" };
    print_to(&mut io::stderr().lock(), &format!("{start}{text}"))
}

fn print_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
