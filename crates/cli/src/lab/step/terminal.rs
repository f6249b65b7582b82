//! The terminal with single keys, and as it was before: whatever ends weir, it is put back.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::keys::{Key, keys};

/// A signal that ends weir, and another size, are noticed within this time.
const NOTICE: Duration = Duration::from_millis(200);
/// The alternate screen without a cursor, and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Put back when dropped.
pub struct Terminal {
    before: Termios,
    waiting: VecDeque<Key>,
    size: (u16, u16),
}

impl Terminal {
    /// Takes it.
    pub fn take() -> io::Result<Terminal> {
        let before = tcgetattr(io::stdin())?;
        leave_in_panic(before.clone());
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let terminal = Terminal { before, waiting: VecDeque::new(), size: size() };
        io::stdout().write_all(ENTER)?;
        Ok(terminal)
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

impl Drop for Terminal {
    fn drop(&mut self) {
        put_back(&self.before);
    }
}

/// As far as it goes: the terminal may be gone.
fn put_back(before: &Termios) {
    let _ = io::stdout().write_all(LEAVE).and_then(|()| io::stdout().flush());
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
}

/// Rows and columns; those of old where the terminal says none.
fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}

/// What a panic says is to be read on the normal screen.
fn leave_in_panic(before: Termios) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            put_back(&before);
            hook(about);
        }));
    });
}
