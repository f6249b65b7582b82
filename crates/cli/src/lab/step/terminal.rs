//! The terminal as the steps need it: whole pictures, and keys.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::tcgetwinsize;

use super::keys::{Key, keys};
use crate::terminal::Taken;

/// A signal that ends weir, and another size, are noticed within this time.
const NOTICE: Duration = Duration::from_millis(200);

/// Put back when dropped.
pub struct Terminal {
    _taken: Taken,
    waiting: VecDeque<Key>,
    size: (u16, u16),
}

impl Terminal {
    /// Takes it.
    pub fn take() -> io::Result<Terminal> {
        Ok(Terminal { _taken: Taken::take()?, waiting: VecDeque::new(), size: size() })
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        usize::from(self.size.0)
    }

    /// Shows these lines in one piece.
    pub fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        // Line by line, not the whole screen first: nothing flickers. Before the line: behind one that is as wide as
        // the screen its last letter would be cleared.
        let text = lines.iter().map(|line| format!("\x1b[K{line}")).collect::<Vec<_>>().join("\r\n");
        out.write_all(format!("\x1b[H{text}\x1b[J").as_bytes())?;
        out.flush()
    }

    /// The next key; None: a signal, or nobody is there any more.
    pub fn key(&mut self, stop: &AtomicBool) -> io::Result<Option<Key>> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if let Some(key) = self.waiting.pop_front() {
                return Ok(Some(key));
            }
            if !self.is_ready()? {
                if std::mem::replace(&mut self.size, size()) != self.size {
                    return Ok(Some(Key::Resized));
                }
                continue;
            }
            let mut bytes = [0; 64];
            match rustix::io::read(io::stdin(), &mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.waiting.extend(keys(&bytes[..count])),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_ready(&self) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut files = [PollFd::new(&stdin, PollFlags::IN)];
        let time = rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(NOTICE.subsec_nanos()) };
        match poll(&mut files, Some(&time)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Rows and columns; those of old where the terminal says none.
fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}
