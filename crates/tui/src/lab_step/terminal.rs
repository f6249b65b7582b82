//! The terminal of the step viewer: draws whole frames and reads keys.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::tcgetwinsize;

use super::keys::{StepKey, decode};
use crate::POLL_INTERVAL;
use crate::alternate_screen::AlternateScreen;
use crate::terminal_events::terminal_events;

/// Why [`StepTerminal::wait`] returned.
pub enum TerminalEvent {
    /// A key was pressed.
    Key(StepKey),
    /// The terminal has another size: draw the frame again.
    Resized,
    /// A signal or the end of the input ended the viewer.
    Closed,
}

/// Standard input and output as a terminal; dropping the value restores it.
pub struct StepTerminal {
    _alternate_screen: AlternateScreen,
    unread_keys: VecDeque<StepKey>,
    size: TerminalSize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct TerminalSize {
    rows: u16,
    columns: u16,
}

impl StepTerminal {
    /// Enters the alternate screen.
    pub fn enter() -> io::Result<StepTerminal> {
        let alternate_screen = AlternateScreen::enter()?;
        Ok(StepTerminal { _alternate_screen: alternate_screen, unread_keys: VecDeque::new(), size: size() })
    }

    /// Returns the height of the terminal in rows.
    pub fn rows(&self) -> usize {
        usize::from(self.size.rows)
    }

    /// Draws `lines` from the top left corner with one write.
    pub fn draw(&self, lines: &[String]) -> io::Result<()> {
        // Clears each line just before its text, not the whole screen first, so that nothing flickers. Clearing after the
        // text would erase the last letter of a line that is as wide as the screen.
        let text = lines.iter().map(|line| format!("\x1b[K{line}")).collect::<Vec<_>>().join("\r\n");
        let mut stdout = io::stdout().lock();
        stdout.write_all(format!("\x1b[H{text}\x1b[J").as_bytes())?;
        stdout.flush()
    }

    /// Waits for a key, another size of the terminal, the end of the input, or `stop`.
    pub fn wait(&mut self, stop: &AtomicBool) -> io::Result<TerminalEvent> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(TerminalEvent::Closed);
            }
            if let Some(key) = self.unread_keys.pop_front() {
                return Ok(TerminalEvent::Key(key));
            }
            if terminal_events(io::stdin().as_fd(), POLL_INTERVAL)?.is_empty() {
                if std::mem::replace(&mut self.size, size()) != self.size {
                    return Ok(TerminalEvent::Resized);
                }
                continue;
            }
            let mut bytes = [0; 64];
            match rustix::io::read(io::stdin(), &mut bytes) {
                Ok(0) => return Ok(TerminalEvent::Closed),
                Ok(count) => self.unread_keys.extend(decode(&bytes[..count])),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Returns the terminal's size, or the classic 24 × 80 where it reports none.
fn size() -> TerminalSize {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 => TerminalSize { rows: size.ws_row, columns: size.ws_col },
        _ => TerminalSize { rows: 24, columns: 80 },
    }
}
