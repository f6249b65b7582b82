//! Prints to standard output and standard error.

use std::io::{self, Write};
use std::path::Path;

use weir_bench::Error;
use weir_sys::file_system::is_terminal;

/// Prints to standard output. A pipe without a reader (EPIPE) is no error: the peer has read what it wanted.
pub fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints bytes to standard output, as [`print`] prints text.
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    check_stdout()?;
    print_to(&mut io::stdout().lock(), bytes)
}

/// Fails with EBADF if weir inherited standard output closed. Rust's stdout ignores that error.
pub fn check_stdout() -> io::Result<()> {
    match weir_sys::inherited::was_closed(1) {
        true => Err(rustix::io::Errno::BADF.into()),
        false => Ok(()),
    }
}

/// Prints to standard error with one write. On a terminal the text begins with a newline, because the traced command
/// may have left the cursor in the middle of a line.
pub fn print_error(text: &str) -> io::Result<()> {
    let start = if is_terminal(io::stderr()) { "\n" } else { "" };
    print_to(&mut io::stderr().lock(), format!("{start}{text}").as_bytes())
}

/// Prints the result of a verb to standard output. The error is a message for the user.
pub fn print_screen(text: &str) -> Result<(), String> {
    print(text).map_err(|error| stdout_error(&error))
}

/// Returns the message about a failed write to standard output.
pub fn stdout_error(error: &io::Error) -> String {
    let advice = match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::BADF) => "standard output is closed: open it, such as with >FILE",
        _ => "choose another file",
    };
    Error::system("write", Path::new("standard output"), error, advice).to_string()
}

/// Returns whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    is_terminal(io::stdout())
}

fn print_to(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
